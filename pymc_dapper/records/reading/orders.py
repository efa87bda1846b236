"""Factors that depend on order statistics of records, such as a median or a maximum, and sums."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.graph.basic import equal_computations
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.math import Max
from pytensor.tensor.sort import SortOp
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs import ops
from pymc_dapper.graphs.errors import NotAdditiveError, ReadingError, UnknownOperationError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild
from pymc_dapper.records.reading.contributions import RowMaker, RowsAtOnce, read_rows
from pymc_dapper.records.reading.factors import (
    AdditiveFactor,
    Factor,
    FullFactor,
    RecordSum,
    RecordWalk,
    SeparableFactor,
    read_factors,
    sums_of,
)
from pymc_dapper.records.reading.known_totals import find_known_totals
from pymc_dapper.records.reading.roles import Rows

MOST = 16
"""Most order statistics that are followed."""


@dataclass(frozen=True)
class ByOrder:
    """The log-density as a function of some order statistics of the records, and of sums."""

    columns: tuple[TensorVariable, ...]
    """Shape (n,) each: a number of each record. What is nan comes last, as infinity does."""
    ranks: np.ndarray
    """Ints, shape (q, 2): of which column each order statistic is, and its rank from 0 on."""
    statistics: tuple[TensorVariable, ...]
    """Scalars that stand for them in the log-density."""
    log_density: TensorVariable
    """Scalar: of all factors but the separable ones, a function of ``statistics`` and ``sums``."""
    sums: tuple[RecordSum, ...]
    rows: RowMaker
    """How contributions to the sums are computed."""


def read_orders(records: Sequence[TensorVariable], factors: Sequence[Factor]) -> ByOrder | None:
    """Read factors as functions of few order statistics of records, and of sums.

    None if one isn't. Separable factors are left out.
    """
    whole = {x.name: x for x in factors if not isinstance(x, SeparableFactor)}
    written = [x.as_written for x in whole.values()]
    found = _Found(records)
    for node in io_toposort([], written):
        found.look_at(node)
    if not found.replaced or len(found.ranks) > MOST:
        return None
    graphs = dict(zip(whole, rebuild(written, found.replaced), strict=True))
    rest = read_factors(graphs, records)
    additive = [x for x in rest if isinstance(x, AdditiveFactor)]
    sums, statistics = sums_of(additive), list(found.ranks.values())
    seen = dependent_variables(statistics, [x.contributions for x in sums])
    if (
        len(additive) < len(rest)
        or any(x.contributions in seen for x in sums)
        # Digits might be lost unseen.
        or any(x.expanded and isinstance(whole[x.name], FullFactor) for x in additive)
    ):
        return None
    graphs |= {x.name: x.log_density for x in additive}
    _refuse_known(records, graphs, statistics)
    return ByOrder(
        columns=tuple(found.columns),
        ranks=np.array(list(found.ranks), dtype=np.int64),
        statistics=tuple(statistics),
        log_density=pt.add(*graphs.values()),
        sums=tuple(sums),
        rows=read_rows(records, sums) if sums else RowsAtOnce(),
    )


def _refuse_known(
    records: Sequence[TensorVariable],
    graphs: Mapping[str, TensorVariable],
    statistics: Sequence[TensorVariable],
) -> None:
    """Refuse an order statistic of continuous records that is known exactly."""
    factors = [AdditiveFactor(name, x, x, (), False, x) for name, x in graphs.items()]
    known = find_known_totals(factors, [RecordSum(x, x) for x in statistics])
    if known is None or any(np.dtype(x.dtype).kind != "f" for x in records):
        return
    for name, tolerance in zip(known.factors, known.tolerances, strict=True):
        if tolerance == 0:
            raise ReadingError(
                f"'{name}': a maximum or another order statistic of the records is known exactly, "
                "and no proposal of continuous records meets it. If all records have the same "
                "prior, the log-density of the order statistic is known without them: add that as "
                "a pm.Potential, as the page on medians and quantiles does. If the published "
                "value is rounded, write pt.switch(pt.abs(statistic - published) < 0.005, 0, "
                "-np.inf)"
            )


class _Found:
    """Order statistics of records in a graph, each with a variable that stands for it."""

    def __init__(self, records: Sequence[TensorVariable]):
        self._records = records
        self.columns: list[TensorVariable] = []
        self.ranks: dict[tuple[int, int], TensorVariable] = {}
        self.replaced: dict[Variable, Variable] = {}

    def look_at(self, node: Apply) -> None:
        """Note the order statistics that an operation takes, if it does."""
        ordered, places = _taken(node)
        if ordered is None or places is None or places.size > MOST:
            return
        column = self._column(ordered)
        if column is None:
            return
        of_each = [self.ranks.setdefault((column, int(k)), pt.dscalar()) for k in places.flat]
        [output] = node.outputs
        same = pt.stack(of_each).reshape(places.shape).astype(output.type.dtype)
        self.replaced[output] = same

    def _column(self, ordered: TensorVariable) -> int | None:
        """Return which of the columns is ordered; None if it has no entry of one record each."""
        walk = RecordWalk(self._records)
        try:
            role, followed = walk.follow(ordered)
        except (NotAdditiveError, UnknownOperationError):
            return None
        if not isinstance(role, Rows) or walk.sums:
            return None
        column = pt.switch(pt.isnan(followed), np.inf, followed).astype("float64")
        if role.records is not None:
            # Records that aren't among them come last.
            of = known_value(role.records)
            if of is None or len(np.unique(of)) < of.size:
                return None
            last = pt.constant(np.full(self._records[0].type.shape[0], np.inf))
            column = pt.set_subtensor(last[of], column)
        for k, known in enumerate(self.columns):
            if equal_computations([known], [column]):
                return k
        self.columns.append(column)
        return len(self.columns) - 1


def _taken(node: Apply) -> tuple[TensorVariable | None, np.ndarray | None]:
    """Return the vector of which a node takes order statistics, and their ranks."""
    x: Any = node.inputs[0] if node.inputs else None
    if getattr(x, "ndim", None) != 1 or x.type.shape[0] is None:
        return None, None
    if isinstance(node.op, Max):
        return x, np.array(x.type.shape[0] - 1)
    if (
        x.owner
        and isinstance(x.owner.op, SortOp)
        and isinstance(ops.action_of(node.op, node), ops.Moves)
    ):
        numbers = pt.arange(x.type.shape[0])
        [places] = node.clone_with_new_inputs([numbers, *node.inputs[1:]], strict=False).outputs
        return x.owner.inputs[0], known_value(places)
    return None, None
