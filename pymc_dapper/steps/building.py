"""Errors while a step is built that aren't the model's fault."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from typing import Any

from pytensor import config

from pymc_dapper.backend.flags import changed
from pymc_dapper.backend.jit import cache_folder, numba_by_default, numba_mode
from pymc_dapper.garbage import searching_new_garbage_only
from pymc_dapper.graphs.asked_once import asked_once

LESS_MEMORY = (
    "Take fewer records, cells or draws; or a latent table of counts in the place of the records "
    "(docs/latent-counts.md). interweave=False, conjugate=False or marginalise=False saves a step"
)
FOLDER = (
    "Delete that folder: missing code is compiled again. If it's full or isn't yours to write to, "
    "take another: PYTENSOR_FLAGS=base_compiledir=/path/of/a/folder, set before Python starts"
)
"""What to do about each."""


def tells_why[**P](build: Callable[P, None]) -> Callable[P, None]:
    """Make a step's constructor note on errors what only :func:`telling_why` knows.

    ``build`` takes the step and its variables first, and is called within :func:`building`.
    """

    @wraps(build)
    def telling(*args: P.args, **kwargs: P.kwargs) -> None:
        given: Any = args[1] if len(args) > 1 else kwargs["vars"]
        variables = given if isinstance(given, list | tuple) else [given]
        own_mode = kwargs.get("compile_kwargs") is not None
        with telling_why(type(args[0]).__name__, variables), building(own_mode=own_mode):
            build(*args, **kwargs)

    return telling


@contextmanager
def telling_why(step: str, variables: Iterable[Any]) -> Iterator[None]:
    """Note on an error for which step memory ran out, or which folder has damaged compiled code."""
    try:
        yield
    except Exception as error:
        folder = cache_folder(error)
        where = f"{step} for {', '.join(f"'{x}'" for x in variables)}"
        if isinstance(error, MemoryError):
            error.add_note(f"Memory ran out in {where}. {LESS_MEMORY}")
        elif folder is not None:
            error.add_note(f"Compiled code in '{folder}' can't be used in {where}. {FOLDER}")
        raise


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
