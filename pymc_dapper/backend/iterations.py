"""Several iterations of compiled functions, in one call from Python."""

import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain
from math import prod
from threading import current_thread, main_thread
from typing import Any

import numba
import numpy as np
from numba import types
from numba.extending import is_jitted
from pytensor import config
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend.accelerate import switch
from pymc_dapper.backend.jit import JitFunction, kept_on_disk


class Drawing:
    """A kernel that draws random numbers: ``kernel(rng, *numbers) -> (*vectors)``."""

    def __init__(self, kernel: Any):
        self.jitted = kept_on_disk(kernel)

    def handed(self, rng: np.random.Generator) -> Any:
        """Return what the kernel is handed for a generator."""
        by_address = switch.accelerated("generators")
        return rng if by_address is None else by_address.address_of(rng)


@dataclass(frozen=True)
class Transition:
    """A function that each iteration calls: a move, or a draw of random numbers for a later move.

    It is called as ``function(rng, *takes) -> (*moves, *reports, *others)``.
    """

    function: JitFunction | Drawing
    takes: tuple[Any, ...]
    """Names of variables, and constants."""
    moves: tuple[str, ...]
    """Names of the variables that it returns. If a point doesn't have one, later functions may take
    it, or nothing uses it."""
    reports: tuple[tuple[tuple[int, ...], str], ...] = ()
    """Shape and type of each array that the function reports for each iteration."""
    draws: bool = True
    """Whether it takes a generator."""
    may_stay: bool = False
    """Whether variables stay as they are if its first reported array has only zeros after the first
    number."""


class Iterations:
    """Calls functions in turn, over and over, and writes down what they return.

    The functions are called by their addresses. So the loop runs the same machine code that Python
    calls, with the same numbers. The loop's own machine code depends on their signatures alone, so
    similar models share it.

    Parameters
    ----------
    transitions : sequence of Transition
        The functions. Together they move all variables.
    point : mapping
        Values of all variables.
    """

    def __init__(self, transitions: Sequence[Transition], point: Mapping[str, np.ndarray]):
        functions = [each.function.jitted for each in transitions]
        if not all(map(is_jitted, functions)):  # evaluated in Python
            made: dict[str, Any] = {}
            exec(_source(transitions, point), made)
            self._loop = made["iterations"]
            return
        values = _values(point)
        of = dict(zip(point, map(numba.typeof, values), strict=True))
        rngs, signatures = [], []
        for each, function in zip(transitions, functions, strict=True):
            own = [numba.typeof(each.function.handed(np.random.default_rng(0)))] * each.draws
            taken = [of[x] if isinstance(x, str) else numba.typeof(x) for x in each.takes]
            signatures.append(_signature(function, (*own, *taken)))
            of |= dict(zip(each.moves, signatures[-1].return_type.types, strict=False)) | of
            rngs += own
        copies = any(getattr(x, "layout", "C") != "C" for s in signatures for x in s.return_type)
        source = _source(transitions, point, copies=copies)
        given = [numba.typeof(x) for x in (*values, *_constants(transitions))]
        room = _room(2, transitions, point)
        written = [types.Array(numba.from_dtype(x.dtype), min(x.ndim, 2), "C") for x in room]
        whole = (types.int64, *map(types.FunctionType, signatures), *rngs, *given, *written)
        key = sha256(repr((source, whole)).encode()).hexdigest()
        names = {"__name__": __name__}
        python = compile_numba_function_src(source, "iterations", names, cache_key=f"{key}_loop")
        self._loop = numba_njit(python, final_function=True, cache=config.numba__cache)
        self._loop.compile(whole)
        self._loop.disable_compile()

    def __call__(
        self,
        n: int,
        transitions: Sequence[Transition],
        rngs: Sequence[np.random.Generator],
        point: Mapping[str, np.ndarray],
    ) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
        """Make n iterations, each transition with its generator.

        Returns n values of each variable, and the arrays that each function reports, with a row for
        each iteration.
        """
        room = _room(n, transitions, point)
        flat = [x.reshape(len(x), prod(x.shape[1:])) if x.ndim > 2 else x for x in room]
        pairs = [*zip(transitions, rngs, strict=True)]
        handed = [each.function.handed(rng) for each, rng in pairs if each.draws]
        functions = [each.function.jitted for each in transitions]
        constants = _constants(transitions)
        with _interrupt_waits():
            last = self._loop(n, *functions, *handed, *_values(point), *constants, *flat)
        moved = [
            [*(rows if rows.ndim > 1 else [rows[i, ...] for i in range(n - 1)]), x]
            for rows, x in zip(room, last, strict=False)
        ]
        reports = iter(room[len(moved) :])
        return moved, [[next(reports) for _ in each.reports] for each in transitions]


@contextmanager
def _interrupt_waits() -> Iterator[None]:
    """Delay an interrupt until the end: numba may lose it while it finds types or makes arrays."""
    handler, came = signal.getsignal(signal.SIGINT), list[Any]()
    if not callable(handler) or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *arguments: came.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])


def _constants(transitions: Sequence[Transition]) -> list[Any]:
    return [x for each in transitions for x in each.takes if not isinstance(x, str)]


def _values(point: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Values as compiled code takes them."""
    return [np.require(x, None, ["C", "W"]) for x in point.values()]


def _room(
    n: int, transitions: Sequence[Transition], point: Mapping[str, np.ndarray]
) -> list[np.ndarray]:
    """Make arrays for all but the last values of each variable, and for reported arrays."""
    reports = chain.from_iterable(each.reports for each in transitions)
    return [
        *(np.empty((n - 1, *x.shape), x.dtype) for x in point.values()),
        *(np.empty((n, *shape), dtype) for shape, dtype in reports),
    ]


def _source(
    transitions: Sequence[Transition], point: Mapping[str, np.ndarray], *, copies: bool = False
) -> str:
    """Write the loop."""
    short = {name: f"x{k}" for k, name in enumerate(point)}
    for name in chain.from_iterable(each.moves for each in transitions):
        short.setdefault(name, f"passed{len(short)}")
    constants = iter(f"c{k}" for k in range(len(_constants(transitions))))
    takes, lines, reports = [], [], []
    for k, each in enumerate(transitions):
        takes += [f"rng{k}"] * each.draws
        moved = [short[x] for x in each.moves]
        own = [f"report{k}_{j}" for j in range(len(each.reports))]
        taken = [short[x] if isinstance(x, str) else next(constants) for x in each.takes]
        returned = [f"new_{x}" for x in moved] + own
        lines.append(
            f"{', '.join(returned)}, = "
            f"f{k}({', '.join([f'rng{k}'] * each.draws + taken)})[:{len(returned)}]"
        )
        if each.may_stay:  # numba takes longer for a sum
            lines += ["moves = False", f"for j in range(1, {own[0]}.size):"]
            lines += [f"    moves |= {own[0]}[j] > 0", "if moves:"]
        lines += [f"{'    ' * each.may_stay}{x} = new_{x}{'.copy()' * copies}" for x in moved]
        for x, (shape, _) in zip(own, each.reports, strict=True):
            lines += _copied(x, f"all_{x}", len(shape))
        reports += [f"all_{x}" for x in own]
    lines.append("if i < n - 1:")
    for name, value in point.items():
        copied = _copied(short[name], f"all_{short[name]}", value.ndim)
        lines += [f"    {line}" for line in copied]
    variables = [short[name] for name in point]
    arguments = [
        *("n", *(f"f{k}" for k in range(len(transitions))), *takes, *variables),
        *(f"c{k}" for k in range(len(_constants(transitions)))),
        *(f"all_{x}" for x in variables),
        *reports,
    ]
    body = "\n".join(f"        {line}" for line in lines)
    return (
        f"def iterations({', '.join(arguments)}):\n"
        f"    for i in range(n):\n{body}\n    return ({', '.join(variables)},)"
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
