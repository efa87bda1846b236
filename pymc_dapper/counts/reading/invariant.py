"""Invariants: exactly published values."""

from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.named_dims import as_plain
from pymc_dapper.checks import has_shape, real_numbers, shown, text
from pymc_dapper.context import the_model
from pymc_dapper.counts.kernels.line import LARGEST


def invariant(name: str, expression: Any, value: Any) -> TensorVariable:
    """Add an exactly known total of counts or records to the model in context.

    Parameters
    ----------
    name : str
        Name of the Potential.
    expression : tensor_like
        Totals of latent counts or of records, or other linear functions of them.
    value : array_like or shared variable
        Its known values; integers, in the expression's shape.

    Returns
    -------
    TensorVariable
        The Potential: 0 if all values agree, -inf otherwise. CountStep and DapperStep recognise it,
        and their moves keep it.

    Raises
    ------
    ValueError
        If the value isn't made of integers up to 2**53, or has another shape than the expression.

    Notes
    -----
    ``pm.Potential(name, pt.switch(pt.all(pt.eq(expression, value)), 0, -np.inf))`` is equivalent.

    Examples
    --------
    >>> with pm.Model():
    ...     table = pm.Poisson("table", 10, shape=(2, 3))
    ...     pmd.invariant("row_totals", table.sum(axis=1), [25, 40])
    """
    text(name, "name")
    the_model()
    expression = _as_tensor(name, as_plain(getattr(expression, "value", expression)))
    data = value if isinstance(value, SharedVariable) else None
    if data is None:
        real_numbers(value, "value")
    values = np.asarray(value if data is None else data.get_value())
    expected = expression.type.shape
    has_shape(values, f"'{name}': the known value", expected, why=", as the expression has")
    if not np.array_equal(values, np.round(values.astype(float))):
        raise ValueError(
            f"'{name}': known totals of counts must be integers, got {values}. A sum of "
            "continuous records can be known up to a tolerance: "
            "pm.Potential(name, pt.switch(pt.abs(total - known) < 1e-6, 0, -np.inf))"
        )
    if np.any(np.abs(values.astype(float)) > LARGEST):
        raise ValueError(
            f"'{name}': counts above 2**53 aren't exact in double precision. Count in larger units"
        )
    known = pt.constant(values.astype(np.int64)) if data is None else data
    agrees = pt.all(pt.eq(expression, known))
    return pm.Potential(name, pt.switch(agrees, np.asarray(0.0), np.asarray(-np.inf)))


def _as_tensor(name: str, expression: Any) -> TensorVariable:
    try:
        tensor = None if np.ma.is_masked(expression) else pt.as_tensor(expression)
    except (TypeError, ValueError, NotImplementedError):
        tensor = None
    if tensor is None or np.dtype(tensor.dtype).kind not in "biuf":
        raise TypeError(
            f"'{name}': the expression must be a tensor of counts, or of totals of them, got "
            f"{shown(expression)}"
        )
    return tensor
