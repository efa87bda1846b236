"""What laws on the integers with a real-valued location share."""

import inspect
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.variable import TensorConstant, TensorVariable

MAX_INT64 = 2.0**63


def as_parameter(value: Any) -> TensorVariable:
    """Turn a parameter into a tensor of floats: PyTensor holds the number 20 as an 8-bit integer."""
    tensor = pt.as_tensor_variable(value)
    return tensor if tensor.dtype.startswith("float") else tensor.astype(pytensor.config.floatX)


def is_integral(tensor: TensorVariable) -> bool:
    """Whether a tensor holds integers by its type."""
    return tensor.dtype.startswith(("int", "uint", "bool"))


def known_value(tensor: TensorVariable) -> np.ndarray | None:
    """Value of a constant (maybe with axes inserted); None of anything else."""
    while tensor.owner is not None and isinstance(tensor.owner.op, DimShuffle):
        tensor = tensor.owner.inputs[0]
    return np.asarray(tensor.data) if isinstance(tensor, TensorConstant) else None


def split_location(mu: TensorVariable) -> tuple[TensorVariable, TensorVariable]:
    """Nearest integer of a location and what remains, from -1/2 to 1/2.

    A location of an integer type has nothing that remains, and graphs get simpler.
    """
    if is_integral(mu):
        return mu.astype("int64"), pt.constant(0.0, dtype=pytensor.config.floatX)
    nearest = pt.round(mu)
    return nearest, mu - nearest


def steps_from(value: TensorVariable, nearest: TensorVariable) -> TensorVariable:
    """``value - nearest`` as floats, subtracted as integers where both are."""
    return pt.sub(value, nearest).astype(pytensor.config.floatX)


def whole_steps_from(value: TensorVariable, nearest: TensorVariable) -> TensorVariable:
    """Steps to the last integer up to `value`, at which a cdf is the one at `value`."""
    return steps_from(value if is_integral(value) else pt.floor(value), nearest)


def start_of_smaller_tail(
    steps: TensorVariable, remainder: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Which of P(X <= k) and P(X > k) is the smaller tail, and where that one starts.

    Parameters
    ----------
    steps : TensorVariable
        From the integer nearest to mu to k.
    remainder : TensorVariable
        mu less its nearest integer.

    Returns
    -------
    is_lower : TensorVariable
        True where k + 1/2 <= mu. Then P(X <= k) is at most 1/2, else P(X > k) is.
    start : TensorVariable
        From the integer nearest to mu to the tail's first integer, which is k or k + 1.
    """
    is_lower = pt.le(steps + 0.5, remainder)
    return is_lower, pt.switch(is_lower, steps, steps + 1.0)


def only_integers(value: TensorVariable, logp: TensorVariable) -> TensorVariable:
    """Minus infinity where the value isn't an integer."""
    if is_integral(value):
        return logp
    return pt.switch(pt.eq(value, pt.floor(value)), logp, -np.inf)


def source_key(*functions: Callable[..., Any]) -> int:
    """Key for PyTensor's cache of compiled code, which changes when the functions' source does."""
    source = "".join(inspect.getsource(function) for function in functions)
    return int(sha256(source.encode()).hexdigest()[:15], 16)
