"""Sums over the first 0, 1, ..., N rows."""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.op import Op


class FirstSums(Op):
    """Sums over the first rows of an array: those of shape (N, ...) become (N + 1, ...)."""

    __props__ = ()

    def make_node(self, rows: Variable) -> Apply:
        """Apply to an array of float64."""
        rows = pt.as_tensor(rows, dtype="float64")
        n, *shape = rows.type.shape
        shape = [None if n is None else n + 1, *shape]
        return Apply(self, [rows], [pt.tensor("sums", dtype="float64", shape=shape)])

    def perform(self, node: Apply, inputs: Any, output_storage: Any) -> None:
        """Evaluate it in Python."""
        [rows] = inputs
        output_storage[0][0] = np.concatenate([np.zeros_like(rows[:1]), np.cumsum(rows, axis=0)])


first_sums = FirstSums()
