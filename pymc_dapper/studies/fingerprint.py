"""The code and versions on which a cell's numbers depend, besides the study's settings."""

import functools
import hashlib
import platform
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

PACKAGES = ("numba", "numpy", "pymc", "pytensor", "scipy")
"""Packages whose versions are recorded. This package's version is a setting of the study."""

INSTALLED = tuple(
    Path(sysconfig.get_path(x)) for x in ("stdlib", "platstdlib", "purelib", "platlib")
)
OWN_PACKAGE = Path(__file__).parents[1]

_MET_ONCE = (FunctionType, type, list, set, dict)
"""Types of objects that may contain themselves."""


def fingerprint(simulate: Callable[..., Any], build: Callable[..., Any]) -> dict[str, Any]:
    """Summarise the code that a cell runs, and the versions of its libraries.

    Functions are followed to the functions, classes and constants of the user's own modules that
    they use. Compiled code is compared, so comments and layout don't count. Returns ``source``, a
    hash by the name of each such object, and ``versions``.
    """
    walk = _Walk()
    for name, function in (("simulate", simulate), ("build", build)):
        walk.add(name, function)
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    versions |= {name: version(name) for name in PACKAGES}
    return {"source": {k: _hash(*sorted(x)) for k, x in walk.found.items()}, "versions": versions}


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the differences of two fingerprints; empty if there are none."""
    listed = [
        f"{name} was {was['versions'].get(name)}, is now {current}"
        for name, current in now["versions"].items()
        if was["versions"].get(name) != current
    ]
    if was["versions"].get("python") == now["versions"]["python"]:  # else compiled in another way
        listed += [
            f"the code of '{name}' has changed"
            for name in dict.fromkeys((*now["source"], *was["source"]))
            if was["source"].get(name) != now["source"].get(name)
        ]
    return listed


class _Walk:
    """Follows functions to all objects of the user's that they use."""

    def __init__(self) -> None:
        self.found: dict[str, set[str]] = {}
        self._seen: dict[int, Any] = {}

    def add(self, name: str, thing: Any) -> None:
        """Add a named object, and the objects that it uses."""
        if is_installed(thing):
            return
        if isinstance(thing, ModuleType):
            return  # the used names are looked up in it
        self.found.setdefault(name, set()).add(self._digest(name, thing))

    def _digest(self, name: str, thing: Any) -> str:
        wrapped = getattr(thing, "__wrapped__", None)
        if wrapped is not None and not isinstance(thing, FunctionType | type):
            return self._digest(name, wrapped)  # of a cache, or compiled by numba
        if not isinstance(thing, _MET_ONCE) and not _has_own_class(thing):
            return self._value(name, thing)
        if id(thing) in self._seen:
            return ""  # already included, or in progress
        self._seen[id(thing)] = thing  # kept, so that its id isn't given to another
        if isinstance(thing, FunctionType):
            return self._function(name, thing)
        if isinstance(thing, type):
            return self._each(name, _of_class(thing))
        if isinstance(thing, list | set):
            return self._value(name, thing)
        if isinstance(thing, dict):
            return self._each(name, [x for item in thing.items() for x in item])
        return self._each(name, (type(thing), dict(vars(thing))))

    def _value(self, name: str, value: Any) -> str:
        """Hash an object made of other values, or one with a complete repr."""
        if isinstance(value, functools.partial):
            return self._each(name, (value.func, value.args, value.keywords))
        if isinstance(value, MethodType):
            return self._each(name, (value.__func__, value.__self__))
        if isinstance(value, tuple | list):
            return self._each(name, value)
        if isinstance(value, frozenset | set):
            return _hash(*sorted(self._digest(name, x) for x in value))
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return self._each(name, (value.shape, value.tolist()))
            data = np.ascontiguousarray(value).tobytes()
            return _hash(f"{value.dtype} {value.shape}", hashlib.sha256(data).hexdigest())
        if hasattr(value, "to_numpy"):  # a table, which would show a few of its rows
            return self._each(name, (getattr(value, "columns", None), value.to_numpy()))
        return _hash(plain(value))

    def _each(self, name: str, parts: Iterable[Any]) -> str:
        return _hash(*(self._digest(name, part) for part in parts))

    def _function(self, name: str, function: FunctionType) -> str:
        code = function.__code__
        for variable, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # of a cell that isn't filled yet
                self.add(variable, cell.cell_contents)
        defaults = self._each(name, (function.__defaults__, function.__kwdefaults__))
        return _hash(self._code(name, code, function.__globals__), defaults)

    def _code(self, name: str, code: CodeType, namespace: Mapping[str, Any]) -> str:
        modules = [x for used in code.co_names if _is_own_module(x := namespace.get(used))]
        for used in code.co_names:
            for where in (namespace, *map(vars, modules)):
                if used in where:
                    self.add(used, where[used])
        constants = [
            self._code(name, x, namespace) if isinstance(x, CodeType) else self._digest(name, x)
            for x in code.co_consts
        ]
        compiled = code.co_code.hex(), code.co_exceptiontable.hex()
        return _hash(*compiled, *code.co_names, *code.co_freevars, *constants)


def _of_class(class_: type) -> Iterator[Any]:
    """Yield the contents of a class, and the user's own classes among its bases."""
    for name, member in vars(class_).items():
        if name in ("__module__", "__dict__", "__weakref__", "__doc__", "__firstlineno__"):
            continue
        if isinstance(member, staticmethod | classmethod):
            member = member.__func__
        if isinstance(member, property):
            yield from (x for x in (member.fget, member.fset) if x is not None)
        else:
            yield member if isinstance(member, FunctionType) else (name, plain(member))
    yield from (base for base in class_.__bases__ if not is_installed(base))


def _has_own_class(thing: Any) -> bool:
    return not is_installed(type(thing)) and hasattr(thing, "__dict__")


def _is_own_module(thing: Any) -> bool:
    return isinstance(thing, ModuleType) and not is_installed(thing)


def is_installed(thing: Any) -> bool:
    """Whether a module, class, function or code belongs to Python or a package.

    Its version then identifies it.
    """
    if isinstance(thing, BuiltinFunctionType | np.ufunc):
        return True
    if isinstance(thing, FunctionType | CodeType):
        code = thing.__code__ if isinstance(thing, FunctionType) else thing
        file = code.co_filename
    elif isinstance(thing, type | ModuleType):
        module = sys.modules.get(thing.__module__) if isinstance(thing, type) else thing
        if module is None or module.__name__ == "__main__":
            return False
        file = getattr(module, "__file__", None) or ""
        if not file:  # a part of Python itself
            return True
    else:
        return False
    return file.startswith("<frozen ") or any(
        Path(file).is_relative_to(place) for place in (*INSTALLED, OWN_PACKAGE)
    )


def plain(value: Any) -> str:
    """Show a value in the same way in each process."""
    return re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))


def _hash(*texts: str) -> str:
    together = "\0".join(texts).encode(errors="backslashreplace")
    return hashlib.sha256(together).hexdigest()[:12]
