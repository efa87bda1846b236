"""The compiled draw of a number of records: shuffle, log-density at all numbers, and a draw.

All in one compiled function, as a call from Python takes as long as some hundred records.
"""

from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.generators import NOISE, Drawn
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.sizes.reading.model import SizeReading


def compile_draw(reading: SizeReading, last: int, compile_kwargs: dict[str, Any]) -> JitFunction:
    """Compile a draw of the number of records given all of them.

    The result is called as ``draw(rng, number, *records, *parameters, *data) -> (*records, number,
    outcome, log_weights)``. If no number is possible, the number stays. The outcome is the drawn
    number, -1 if none is possible, with the probability of the numbers from ``last`` on; then comes
    the log-density at each number.
    """
    rng, number = random_generator_type("rng"), reading.size.type()
    _, uniforms = Drawn(NOISE["random"])(rng, 2)
    alike = pt.clip(number, 0, reading.room) if reading.tied is None else pt.constant(0)
    records: dict[Variable, Variable] = {
        x: shuffled(x, alike, uniforms[0]) for x in reading.records
    }
    [log_weights] = rebuild([reading.log_weights], records)
    drawn, at_the_end = drawn_number(log_weights, uniforms[1], last)
    inputs = [rng, number, *reading.records, *reading.parameters, *reading.data.values()]
    new = pt.switch(drawn < 0, number, drawn).astype(number.dtype)
    outcome = pt.stack([drawn.astype("float64"), at_the_end])
    outputs = [*records.values(), new, outcome, log_weights]
    return JitFunction(inputs, outputs, reading.model, compile_kwargs)


def shuffled(rows: TensorVariable, n: TensorVariable, u: TensorVariable) -> TensorVariable:
    """Cut the first n rows, each place with an equal share of u on [0, 1), and deal two heaps.

    The same number gives the same order for other arrays. Two heaps part neighbours, which could
    otherwise leave only together.
    """
    first = pt.floor(u * n).astype("int64")
    cut = pt.concatenate([rows[first:n], rows[:first]])
    return pt.specify_shape(pt.concatenate([cut[::2], cut[1::2], rows[n:]]), rows.type.shape)


def drawn_number(
    log_weights: TensorVariable, u: TensorVariable, last: int
) -> tuple[TensorVariable, TensorVariable]:
    """Draw a number with probabilities in proportion to exp(log_weights), by u on [0, 1).

    A log-weight that isn't a finite number counts as none. Returned are the number, -1 if nothing
    has any weight, and the probability of the numbers from ``last`` on. Fast arithmetic assumes
    that there are no infinite numbers, so a huge one stands in their place.
    """
    none = np.float64(-1e300)
    finite = pt.switch(pt.isfinite(log_weights), log_weights, none)
    largest = finite.max()
    cumulated = pt.cumsum(pt.exp(finite - largest))
    total = cumulated[-1]
    number = pt.le(cumulated, u * total).sum()
    return pt.switch(largest > none, number, -1), (total - cumulated[last - 1]) / total
