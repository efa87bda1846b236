"""The compiled draw of a number of records: shuffle, log-density at all numbers, and a draw.

All in one compiled function, as a call from Python takes as long as some hundred records.
"""

from typing import Any

import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.sizes.compiled.op import DrawIndex, Shuffle
from pymc_dapper.sizes.reading.model import SizeReading


def compile_draw(reading: SizeReading, last: int, compile_kwargs: dict[str, Any]) -> JitFunction:
    """Compile a draw of the number of records given all of them.

    The result is called as ``draw(*records, *parameters, *data, uniforms) -> (*records,
    log_weights, outcome)``. ``uniforms`` has one variate for the draw, and, if records are
    shuffled, one for each present record. Returned are the records; the log-density at each number;
    and the drawn number, -1 if none is possible, with the probability of the numbers from ``last``
    on.
    """
    uniforms = pt.vector("uniforms", dtype="float64")
    of_records = uniforms[:-1]
    shuffled: dict[Variable, Variable] = {x: Shuffle()(x, of_records) for x in reading.records}
    [log_weights] = rebuild([reading.log_weights], shuffled)
    outcome = DrawIndex(last)(log_weights, uniforms[-1])
    return JitFunction(
        [*reading.records, *reading.parameters, *reading.data.values(), uniforms],
        [*shuffled.values(), log_weights, outcome],
        reading.model,
        compile_kwargs,
    )
