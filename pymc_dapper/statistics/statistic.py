"""A statistic and its sensitivity: what the functions of this package return."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, get_args

import numpy as np
from pytensor.tensor import as_tensor_variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import as_tensor_by_type
from pymc_dapper.checks import finite_number
from pymc_dapper.sensitivity import Neighbours, Sensitivities, sensitivities

type Array = TensorVariable | np.ndarray


@dataclass(frozen=True, eq=False)
class Statistic:
    """A sum over records, with its sensitivity.

    PyTensor and NumPy functions take it for its value. Times or divided by a public number it is a
    statistic still, such as shares, ``table / 400``. For other arithmetic use ``value``: what one
    record can do to the result isn't known then.

    Attributes
    ----------
    value : TensorVariable or ndarray
        The statistic: symbolic if any of the records are, an array if they are data.
    sensitivity : Sensitivities
        How far one record can move it, with what one record can be as the statistic's arguments
        say: any numbers, any categories, all columns confidential.
    """

    value: Array
    sensitivity: Sensitivities

    __array_priority__ = -1.0  # above that of NumPy's numbers, which leave products to us

    def __mul__(self, factor: Any) -> "Statistic":
        """Multiply by a public number."""
        number = _public_number(factor)
        return Statistic(self.value * np.asarray(factor), self.sensitivity.times(number))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "Statistic":
        """Divide by a public number."""
        number = _public_number(divisor)
        return Statistic(self.value / np.asarray(divisor), self.sensitivity.times(1 / number))

    def __neg__(self) -> "Statistic":
        """Change the sign."""
        return self * -1

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the value of a statistic of data."""
        if not isinstance(self.value, np.ndarray):
            raise TypeError(
                "the statistic is symbolic: it has no numbers until the records have. Use .value "
                "in a model, or compute the statistic from an array of data"
            )
        return np.array(self.value, dtype=dtype, copy=copy)


def _public_number(factor: Any) -> Fraction:
    try:
        number = finite_number(factor, "the number that a statistic is multiplied or divided by")
    except TypeError as error:
        raise TypeError(
            f"{error}. For other arithmetic use the statistic's .value, and give the sensitivity "
            "of the result yourself"
        ) from None
    if number == 0:
        raise ValueError("the number that a statistic is multiplied or divided by must not be 0")
    return Fraction(factor) if isinstance(factor, int) else Fraction(number)


@as_tensor_by_type.register(Statistic)
def _statistic_as_tensor(
    statistic: Statistic, name: str | None, ndim: int | None, **kwargs: Any
) -> TensorVariable:
    return as_tensor_variable(statistic.value, name, ndim, **kwargs)


def check_neighbours(neighbours: Neighbours) -> Neighbours:
    """Refuse anything but a known relation."""
    if not isinstance(neighbours, str) or neighbours not in get_args(Neighbours):
        raise ValueError(
            f"neighbours must be 'replace' (one record has other values) or 'add_remove' (one "
            f"record more or less), got {neighbours!r}"
        )
    return neighbours


def exact_sensitivities(
    by_column: Sequence[tuple[Fraction | int, Fraction | int, Fraction | int]],
    neighbours: Neighbours,
) -> Sensitivities:
    """Put together the sensitivities of statistics of separate columns of a record.

    One record's columns can all change at once, and each as it likes. So the largest L1 distances
    add up, and so do the squares of the largest L2 distances. Exact if each column's are.

    Parameters
    ----------
    by_column : sequence of (l1, l2 squared, linf)
        Of each column.
    neighbours : {"replace", "add_remove"}
        Which data sets are neighbours.
    """
    l1, l2_squared, linf = zip(*by_column, strict=True)
    return sensitivities(sum(l1), sum(l2_squared), max(linf), neighbours)
