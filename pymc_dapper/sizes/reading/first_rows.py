"""Factors of the first n rows, computed from these rows alone."""

import pytensor.tensor as pt
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.reading.factors import AdditiveFactor, SeparableFactor, read_factors
from pymc_dapper.records.reading.rows_of_others import rows_of_others
from pymc_dapper.sizes.reading.flags import at_flags, is_zero
from pymc_dapper.sizes.reading.model import NumberedRecords


def factors_of_first_rows(seen: NumberedRecords) -> dict[str, TensorVariable]:
    """Write factors of the present rows so that they don't use the others.

    Each factor is a sum, and equals the model's own for numbers of records 0, ..., N. Factors
    without this property, or not known to have it, are left out.
    """
    written = {}
    for name, graph in seen.graphs.items():
        if seen.present in ancestors([graph]):
            first = _of_first_rows(name, graph, seen)
            if first is not None:
                written[name] = first
    return written


def _of_first_rows(
    name: str, graph: TensorVariable, seen: NumberedRecords
) -> TensorVariable | None:
    [read] = read_factors({name: graph}, [*seen.records, seen.present])
    match read:
        case SeparableFactor(log_densities=rows):
            rows_there = _first(rows, seen)
            return None if rows_there is None else rows_there.sum()
        case AdditiveFactor(log_density=log_density, sums=sums):
            totals: dict[Variable, Variable] = {}
            for sum_ in sums:
                first = _first(sum_.contributions, seen)
                if first is None:
                    return None
                totals[sum_.total] = first.sum(axis=0).astype(sum_.total.dtype)
            return rebuild([log_density], totals)[0]
    return None


def _first(rows: TensorVariable, seen: NumberedRecords) -> TensorVariable | None:
    """Return contributions of the first n rows; None if unknown, or if other rows add, too."""
    there, absent = (at_flags([rows], seen.present, x)[0] for x in (True, False))
    if not is_zero(absent):
        return None
    n = seen.size
    if set(seen.records).isdisjoint(ancestors([there])):
        return there[:n]

    def covariate(x: TensorVariable, axis: int) -> TensorVariable:
        return pt.moveaxis(pt.moveaxis(x, axis, 0)[:n], 0, axis)

    return rows_of_others(there, {x: x[:n] for x in seen.records}, covariate)
