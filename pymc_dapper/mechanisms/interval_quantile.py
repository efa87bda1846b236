"""A quantile of whole numbers, drawn between limits by the exponential mechanism."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.budget import PureDP
from pymc_dapper.checks import about, called_as, finite_number, places, shown, whole_number
from pymc_dapper.mechanisms.base import Mechanism, as_tensor
from pymc_dapper.mechanisms.noisy_max import NoisyMaxMechanism
from pymc_dapper.mechanisms.quantile import QuantileMechanism, check_counts, check_integers
from pymc_dapper.sensitivity import Neighbours
from pymc_dapper.statistics.arrays import Array, Records, as_records
from pymc_dapper.statistics.tables import counts


@dataclass(frozen=True, eq=False, repr=False)
class IntervalQuantileMechanism(Mechanism):
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
    the intervals between successive records, by rank and width, and a number within it. Of records
    that are real numbers, the density depends on where each of them lies: no counts tell it, and
    it isn't read here.

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

    _why_no_rules = "its release isn't a noisy value of the quantile"

    def __post_init__(self) -> None:
        lower = whole_number(self.lower, "lower")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", whole_number(self.upper, "upper", at_least=lower + 2))
        object.__setattr__(
            self, "alpha", finite_number(self.alpha, "alpha", at_least=0.0, at_most=1.0)
        )
        object.__setattr__(self, "scale", self._chosen.scale)

    @property
    def _chosen(self) -> NoisyMaxMechanism:
        """The exponential mechanism that draws an interval between successive whole numbers."""
        return NoisyMaxMechanism(self.scale, self.upper - self.lower)

    @property
    def _as_candidates(self) -> QuantileMechanism:
        """A mechanism whose scores change as much, and of as many candidates."""
        ends = np.arange(self.lower, self.upper)
        return QuantileMechanism(ends, self.alpha, self.scale)

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
        trial = cls(lower, upper, alpha, 1.0)
        same = QuantileMechanism.calibrate(
            budget, candidates=[0, 1], alpha=trial.alpha, neighbours=neighbours
        )
        return cls(trial.lower, trial.upper, trial.alpha, same.scale, budget=same.budget)

    def privacy_loss(self, *, neighbours: Neighbours) -> PureDP:
        """Budget that a release spends.

        Parameters
        ----------
        neighbours : {"replace", "add_remove"}
            Which data sets are neighbours.

        Returns
        -------
        PureDP
            As of `QuantileMechanism.privacy_loss`.
        """
        return self._as_candidates.privacy_loss(neighbours=neighbours)

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
                f"x must hold whole numbers, as integers, got {shown(x)}. Of real numbers the "
                "release's density depends on where each record lies, and has no likelihood here"
            )
        clip = np.clip if isinstance(records, np.ndarray) else pt.clip
        cells = clip(records, self.lower, self.upper) - self.lower
        return counts(cells, self.upper - self.lower + 1).value

    def _scores(self, statistic: Any) -> TensorVariable:
        """How many records each interval is away from the quantile."""
        found = as_tensor(statistic)
        self._check_length(found)
        up_to = pt.cumsum(found, axis=-1)
        return pt.abs(up_to[..., :-1] - np.asarray(self.alpha) * up_to[..., -1:])

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
        released, scores = as_tensor(released, "the release"), self._scores(statistic)
        number = pt.minimum(pt.floor(released) - self.lower, self.upper - self.lower - 1)
        within = pt.ge(released, self.lower) & pt.le(released, self.upper)
        logp = self._chosen.logp(pt.switch(within, number, -1)[..., None], -scores)
        return pt.switch(within, logp, -np.inf)

    def _check_length(self, statistic: TensorVariable) -> None:
        shape, length = statistic.type.shape, self.upper - self.lower + 1
        if not shape or shape[-1] not in (None, length):
            raise ValueError(
                f"the statistic must hold counts along its last axis, {length} for whole numbers "
                f"from {self.lower} to {self.upper}, but its shape is {shape}. Pass "
                "mechanism.statistic(x), of the records x"
            )

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that the release lies between the limits: else a ValueError."""
        super().check_released(name, released)
        wrong = (released < self.lower) | (released > self.upper)
        if np.any(wrong):
            raise ValueError(
                f"'{name}': the released value lies between {self.lower} and {self.upper}, but "
                f"{np.asarray(released)[wrong].flat[0]} doesn't: {places(wrong)}"
            )

    @property
    def _why_no_answers(self) -> str:
        return self._as_candidates._why_no_answers

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        with about(f"'{name}'"):
            self._check_length(statistic)
            check_integers(statistic)
        return tuple(statistic.type.shape[:-1])

    def _event(self, statistic: TensorVariable) -> dict[str, Any]:
        return {"signature": "(d)->()"}

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        number = self._chosen._random(-self._scores(statistic), size)[..., 0]
        return self.lower + number + pm.Uniform.dist(0, 1, size=number.shape)

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        check_counts(statistic)
        scores = self._scores(statistic).eval(mode="FAST_COMPILE")
        number = self._chosen._draw(-scores, rng)[..., 0]
        drawn: np.ndarray = self.lower + number + rng.uniform(size=number.shape)
        return drawn
