"""Several iterations of compiled functions, in one call from Python."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain
from math import prod
from typing import Any, NamedTuple

import numba
import numpy as np
from numba import types
from numba.extending import is_jitted
from pytensor import config
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend.jit import JitFunction

type Name = str | tuple[int, int]
"""Of a variable or a constant."""


class Call(NamedTuple):
    """A function that each iteration calls."""

    function: JitFunction
    """``function(rng, *taken) -> (*moved, *told)``."""
    takes: Sequence[Name]
    """Names of variables and constants."""
    moves: Sequence[str]
    """Names of the variables that it returns."""
    tells: Sequence[tuple[tuple[int, ...], str]]
    """Shape and type of each array that it returns after them."""


class Iterations:
    """Calls functions in turn, over and over, and writes down what they return.

    The functions are called by their addresses. So their machine code is the one that Python calls,
    which gives the same numbers; and the loop's own depends on their signatures alone, so that
    models that are alike share it.

    Parameters
    ----------
    calls : sequence of Call
        The functions.
    values : mapping
        Values of all variables and constants, by their names.
    """

    def __init__(self, calls: Sequence[Call], values: Mapping[Name, Any]):
        self._calls = calls
        self.variables = list(dict.fromkeys(chain.from_iterable(x.moves for x in calls)))
        taken = dict.fromkeys(chain.from_iterable(x.takes for x in calls))
        self._names: list[Name] = list(dict.fromkeys([*self.variables, *taken]))
        functions = [call.function.jitted for call in calls]
        if not all(map(is_jitted, functions)):  # evaluated in Python
            made: dict[str, Any] = {}
            exec(self._source(values), made)
            self._loop = made["iterations"]
            return
        given = [numba.typeof(x) for x in self._given(values)]
        of = dict(zip(self._names, given, strict=True))
        rngs = [numba.typeof(x.function.handed(np.random.default_rng(0))) for x in calls]
        signatures = [
            _signature(call.function.jitted, (rng, *(of[name] for name in call.takes)))
            for call, rng in zip(calls, rngs, strict=True)
        ]
        returned = [
            getattr(each, "layout", "C") for x in signatures for each in x.return_type.types
        ]
        source = self._source(values, copies=set(returned) != {"C"})
        written = [
            types.Array(numba.from_dtype(x.dtype), min(x.ndim, 2), "C")
            for x in self._room(2, values)
        ]
        whole = (types.int64, *map(types.FunctionType, signatures), *rngs, *given, *written)
        key = sha256(repr((source, whole)).encode()).hexdigest()
        names = {"__name__": __name__}
        python = compile_numba_function_src(source, "iterations", names, cache_key=f"{key}_loop")
        self._loop = numba_njit(python, final_function=True, cache=config.numba__cache)
        self._loop.compile(whole)
        self._loop.disable_compile()

    def __call__(
        self, n: int, rngs: Sequence[np.random.Generator], values: Mapping[Name, Any]
    ) -> tuple[dict[str, list[np.ndarray]], list[list[np.ndarray]]]:
        """Make n iterations.

        Returns n values of each variable; and what each function tells, arrays with a row for each
        iteration.
        """
        room, calls = self._room(n, values), self._calls
        flat = [x.reshape(len(x), prod(x.shape[1:])) if x.ndim > 2 else x for x in room]
        handed = [call.function.handed(rng) for call, rng in zip(calls, rngs, strict=True)]
        functions = [call.function.jitted for call in calls]
        last = self._loop(n, *functions, *handed, *self._given(values), *flat)
        moved = {
            name: [*(rows if rows.ndim > 1 else [rows[i, ...] for i in range(n - 1)]), x]
            for name, rows, x in zip(self.variables, room, last, strict=False)
        }
        told = iter(room[len(moved) :])
        return moved, [[next(told) for _ in call.tells] for call in calls]

    def _given(self, values: Mapping[Name, Any]) -> list[Any]:
        """Values as compiled code takes them: arrays that can be written to."""
        given = [values[name] for name in self._names]
        return [np.require(x, None, ["C", "W"]) if isinstance(x, np.ndarray) else x for x in given]

    def _room(self, n: int, values: Mapping[Name, Any]) -> list[np.ndarray]:
        """Make arrays for all but the last values of each variable, and for what is told."""
        moved = [values[name] for name in self.variables]
        told = chain.from_iterable(call.tells for call in self._calls)
        return [
            *(np.empty((n - 1, *np.shape(x)), np.asarray(x).dtype) for x in moved),
            *(np.empty((n, *shape), dtype) for shape, dtype in told),
        ]

    def _source(self, values: Mapping[Name, Any], *, copies: bool = False) -> str:
        """Write the loop."""
        short = {name: f"x{k}" for k, name in enumerate(self._names)}
        room = {name: f"all_{short[name]}" for name in self.variables}
        lines, told = [], []
        for k, call in enumerate(self._calls):
            moved = [short[name] for name in call.moves]
            tells = [f"told{k}_{j}" for j in range(len(call.tells))]
            results = ", ".join([*moved, *tells])
            taken = ", ".join([f"rng{k}", *(short[name] for name in call.takes)])
            lines.append(f"{results}, = f{k}({taken})")
            if copies:
                lines += [f"{x} = {x}.copy()" for x in moved]
            for x, (shape, _) in zip(tells, call.tells, strict=True):
                lines += _copied(x, f"all_{x}", len(shape))
            told += [f"all_{x}" for x in tells]
        lines.append("if i < n - 1:")
        for name, into in room.items():
            lines += [f"    {x}" for x in _copied(short[name], into, np.ndim(values[name]))]
        numbers = range(len(self._calls))
        taken = ", ".join(
            ["n", *(f"f{k}" for k in numbers), *(f"rng{k}" for k in numbers), *short.values()]
        )
        body = "\n".join(f"        {line}" for line in lines)
        last = ", ".join(short[name] for name in self.variables)
        return (
            f"def iterations({taken}, {', '.join([*room.values(), *told])}):\n"
            f"    for i in range(n):\n{body}\n    return ({last},)"
        )


def _copied(x: str, into: str, ndim: int) -> list[str]:
    """Copy an array into a row of another one."""
    if ndim == 0:
        return [f"{into}[i] = {x}[()]"]
    flat = x if ndim == 1 else f"{x}.ravel()"
    return [
        f"flat_{x} = {flat}",
        f"for j in range(flat_{x}.size):",
        f"    {into}[i, j] = flat_{x}[j]",
    ]


def _signature(jitted: Any, takes: tuple[Any, ...]) -> Any:
    """Return the signature with which a function was compiled for such arguments."""
    if takes not in jitted.overloads:
        jitted.compile(takes)
    return jitted.overloads[takes].signature
