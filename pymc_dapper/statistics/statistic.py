"""A statistic with its sensitivity: the result of this package's functions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
from pytensor.graph import Variable
from pytensor.tensor import as_tensor_variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import as_tensor_by_type
from pymc_dapper.checks import finite_number
from pymc_dapper.sensitivity import Neighbours, Sensitivities, sensitivities

type Array = TensorVariable | np.ndarray


@dataclass(frozen=True, eq=False)
class Statistic:
    """A sum over records, with its sensitivity.

    PyTensor and NumPy functions use its value. Multiplied or divided by a public number it stays a
    statistic, such as shares, ``table / 400``. For other arithmetic use ``value``: the sensitivity
    of the result is then unknown.

    Attributes
    ----------
    value : TensorVariable or ndarray
        The statistic: symbolic if any records are, an array if all are data.
    sensitivity : Sensitivities
        How far one record can move it. A record can be anything that the arguments allow: any
        numbers, any categories, all columns confidential.
    n_records : int or None
        Number of records in the sum, if known.

    Raises
    ------
    ValueError
        If a statistic for added or removed records is divided by their number. That number is then
        confidential, and the sensitivity of the quotient is unknown.
    """

    value: Array
    sensitivity: Sensitivities
    n_records: int | None = None

    __array_priority__ = -1.0  # above that of NumPy's numbers, which leave products to us

    def __mul__(self, factor: Any) -> "Statistic":
        """Multiply by a public number."""
        sensitivity = self._sensitivity_over(1 / _public_number(factor))
        return Statistic(self.value * np.asarray(factor), sensitivity, self.n_records)

    __rmul__ = __mul__

    def __truediv__(self, divisor: Any) -> "Statistic":
        """Divide by a public number."""
        sensitivity = self._sensitivity_over(_public_number(divisor))
        return Statistic(self.value / np.asarray(divisor), sensitivity, self.n_records)

    def __neg__(self) -> "Statistic":
        """Change the sign."""
        return self * -1

    @property
    def type(self) -> NoReturn:
        """Say what to give to PyMC, whose Deterministic asks for a variable's type."""
        raise AttributeError("a statistic isn't a variable: give its .value, as in table.value")

    def _sensitivity_over(self, divisor: Fraction) -> Sensitivities:
        """Sensitivity after division; refuses a mean of records whose number isn't public."""
        sensitivity = self.sensitivity.times(1 / divisor)
        n = self.n_records
        if not n or n == 1 or not math.isclose(abs(divisor), n, rel_tol=1e-12):
            return sensitivity
        if self.sensitivity.neighbours != "replace":
            raise ValueError(
                f"a statistic of {n} records is divided by their number, which isn't "
                "public with neighbours='add_remove', so the sensitivity of the result isn't "
                "known. Release the statistic as it is, and the number of records with its own "
                "noise; or use neighbours='replace' if their number is public"
            )
        # Dividing by the number of records treats it as public.
        return sensitivity.among("replace")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the value of a statistic of data."""
        if not isinstance(self.value, np.ndarray):
            raise TypeError(
                "the statistic has no numbers yet: its records are variables of a model. Use "
                "PyTensor's functions of its .value, such as pt.mean(table.value), in the place of "
                "NumPy's; or compute the statistic from an array of data"
            )
        return np.array(self.value, dtype=dtype, copy=copy)

    def _by_reflection(self, other: Any) -> Any:
        """Let variables and arrays compute with the value; refuse all other arithmetic."""
        return NotImplemented if isinstance(other, Variable | np.ndarray) else self._by_value()

    def _by_value(self, *_: Any, **__: Any) -> Any:
        """Raise an error that says how to compute with a statistic."""
        raise TypeError(
            "a statistic can be multiplied and divided by a public number only, as the "
            "sensitivity of anything else isn't known. Compute with its .value, as in "
            "table.value[0] or table.value.sum(), and give the sensitivity of the result yourself"
        )

    __add__ = __radd__ = __sub__ = __rsub__ = _by_reflection
    __getitem__ = sum = mean = _by_value


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


def column_sensitivities(
    by_column: Sequence[tuple[Fraction | int, Fraction | int, Fraction | int]],
    neighbours: Neighbours,
    *,
    exact: bool = True,
) -> Sensitivities:
    """Combine the sensitivities of statistics of separate columns of a record.

    All columns of a record can change at once and independently. So the largest L1 distances add
    up, and the squares of the largest L2 distances do, too. The result is exact if each column's
    is.

    Parameters
    ----------
    by_column : sequence of (l1, l2 squared, linf)
        For each column.
    neighbours : {"replace", "add_remove"}
        Which data sets are neighbours.
    exact : bool
        Whether columns can change independently, each by its largest distance.
    """
    l1, l2_squared, linf = zip(*by_column, strict=True)
    return sensitivities(sum(l1), sum(l2_squared), max(linf), neighbours, exact=exact)
