"""The log-density at all numbers of records, compiled."""

from typing import Any

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.sizes.compiled import first_sums  # noqa: F401  (registers it)
from pymc_dapper.sizes.reading.model import SizeReading


def compile_weights(reading: SizeReading, compile_kwargs: dict[str, Any]) -> JitFunction:
    """Compile ``function(*records, *parameters, *data) -> (log_weights,)``."""
    data = {shared: shared.type(name=shared.name) for shared in reading.data}
    return JitFunction(
        [*reading.records, *reading.parameters, *data.values()],
        rebuild([reading.log_weights], data),
        model=reading.model,
        compile_kwargs=compile_kwargs,
    )
