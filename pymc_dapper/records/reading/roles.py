"""How a variable of a model's graph depends on the records."""

from dataclasses import dataclass

from pytensor.tensor.variable import TensorVariable


class Role:
    """How a variable of a model's graph depends on the records."""


@dataclass(frozen=True)
class Fixed(Role):
    """It doesn't depend on them."""


@dataclass(frozen=True, eq=False)
class Rows(Role):
    """Each slice along an axis depends on one record.

    Attributes
    ----------
    axis : int
        The record axis.
    records : TensorVariable of int, shape (length of the axis,), optional
        The record on which each slice depends. If None, slice i depends on record i.
    """

    axis: int
    records: TensorVariable | None = None


@dataclass(frozen=True, eq=False)
class SumOverRecords(Role):
    """A sum over the records.

    Attributes
    ----------
    contributions : TensorVariable, shape (m, *shape of the sum)
        The terms of the sum.
    records : TensorVariable of int, shape (m,), optional
        The record on which each term depends. If None, term i depends on record i.
    offset : TensorVariable, optional
        A constant that is added to the sum.
    """

    contributions: TensorVariable
    records: TensorVariable | None = None
    offset: TensorVariable | None = None


@dataclass(frozen=True)
class FunctionOfSums(Role):
    """It depends on the records through sums over them only."""


@dataclass(frozen=True, eq=False)
class Combination(Role):
    """A sum of products of functions of sums with terms that have one slice per record.

    An example is the deviation from a mean, x_i - mean(x) = 1 * x_i + (-mean(x)) * 1. A polynomial
    of these, summed over the records, is a polynomial of sums: sum_i (x_i - m)^2 = sum_i x_i^2 - 2
    m sum_i x_i + n m^2.
    """

    axis: int
    """The record axis."""
    terms: tuple[tuple[TensorVariable, TensorVariable], ...]
    """Pairs of a coefficient, with length 1 along the record axis, and a variable with one slice
    per record. Both have as many axes as the combination."""
