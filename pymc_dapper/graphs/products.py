"""Probabilities that are products of tables, looked up entry by entry, and divided by their sum."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply, Op, Variable
from pytensor.graph.basic import equal_computations
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.bounds import bounds_of
from pymc_dapper.kernels.products import OUT_OF_RANGE


@dataclass(frozen=True, eq=False)
class Lookup:
    """A table of weights, and which of its rows each entry looks up."""

    table: TensorVariable
    """The last axis is that of categories."""
    indices: tuple[TensorVariable, ...]
    """Vectors of integers, one for each axis of the table but the last."""

    @property
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the axes that are looked up."""
        return self.table.type.shape[:-1]


def normalised_factors(p: TensorVariable) -> list[TensorVariable] | None:
    """Take probabilities apart that are a product divided by its sum; None for others."""
    match bare(p).owner:
        case Apply(op=Elemwise(scalar_op=ps.TrueDiv()), inputs=[products, total]):
            products = bare(products)
            if _is_total(bare(total), products):
                return [bare(factor) for factor in _factors(products)]
    return None


def bare(x: TensorVariable) -> TensorVariable:
    """Leave out axes of length one that were added in front or behind."""
    match x.owner:
        case Apply(op=DimShuffle() as op, inputs=[inner]) if not op.shuffle or op.augment:
            kept = [axis for axis in op.new_order if axis != "x"]
            return inner if kept == list(range(inner.type.ndim)) else x
    return x


def _is_total(total: TensorVariable, products: TensorVariable) -> bool:
    """Whether one variable is the sum of another over its last axis."""
    match total.owner:
        case Apply(op=Sum(axis=(axis,)), inputs=[summed]):
            return _is_same(summed, products) and axis == products.type.ndim - 1
        case Apply(op=Sum(axis=None), inputs=[summed]):
            return _is_same(summed, products) and products.type.ndim == 1
    return False


def _is_same(x: TensorVariable, y: TensorVariable) -> bool:
    return equal_computations([bare(x)], [y])


def _factors(product: TensorVariable) -> list[TensorVariable]:
    match product.owner:
        case Apply(op=Elemwise(scalar_op=ps.Mul()), inputs=inputs):
            return [factor for x in inputs for factor in _factors(x)]
    return [product]


def read_lookup(factor: TensorVariable) -> Lookup | None:
    """Read a factor as rows of a table, some of these, or its only row; None for anything else."""
    if factor.type.ndim == 1:
        return Lookup(factor, ())
    match factor.owner:
        case Apply(op=AdvancedSubtensor() as op, inputs=[table, *inputs]):
            indices: list[Any] = indices_from_subtensor(inputs, op.idx_list)
            vectors = all(isinstance(x, TensorVariable) and x.type.ndim == 1 for x in indices)
            if vectors and len(indices) == table.type.ndim - 1:
                return Lookup(table, tuple(indices))
        case Apply(op=Subtensor(idx_list=(slice(),)) as op, inputs=[rows, *ends]):
            if (lookup := read_lookup(rows)) is not None and lookup.indices:
                return Lookup(lookup.table, tuple(op(x, *ends) for x in lookup.indices))
    return None


def joined(parts: Sequence[TensorVariable]) -> TensorVariable:
    """Join arrays, flattened, as a vector of float64. A function that all are of is applied once.

    So compiled code doesn't evaluate it for each array.
    """
    match parts[0].owner:
        case Apply(op=Elemwise() as op, inputs=[_]) if all(
            x.owner is not None and x.owner.op == op for x in parts
        ):
            return pt.cast(op(joined([x.owner.inputs[0] for x in parts])), "float64")
    return pt.concatenate([pt.cast(x, "float64").flatten() for x in parts])


def rows_looked_up(
    n: int, indices: np.ndarray, lengths: np.ndarray, axes: np.ndarray
) -> np.ndarray:
    """Return the rows that n entries look up in each table, (number of tables, n), by NumPy.

    Rows of all tables are numbered. Arguments and errors are those of the kernel `look_up`.
    """
    ends, start, found = np.cumsum(axes), 0, []
    for first, last in zip([0, *ends[:-1]], ends, strict=True):
        rows, size = np.zeros(n, dtype=np.int64), 1
        for at, length in zip(indices.reshape(-1, n)[first:last], lengths[first:last], strict=True):
            if at.min(initial=0) < -length or at.max(initial=0) >= length:
                raise IndexError(OUT_OF_RANGE)
            rows, size = rows * length + at % length, size * length
        found.append(start + rows)
        start += size
    return np.array(found)


def flat_lookups(lookups: Sequence[Lookup]) -> list[TensorVariable]:
    """Return the indices, lengths and numbers of axes of look-ups, as kernels take them.

    Indices are never a constant. For a constant array, numba would compile a kernel once more.
    """
    indices = [pt.cast(x, "int64") for lookup in lookups for x in lookup.indices]
    lengths = [length for lookup in lookups for length in lookup.lengths]
    axes = [len(lookup.indices) for lookup in lookups]
    return [
        pt.concatenate(indices) if indices else pt.empty(0, dtype="int64"),
        *(pt.constant(np.array(x, dtype=np.int64)) for x in (lengths, axes)),
    ]


class ChosenByProducts(Op):
    """Categories chosen by uniform numbers, as the kernel `choose_by_products` does it.

    Parameters
    ----------
    size : int
        Number of categories.
    """

    __props__ = ("size",)

    def __init__(self, size: int):
        self.size = size

    def make_node(self, u: Variable, *inputs: Variable) -> Apply:
        """Apply to uniform numbers, tables and look-ups."""
        return Apply(self, [u, *inputs], [pt.tensor(dtype="int64", shape=u.type.shape)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Choose in NumPy, for all entries at once."""
        u, weights, *lookups = inputs
        rows = weights.reshape(-1, self.size)[rows_looked_up(len(u), *lookups)]
        cumulated = np.cumsum(rows.prod(axis=0), axis=1)
        total = cumulated[:, -1]
        chosen = ((u * total)[:, None] >= cumulated[:, :-1]).sum(axis=1)
        output_storage[0][0] = np.where((total > 0) & np.isfinite(total), chosen, -1)


class ChosenByRows(Op):
    """Categories chosen by uniform numbers, as the kernel `choose_by_rows` does it."""

    __props__ = ()

    def make_node(self, u: Variable, *inputs: Variable) -> Apply:
        """Apply to uniform numbers, a table and a look-up."""
        return Apply(self, [u, *inputs], [pt.tensor(dtype="int64", shape=u.type.shape)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Choose in NumPy, for all entries at once."""
        u, table, indices, lengths = inputs
        [rows] = rows_looked_up(len(u), indices, lengths, np.array([len(lengths)]))
        cumulated = np.cumsum(table, axis=1)[rows]
        output_storage[0][0] = ((u * cumulated[:, -1])[:, None] >= cumulated[:, :-1]).sum(axis=1)


def chosen_by_rows(u: TensorVariable, p: TensorVariable) -> TensorVariable | None:
    """Choose a category for each uniform number by a row of a table; None for other ``p``."""
    lookup = read_lookup(p)
    if lookup is None or None in (*p.type.shape, *lookup.lengths) or not lookup.indices:
        return None
    if any(x.type.shape != u.type.shape for x in lookup.indices):
        return None
    indices, lengths, _ = flat_lookups([lookup])
    table = pt.cast(lookup.table, "float64").reshape((-1, p.type.shape[-1]))
    return ChosenByRows()(u, table, indices, lengths)


def chosen_by_products(u: TensorVariable, p: TensorVariable) -> TensorVariable | None:
    """Choose a category for each uniform number by products of tables; None for other ``p``.

    -1 is chosen where the products have no sum, or none above zero.
    """
    if not (lookups := lookups_of(p, u.type.shape)):
        return None
    tables = joined([lookup.table for lookup in lookups])
    return ChosenByProducts(p.type.shape[-1])(u, tables, *flat_lookups(lookups))


def lookups_of(p: TensorVariable, shape: tuple[int | None, ...]) -> list[Lookup]:
    """Read probabilities of entries as normalised products of tables; nothing for others.

    No weight in the tables may be negative.
    """
    size, found = p.type.shape[-1], [read_lookup(x) for x in normalised_factors(p) or ()]
    lookups = [x for x in found if x is not None and x.table.type.shape[-1] == size]
    indices = [x for lookup in lookups for x in lookup.indices]
    known = None not in (size, *shape, *(n for lookup in lookups for n in lookup.lengths))
    by_entry = indices and all(x.type.shape == shape for x in indices)
    if not (known and by_entry and len(lookups) == len(found)):
        return []
    bounds = [bounds_of(lookup.table, {}) for lookup in lookups]
    return lookups if all(x is not None and x.low >= 0 for x in bounds) else []
