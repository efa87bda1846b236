"""Errors while a step is built that aren't the model's fault."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any

from pytensor import config

from pymc_dapper.backend.flags import changed
from pymc_dapper.backend.jit import cache_folder, numba_by_default, numba_mode
from pymc_dapper.garbage import searching_new_garbage_only
from pymc_dapper.graphs.asked_once import asked_once

REMEDIES = {
    "DapperStep": "It stores all records and their contributions: use fewer records, or a "
    "statistic with fewer entries. If mechanisms use only counts of the records, write a latent "
    "table of counts, which CountStep samples at a cost that doesn't depend on their number (see "
    "docs/latent-counts.md)",
    "CountStep": "It stores all cells, and the sums that moves between them change: use fewer "
    "cells, by coarser categories; or split the table into variables with a CountStep each, if "
    "the model allows that",
    "ConjugateStep": "It draws its parameters together: pass fewer at a time, or let NUTS move "
    "them (conjugate=False)",
    "MarginalisedStep": "It holds a table of weights for each count: take fewer counts, or let "
    "CountStep move them (marginalise=False)",
    "InterweaveStep": "It holds the noise of all records: take fewer records, or leave it out "
    "(interweave=False)",
    "BoundaryStep": "It holds the noise of all people: leave it out (interweave=False)",
    "SizeStep": "It stores each sum over the first 0, 1, ..., N records: give the records less "
    "room, or use a statistic with fewer entries",
}
"""Advice on memory, by step."""


class OutOfMemoryError(MemoryError):
    """Memory ran out while a step was built."""


class DamagedCacheError(RuntimeError):
    """Compiled code on disk can't be read."""


class CacheFolderError(OSError):
    """Compiled code can't be kept on disk, or the folder isn't ours to read."""


def tells_why[**P](build: Callable[P, None]) -> Callable[P, None]:
    """Make a step's constructor report exhausted memory, or damaged compiled code on disk.

    The error names the step, its variables, and what would need less memory. ``build`` takes the
    step and its variables first; it raises :class:`OutOfMemoryError`, :class:`DamagedCacheError` or
    :class:`CacheFolderError`. It is called within :func:`building`.
    """

    @wraps(build)
    def telling(*args: P.args, **kwargs: P.kwargs) -> None:
        names = [kind.__name__ for kind in type(args[0]).__mro__ if kind.__name__ in REMEDIES]
        own_mode = kwargs.get("compile_kwargs") is not None
        with telling_why(names[0], _given(args, kwargs)), building(own_mode=own_mode):
            build(*args, **kwargs)

    return telling


@contextmanager
def telling_why(step: str, variables: Sequence[Any]) -> Iterator[None]:
    """Report the step for which memory ran out, or damaged compiled code on disk."""
    with telling_of_memory(step, variables), telling_of_damage():
        yield


@contextmanager
def telling_of_memory(step: str, variables: Sequence[Any]) -> Iterator[None]:
    """Name the step and variables for which memory ran out, and what would need less."""
    try:
        yield
    except OutOfMemoryError:
        raise
    except MemoryError as error:
        raise OutOfMemoryError(_message(step, variables, error)) from error


@contextmanager
def telling_of_damage() -> Iterator[None]:
    """Name the folder of compiled code on disk that was cut off, or can't be written to."""
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        folder = cache_folder(error)
        if folder is None:
            raise
        if isinstance(error, OSError):
            raise CacheFolderError(
                f"compiled code can't be kept in {str(folder)!r} ({error.strerror or error}). Make "
                "room there, or make it yours to read and write; or take another folder, by an "
                "environment variable that is set before Python starts: "
                "PYTENSOR_FLAGS=base_compiledir=/path/of/a/folder"
            ) from error
        raise DamagedCacheError(
            f"compiled code in {str(folder)!r} can't be read ({type(error).__name__}: {error}): it "
            "was cut off or overwritten, or another version wrote it. Delete that folder: missing "
            "code is compiled again"
        ) from error


@contextmanager
def building(*, own_mode: bool) -> Iterator[None]:
    """Read models and compile steps without work that would be done again, or for nothing.

    ``own_mode`` says whether a user may want functions compiled in another mode.
    """
    with (
        searching_new_garbage_only(),
        asked_once(),
        without_c_compiler(unless=own_mode),
        without_traces(),
    ):
        yield


def without_traces() -> AbstractContextManager[None]:
    """Don't record where variables of a graph are made: saves a tenth of the time to make them.

    PyTensor's errors show these lines, but ours would mean nothing to a user. The model's own lines
    are kept.
    """
    return changed(config, "traceback__limit", 0)


def without_c_compiler(*, unless: bool = False) -> AbstractContextManager[None]:
    """Evaluate one-time graphs in Python instead of by PyTensor's C compiler.

    Half a second for each operation: constants of a graph, and loops in that of an initial point.
    Functions that a user wants compiled in another way than ours may need it.
    """
    return nullcontext() if unless else changed(config, "cxx", "")


def whole_graphs(*, unless: bool = False) -> AbstractContextManager[None]:
    """Make PyMC compile each graph as one function, too; mainly the one that records draws.

    PyTensor's backend, with a function for each operation, takes up to ten times as long. A mode
    that a user has chosen stays.
    """
    if unless or not numba_by_default():
        return nullcontext()
    return changed(config, "mode", numba_mode(None))


def _given(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
    """Return the variables that a step was given."""
    variables = args[1] if len(args) > 1 else kwargs["vars"]
    return list(variables) if isinstance(variables, list | tuple) else [variables]


def _message(step: str, variables: Sequence[Any], error: MemoryError) -> str:
    listed = ", ".join(_described(variable) for variable in variables)
    # PyTensor appends information about its graph.
    reason = str(error).partition("\n")[0]
    return (
        f"memory ran out while {step} was built for {listed}"
        f"{f': {reason}' if reason else ''}. {REMEDIES[step]}"
    )


def _described(variable: Any) -> str:
    shape = getattr(getattr(variable, "type", None), "shape", ())
    sizes = " x ".join("?" if n is None else f"{n}" for n in shape)
    return f"'{getattr(variable, 'name', variable)}'{f' ({sizes})' if sizes else ''}"
