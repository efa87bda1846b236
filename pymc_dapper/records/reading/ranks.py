"""Releases of quantiles, which depend only on how many records lie around each candidate."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from operator import attrgetter
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.graph.basic import equal_computations
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.entries import CellOf
from pymc_dapper.backend.ranks import RankChoice
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables, inline_symbolic_ops
from pymc_dapper.records.reading.factors import AdditiveFactor, sums_of
from pymc_dapper.records.reading.rows_by_cell import LARGEST_TABLE, rows_by_value

_cuts = attrgetter("owner.op.scalar_op.table")
"""The cuts between cells."""


@dataclass(frozen=True)
class ByRanks:
    """Where records lie among the candidates of released quantiles."""

    mechanisms: tuple[Any, ...]
    chosen: tuple[TensorVariable, ...]
    """Scalars: the number of the released candidate."""
    columns: np.ndarray
    """Ints, shape (number of releases, k): in which column a record of each interval is counted."""
    index: TensorVariable
    """Unsigned ints, shape (n,): the interval of each record."""


def read_ranks(
    records: Sequence[TensorVariable], factors: Sequence[AdditiveFactor]
) -> ByRanks | None:
    """Read factors that are choices among candidates; None if one isn't.

    In each factor, the interval of a record must determine the one column that counts it.
    """
    choices = [factor.wrapped for factor in factors]
    if not all(x.owner and isinstance(x.owner.op, RankChoice) and not x.type.ndim for x in choices):
        return None
    sums = sums_of(factors)
    cells = _cells(records, [sum_.contributions for sum_ in sums])
    if cells is None:
        return None
    most = LARGEST_TABLE // max(x.owner.op.mechanism.columns[-1] for x in choices)
    cuts = [np.unique(np.concatenate([_cuts(x) for x in each])) for each in cells.values()]
    sizes = [len(each) + 1 for each in cuts]
    if prod(sizes) > most:
        return None
    index: TensorVariable = pt.constant(0)
    numbers: dict[TensorVariable, np.ndarray] = {}
    within = np.unravel_index(np.arange(prod(sizes)), sizes)
    for of, own, at in zip(cells, cuts, within, strict=True):
        index = index * (len(own) + 1) + Elemwise(CellOf(own))(of).dimshuffle(0)
        starts = np.append(-np.inf, own)[at]
        numbers |= {x: np.searchsorted(_cuts(x), starts, side="right") for x in cells[of]}
    columns, values = [], np.column_stack(list(numbers.values()))
    for counts in inline_symbolic_ops([x.owner.inputs[1] for x in choices]):
        same = [x.contributions for x in sums if equal_computations([x.total], [counts])]
        rows = rows_by_value(same[0], list(numbers), values) if same else None
        table = None if rows is None else known_value(rows)
        if table is None or not np.isin(table, (0, 1)).all() or np.any(table.sum(axis=1) != 1):
            return None
        columns.append(table.argmax(axis=1))
    return ByRanks(
        mechanisms=tuple(x.owner.op.mechanism for x in choices),
        chosen=tuple(x.owner.inputs[0] for x in choices),
        columns=np.array(columns),
        index=index.astype(np.min_scalar_type(prod(sizes)).name),
    )


def _cells(
    records: Sequence[TensorVariable], contributions: Sequence[TensorVariable]
) -> dict[TensorVariable, list[TensorVariable]] | None:
    """Find the cells of each variable by which alone records contribute.

    They have a record axis, the first. None if records contribute by anything else.
    """
    dependent = dependent_variables(records, contributions)
    cells: dict[TensorVariable, list[TensorVariable]] = {}
    left: list[Variable] = list(contributions)
    while left:
        x = left.pop()
        if x not in dependent:
            continue
        if x.owner is None:
            return None
        if not isinstance(getattr(x.owner.op, "scalar_op", None), CellOf):
            left += x.owner.inputs
            continue
        if x.type.ndim == 0 or any(length != 1 for length in x.type.shape[1:]):
            return None
        [number] = x.owner.inputs
        same = (y for y in cells if equal_computations([y], [number]))
        cells.setdefault(next(same, number), []).append(x)
    return cells
