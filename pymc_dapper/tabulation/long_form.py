"""Matrices of records in long form: one record for each entry, as of a table with a row for each.

If ``x`` has shape (n, k), such as k answers of each of n people, entry (i, j) is record i k + j.
Arrays that differ between entries are looked up by i and j.
"""

from collections.abc import Collection
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.checks import localise_checks
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.naming import describe
from pymc_dapper.graphs.rebuild import dependent_variables, with_inputs
from pymc_dapper.tabulation.errors import TabulationError


class LongForm:
    """Writes graphs of a matrix of records, of known shape, in terms of its entries.

    ``entries`` is a vector of them, the last axis running fastest. ``flat`` has vectors that stand
    for data of the matrix's shape, by their placeholders.
    """

    def __init__(self, matrix: TensorVariable, data: Collection[TensorVariable]):
        self._matrix, self._shape = matrix, matrix.type.shape
        n_axes = len(self._shape)
        self._axes = tuple(range(n_axes))
        self._places = np.indices(self._shape).reshape(n_axes, -1)
        self.entries = self._flat(matrix)
        of_shape = [x for x in data if x.type.shape == self._shape]
        self.flat = {x: self._flat(x) for x in of_shape}

    def __call__(self, graph: TensorVariable) -> TensorVariable:
        """Write a graph that may depend on the matrix in terms of its entries.

        Raises
        ------
        TabulationError
            If it combines entries otherwise than by sums over all, or over the first axis.
        """
        [graph] = localise_checks([graph], [self._matrix])
        dependent = dependent_variables([self._matrix], [graph])
        # Variables with an entry for each of the records', and what depends on sums of these.
        long: dict[Variable, TensorVariable] = {self._matrix: self.entries}
        of_sums: dict[Variable, Variable] = {}
        for node in io_toposort([self._matrix], [graph]):
            if dependent.isdisjoint(node.outputs):
                continue
            of_entries = isinstance(node.op, Elemwise) and node.outputs[0].type.shape == self._shape
            if set(long).isdisjoint(node.inputs):
                inputs = [of_sums.get(x, x) for x in node.inputs]
                of_sums.update(zip(node.outputs, with_inputs(node, inputs), strict=True))
            elif isinstance(node.op, Sum) and node.op.axis in (None, (0,), self._axes):
                [x], [total] = node.inputs, node.outputs
                summed = self._sum(long[x], over_all=node.op.axis != (0,))
                of_sums[total] = summed.astype(total.dtype)
            elif isinstance(node.op, Alloc) and tuple(node.outputs[0].type.shape) == self._shape:
                long[node.outputs[0]] = long[node.inputs[0]]
            elif isinstance(node.op, CheckAndRaise) and dependent.isdisjoint(node.inputs[1:]):
                long[node.outputs[0]] = node.op(long[node.inputs[0]], *node.inputs[1:])
            elif of_entries and set(of_sums).isdisjoint(node.inputs):
                inputs = [long[x] if x in long else self.of(x) for x in node.inputs]
                long[node.outputs[0]] = _apply(node, inputs)
            else:
                raise TabulationError(
                    f"entries of '{self._matrix.name}', which has the shape {self._shape}, are "
                    f"combined by {describe(node)}. Write it as single variables, one for each "
                    "column"
                )
        return long.get(graph, of_sums.get(graph, graph))

    def _flat(self, x: TensorVariable) -> TensorVariable:
        return pt.vector(x.name, dtype=x.dtype, shape=(prod(self._shape),))

    def _sum(self, long: TensorVariable, over_all: bool) -> TensorVariable:
        """Sum a graph over all entries, or over the first axis of the records."""
        if over_all:
            return long.sum()
        n_columns = prod(self._shape[1:])
        column = pt.constant(np.arange(long.type.shape[0]) % n_columns)
        of_column = pt.eq(column[:, None], np.arange(n_columns))
        return pt.switch(of_column, long[:, None], 0).sum(axis=0).reshape(self._shape[1:])

    def of(self, graph: TensorVariable, core: int = 0) -> TensorVariable:
        """Write a graph that doesn't depend on the matrix with a row for each of its entries.

        Its axes, but for the last ``core``, are broadcast with the matrix's. It has no axis for the
        entries if all share it.
        """
        return self._at(graph, self._axes[len(self._axes) - (graph.type.ndim - core) :])

    def _at(self, graph: TensorVariable, axes: tuple[int, ...]) -> TensorVariable:
        """Look a graph up at each entry: its first axes are these of the matrix."""
        if graph in self.flat and axes == self._axes:
            return self.flat[graph]
        known, n_axes = known_value(graph), len(axes)
        op, inputs = (None, []) if graph.owner is None else (graph.owner.op, graph.owner.inputs)
        if known is None and isinstance(op, Elemwise):
            return _apply(graph.owner, [self._at(x, axes) for x in inputs])
        if known is None and isinstance(op, DimShuffle):
            [x], own = inputs, op.new_order[n_axes:]
            if own == tuple(range(x.type.ndim - len(own), x.type.ndim)):
                # An axis that is left out has the length 1: it isn't looked up.
                of_x = dict(zip(op.new_order[:n_axes], axes, strict=True))
                return self._at(x, tuple(of_x.get(k, 0) for k in range(x.type.ndim - len(own))))
        differ = [k for k in range(n_axes) if graph.type.shape[k] != 1]
        places = [self._places[axes[k]] for k in differ]
        kept = [*differ, *range(n_axes, graph.type.ndim)]
        if known is not None:
            known = known.reshape([known.shape[k] for k in kept])
            return pt.constant(known[tuple(places)] if places else known)
        table = graph.dimshuffle(kept) if len(kept) < graph.type.ndim else graph
        if 0 in differ and (by_group := _by_group(table)) is not None:
            table, places[0] = by_group[0], by_group[1][places[0]]
        return table[tuple(places)] if places else table


def _by_group(graph: TensorVariable) -> tuple[TensorVariable, np.ndarray] | None:
    """Return a table, and the known index by which its first axis is looked up; else None."""
    node = graph.owner
    if node is None or not isinstance(node.op, AdvancedSubtensor):
        return None
    first, *others = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
    index = None if isinstance(first, slice) else known_value(first)
    if index is None or index.ndim != 1 or any(x != slice(None) for x in others):
        return None
    return node.inputs[0], index


def _apply(node: Apply, inputs: list[TensorVariable]) -> TensorVariable:
    """Apply an elementwise operation; what lacks the axis of entries is the same for all."""
    longest = max(x.type.ndim for x in inputs)
    aligned = [pt.shape_padleft(x, longest - x.type.ndim) for x in inputs]
    return node.clone_with_new_inputs(aligned, strict=False).outputs[0]
