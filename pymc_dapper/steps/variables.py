"""Which variables a user can hand to a step."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import PointType, get_random_generator
from pymc_dapper.backend.plain_models import plain_variable
from pymc_dapper.checks import flag, has_shape, known, options, random_generator, shown
from pymc_dapper.context import the_model
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.errors import ReadingError


def check_call(
    step: str, variables: Any, others: Sequence[Any], by_name: Mapping[str, Any], what: str
) -> None:
    """Check a step's call, before PyMC's own constructor would choke on it.

    ``others`` were passed by position, though only the variables may be; ``what`` is the step's
    name for them, such as "records".
    """
    if others:
        raise TypeError(
            f"{step} takes only the {what} by position: pass everything else by name, as in "
            "model=model"
        )
    the_model(by_name.get("model"))
    flag(by_name.get("blocked", True), "blocked")
    check_given(variables, f"{step} was given", f"the {what} that it is to move")


def check_given(variables: Any, given: str, expected: str) -> None:
    """Check that a variable was passed, or a list with some in it.

    ``given`` is how the message begins, such as "DapperStep was given".
    """
    if isinstance(variables, Variable | str):
        return
    if isinstance(variables, list | tuple) and len(variables):
        return
    got = "no variables" if isinstance(variables, list | tuple) else shown(variables)
    raise ReadingError(f"{given} {got}: pass {expected}, a variable or a list of them")


def chain_generator(rng: Any) -> np.random.Generator:
    """Make a step's generator from the user's or PyMC's ``rng``."""
    random_generator(rng, "rng")
    return get_random_generator(rng)


def complete_point(model: Model, given: Mapping[str, Any] | None) -> PointType:
    """Complete a point, values of some value variables, by the model's initial point.

    Refused are unknown names, and values of another shape or type than the model has.
    """
    point = initial_point(model)
    for name, value in options(given, "initial_point").items():
        known([name], point, "initial_point: there is no value variable")
        expected, values = np.asarray(point[name]), np.asarray(value)
        has_shape(values, f"initial_point: '{name}'", expected.shape)
        if not np.can_cast(values.dtype, expected.dtype, "same_kind"):
            raise ValueError(
                f"initial_point: '{name}' is of type {values.dtype}, where the model has "
                f"{expected.dtype}"
            )
        point[name] = values.astype(expected.dtype)
    return point


def _free_values(
    variables: Variable | str | Sequence[Variable | str], model: Model, instead: str
) -> list[TensorVariable]:
    if isinstance(variables, Variable | str):
        variables = [variables]
    if not isinstance(variables, list | tuple):
        check_given(variables, "what was passed is", instead)
    values = [_free_value(variable, model, instead) for variable in variables]
    for value in values:
        if values.count(value) > 1:
            name = model.values_to_rvs[value].name
            raise ReadingError(f"'{name}' was passed more than once: pass each variable once")
    return values


def _free_value(variable: Variable | str, model: Model, instead: str) -> TensorVariable:
    if isinstance(variable, str):
        raise ReadingError(
            f"'{variable}' is a name: pass the variable itself, as in model['{variable}']"
        )
    if not isinstance(variable, Variable):
        raise ReadingError(
            f"{shown(variable)} is not a variable of the model: pass {instead}, a variable or a "
            "list of them"
        )
    variable = plain_variable(variable, model)
    value = model.rvs_to_values.get(variable, variable)
    if value in model.value_vars:
        return value
    name = getattr(variable, "name", None) or str(variable)
    if variable in model.observed_RVs:
        raise ReadingError(
            f"'{name}' is observed: its values are known and can't be sampled. Pass {instead}"
        )
    if variable in model.deterministics or variable in model.potentials:
        raise ReadingError(
            f"'{name}' is computed from other variables, it isn't a free random variable. Pass the "
            "random variables it is computed from"
        )
    raise ReadingError(
        f"'{name}' is not a free random variable of this model. Its free random variables are "
        + ", ".join(f"'{rv.name}'" for rv in model.free_RVs)
        + (f" (the '{name}' passed belongs to another model)" if name in model.named_vars else "")
    )


record_values = partial(_free_values, instead="the latent records that it depends on")
"""Converts a user's records to value variables of the model.

They pass free random variables, or their value variables; anything else is refused.
"""
count_values = partial(_free_values, instead="the latent counts that it depends on")
"""Converts a user's counts to value variables, likewise."""
parameter_values = partial(_free_values, instead="the parameters of its distribution")
"""Converts a user's parameters to value variables, likewise."""
