"""Whether the rows of records are alike, so that they can change places."""

from collections.abc import Sequence

import numpy as np
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.view import ModelView
from pymc_dapper.records.reading.rows_of_others import rows_of_others


def what_ties(
    view: ModelView,
    rvs: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
    contributions: Sequence[tuple[str, tuple[TensorVariable, TensorVariable]]],
) -> str | None:
    """Say what ties records to their place: their prior, or their contribution to a sum.

    ``contributions`` has, with a factor's name, each row's contribution if present and if absent.
    None if whole rows of all record variables can be permuted without changing the log-density. If
    that isn't known, records count as tied.
    """
    for rv in rvs:
        parameters = [x for x in rv.owner.inputs if isinstance(x, TensorVariable)]
        if not all(_same_for_all(x, records) for x in view.at_values(parameters)):
            return f"the prior of '{rv.name}' isn't known to be the same for all rows"
    for factor, pair in contributions:
        if not all(_adds_alike(x, records) for x in pair):
            return f"what a record adds to a sum in '{factor}' isn't known to be alike for all rows"
    return None


def _same_for_all(parameter: TensorVariable, records: Sequence[TensorVariable]) -> bool:
    """Whether a parameter of the records' prior is the same for all, or a function of the row."""
    if not set(records).isdisjoint(ancestors([parameter])):
        return _is_function_of_row(parameter, records)
    [length] = records[0].type.shape[:1]
    return {None, length}.isdisjoint(parameter.type.shape)


def _adds_alike(rows: TensorVariable, records: Sequence[TensorVariable]) -> bool:
    if not set(records).isdisjoint(ancestors([rows])):
        return _is_function_of_row(rows, records)
    values = known_value(rows)
    return values is not None and bool(np.all(values == values[:1]))


def _is_function_of_row(graph: TensorVariable, records: Sequence[TensorVariable]) -> bool:
    """Whether slice i of a graph is the same function of the i-th row of all records, for all i."""
    others: dict[Variable, Variable] = {x: x.type() for x in records}
    return rows_of_others(graph, others, lambda covariate, axis: None) is not None
