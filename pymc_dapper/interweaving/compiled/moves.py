"""The compiled move of parameters and records, with the records' noise held fixed."""

from functools import reduce
from math import prod
from typing import Any

import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.jit import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.graphs.joins import with_sums_before_joins
from pymc_dapper.graphs.rebuild import frontier, rebuild
from pymc_dapper.interweaving.compiled import counts  # noqa: F401  (registers maps)
from pymc_dapper.interweaving.compiled.op import ParameterMoves
from pymc_dapper.interweaving.reading import NonCentredModel

ROUNDING = 1e-6
"""Records that come back from their noise by less precisely aren't moved."""


def compile_moves(
    reading: NonCentredModel, *, compile_kwargs: dict[str, Any] | None = None
) -> JitFunction:
    """Compile the moves of a model's parameters.

    The result is called as ``moves(*parameters, *records, *given, *data, *uniforms, *fit,
    *variates) -> (*parameters, *records, path, outcome)``: parameters and records after the moves,
    and what the kernel returns. The path is of the parameters and the frame, if there is one.
    """
    compile_kwargs = compile_kwargs or {}
    mode = with_parameter_checks(numba_mode(compile_kwargs.get("mode")), reading.model)

    start = pt.concatenate([x.ravel().astype("float64") for x in reading.moving])
    theta = start.type("theta")
    [log_density] = rebuild(
        [with_sums_before_joins(reading.log_density)],
        dict(zip(reading.proposed, _unravel(theta, reading), strict=True)),
    )
    context = frontier([theta], log_density)
    op = ParameterMoves(rewritten([theta, *context], [log_density], mode))
    fit = [pt.vector("mean", dtype="float64"), pt.matrix("factor", dtype="float64")]
    variates = [pt.matrix("normals", dtype="float64"), pt.matrix("angles", dtype="float64")]
    path, outcome = op(start, _come_back(reading), *fit, *variates, *context)

    moved = _unravel(path[-1], reading)
    records = rebuild(reading.moved_records, dict(zip(reading.proposed, moved, strict=True)))
    parameters = moved[: len(reading.parameters)]
    data = {shared: shared.type(name=shared.name) for shared in reading.data}
    return JitFunction(
        [
            *reading.parameters,
            *reading.records,
            *reading.given,
            *data.values(),
            *reading.uniforms,
            *fit,
            *variates,
        ],
        rebuild([*parameters, *records, path, outcome], data),
        model=reading.model,
        compile_kwargs=compile_kwargs,
    )


def _unravel(flat: TensorVariable, reading: NonCentredModel) -> list[TensorVariable]:
    """Take a flat vector of all that moves apart."""
    pieces = []
    start = 0
    for x in reading.moving:
        shape = x.type.shape
        stop = start + prod(shape)
        pieces.append(flat[start:stop].reshape(shape).astype(x.dtype))
        start = stop
    return pieces


def _come_back(reading: NonCentredModel) -> TensorVariable:
    """Whether the records come back from their noise as they are.

    In the far tails of a distribution, digits are lost in its cdf. Such records stay where they
    are, and so do the parameters: no move leads to such a state, either.
    """
    same = dict(zip(reading.proposed, reading.moving, strict=True))
    returned = rebuild(reading.moved_records, same)
    conditions = [pt.invert(pt.isnan(noise).any()) for noise in reading.noise]
    for record, back in zip(reading.records, returned, strict=True):
        if record.dtype.startswith("float"):
            conditions.append(pt.allclose(record, back, rtol=ROUNDING, atol=ROUNDING))
        else:
            conditions.append(pt.eq(record, back).all())
    return reduce(pt.and_, conditions, pt.constant(True, dtype="bool"))
