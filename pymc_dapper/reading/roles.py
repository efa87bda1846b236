"""How a variable of a model's graph depends on the records."""

from dataclasses import dataclass

from pytensor.tensor.variable import TensorVariable


class Role:
    """How a variable of a model's graph depends on the records."""


@dataclass(frozen=True)
class Fixed(Role):
    """It doesn't."""


@dataclass(frozen=True)
class Rows(Role):
    """One slice per record: slice i along ``axis`` depends on no record but the i-th."""

    axis: int


@dataclass(frozen=True)
class SumOverRecords(Role):
    """A sum over the records.

    Attributes
    ----------
    contributions : TensorVariable, shape (n, *shape of the sum)
        What each record adds, with the record axis first.
    """

    contributions: TensorVariable


@dataclass(frozen=True)
class FunctionOfSums(Role):
    """Depends on the records through sums over them only."""
