"""A quantile of whole numbers, drawn between limits by the exponential mechanism."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.budget import PureDP
from pymc_dapper.checks import called_as, shown, whole_number
from pymc_dapper.mechanisms.arguments import refuse
from pymc_dapper.mechanisms.base import as_tensor
from pymc_dapper.mechanisms.quantile import RankedMechanism
from pymc_dapper.sensitivity import Neighbours
from pymc_dapper.statistics.arrays import Array, Records, as_records
from pymc_dapper.statistics.tables import counts_between


@dataclass(frozen=True, eq=False, repr=False)
class IntervalQuantileMechanism(RankedMechanism):
    r"""A quantile: any real number between two limits, drawn by the exponential mechanism.

    Records are whole numbers. Those beyond the limits count as if they were at them. The release
    has a density proportional to

    .. math:: \exp(-| \#(x \le y) - \alpha n | / s),

    which is constant between successive whole numbers.

    Attributes
    ----------
    lower, upper : int
        The limits.
    alpha : float
        Which quantile, from 0 to 1: 0.5 for the median.
    scale : float
        The scale s, in records.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong kind or out of range.

    Notes
    -----
    This is the law of diffprivlib's ``quantile`` and ``median``, with scale 2 / epsilon, and of
    Tumult Analytics' ``quantile``, with scale 2 max(alpha, 1 - alpha) / epsilon: both draw one of
    the intervals between successive records, by rank and width, and a number within it. If records
    are real numbers, the density depends on where each of them lies. Counts don't determine it, so
    it isn't supported.

    References
    ----------
    Smith, A. (2011). Privacy-preserving statistical estimation with optimal convergence rates.
    Symposium on Theory of Computing 43, 813-822.

    Examples
    --------
    >>> median = IntervalQuantileMechanism(0, 100, alpha=0.5, scale=2.0)
    >>> median.statistic(np.array([18, 25, 30, 31, 67])).sum()
    5
    """

    lower: int
    upper: int
    alpha: float
    scale: float

    noise = "gumbel"

    _why_no_rules = "its release isn't a noisy value of the quantile"

    def __post_init__(self) -> None:
        lower = whole_number(self.lower, "lower")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", whole_number(self.upper, "upper", at_least=lower + 2))
        super().__post_init__()

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Candidates are the intervals between successive whole numbers."""
        after = np.arange(1, self.upper - self.lower + 1)
        return after, after, len(after) + 1

    @property
    def _choices(self) -> str:
        return f"whole numbers from {self.lower} to {self.upper}"

    @classmethod
    @called_as(
        "{owner}.calibrate(budget, lower=..., upper=..., alpha=...), with a budget such as "
        "pmd.PureDP(0.5)"
    )
    def calibrate(
        cls,
        budget: PureDP,
        *,
        lower: int,
        upper: int,
        alpha: float,
        neighbours: Neighbours | None = None,
    ) -> Self:
        """Choose the scale for a budget, as `QuantileMechanism.calibrate` does.

        Parameters
        ----------
        budget : PureDP
            The budget.
        lower, upper, alpha
            The mechanism's.
        neighbours : {"replace", "add_remove"}, optional
            Which data sets the budget compares, if it doesn't say so itself.

        Returns
        -------
        IntervalQuantileMechanism
            It keeps the budget.

        Raises
        ------
        TypeError
            If the budget isn't pure.
        ValueError
            If an argument is out of range, or if nobody says which data sets the budget compares.
        """
        return cls._calibrated(budget, neighbours, lower=lower, upper=upper, alpha=alpha)

    def statistic(self, x: Records) -> Array:
        """Count the records at each whole number between the limits.

        Parameters
        ----------
        x : tensor or array of integers, shape (n,)
            The records.

        Returns
        -------
        TensorVariable or ndarray of int, shape (upper - lower + 1,)
            Numbers of records at or below the lower limit, at the next whole number, ..., at or
            above the upper limit.

        Raises
        ------
        TypeError
            If the records aren't integers.
        """
        records = as_records(x, "x", max_ndim=1)
        if np.dtype(records.dtype).kind not in "iu":
            raise TypeError(
                f"x must hold whole numbers, as integers, got {shown(x)}. Real numbers "
                "have no likelihood here: the density depends on where each record lies"
            )
        return counts_between(records, np.arange(self.lower + 1.0, self.upper + 1.0))

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-density of a release, given the counts; -inf beyond the limits.

        Parameters
        ----------
        released : tensor_like, shape (...)
            What was published.
        statistic : tensor_like, shape (..., upper - lower + 1)
            As :meth:`statistic` makes it.

        Returns
        -------
        TensorVariable, shape (...)
        """
        released = as_tensor(released, "the release")
        number = pt.minimum(pt.floor(released) - self.lower, self.upper - self.lower - 1)
        within = pt.ge(released, self.lower) & pt.le(released, self.upper)
        return self._log_chosen(pt.switch(within, number, -1), statistic)

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that the release lies between the limits: else a ValueError."""
        super().check_released(name, released)
        wrong = (released < self.lower) | (released > self.upper)
        refuse(name, wrong, released, f"values lie between {self.lower} and {self.upper}")

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        number = self._random_number(statistic, size)
        return self.lower + number + pm.Uniform.dist(0, 1, size=number.shape)

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        number = self._drawn_number(statistic, rng)
        return self.lower + number + rng.uniform(size=number.shape)
