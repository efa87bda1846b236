"""Initial points and log-densities of a model, computed by PyMC once for all readers.

Several readers ask PyMC for them, and PyMC computes them anew each time. Within :func:`asked_once`,
answers are cached.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import PointType
from pymc_dapper.backend.plain_models import parts_of, same_parts

_answers: ContextVar[dict[tuple[Any, ...], tuple[list[Any], Any]] | None]
_answers = ContextVar("answers", default=None)
"""By model and question: the model's contents at the time, and the answer."""


@contextmanager
def asked_once() -> Iterator[None]:
    """Cache the answers until the context ends. Don't set the models' data meanwhile."""
    if _answers.get() is not None:
        yield
        return
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def initial_point(model: Model) -> PointType:
    """Return the initial point, by names of value variables; the caller may change it."""
    point = answer(model, "start", model.initial_point)
    return {name: value.copy() for name, value in point.items()}


def log_densities(
    model: Model, variables: Sequence[Variable], *, jacobian: bool = True
) -> list[TensorVariable]:
    """Return the log-density of random variables and Potentials, as ``model.logp`` with sum=False.

    Raises
    ------
    NotImplementedError, RuntimeError
        If PyMC can't derive the log-density of one of the model's random variables.
    """
    found: dict[Variable, TensorVariable] = {}
    # PyMC derives those of all random variables, whichever are requested.
    for every in (model.basic_RVs, model.potentials):
        if not set(every).isdisjoint(variables):
            ask = partial(model.logp, every, jacobian=jacobian, sum=False)
            found |= zip(every, answer(model, ("logp", jacobian, *every), ask), strict=True)
    return [found[x] for x in variables]


def answer[X](model: Model, question: Any, ask: Callable[[], X]) -> X:
    """Return the answer to a question, cached as long as the model doesn't change."""
    answers = _answers.get()
    if answers is None:
        return ask()
    parts = parts_of(model)
    known = answers.get((model, question))
    if known is None or not same_parts(known[0], parts):
        known = answers[model, question] = (parts, ask())
    return known[1]
