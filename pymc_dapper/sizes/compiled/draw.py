"""The compiled draw of a number of records: shuffle, log-density at all numbers, and a draw.

All in one compiled function, as a call from Python takes as long as some hundred records.
"""

from typing import Any

import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.backend.generators import NOISE, Drawn
from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.sizes.compiled.op import DrawIndex, Shuffle
from pymc_dapper.sizes.reading.model import SizeReading


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
