"""The code and versions on which a cell's numbers depend, besides the study's settings."""

import ast
import hashlib
import inspect
import platform
import re
import sysconfig
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from textwrap import dedent
from typing import Any

PACKAGES = ("numba", "numpy", "pymc", "pytensor", "scipy")
"""Packages whose versions are recorded. This package's version is a setting of the study."""

INSTALLED = tuple(
    Path(sysconfig.get_path(x)) for x in ("stdlib", "platstdlib", "purelib", "platlib")
)
OWN_PACKAGE = Path(__file__).parents[1]


def fingerprint(simulate: Callable[..., Any], build: Callable[..., Any]) -> dict[str, Any]:
    """Summarise the code that a cell runs, and the versions of its libraries.

    Returns ``source``, a hash for each function of the code of the file that it stands in, and
    ``versions``. Comments and layout don't count.
    """
    functions = {"simulate": simulate, "build": build}
    source = {
        name: hashlib.sha256(_source(function).encode()).hexdigest()[:12]
        for name, function in functions.items()
    }
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    return {"source": source, "versions": versions | {name: version(name) for name in PACKAGES}}


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences of two fingerprints; empty if there are none."""
    listed = [
        f"{name} was {was['versions'].get(name)}, is now {current}"
        for name, current in now["versions"].items()
        if was["versions"].get(name) != current
    ]
    if was["versions"].get("python") == now["versions"]["python"]:  # else parsed in another way
        listed += [
            f"the code of '{name}' has changed"
            for name, current in now["source"].items()
            if was["source"].get(name) != current
        ]
    return listed


def _source(function: Any) -> str:
    """Return the code of a function's file; of the function, if it stands in none."""
    if isinstance(function, partial):
        return _source(function.func) + plain((function.args, function.keywords))
    function = inspect.unwrap(function)
    module = inspect.getmodule(function)
    of_file = getattr(module, "__file__", None) is not None
    if of_file or inspect.isfunction(function):
        with suppress(OSError, SyntaxError):  # it was typed in, or is compiled
            source = inspect.getsource(module if of_file and module else function)
            return ast.dump(ast.parse(dedent(source)))
    return plain(function)


def is_installed(file: str) -> bool:
    """Whether a file belongs to Python or a package, or is none."""
    return file.startswith("<") or any(
        Path(file).is_relative_to(place) for place in (*INSTALLED, OWN_PACKAGE)
    )


def plain(value: Any) -> str:
    """Show a value in the same way in each process."""
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))
