"""Sums without loss of digits over their length, for comparisons with a reading."""

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from pytensor.graph import Apply, Variable
from pytensor.tensor.math import Sum

from pymc_dapper.graphs.rebuild import rebuild, with_inputs

RUN = 128


def sum_of_rows(rows: np.ndarray) -> np.ndarray:
    """Sum over the first axis: first over runs of rows, then over the runs' sums.

    NumPy does this along the last axis only.
    """
    while len(rows) > RUN:
        rows = np.add.reduceat(rows, np.arange(0, len(rows), RUN), axis=0)
    return rows.sum(axis=0)


class CarefulSum(Sum):
    """A sum that is evaluated in Python, by :func:`sum_of_rows`."""

    def perform(self, node: Apply, inputs: Sequence[np.ndarray], outputs: Any) -> None:
        """Sum over the axes."""
        [x] = inputs
        axes = tuple(range(x.ndim)) if self.axis is None else self.axis
        rows = x.transpose((*axes, *(k for k in range(x.ndim) if k not in axes)))
        rows = rows.reshape((prod(rows.shape[: len(axes)]), *rows.shape[len(axes) :]))
        total = sum_of_rows(rows.astype(self.acc_dtype or rows.dtype, copy=False))
        outputs[0][0] = np.asarray(total, dtype=node.outputs[0].dtype)


def with_careful_sums[V: Variable](graph: V) -> V:
    """Evaluate the sums of a graph by :class:`CarefulSum`."""

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if type(node.op) is not Sum:
            return with_inputs(node, inputs)
        op = node.op
        return [CarefulSum(axis=op.axis, dtype=op.dtype, acc_dtype=op.acc_dtype)(*inputs)]

    [careful] = rebuild([graph], replace_node=replace_node)
    return careful
