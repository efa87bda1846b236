"""The plain model of each model with named dimensions (`pymc.dims`), for the readers.

`pymc.dims` is imported only for models that use it: it takes a second.
"""

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary, ref

from pymc import Model

from pymc_dapper.backend.named_dims import has_named_dims

_plain_models: WeakKeyDictionary[Model, tuple[list[Any], Model]] = WeakKeyDictionary()
_named_models: WeakKeyDictionary[Model, ref[Model]] = WeakKeyDictionary()


def plain_model(model: Model) -> Model:
    """Return a model without named dimensions: itself, if it has none.

    A model always has the same plain model, unless something is added to it or its initial point
    changes.

    Parameters
    ----------
    model : Model
        The model.

    Returns
    -------
    Model
        One with the same names, dims, order of variables and shared data.

    Raises
    ------
    NotImplementedError
        For a transform that isn't one of PyMC's.
    """
    variables = list(model.named_vars.values())
    if not any(map(has_named_dims, variables)):
        return model
    from pymc_dapper.backend.lowered_dims import without_named_dims

    parts = parts_of(model)
    known = _plain_models.get(model)
    if known is None or not same_parts(known[0], parts):
        known = _plain_models[model] = (parts, without_named_dims(model))
        _named_models[known[1]] = ref(model)
    return known[1]


def plain_variable(variable: Any, model: Model) -> Any:
    """Return the plain counterpart of a variable of a model with named dims.

    Other variables are returned unchanged.
    """
    named_one = _named_models[model]() if model in _named_models else None
    if named_one is None or not has_named_dims(variable):
        return variable
    if variable in named_one.values_to_rvs:
        return model.rvs_to_values[model[named_one.values_to_rvs[variable].name]]
    named_vars = named_one.named_vars
    return model[variable.name] if named_vars.get(variable.name) is variable else variable


def parts_of(model: Model) -> list[Any]:
    """List the contents of a model; they change if something is added or its initial point changes.

    Data with new values are the same objects.
    """
    of_variables = (model.rvs_to_values, model.rvs_to_transforms, model.rvs_to_initial_values)
    return [*model.named_vars.values(), *(x for each in of_variables for x in each.values())]


def same_parts(one: Sequence[Any], other: Sequence[Any]) -> bool:
    """Whether a model is still made of the same objects."""
    return len(one) == len(other) and all(x is y for x, y in zip(one, other, strict=True))
