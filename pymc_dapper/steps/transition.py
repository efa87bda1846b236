"""What a step does in an ordinary iteration, apart from PyMC."""

from dataclasses import dataclass
from typing import Any

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.steps.data import SharedData


@dataclass(frozen=True)
class Transition:
    """A compiled function that changes some variables given others, and keeps the posterior."""

    function: JitFunction
    """``function(rng, *settings, *read, *data) -> (*moved, *told)``."""
    settings: tuple[Any, ...]
    """What it takes besides the chain's values and data."""
    reads: tuple[str, ...]
    """Names of the value variables that it takes."""
    data: SharedData
    moves: tuple[str, ...]
    """Names of the value variables that it returns."""
    tells: tuple[tuple[tuple[int, ...], str], ...] = ()
    """Shape and type of each array that it returns after them."""
