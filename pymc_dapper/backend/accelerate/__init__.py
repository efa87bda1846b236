"""What makes models compile in less time than numba and PyTensor take for them by themselves.

All else asks here. Each answer has a plain one behind it, with the same draws, by what numba and
PyTensor document: it is given if :mod:`~pymc_dapper.backend.accelerate.switch` says that an
acceleration is off. Each acceleration is a module of this folder, whose docstring says how it
works. All that imports ``numba.core`` or ``llvmlite`` is here.

What each relies on, and what it gains in CPU seconds:

- `optimised_once`: numba's class of code libraries, and six of its functions. Example 3 with an
  empty cache takes 6.7 instead of 10.4.
- `addresses`: how numba lowers calls and lays out arrays. New models with `CountStep` take 1.5
  instead of 10, and their sweeps 1 to 5 % longer. The other kernels are compiled into each model:
  counts as a function of noise took 1.7 times as long when called by a symbol.
- `one_function`: PyTensor's dispatch and linker. It gains the most: with all off, example 3 takes
  25 instead of 6.9, example 2 23 instead of 6.1.
- `second_process`: Linux, and numba's events. No CPU time; by the clock example 2 takes 2.9 instead
  of 5.3 seconds on two idle cores.
- `generators`: numba's type of a generator. A draw of a small model takes half of the time.
- `kept`: the class by which numba writes files. No time; a bit that flips on disk is noticed.

``PYMC_DAPPER_PLAIN=1`` turns all of them off. One is off by itself if a name that it imports is
gone, or if the source of a function that it replaces isn't the one it was written for: a digest of
each is in its ``LOOKED``, checked in 4 milliseconds. A model that can't be compiled with an
acceleration is compiled once more without (`once_more_without`), and PyMC's log says so. So another
version of numba costs time, and neither a draw nor an error. ``tests/test_nothing_changed.py``
checks that numba, PyTensor and PyMC are left as they were. What gained less than a tenth of a first
draw was taken out again; ``docs/evidence/upstream.md`` says what of it would be good for everybody.
"""

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numba import njit

from pymc_dapper.backend.accelerate.outside import Given, Outside, written_out
from pymc_dapper.backend.accelerate.switch import accelerated, is_on, once_more_without

__all__ = [
    "Given",
    "Outside",
    "address_of",
    "given_function",
    "in_two_processes",
    "is_on",
    "load_kernels",
    "load_normals",
    "once_more_without",
    "outermost",
    "whole_graphs",
]


def outermost(function: Any) -> Any:
    """Have a function of numba's, which Python calls, optimised with all that it calls at once."""
    module = accelerated("optimised_once")
    return module.outermost(function) if module else function


def given_function(kernel: Any, function: Any, of: Any, signature: Any, key: str) -> Any:
    """Give a kernel a function of a model's, where the kernel is compiled once for all models.

    Parameters
    ----------
    kernel : callable
        For numba. It takes the function, a tuple of the model's own arrays, and then all else.
    function : callable
        For numba. It takes these arrays as a tuple, and then all else.
    of, signature : Signature
        What the function and the kernel take besides, and return.
    key : str
        Identifies the kernel's machine code.

    Returns
    -------
    callable
        For numba: the kernel, of the tuple of arrays and all else.
    """
    module = accelerated("addresses")
    if module:
        return module.given_function(kernel, function, of, signature, key)

    # Inlined before anything is compiled: else what calls which would be optimised again each time.
    inlined = njit(kernel.py_func, inline="always")
    names = {"kernel": inlined, "given_to_it": function}
    if _passed_by_type():
        names["given_to_it"] = Given(function)
    body = "return kernel(given_to_it, context, {})"
    return njit(written_out(body, signature, **names), inline="always")


@cache
def _passed_by_type() -> bool:
    """Whether numba knows a type that says which function is passed."""
    try:
        import_module("pymc_dapper.backend.accelerate.given")
    except (ImportError, AttributeError, TypeError):
        return False
    return True


def load_kernels(function: Any) -> None:
    """Have the kernels in memory that a function calls and that are compiled by themselves."""
    for cell in function.py_func.__closure__ or ():
        outside = getattr(cell.cell_contents, "outside", None)
        if outside is not None:
            accelerated("addresses").load(outside)


def address_of(rng: np.random.Generator) -> np.ndarray:
    """Tell where a generator lies, for functions that take its address."""
    at: np.ndarray = accelerated("generators").address_of(rng)
    return at


def load_normals() -> None:
    """Have in memory what draws many normal numbers."""
    module = accelerated("generators")
    if module:
        module.load_normals()


def in_two_processes[R](tasks: Sequence[Callable[[], R]]) -> list[R]:
    """Do tasks that compile, in any order; all are done by this process, each once."""

    def work() -> list[R]:
        module = accelerated("second_process")
        return module.in_two_processes(tasks) if module else [task() for task in tasks]

    return once_more_without(work)


def whole_graphs() -> Any:
    """Return the linker that compiles a graph as one function, as a module; None if it is off."""
    return accelerated("one_function")
