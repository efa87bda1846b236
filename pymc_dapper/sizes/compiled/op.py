"""The parts of a draw as PyTensor operations; for the reason see `records.compiled.op`."""

from collections.abc import Callable

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable

from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.sizes.kernels.draw import draw_index
from pymc_dapper.sizes.kernels.shuffle import shuffled


class Shuffle(KernelOp):
    """The first rows of an array in another order, given by uniform variates."""

    __props__ = ()

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to the array and a vector with an entry for each present row."""
        return Apply(self, list(inputs), [inputs[0].type()])


class DrawIndex(KernelOp):
    """A draw of one of several numbers by their log-weights.

    Parameters
    ----------
    last : int
        The first of the last numbers, whose probability is returned, too.

    Notes
    -----
    It takes log-weights and a uniform variate; the kernel has the outputs.
    """

    __props__ = ("last",)
    last: int
    results = (pt.TensorType("float64", shape=(2,)),)


@compiles(Shuffle)
def _shuffle(op: Shuffle) -> Callable:
    @numba_njit
    def shuffle(rows, uniforms):  # type: ignore[no-untyped-def]
        return shuffled(rows.reshape((len(rows), -1)), uniforms).reshape(rows.shape)

    return shuffle


@compiles(DrawIndex)
def _draw_index(op: DrawIndex) -> Callable:
    last = op.last

    @numba_njit
    def draw(log_weights, u):  # type: ignore[no-untyped-def]
        index, at_the_end = draw_index(log_weights, u.item(), last)
        return np.array([float(index), at_the_end])

    return draw
