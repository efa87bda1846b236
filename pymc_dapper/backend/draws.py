"""Random numbers for kernels: from a generator, or from the address of one.

The draws are NumPy's. Where a kernel is handed a generator, numba has NumPy's algorithms; where it
is handed an address (`accelerate.generators`), NumPy's own functions are called.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload

from pymc_dapper.backend.accelerate.switch import found

HERE = Path(__file__)
FILES = (HERE, HERE.parent / "accelerate" / "generators.py")
LOWERED_BY = sha256(b"".join(file.read_bytes() for file in FILES)).hexdigest()
"""Identifies what numba makes of these functions."""


def standard_gamma(rng: np.random.Generator, shape: float, _lowered_by: str = LOWERED_BY) -> float:
    """Draw a standard gamma number."""
    return rng.standard_gamma(shape)


def beta(rng: np.random.Generator, a: float, b: float, _lowered_by: str = LOWERED_BY) -> float:
    """Draw a beta number."""
    return rng.beta(a, b)


def _address_of(rng: Any) -> bool:
    return isinstance(rng, types.Integer)


@overload(standard_gamma)
def _standard_gamma(rng, shape, _lowered_by=None):  # type: ignore[no-untyped-def]
    if not _address_of(rng):
        return lambda rng, shape, _lowered_by=None: rng.standard_gamma(shape)
    by_numpy = found()["generators"].number_by("random_standard_gamma", 1)
    return lambda rng, shape, _lowered_by=None: by_numpy(rng, shape)


@overload(beta)
def _beta(rng, a, b, _lowered_by=None):  # type: ignore[no-untyped-def]
    if not _address_of(rng):
        return lambda rng, a, b, _lowered_by=None: rng.beta(a, b)
    by_numpy = found()["generators"].number_by("random_beta", 2)
    return lambda rng, a, b, _lowered_by=None: by_numpy(rng, a, b)


def _filling(method: str, by_address: str, one: Callable[[Any], float]) -> Callable[..., None]:
    """Make a kernel that fills an array as a method of NumPy's generators does.

    It takes a generator, a number in place of a width, and the array, as all kernels that draw do.
    """
    lowered_by = f"{by_address} {LOWERED_BY}"  # or two of a method would have one key

    def fill(
        rng: np.random.Generator, width: int, out: np.ndarray, _lowered_by: str = lowered_by
    ) -> None:
        getattr(rng, method)(out=out)

    one_number = njit(one)

    @overload(fill)
    def _fill(rng, width, out, _lowered_by=None):  # type: ignore[no-untyped-def]
        if _address_of(rng):
            by_numpy = found()["generators"].numbers_by(by_address)
            return lambda rng, width, out, _lowered_by=None: by_numpy(rng, out)

        def loop(rng, width, out, _lowered_by=None):  # type: ignore[no-untyped-def]
            for i in range(len(out)):
                out[i] = one_number(rng)

        return loop

    return fill


fill_uniform = _filling("random", "random_standard_uniform_fill", lambda rng: rng.random())
fill_exponential = _filling(
    "standard_exponential",
    "random_standard_exponential_fill",
    lambda rng: rng.standard_exponential(),
)
fill_normal = _filling("standard_normal", "", lambda rng: rng.standard_normal())
for _name in ("fill_uniform", "fill_exponential", "fill_normal"):
    # So that another process finds it, with what numba knows of it, rather than a copy.
    globals()[_name].__qualname__ = _name
