"""The compiled draw of a number of records: shuffle, log-density at all numbers, and a draw.

All in one compiled function, as a call from Python takes as long as some hundred records. Why its
parts are operations, `records.compiled.op` says.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.backend.generators import NOISE, Drawn
from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.sizes.kernels.draw import draw_index, shuffled
from pymc_dapper.sizes.reading.model import SizeReading


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


def compile_draw(reading: SizeReading, last: int, compile_kwargs: dict[str, Any]) -> JitFunction:
    """Compile a draw of the number of records given all of them.

    The result is called as ``draw(rng, number, *records, *parameters, *data) -> (*records, number,
    outcome, log_weights)``. If no number is possible, the number stays. The outcome is the drawn
    number, -1 if none is possible, with the probability of the numbers from ``last`` on; then comes
    the log-density at each number.
    """
    rng, number = random_generator_type("rng"), reading.size.type()
    n_shuffled = pt.clip(number, 0, reading.room) if reading.tied is None else pt.constant(0)
    _, uniforms = Drawn(NOISE["random"])(rng, n_shuffled + 1)
    of_records = uniforms[:-1]
    shuffled: dict[Variable, Variable] = {x: Shuffle()(x, of_records) for x in reading.records}
    [log_weights] = rebuild([reading.log_weights], shuffled)
    outcome = DrawIndex(last)(log_weights, uniforms[-1])
    drawn = pt.switch(outcome[0] < 0, number, outcome[0]).astype(number.dtype)
    return JitFunction(
        [rng, number, *reading.records, *reading.parameters, *reading.data.values()],
        [*shuffled.values(), drawn, outcome, log_weights],
        reading.model,
        compile_kwargs,
    )
