"""Which variables a user can hand to a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import PointType, get_random_generator
from pymc_dapper.checks import flag, options, random_generator, shown
from pymc_dapper.context import the_model
from pymc_dapper.graphs.errors import ReadingError


def check_call(
    step: str, variables: Any, others: Sequence[Any], by_name: Mapping[str, Any], what: str
) -> None:
    """Check a step's call, before PyMC's own constructor would choke on it.

    Parameters
    ----------
    step : str
        Name of the step's class.
    variables : variable or sequence of variables
        What was passed as ``vars``.
    others : sequence
        What else was passed by position, where everything else goes by name.
    by_name : mapping of str to object
        What was passed by name.
    what : str
        What the variables are to the step, such as "records".

    Raises
    ------
    TypeError
        If something was passed by position that goes by name, if there is no model, or if
        ``blocked`` isn't a bool.
    ReadingError
        If no variables were passed.
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

    Parameters
    ----------
    variables : variable or sequence of variables
        What was passed.
    given : str
        How the message begins, such as "DapperStep was given".
    expected : str
        What to pass.

    Raises
    ------
    ReadingError
        If it is something else, or empty.
    """
    if isinstance(variables, Variable | str):
        return
    if isinstance(variables, list | tuple) and len(variables):
        return
    got = "an empty list" if isinstance(variables, list | tuple) else shown(variables)
    raise ReadingError(f"{given} {got}: pass {expected}, a variable or a list of them")


def chain_generator(rng: Any) -> np.random.Generator:
    """Make the generator of a step of what a user, or PyMC, passes as ``rng``.

    Raises
    ------
    TypeError, ValueError
        If it isn't a seed or a generator.
    """
    random_generator(rng, "rng")
    return get_random_generator(rng)


def record_values(
    variables: Variable | str | Sequence[Variable | str], model: Model
) -> list[TensorVariable]:
    """Turn what a user passes as records into value variables of the model.

    Parameters
    ----------
    variables : variable or sequence of variables
        Free random variables, or their value variables.
    model : Model
        The model.

    Returns
    -------
    list of TensorVariable
        Their value variables.

    Raises
    ------
    ReadingError
        If one of them isn't a free random variable of the model.
    """
    return _free_values(variables, model, "the latent records that it depends on")


def count_values(
    variables: Variable | str | Sequence[Variable | str], model: Model
) -> list[TensorVariable]:
    """Turn what a user passes as counts into value variables, as :func:`record_values` does."""
    return _free_values(variables, model, "the latent counts that it depends on")


def parameter_values(
    variables: Variable | str | Sequence[Variable | str], model: Model
) -> list[TensorVariable]:
    """Turn what a user passes as parameters into value variables of the model.

    Parameters
    ----------
    variables : variable or sequence of variables
        Free random variables, or their value variables.
    model : Model
        The model.

    Returns
    -------
    list of TensorVariable
        Their value variables.

    Raises
    ------
    ReadingError
        If one of them isn't a free random variable of the model.
    """
    return _free_values(variables, model, "the parameters of its distribution")


def complete_point(model: Model, given: Mapping[str, Any] | None) -> PointType:
    """Complete a point by the model's initial point.

    Parameters
    ----------
    model : Model
        The model.
    given : mapping of str to array_like, optional
        Values of some value variables.

    Returns
    -------
    dict of str to ndarray
        Values of all value variables.

    Raises
    ------
    ValueError
        If there is no value variable of a name, or its value has another shape or isn't a number
        of its type.
    """
    point = model.initial_point()
    for name, value in options(given, "initial_point").items():
        if name not in point:
            raise ValueError(
                f"initial_point: '{name}' is not a value variable of the model. Its value "
                "variables are " + ", ".join(f"'{known}'" for known in point)
            )
        expected, values = np.asarray(point[name]), np.asarray(value)
        if values.shape != expected.shape:
            raise ValueError(
                f"initial_point: '{name}' has shape {values.shape}, where the model has "
                f"{expected.shape}"
            )
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
