"""A statistic and its sensitivity: what the functions of this package return."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from pytensor.tensor import _as_tensor_variable, as_tensor_variable
from pytensor.tensor.variable import TensorVariable

type Array = TensorVariable | np.ndarray
Neighbours = Literal["replace", "add_remove"]


class Sensitivity(float):
    """How far one record can move a statistic, in some norm.

    A number that can be used wherever a float can. What is computed from it is a plain float.

    Parameters
    ----------
    value : float
        The number.
    exact : bool
        Whether some pair of neighbouring data sets is that far apart. Otherwise no pair is farther
        apart, but perhaps none is as far.
    """

    __slots__ = ("_exact",)
    _exact: bool

    def __new__(cls, value: float, *, exact: bool) -> "Sensitivity":
        """Make a float that knows whether it is exact."""
        self = super().__new__(cls, value)
        self._exact = exact
        return self

    @property
    def exact(self) -> bool:
        """Whether some pair of neighbouring data sets is that far apart."""
        return self._exact

    def __repr__(self) -> str:
        return f"Sensitivity({float(self)!r}, exact={self.exact})"

    def __str__(self) -> str:
        return str(float(self))

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, bool]]:
        """Let it be pickled and copied."""
        return (float(self),), {"exact": self.exact}


@dataclass(frozen=True)
class Sensitivities:
    """How far a statistic's values for two neighbouring data sets can lie apart.

    Attributes
    ----------
    l1 : Sensitivity
        Largest sum of the entries' absolute differences: for Laplace noise.
    l2 : Sensitivity
        Largest Euclidean distance: for Gaussian noise.
    neighbours : {"replace", "add_remove"}
        Which data sets are neighbours: those that differ in the values of one record, or those of
        which one has one record more.
    """

    l1: Sensitivity
    l2: Sensitivity
    neighbours: Neighbours = "replace"


@dataclass(frozen=True, eq=False)
class Statistic:
    """A sum over records, with its sensitivity.

    PyTensor and NumPy functions take it for its value. For arithmetic with the statistic itself,
    use ``value``.

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

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the value of a statistic of data."""
        if not isinstance(self.value, np.ndarray):
            raise TypeError(
                "the statistic is symbolic: it has no numbers until the records have. Use .value "
                "in a model, or compute the statistic from an array of data"
            )
        return np.array(self.value, dtype=dtype, copy=copy)


@_as_tensor_variable.register(Statistic)
def _statistic_as_tensor(
    statistic: Statistic, name: str | None, ndim: int | None, **kwargs: Any
) -> TensorVariable:
    return as_tensor_variable(statistic.value, name, ndim, **kwargs)


def check_neighbours(neighbours: Neighbours) -> Neighbours:
    """Refuse anything but a known relation.

    Raises
    ------
    ValueError
        If it isn't one.
    """
    if neighbours not in get_args(Neighbours):
        raise ValueError(
            f"neighbours must be 'replace' (one record has other values) or 'add_remove' (one "
            f"record more or less), got {neighbours!r}"
        )
    return neighbours


def exact_sensitivities(
    by_column: Sequence[tuple[float, float]], neighbours: Neighbours
) -> Sensitivities:
    """Put together the L1 and L2 sensitivities of statistics of separate columns of a record.

    One record's columns can all change at once, and each as it likes. So the largest L1 distances
    add up, and so do the squares of the largest L2 distances. Exact if each column's are.
    """
    l1 = math.fsum(l1 for l1, _ in by_column)
    l2 = math.hypot(*(l2 for _, l2 in by_column))
    return Sensitivities(Sensitivity(l1, exact=True), Sensitivity(l2, exact=True), neighbours)
