"""Which accelerations are on.

All are off if ``PYMC_DAPPER_PLAIN=1`` is set. One is off by itself if it can't be imported, or if
the code that it overrides or replaces has changed; a version number alone decides nothing. All are
off for the rest of the process after a model that couldn't be compiled with them could be without.
"""

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from inspect import getsource
from logging import getLogger
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numba

SWITCH = "PYMC_DAPPER_PLAIN"
"""The environment variable that turns all of them off."""

MODULES = {
    "deferred_libraries": "pymc_dapper.backend.accelerate.deferred_libraries",
    "addresses": "pymc_dapper.backend.accelerate.addresses",
    "generators": "pymc_dapper.backend.accelerate.generators",
    "one_function": "pymc_dapper.one_function.linker",
}
"""All of them. They are imported by name, so that a failing one affects nothing else."""

GO_WITH = "numba 0.63 to 0.68 and PyTensor 3.3.6 to 3.3.8"
"""The versions with which they are tested."""

LOGGER = getLogger("pymc")
PACKAGE, HERE = Path(__file__).parents[2], Path(__file__).parent
NUMBA = Path(numba.__file__).parent
FOLDERS = (HERE, PACKAGE / "one_function")
PASSED_THROUGH = (HERE / "switch.py", HERE / "__init__.py")
failed = False
"""Whether a model couldn't be compiled with them, and could be without."""


def is_on(name: str) -> bool:
    """Whether an acceleration is on."""
    return accelerated(name) is not None


def accelerated(name: str) -> Any:
    """Return the module of an acceleration; None if it is off."""
    return None if _all_off() else found()[name]


def _all_off() -> bool:
    return failed or os.environ.get(SWITCH, "0") not in ("", "0")


@cache
def found() -> dict[str, Any]:
    """Import all of them, once in a process, and say which don't fit the installed versions.

    What was compiled with one needs it also after one has failed.
    """
    modules: dict[str, Any] = {}
    missing = []
    for name, module in MODULES.items():
        try:
            modules[name] = import_module(module)
            looks = getattr(modules[name], "LOOKED", {})
            unlike = [x for x, looked in looks.items() if look_of(x) not in looked]
        except (ImportError, AttributeError, TypeError, OSError, numba.NumbaError) as error:
            unlike = [f"{error}"]
        if unlike:
            modules[name] = None
            missing.append(f"{name} ({unlike[0]})")
    if missing:
        _tell(f"they rely on code that has changed in another library: {'; '.join(missing)}")
    return modules


def look_of(name: str) -> str:
    """Identify the source of a function or class of numba's, by its full name."""
    module, *rest = name.split(":")
    of: Any = import_module(module)
    for part in rest[0].split("."):
        of = getattr(of, part)
    return sha256(getsource(of).encode()).hexdigest()[:12]


def _tell(why: str) -> None:
    LOGGER.warning(
        "pymc_dapper compiles models more slowly, without its accelerations, as %s. Draws are "
        "right either way. Installed: numba %s, PyTensor %s; they go with %s",
        why,
        version("numba"),
        version("pytensor"),
        GO_WITH,
    )


def once_more_without[R](work: Callable[[], R]) -> R:
    """Do work that compiles a model; again without accelerations, if it fails in one of them.

    Raises
    ------
    Exception
        The work's own error, with accelerations and without.
    """
    global failed
    try:
        return work()
    except MemoryError:
        raise
    except Exception as error:
        if _all_off() or not _failed_within(error):
            raise
        failed, done = True, False
        if (module := found()["deferred_libraries"]) is not None:
            module.forget_incomplete()
        try:
            result = work()
            done = True
        finally:
            failed = done  # otherwise it isn't their fault
        _tell(f"one of them failed ({type(error).__name__}: {error})")
        return result


def _failed_within(error: Exception) -> bool:
    """Whether an acceleration or numba ran when something failed, and no file of its cache."""
    files = [Path(frame.f_code.co_filename) for frame, _ in walk_tb(error.__traceback__)]
    if any(file.name == "caching.py" for file in files):
        return False
    ours = [file for file in files if PACKAGE in file.parents and file not in PASSED_THROUGH]
    by_numba = any(NUMBA in file.parents for file in files)
    return by_numba or (bool(ours) and not {*FOLDERS}.isdisjoint(ours[-1].parents))
