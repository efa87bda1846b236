"""What PyMC works out of a model: where chains start, and the log-densities of its variables.

Each reader asks for them, and each time PyMC works them out. Within :func:`asked_once` that is done
once.
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
"""By model and question: what the model was made of when it was asked, and the answer."""


@contextmanager
def asked_once() -> Iterator[None]:
    """Keep what models are asked for until the end. No data of theirs may be set meanwhile."""
    if _answers.get() is not None:
        yield
        return
    token = _answers.set({})
    try:
        yield
    finally:
        _answers.reset(token)


def initial_point(model: Model) -> PointType:
    """Return where chains start, by the names of value variables. It is the caller's to change."""
    point = answer(model, "start", model.initial_point)
    return {name: value.copy() for name, value in point.items()}


def log_densities(
    model: Model, variables: Sequence[Variable], *, jacobian: bool = True
) -> list[TensorVariable]:
    """Return the log-density of random variables and Potentials, as ``model.logp`` does, unsummed.

    Raises
    ------
    NotImplementedError, RuntimeError
        If PyMC can't tell that of one of the model's random variables, and any is asked for.
    """
    found: dict[Variable, TensorVariable] = {}
    # PyMC works out those of all random variables whichever it is asked for.
    for every in (model.basic_RVs, model.potentials):
        if not set(every).isdisjoint(variables):
            ask = partial(model.logp, every, jacobian=jacobian, sum=False)
            found |= zip(every, answer(model, ("logp", jacobian, *every), ask), strict=True)
    return [found[x] for x in variables]


def answer[X](model: Model, question: Any, ask: Callable[[], X]) -> X:
    """Return the answer to a question, which is asked but once of a model that stays as it is."""
    answers = _answers.get()
    if answers is None:
        return ask()
    parts = parts_of(model)
    known = answers.get((model, question))
    if known is None or not same_parts(known[0], parts):
        known = answers[model, question] = (parts, ask())
    return known[1]
