"""Accelerations: models compile in less time than by numba and PyTensor alone.

All other code asks here. Each answer has a plain alternative with the same draws, by documented
means of numba and PyTensor. It is used if :mod:`~pymc_dapper.backend.accelerate.switch` says that
an acceleration is off. Each acceleration is a module of this folder; its docstring says how it
works. Only this folder imports ``numba.core`` or ``llvmlite``.

What each depends on, and its gain in CPU seconds, with an empty cache and the others on. The first
draw of eight models takes 3.0 to 6.7 (median 4.2), and 6.4 to 21 (median 12) with all of them off:

- `deferred_libraries`: numba's class of code libraries, and six of its functions. Without it, these
  models take 1.1 to 1.8 times as long.
- `addresses`: how numba lowers calls and lays out arrays. A new model with `CountStep` takes 4.7
  seconds instead of 8.7 if another with such moves was compiled before; sweeps take 1 to 5 %
  longer. A model with `MarginalisedStep` takes 5 instead of 13, and one with draws on a tree 2.5
  instead of 8. The other kernels are compiled into each model: counts as a function of noise took
  1.7 times as long when called by a symbol.
- `one_function`: PyTensor's dispatch and linker. Without it, these models take 1.8 to 3.9 times as
  long.
- `generators`: numba's type of a generator. A draw of a small model takes a fifth to a third less,
  and some first draws half a second less.
- `kept`: the class by which numba writes files. No time; code of other types, and a bit that
  flips on disk, are noticed.

``PYMC_DAPPER_PLAIN=1`` turns all of them off. An acceleration is off by itself if a name that it
imports is gone, or if the source of a function that it replaces has changed: ``LOOKED`` has a
digest of each, checked in 4 milliseconds. A model that can't be compiled with an acceleration is
compiled again without (`once_more_without`), and PyMC's log says so. So another version of numba
costs time, but changes no draws and causes no errors. ``tests/test_nothing_changed.py`` checks that
numba, PyTensor and PyMC are left unchanged. Accelerations that gained less than a tenth of a first
draw were removed; ``docs/evidence/upstream.md`` says which changes would help everybody.
"""

from functools import cache
from importlib import import_module
from typing import Any

from numba import njit

from pymc_dapper.backend.accelerate.external import Given, written_out
from pymc_dapper.backend.accelerate.switch import accelerated


def outermost(function: Any) -> Any:
    """Make numba optimise a function that Python calls together with all that it calls."""
    module = accelerated("deferred_libraries")
    return module.outermost(function) if module else function


def given_function(kernel: Any, function: Any, of: Any, signature: Any, key: str) -> Any:
    """Pass a model's function to a kernel that is compiled once for all models.

    Parameters
    ----------
    kernel : callable
        For numba. It takes the function, a tuple of the model's own arrays, and then all else.
    function : callable
        For numba. It takes these arrays as a tuple, and then all else.
    of, signature : Signature
        The other arguments of function and kernel, and their result.
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

    # Inlined before compiling: otherwise each caller would be optimised again each time.
    inlined = njit(kernel.py_func, inline="always")
    names = {"kernel": inlined, "given_to_it": function}
    if _passed_by_type():
        names["given_to_it"] = Given(function)
    body = "return kernel(given_to_it, context, {})"
    return njit(written_out(body, signature, **names), inline="always")


def passing(kernel: Any, *functions: Any) -> tuple[Any, ...]:
    """Return a kernel to which functions can be passed, and the functions as it takes them.

    A function passed as numba passes it would be known by its address in this process, so nothing
    could be kept on disk. If its type can't identify it, the kernel is inlined.
    """
    if not _passed_by_type():
        return njit(kernel.py_func, inline="always"), *functions
    return kernel, *(None if each is None else Given(each) for each in functions)


@cache
def _passed_by_type() -> bool:
    """Whether numba knows a type that identifies the passed function."""
    try:
        import_module("pymc_dapper.backend.accelerate.given")
    except (ImportError, AttributeError, TypeError):
        return False
    return True


def load_kernels(function: Any) -> None:
    """Load the separately compiled kernels that a function calls."""
    for cell in function.py_func.__closure__ or ():
        external = getattr(cell.cell_contents, "external", None)
        if external is not None:
            accelerated("addresses").load(external)


def whole_graphs() -> Any:
    """Return the linker that compiles a graph as one function, as a module; None if it is off."""
    return accelerated("one_function")
