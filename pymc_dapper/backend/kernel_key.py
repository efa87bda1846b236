"""The key of a function that numba compiles, in PyTensor's cache on disk.

Machine code depends on a function's bytecode, on the constants to which it refers, and on all
functions that it calls. The key is a hash of these at the time of compiling. So no outdated code is
used after a kernel, a constant or a distribution was edited or, in a test, replaced; and nobody has
to keep a list of them.
"""

import sys
from collections.abc import Callable
from dis import EXTENDED_ARG, hasconst
from hashlib import sha256
from types import CodeType, EllipsisType, FunctionType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numba.extending import is_jitted

from pymc_dapper.backend.accelerate.external import ExternalKernel, Given

MODEL_KEYS: WeakKeyDictionary[Callable, str | None] = WeakKeyDictionary()
"""Functions that PyTensor made of graphs, with their keys; None for those that can't be cached."""

_LIBRARIES = {"numba", "numpy", "pytensor", *sys.stdlib_module_names}
"""Packages whose functions are identified by name."""


def kernel_key(function: Callable) -> str | None:
    """Identify the machine code of a function.

    Parameters
    ----------
    function : callable
        A function for numba, decorated or not.

    Returns
    -------
    str or None
        The key; None if the function calls one that PyTensor can't cache.

    Raises
    ------
    TypeError
        If the function refers to an object without a known identity.
    """
    contents = [content for _, content in called_functions(function)]
    return None if None in contents else sha256(repr(contents).encode()).hexdigest()


def called_functions(function: Callable) -> list[tuple[Callable, Any]]:
    """Find all functions that are compiled together: this one, and those that it calls.

    Parameters
    ----------
    function : callable
        A function for numba.

    Returns
    -------
    list of (callable, content)
        The functions, and the content of each, which refers to others by their place in the list.
    """
    found = [function]
    return [(each, _content(each, found)) for each in found]  # the list grows on the way


def _content(function: Callable, found: list[Callable]) -> Any:
    if function in MODEL_KEYS:
        return MODEL_KEYS[function]
    plain = getattr(function, "py_func", function)
    codes = [plain.__code__]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
    used = {name for code in codes for name in code.co_names}
    refers_to = (
        getattr(function, "targetoptions", None),
        plain.__defaults__,
        plain.__kwdefaults__,
        [cell.cell_contents for cell in plain.__closure__ or ()],
        {name: value for name, value in plain.__globals__.items() if name in used},
    )
    try:
        own = [_of_code(code) for code in codes]
        # Files on disk are found by module, so code of a renamed module isn't loaded.
        return plain.__module__, own, _identity(refers_to, used, found)
    except TypeError as error:
        raise TypeError(f"'{plain.__qualname__}' refers to {error}") from None


def _of_code(code: CodeType) -> Any:
    """Return the contents of a code object, without its position and its docstring."""
    loaded = [code.co_consts[place] for place in _loaded(code)]
    constants = [each for each in loaded if not isinstance(each, CodeType)]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
    return code.co_code, code.co_exceptiontable, _identity(constants, set(), []), names, counts


def _loaded(code: CodeType) -> list[int]:
    """List the places of the constants that instructions load."""
    places, place = set(), 0
    for operation, low in zip(code.co_code[::2], code.co_code[1::2], strict=True):
        place = place << 8 | low
        if operation in hasconst:
            places.add(place)
        if operation != EXTENDED_ARG:
            place = 0
    return sorted(places)


def _identity(value: Any, used: set[str], found: list[Callable]) -> Any:
    """Return the identity of a value; for a module, of its used parts.

    Parameters
    ----------
    value : object
        An object to which a function refers.
    used : set of str
        Names in the function's code.
    found : list of callable
        Functions found; those that are new are added.
    """
    match value:
        case None | bool() | int() | float() | complex() | str() | bytes() | np.generic():
            return repr(value)
        case range() | slice() | EllipsisType():
            return repr(value)
        case np.ndarray() if not value.dtype.hasobject:
            return "array", value.dtype.str, value.shape, value.tobytes()
        case tuple() | list():
            return type(value).__name__, [_identity(each, used, found) for each in value]
        case set() | frozenset():
            return "set", sorted(repr(_identity(each, used, found)) for each in value)
        case dict():
            return "dict", [(key, _identity(value[key], used, found)) for key in sorted(value)]
        case ModuleType() if _in_library(value.__name__):
            return value.__name__
        case ModuleType():
            return _identity({k: v for k, v in vars(value).items() if k in used}, used, found)
        case type() if hasattr(value, "_fields"):
            return value.__module__, value.__qualname__, value._fields
    module, name = (str(getattr(value, key, "")) for key in ("__module__", "__qualname__"))
    if isinstance(value, Given):
        return "given", _identity(value.function, used, found)
    if isinstance(value, ExternalKernel):
        return "external", str(value.signature), _identity(value.kernel, used, found)
    if _in_library(module) and getattr(sys.modules[module], name, None) is value:
        return module, name
    if isinstance(value, FunctionType) or is_jitted(value):
        if value not in found:
            found.append(value)
        return "function", found.index(value)
    raise TypeError(f"{value!r}, and what identifies that isn't known")


def _in_library(module: str) -> bool:
    return module.partition(".")[0] in _LIBRARIES
