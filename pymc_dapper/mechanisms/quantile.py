"""A quantile, chosen among candidates by report noisy max."""

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self, get_args

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pytensor.tensor.variable import TensorVariable
from scipy.special import lambertw

from pymc_dapper.backend.ranks import rank_choice
from pymc_dapper.budget import PureDP
from pymc_dapper.checks import about, called_as, choice, finite_number, increasing, shown
from pymc_dapper.mechanisms.arguments import check_last_axis, refuse
from pymc_dapper.mechanisms.base import Mechanism, as_tensor
from pymc_dapper.mechanisms.noisy_max import MaxNoise, NoisyMaxMechanism
from pymc_dapper.sensitivity import Neighbours, Sensitivities, for_either, sensitivities
from pymc_dapper.statistics.arrays import Array, Records, as_records
from pymc_dapper.statistics.tables import counts_around


class RankedMechanism(Mechanism):
    """A choice among candidates, each scored by how far it is from a quantile.

    The statistic has counts of records in columns. It is for a mechanism with these attributes:

    Attributes
    ----------
    alpha : float
        Which quantile, from 0 to 1.
    scale : float
        Scale of the noise on scores, in records.
    noise : {"gumbel", "exponential", "laplace"}
        The noise.
    """

    alpha: float
    scale: float
    noise: MaxNoise

    _signature = "(d)->()"

    def __post_init__(self) -> None:
        alpha = finite_number(self.alpha, "alpha", at_least=0.0, at_most=1.0)
        object.__setattr__(self, "alpha", alpha)
        choice(self.noise, "noise", get_args(MaxNoise))
        object.__setattr__(self, "scale", self._chosen.scale)

    @property
    @abstractmethod
    def columns(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Of each candidate the first column not below it and the first above, and their number."""

    @property
    def _choices(self) -> str:
        """What there is to choose, for messages."""
        return f"{len(self.columns[0])} candidates"

    @property
    def _chosen(self) -> NoisyMaxMechanism:
        """Report noisy max of the candidates' scores, with the sign changed."""
        return NoisyMaxMechanism(self.scale, len(self.columns[0]), noise=self.noise)

    @classmethod
    def _calibrated(cls, budget: PureDP, neighbours: Neighbours | None, **own: Any) -> Self:
        trial = cls(**own, scale=1.0)  # type: ignore[call-arg]
        chosen = NoisyMaxMechanism.calibrate(
            budget,
            sensitivity=trial._sensitivity,
            candidates=len(trial.columns[0]),
            noise=trial.noise,
            neighbours=neighbours,
        )
        return cls(**own, scale=chosen.scale, budget=chosen.budget)  # type: ignore[call-arg]

    def privacy_loss(self, *, neighbours: Neighbours) -> PureDP:
        """Budget that a release spends.

        Parameters
        ----------
        neighbours : {"replace", "add_remove"}
            Which data sets are neighbours.

        Returns
        -------
        PureDP
            With epsilon 2 / scale if one record is replaced, and max(alpha, 1 - alpha) times that
            if one joins or leaves.
        """
        own = for_either(neighbours, self._sensitivity.among)
        return self._chosen.privacy_loss(sensitivity=own)

    def error_bound(self, beta: float = 0.05) -> float:
        """Bound on how much worse the released candidate's score is than the best one's.

        Parameters
        ----------
        beta : float
            Probability that it is worse by more, by the union bound.

        Returns
        -------
        float
            The bound, in records: about how far the share of records below is from alpha, times
            the number of records.
        """
        of_each = finite_number(beta, "beta", above=0, below=1) / (len(self.columns[0]) - 1)
        bound = -np.log(of_each)
        if self.noise == "laplace":
            # Two noises differ by t or more with probability (2 + t) / 4 exp(-t).
            bound = -2.0 - lambertw(-4.0 * of_each * np.exp(-2.0), -1).real
        return float(self.scale * max(bound, 0.0))

    @property
    def _why_no_answers(self) -> str:
        return (
            "how far a released quantile is from the true one depends on how all records are "
            "spread, so it has no answer without a model. Write a model of the records, and add "
            "the release to it by mechanism.observe(...). All that is known without one: with "
            f"probability 0.95, its rank is worse than the best candidate's by at most "
            f"{self.error_bound():.3g} records"
        )

    @property
    def _sensitivity(self) -> Sensitivities:
        """How far one record can move a score."""
        most = max(Fraction(self.alpha), 1 - Fraction(self.alpha))

        def of(neighbours: Neighbours) -> Sensitivities:
            one = Fraction(1) if neighbours == "replace" else most
            m = len(self.columns[0])
            return sensitivities(m * one, m * one * one, one, neighbours, exact=False)

        return for_either(None, of)

    def scores(self, statistic: Any) -> TensorVariable:
        """Score each candidate, without noise: 0 for the quantile, more for others.

        Parameters
        ----------
        statistic : tensor_like, shape (..., number of columns)
            As ``statistic`` makes it.

        Returns
        -------
        TensorVariable, shape (..., m)
            The scores.

        Raises
        ------
        ValueError
            If the last axis is of another length.
        """
        counts = as_tensor(statistic)
        self._check_length(counts)
        low, high, _ = self.columns
        up_to = pt.cumsum(counts, axis=-1)
        below, above = up_to[..., low - 1], up_to[..., -1:] - up_to[..., high - 1]
        alpha = np.asarray(self.alpha)
        return pt.abs((1.0 - alpha) * below - alpha * above)

    def _log_chosen(self, number: TensorVariable, statistic: Any) -> TensorVariable:
        """Log-probability of a candidate, by its number; -1 for none."""

        def logp(number: TensorVariable, counts: TensorVariable) -> TensorVariable:
            return self._chosen.logp(number[..., None], -self.scores(counts))

        given = number, as_tensor(statistic)
        return logp(*given) if self.noise == "laplace" else rank_choice(self, logp, *given)

    def _check_length(self, statistic: TensorVariable) -> None:
        told = f"the counts for {self._choices} that mechanism.statistic(x) makes of the records x"
        check_last_axis(statistic.type.shape, self.columns[-1], "statistic", told)

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        with about(f"'{name}'"):
            self._check_length(statistic)
            if np.dtype(statistic.dtype).kind == "f":
                raise TypeError(
                    "the statistic must hold counts, of an integer type, but its type is "
                    f"{statistic.dtype}. Pass mechanism.statistic(x), of the records x; or, if it "
                    "holds whole numbers, statistic.astype('int64')"
                )
        return tuple(statistic.type.shape[:-1])

    def _random_number(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        return self._chosen._random(-self.scores(statistic), size)[..., 0]

    def _drawn_number(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if np.any((statistic < 0) | (statistic != np.round(statistic))):
            raise ValueError(
                "the statistic must hold counts, whole numbers from 0 on: pass "
                "mechanism.statistic(x), of the records x"
            )
        scores = self.scores(statistic).eval(mode="FAST_COMPILE")
        return self._chosen._draw(-scores, rng)[..., 0]


@dataclass(frozen=True, eq=False, repr=False)
class QuantileMechanism(RankedMechanism):
    r"""A quantile: the candidate with the smallest noisy score.

    A candidate c is scored by how far it is from being the quantile,

    .. math:: | (1 - \alpha) \, \#(x < c) - \alpha \, \#(x > c) |.

    Noise is added to each score, and the candidate with the smallest noisy score is published: a
    number among the candidates. These are public.

    Scores are functions of how many records lie below, at and between candidates. Such counts are
    sums over records: they are the statistic (:meth:`statistic`).

    Attributes
    ----------
    candidates : ndarray, shape (m,)
        The candidates, 2 or more, increasing.
    alpha : float
        Which quantile, from 0 (the minimum) to 1 (the maximum): 0.5 for the median.
    scale : float
        Scale of the noise on scores, in records.
    noise : {"gumbel", "exponential", "laplace"}
        The noise: Gumbel noise makes it the exponential mechanism, exponential noise permute and
        flip.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong kind or out of range, or if candidates aren't in order.

    Notes
    -----
    It is the law of OpenDP's ``make_private_quantile``, of the same ``scale``: with exponential
    noise for the output measure ``max_divergence()``, with Gumbel noise for
    ``zero_concentrated_divergence()``. OpenDP scores in whole numbers, so ``alpha`` is a fraction
    there, and scores and noise are larger by its denominator: ``releases.opendp_mechanism`` reads
    it.

    With Gumbel noise that keeps a budget ``PureDP(epsilon)``, the release also keeps
    ``ZCDP(epsilon ** 2 / 8)`` (Cesar and Rogers 2021).

    References
    ----------
    Smith, A. (2011). Privacy-preserving statistical estimation with optimal convergence rates.
    Symposium on Theory of Computing 43, 813-822.

    McKenna, R. and Sheldon, D. (2020). Permute-and-flip: a new mechanism for differentially private
    selection. Advances in Neural Information Processing Systems 33.

    Cesar, M. and Rogers, R. (2021). Bounding, concentrating, and truncating: unifying privacy loss
    composition for data analytics. Algorithmic Learning Theory 132, 421-457.

    Examples
    --------
    >>> median = QuantileMechanism([20.0, 30.0, 40.0], alpha=0.5, scale=1.0)
    >>> counts = median.statistic([18, 25, 30, 31, 67])
    >>> counts
    array([1, 0, 1, 1, 1, 0, 1])
    >>> median.scores(counts).eval()
    array([1.5, 0. , 1.5])
    """

    candidates: np.ndarray
    alpha: float
    scale: float
    noise: MaxNoise = "gumbel"

    _why_no_rules = "it releases one of the candidates, and no noisy values"

    def __post_init__(self) -> None:
        candidates = increasing(self.candidates, "candidates", at_least=2)
        object.__setattr__(self, "candidates", candidates)
        super().__post_init__()

    @property
    def columns(self) -> tuple[np.ndarray, np.ndarray, int]:
        """Columns 2 j + 1 and 2 j + 2, of 2 m + 1."""
        at = 2 * np.arange(len(self.candidates)) + 1
        return at, at + 1, 2 * len(at) + 1

    @classmethod
    @called_as(
        "{owner}.calibrate(budget, candidates=..., alpha=...), with a budget such as "
        "pmd.PureDP(0.5)"
    )
    def calibrate(
        cls,
        budget: PureDP,
        *,
        candidates: ArrayLike,
        alpha: float,
        noise: MaxNoise = "gumbel",
        neighbours: Neighbours | None = None,
    ) -> Self:
        """Choose the noise for a budget: its scale is 2 / epsilon times what a score can change.

        One record that is replaced changes a score by at most 1, and one that joins or leaves by
        at most max(alpha, 1 - alpha).

        Parameters
        ----------
        budget : PureDP
            The budget.
        candidates, alpha, noise
            The mechanism's.
        neighbours : {"replace", "add_remove"}, optional
            Which data sets the budget compares, if it doesn't say so itself.

        Returns
        -------
        QuantileMechanism
            It keeps the budget.

        Raises
        ------
        TypeError
            If the budget isn't pure.
        ValueError
            If an argument is out of range, or if nobody says which data sets the budget compares.
        """
        own = {"candidates": candidates, "alpha": alpha, "noise": noise}
        return cls._calibrated(budget, neighbours, **own)

    def statistic(self, x: Records) -> Array:
        """Count the records below, at and between the candidates.

        Parameters
        ----------
        x : tensor or array, shape (n,)
            The records.

        Returns
        -------
        TensorVariable or ndarray of int, shape (2 m + 1,)
            Numbers of records below the first candidate, at it, between it and the second one, at
            the second one, ..., and above the last one.

        Raises
        ------
        ValueError
            If the records aren't a number each, or some are nan.

        Notes
        -----
        The records of a model can't be checked, and nan has no place among candidates: put a number
        in its place, as the library did.
        """
        return counts_around(as_records(x, "x", max_ndim=1), self.candidates)

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-probability of a released candidate, given the counts; -inf of what isn't one.

        Parameters
        ----------
        released : tensor_like, shape (...)
            What was published.
        statistic : tensor_like, shape (..., 2 m + 1)
            As :meth:`statistic` makes it.

        Returns
        -------
        TensorVariable, shape (...)
        """
        is_it = pt.eq(as_tensor(released, "the release")[..., None], self.candidates)
        numbers = 1 + np.arange(len(self.candidates))
        return self._log_chosen(pt.switch(is_it, numbers, 0).sum(axis=-1) - 1, statistic)

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that candidates were released: else a ValueError."""
        super().check_released(name, released)
        wrong = ~np.isin(released, self.candidates)
        refuse(name, wrong, released, f"values are among the candidates, {shown(self.candidates)}")

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        return pt.as_tensor(self.candidates)[self._random_number(statistic, size)]

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return self.candidates[self._drawn_number(statistic, rng)]
