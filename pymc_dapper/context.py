"""The model that a call is about, and the precision that it computes in."""

from typing import Any

import pytensor
from pymc import Model, modelcontext

from pymc_dapper.backend.mechanism_tags import tag_copies
from pymc_dapper.backend.plain_models import plain_model
from pymc_dapper.checks import shown


def the_model(model: Any = None) -> Model:
    """Return the model given, or the one in context, in double precision.

    Parameters
    ----------
    model : Model, optional
        The user's ``model``.

    Returns
    -------
    Model
        The model.

    Raises
    ------
    TypeError
        If there is none, or if the argument isn't one.
    ValueError
        If PyTensor, or the model, is in single precision.
    """
    if model is not None and not isinstance(model, Model):
        raise TypeError(f"model must be a pm.Model, got {shown(model)}")
    check_precision()
    try:
        found = modelcontext(model)
    except TypeError:
        raise TypeError(
            "there is no model: pass it, as in model=model, or call this inside `with model:`"
        ) from None
    for rv in found.free_RVs:
        if rv.dtype in ("float16", "float32"):
            raise ValueError(
                f"'{rv.name}' is of type {rv.dtype}: {_REASON}. Build the model anew in double "
                f"precision: without dtype={rv.dtype!r}, and with {_CURE}"
            )
    return found


def model_to_read(model: Any = None) -> Model:
    """Return the model given, or the one in context, as readers take it.

    With named dimensions (`pymc.dims`) that is the same model of plain tensors. Errors are those of
    :func:`the_model`.
    """
    found = the_model(model)
    tag_copies(found)  # before it is made plain, which other models' variables aren't
    return plain_model(found)


def check_precision() -> None:
    """Refuse PyTensor's single precision.

    Raises
    ------
    ValueError
        If PyTensor's floatX isn't float64.
    """
    if pytensor.config.floatX != "float64":
        raise ValueError(
            f"PyTensor's floatX is {pytensor.config.floatX}: {_REASON}. Set {_CURE} before the "
            "model is built"
        )


_REASON = (
    "pymc_dapper works in double precision only, since in sums over many records single precision "
    "loses the digits that one record changes"
)
_CURE = 'pytensor.config.floatX = "float64"'
