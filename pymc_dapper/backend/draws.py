"""Random numbers for kernels: from a generator, or from where one lies.

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

from pymc_dapper.backend.accelerate.switch import accelerated

HERE = Path(__file__)
FILES = (HERE, HERE.parent / "accelerate" / "generators.py")
LOWERED_BY = sha256(b"".join(file.read_bytes() for file in FILES)).hexdigest()
"""Identifies what numba makes of these functions."""


def standard_normal(rng: np.random.Generator, _lowered_by: str = LOWERED_BY) -> float:
    """Draw a standard normal number."""
    return rng.standard_normal()


def standard_exponential(rng: np.random.Generator, _lowered_by: str = LOWERED_BY) -> float:
    """Draw a standard exponential number."""
    return rng.standard_exponential()


def standard_gamma(rng: np.random.Generator, shape: float, _lowered_by: str = LOWERED_BY) -> float:
    """Draw a standard gamma number."""
    return rng.standard_gamma(shape)


def beta(rng: np.random.Generator, a: float, b: float, _lowered_by: str = LOWERED_BY) -> float:
    """Draw a beta number."""
    return rng.beta(a, b)


def fill_uniform(rng: np.random.Generator, out: np.ndarray, _lowered_by: str = LOWERED_BY) -> None:
    """Draw numbers that are uniform on [0, 1)."""
    rng.random(out=out)


def fill_normal(rng: np.random.Generator, out: np.ndarray, _lowered_by: str = LOWERED_BY) -> None:
    """Draw standard normal numbers."""
    rng.standard_normal(out=out)


def fill_many_normals(
    rng: np.random.Generator, out: np.ndarray, _lowered_by: str = LOWERED_BY
) -> None:
    """Draw standard normal numbers: a hundred or more."""
    rng.standard_normal(out=out)


def fill_exponential(
    rng: np.random.Generator, out: np.ndarray, _lowered_by: str = LOWERED_BY
) -> None:
    """Draw standard exponential numbers."""
    rng.standard_exponential(out=out)


def _by_numpy(rng: Any, make: str, *of: Any) -> Any:
    """Make what calls a function of NumPy's; None where numba has its own for what is handed."""
    is_address = isinstance(rng, types.Integer)
    return getattr(accelerated("generators"), make)(*of) if is_address else None


@overload(standard_normal)
def _standard_normal(rng, _lowered_by=None):  # type: ignore[no-untyped-def]
    by_numpy = _by_numpy(rng, "number_by", "random_standard_normal", 0)
    if by_numpy is None:
        return lambda rng, _lowered_by=None: rng.standard_normal()
    return lambda rng, _lowered_by=None: by_numpy(rng)


@overload(standard_exponential)
def _standard_exponential(rng, _lowered_by=None):  # type: ignore[no-untyped-def]
    by_numpy = _by_numpy(rng, "number_by", "random_standard_exponential", 0)
    if by_numpy is None:
        return lambda rng, _lowered_by=None: rng.standard_exponential()
    return lambda rng, _lowered_by=None: by_numpy(rng)


@overload(standard_gamma)
def _standard_gamma(rng, shape, _lowered_by=None):  # type: ignore[no-untyped-def]
    by_numpy = _by_numpy(rng, "number_by", "random_standard_gamma", 1)
    if by_numpy is None:
        return lambda rng, shape, _lowered_by=None: rng.standard_gamma(shape)
    return lambda rng, shape, _lowered_by=None: by_numpy(rng, shape)


@overload(beta)
def _beta(rng, a, b, _lowered_by=None):  # type: ignore[no-untyped-def]
    by_numpy = _by_numpy(rng, "number_by", "random_beta", 2)
    if by_numpy is None:
        return lambda rng, a, b, _lowered_by=None: rng.beta(a, b)
    return lambda rng, a, b, _lowered_by=None: by_numpy(rng, a, b)


@overload(fill_uniform)
def _fill_uniform(rng, out, _lowered_by=None):  # type: ignore[no-untyped-def]
    return _filled(_by_numpy(rng, "numbers_by", "random_standard_uniform_fill"), njit(_uniform))


@overload(fill_normal)
def _fill_normal(rng, out, _lowered_by=None):  # type: ignore[no-untyped-def]
    return _filled(_by_numpy(rng, "numbers_by", "random_standard_normal_fill"), njit(_normal))


@overload(fill_many_normals)
def _fill_many_normals(rng, out, _lowered_by=None):  # type: ignore[no-untyped-def]
    return _filled(_by_numpy(rng, "many_normals"), njit(_normal))


@overload(fill_exponential)
def _fill_exponential(rng, out, _lowered_by=None):  # type: ignore[no-untyped-def]
    of = "random_standard_exponential_fill"
    return _filled(_by_numpy(rng, "numbers_by", of), njit(_exponential))


def _filled(by_numpy: Any, one: Any) -> Callable:
    if by_numpy is not None:
        return lambda rng, out, _lowered_by=None: by_numpy(rng, out)

    def fill(rng, out, _lowered_by=None):  # type: ignore[no-untyped-def]
        for i in range(len(out)):
            out[i] = one(rng)

    return fill


def _uniform(rng: Any) -> float:
    return rng.random()


def _normal(rng: Any) -> float:
    return rng.standard_normal()


def _exponential(rng: Any) -> float:
    return rng.standard_exponential()


@njit
def uniforms(rng: np.random.Generator, width: int, out: np.ndarray) -> None:
    """Draw what ``rng.random(out=out)`` does; ``width`` isn't looked at, here and below."""
    fill_uniform(rng, out)


@njit
def normals(rng: np.random.Generator, width: int, out: np.ndarray) -> None:
    """Draw what ``rng.standard_normal(out=out)`` does."""
    fill_normal(rng, out)


@njit
def many_normals(rng: np.random.Generator, width: int, out: np.ndarray) -> None:
    """Do the same, faster where it is called for many."""
    fill_many_normals(rng, out)


@njit
def exponentials(rng: np.random.Generator, width: int, out: np.ndarray) -> None:
    """Draw what ``rng.standard_exponential(out=out)`` does."""
    fill_exponential(rng, out)
