"""Standard normal noise from NumPy's generator, drawn in numba's code.

Numba looks up where a generator's functions lie whenever it is handed one, by Python's means: that
takes 8 microseconds, as long as 800 draws. They lie in the same place for all generators of a kind.

Relies on numba's type of a generator and on its function of one normal number. Gains two thirds of
the time of some hundred and more normal draws. Without it, NumPy draws.
"""

from ctypes import c_void_p, cast
from functools import cache
from typing import Any

import numpy as np
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.random.distributions import random_standard_normal


def is_known(rng: np.random.Generator) -> bool:
    """Whether a generator is one that noise can be drawn from here: of NumPy's default kind."""
    return type(rng.bit_generator) is np.random.PCG64


def fill_with_normals(rng: np.random.Generator, noise: np.ndarray) -> None:
    """Draw what ``rng.standard_normal(out=noise)`` does, from a generator that is known."""
    _fill(rng.bit_generator.ctypes.state_address, *_functions(), noise)


@cache
def _functions() -> tuple[int, int]:
    """Where the functions lie that generators of NumPy's default kind take their bits from."""
    bits = np.random.PCG64(0).ctypes
    next_uint64, next_double = (cast(x, c_void_p) for x in (bits.next_uint64, bits.next_double))
    return next_uint64.value or 0, next_double.value or 0


def _make_bits(context: Any, state: Any, next_uint64: Any, next_double: Any) -> Any:
    """Make numba's bit generator of addresses."""
    of_bits = types.NumPyRandomBitGeneratorType("bit_generator")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        bits = cgutils.create_struct_proxy(of_bits)(context, builder)
        bits.state, bits.fnptr_next_uint64, bits.fnptr_next_double = arguments
        return bits._getvalue()

    return of_bits(types.uintp, types.uintp, types.uintp), codegen


_bits_at: Any = intrinsic(_make_bits)


# Numba has NumPy's algorithm, but chooses the sign without a branch: NumPy guesses it, and is wrong
# every other time.
@njit(cache=True)
def _fill(state: int, next_uint64: int, next_double: int, noise: np.ndarray) -> None:
    bits = _bits_at(state, next_uint64, next_double)
    for i in range(len(noise)):
        noise[i] = random_standard_normal(bits)
