"""Shared code of laws on the integers with a real-valued location."""

from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph import Variable
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorConstant, TensorVariable

from pymc_dapper.context import check_precision

MAX_INT64 = 2.0**63
MAX_WHOLE = 2**62
"""Up to this size, differences of integers fit into 64 bits."""


def as_parameter(value: Any) -> TensorVariable:
    """Turn a parameter into floats of PyTensor's usual precision, which has to be double.

    PyTensor itself holds the number 20 as an 8-bit integer, and 2.0 in single precision.
    """
    check_precision()
    if isinstance(value, Variable):
        return value if is_float(value) else value.astype(pytensor.config.floatX)
    return pt.as_tensor_variable(np.asarray(value, dtype=pytensor.config.floatX))


def as_location(value: Any) -> TensorVariable:
    """Convert a location to floats; integer types stay as they are."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > MAX_WHOLE:
        raise ValueError(_TOO_LARGE)
    tensor = pt.as_tensor_variable(value)
    if is_float(tensor):
        return as_parameter(value)
    known = known_value(tensor)
    if known is not None and np.any((known > MAX_WHOLE) | (known < -MAX_WHOLE)):
        raise ValueError(_TOO_LARGE)
    return tensor


_TOO_LARGE = "mu must be within 2^62 in size, where it is an integer: else differences may overflow"


def _as_whole(tensor: TensorVariable) -> TensorVariable:
    """Convert to 64-bit integers; to floats if values may not fit."""
    known = known_value(tensor)
    beyond = known is not None and np.any((known > MAX_WHOLE) | (known < -MAX_WHOLE))
    if beyond or (known is None and tensor.dtype == "uint64"):
        return tensor.astype("float64")
    return tensor.astype("int64")


def is_float(tensor: TensorVariable) -> bool:
    """Whether a tensor holds floats by its type."""
    return tensor.dtype.startswith("float")


def is_integral(tensor: TensorVariable) -> bool:
    """Whether a tensor holds integers by its type."""
    return tensor.dtype.startswith(("int", "uint", "bool"))


def known_value(tensor: TensorVariable) -> np.ndarray | None:
    """Value of a constant (maybe with axes inserted); None of anything else."""
    while tensor.owner is not None and isinstance(tensor.owner.op, DimShuffle):
        tensor = tensor.owner.inputs[0]
    return np.asarray(tensor.data) if isinstance(tensor, TensorConstant) else None


def split_location(mu: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Nearest integer of a location, and the remainder, from -1/2 to 1/2.

    A location of an integer type has nothing that remains, and graphs get simpler.
    """
    if is_integral(mu):
        return _as_whole(mu), pt.constant(0.0, dtype=pytensor.config.floatX)
    nearest = pt.round(mu)
    return nearest, mu - nearest


def steps_from(value: TensorVariable, origin: TensorVariable) -> TensorVariable:
    """``value - origin`` as floats, subtracted as 64-bit integers if both are integers."""
    value, origin = (_as_whole(x) if is_integral(x) else x for x in (value, origin))
    return (value - origin).astype(pytensor.config.floatX)


def whole_steps_from(value: TensorVariable, nearest: TensorVariable) -> TensorVariable:
    """Count steps to the last integer up to `value`: the cdf is the same at both."""
    return steps_from(value if is_integral(value) else pt.floor(value), nearest)


def start_of_smaller_tail(
    steps: TensorVariable, remainder: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Return which of P(X <= k) and P(X > k) is the smaller tail, and where it starts.

    Parameters
    ----------
    steps : TensorVariable
        From the integer nearest to mu to k.
    remainder : TensorVariable
        mu less its nearest integer.

    Returns
    -------
    is_lower : TensorVariable
        True if k + 1/2 <= mu. Then P(X <= k) is at most 1/2, otherwise P(X > k) is.
    start : TensorVariable
        From the integer nearest to mu to the tail's first integer, which is k or k + 1.
    """
    is_lower = pt.le(steps + 0.5, remainder)
    return is_lower, pt.switch(is_lower, steps, steps + 1.0)


def nearest_integer(rv: TensorVariable, size: Any, mu: Any, spread: Any) -> TensorVariable:
    """Return the integer nearest to mu, of the shape of a random variable."""
    mode = pt.round(mu + pt.zeros_like(spread))
    return mode if rv_size_is_none(size) else pt.full(size, mode)


def only_integers(value: TensorVariable, logp: TensorVariable) -> TensorVariable:
    """Minus infinity if the value isn't an integer."""
    if is_integral(value):
        return logp
    return pt.switch(pt.eq(value, pt.floor(value)), logp, -np.inf)
