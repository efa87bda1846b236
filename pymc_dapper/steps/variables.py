"""Which variables a user can hand to a step."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from pymc import Model
from pymc.blocking import PointType
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.errors import ReadingError


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
    for name, value in (given or {}).items():
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
