"""Report noisy max: the candidates with the largest noisy scores, without the scores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.tensor.variable import TensorVariable

from pymc_dapper import budget as accounting
from pymc_dapper.budget import PureDP
from pymc_dapper.budget.kinds import needed
from pymc_dapper.checks import about, called_as, choice, flag, whole_number
from pymc_dapper.mechanisms.arguments import check_last_axis, refuse
from pymc_dapper.mechanisms.base import Mechanism, as_tensor, single_scale
from pymc_dapper.sensitivity import (
    Neighbours,
    Sensitivities,
    Sensitivity,
    as_l1,
    in_norm,
    neighbours_of,
)

OWNER = "report noisy max"

MaxNoise = Literal["gumbel", "exponential", "laplace"]


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMaxMechanism(Mechanism):
    r"""The candidates with the largest scores, after noise was added to each score.

    The statistic has a score for each candidate along its last axis, such as the counts of a table
    whose largest cell was published. The release has the numbers of the k largest: the largest
    first, or, if ``ordered`` is False, in any order.

    With Gumbel noise this is the exponential mechanism: among the remaining candidates, i is next
    with probability proportional to exp(score_i / scale). With exponential noise and k = 1 it is
    permute-and-flip.

    Attributes
    ----------
    scale : float
        Scale of the noise, in units of the scores.
    candidates : int
        Number of candidates, 2 or more.
    k : int
        How many are released.
    noise : {"gumbel", "exponential", "laplace"}
        The noise.
    ordered : bool
        Whether the release orders the k largest. Possible with Gumbel noise.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong kind or out of range.

    Notes
    -----
    If scores were published beside the choice, with their own noise, they are another release:
    ``LaplaceMechanism(b).potential("scores", scores[chosen], released=...)``.

    With exponential noise, and c_j = exp((score_j - score_i) / scale), candidate i has the
    probability

    .. math:: \int_0^m \prod_{j \ne i} (1 - c_j u) \, du, \qquad m = 1 / \max(1, \max_j c_j).

    The integrand is a polynomial with non-negative factors: Gauss quadrature is exact and loses no
    digits.

    In other cases, let f and F be the density and the distribution function of a noisy score. A set
    S is chosen with the probability that the lowest noisy score in it is above all others,

    .. math:: \int \sum_{i \in S} \frac{f_i(t)}{1 - F_i(t)} \prod_{i \in S} (1 - F_i(t))
              \prod_{j \notin S} F_j(t) \, dt.

    Between two successive scores the integrand is smooth. It is integrated there, and beyond the
    outer ones in exp(-abs(t) / scale), by a trapezoid rule whose nodes crowd towards both ends
    (Takahasi and Mori 1974). For Gumbel noise t is the largest of the others, which is again
    Gumbel: one integral, over its distribution function. Log-probabilities are right to 1e-10.

    References
    ----------
    McSherry, F. and Talwar, K. (2007). Mechanism design via differential privacy. Foundations of
    Computer Science 48, 94-103.

    Durfee, D. and Rogers, R. (2019). Practical differentially private top-k selection with
    pay-what-you-get composition. Advances in Neural Information Processing Systems 32. For Gumbel
    noise and the k largest.

    McKenna, R. and Sheldon, D. (2020). Permute-and-flip: a new mechanism for differentially private
    selection. Advances in Neural Information Processing Systems 33.

    Ding, Z., Kifer, D., Steinke, T., Wang, Y., Xiao, Y., Zhang, D. et al. (2021). The
    permute-and-flip mechanism is identical to report-noisy-max with exponential noise.
    arXiv:2105.07260.

    Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy. Foundations
    and Trends in Theoretical Computer Science 9(3-4), 211-407. Section 3.3, for Laplace noise.

    Ding, Z., Wang, Y., Zhang, D. and Kifer, D. (2019). Free gap information from the differentially
    private sparse vector and noisy max mechanisms. Proceedings of the VLDB Endowment 13(3),
    293-306. For Laplace noise and the k largest.

    Takahasi, H. and Mori, M. (1974). Double exponential formulas for numerical integration.
    Publications of the Research Institute for Mathematical Sciences 9, 721-741.

    Examples
    --------
    >>> NoisyMaxMechanism.calibrate(PureDP(1.0), sensitivity=1, candidates=5)
    NoisyMaxMechanism(scale=2, candidates=5, budget=PureDP(epsilon=1, one person changes))
    """

    scale: float
    candidates: int
    k: int = 1
    noise: MaxNoise = "gumbel"
    ordered: bool = True

    integer = True

    _signature = "(d)->(k)"
    _why_no_rules = "it releases which candidates are largest, and no noisy values"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", single_scale(self.scale))
        n = whole_number(self.candidates, "candidates", at_least=2)
        object.__setattr__(self, "candidates", n)
        object.__setattr__(self, "k", whole_number(self.k, "k", at_least=1))
        choice(self.noise, "noise", get_args(MaxNoise))
        if self.k > self.candidates:
            raise ValueError(f"k must be at most the number of candidates, {self.candidates}")
        if flag(self.ordered, "ordered") and self.k > 1 and self.noise != "gumbel":
            raise ValueError(
                f"with {self.noise} noise the order of the k largest has no likelihood here: say "
                "ordered=False if only the set of the k largest is known"
            )

    @classmethod
    @called_as(
        "{owner}.calibrate(budget, sensitivity=..., candidates=...), with a budget such as "
        "pmd.PureDP(0.5)"
    )
    def calibrate(
        cls,
        budget: PureDP,
        *,
        sensitivity: float | Sensitivities,
        candidates: int,
        k: int = 1,
        noise: MaxNoise = "gumbel",
        ordered: bool = True,
        one_way: bool = False,
        neighbours: Neighbours | None = None,
    ) -> Self:
        """Choose the noise for a budget: its scale is 2 k sensitivity / epsilon.

        Parameters
        ----------
        budget : PureDP
            The budget for all that is released.
        sensitivity : Sensitivities or float
            The L-infinity sensitivity of the scores: the most that one record changes any of them.
        candidates, k, noise, ordered
            The mechanism's.
        one_way : bool
            Whether one record changes all scores in the same direction, as for counts if
            neighbouring data sets differ by one record that is added. Half the scale is then
            enough.
        neighbours : {"replace", "add_remove"}, optional
            Neighbouring data sets that the budget is for, if the budget doesn't say so itself.

        Returns
        -------
        NoisyMaxMechanism
            It keeps the budget.

        Raises
        ------
        TypeError
            If the budget isn't pure.
        ValueError
            If an argument is out of range.

        References
        ----------
        McSherry and Talwar (2007) and Durfee and Rogers (2019) for Gumbel noise, McKenna and
        Sheldon (2020) for exponential noise, Ding et al. (2019) for Laplace noise. Their argument
        also covers k > 1 with exponential noise: if the noise of each of the k grows by 2
        sensitivity, the choice stays the same.
        """
        accounting.check_pure(budget, cls.__name__)
        budget = budget.among(neighbours)
        largest = as_l1(needed(budget, sensitivity, "linf", OWNER))
        times = whole_number(k, "k", at_least=1) * _ways(one_way, largest)
        scale = times * accounting.laplace_scale(budget, sensitivity=largest)
        return cls(scale, candidates, k, noise, ordered, budget=budget)

    def privacy_loss(self, *, sensitivity: float | Sensitivities, one_way: bool = False) -> PureDP:
        """Budget that a release spends, by the L-infinity sensitivity of the scores.

        Parameters
        ----------
        sensitivity : Sensitivities or float
            The sensitivity.
        one_way : bool
            As of :meth:`calibrate`.

        Returns
        -------
        PureDP
            2 k sensitivity / scale, or half of it.
        """
        largest = as_l1(in_norm(sensitivity, "linf", OWNER))
        if flag(one_way, "one_way") and isinstance(largest, Sensitivity):
            largest = largest.among("add_remove")
        times = self.k * _ways(one_way, largest)
        return accounting.laplace_budget(self.scale / times, sensitivity=largest)

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-probability of a choice, given the scores; -inf for an impossible choice.

        Parameters
        ----------
        released : tensor_like, shape (..., k)
            Numbers of the chosen candidates, from 0.
        statistic : tensor_like, shape (..., candidates)
            The scores.

        Returns
        -------
        TensorVariable, shape (...)
        """
        chosen, scores = as_tensor(released, "the release"), as_tensor(statistic)
        self._check_scores(scores.type.shape)
        check_last_axis(chosen.type.shape, self.k, "release", "k chosen candidates")
        scaled = scores / np.asarray(self.scale)
        numbers = np.arange(self.candidates)
        if self._is_set or self.noise == "laplace":
            members = pt.eq(numbers, chosen[..., None]).any(axis=-2)
            possible = pt.eq(members.sum(axis=-1), self.k)
            return pt.switch(possible, self._log_set(scaled, members), -np.inf)
        is_left = pt.ones_like(scaled, dtype="bool")
        logp: Any = 0.0
        for i in range(self.k):
            is_chosen = pt.eq(numbers, chosen[..., i, None])
            possible = (is_chosen & is_left).any(axis=-1)
            score = pt.switch(is_chosen, scaled, 0.0).sum(axis=-1)
            above = pt.switch(is_left, scaled - score[..., None], -np.inf)
            of_this = self._log_first(above, is_chosen)
            logp = logp + pt.switch(possible, of_this, -np.inf)
            is_left = is_left & ~is_chosen
        return logp

    def _log_first(self, above: TensorVariable, is_chosen: TensorVariable) -> TensorVariable:
        """Log-probability of a candidate, given how far each score is above its own."""
        if self.noise == "gumbel":
            return -pt.logsumexp(above, axis=-1)
        nodes, weights = np.polynomial.legendre.leggauss((self.candidates + 1) // 2)
        nodes, weights = 0.5 * (nodes + 1), 0.5 * weights
        # In units of the upper limit m, which is 1 over the largest ratio.
        highest = above.max(axis=-1, keepdims=True)
        ratios = pt.switch(is_chosen, 0.0, pt.exp(above - highest))
        factors = pt.log1p(-ratios[..., None] * nodes).sum(axis=-2)
        return pt.logsumexp(factors + np.log(weights), axis=-1) - highest[..., 0]

    @property
    def _is_set(self) -> bool:
        return self.k > 1 and not self.ordered

    def _log_set(self, scores: TensorVariable, members: TensorVariable) -> TensorVariable:
        """Log-probability that the members are above all others; scores are in units of scale."""
        if self.k == self.candidates:
            return pt.zeros_like(scores[..., 0])
        if self.noise == "gumbel":
            others = pt.logsumexp(pt.switch(members, -np.inf, scores), axis=-1)
            # -log of the distribution function of the largest other score, to the power of the
            # ratio of weights: an exponential variable.
            steps = (scores - others[..., None])[..., None] + _LOG_MINUS_LOG_X
            within = pt.clip(steps, -40.0, 40.0)
            below = pt.switch(steps < -40.0, steps, pt.log(-pt.expm1(-pt.exp(within))))
            log_factor = pt.switch(members[..., None], below, 0.0).sum(axis=-2)
            return pt.logsumexp(log_factor + _LOG_WEIGHTS, axis=-1)
        scores = scores - scores.max(axis=-1, keepdims=True)
        ordered = pt.sort(scores, axis=-1)
        low, width = ordered[..., :-1], ordered[..., 1:] - ordered[..., :-1]
        inner = low[..., None] + width[..., None] * _X
        first, last = ordered[..., :1, None] + _LOG_X, ordered[..., -1:, None] - _LOG_X
        at = pt.concatenate([first, inner, last], axis=-2)
        outer = pt.ones_like(ordered[..., :1])
        widths = pt.concatenate([outer, width, outer], axis=-1)[..., None]
        is_outer = np.zeros((self.candidates + 1, 1))
        is_outer[[0, -1]] = 1
        log_weights = _LOG_WEIGHTS - is_outer * _LOG_X

        noise, chosen = at[..., None, :, :] - scores[..., None, None], members[..., None, None]
        law = _laplace_law if self.noise == "laplace" else _exponential_law
        log_below, log_above, rate = law(noise)
        rates = pt.switch(chosen, rate, 0.0).sum(axis=-3)
        log_all = pt.switch(chosen, log_above, log_below).sum(axis=-3) + log_weights
        log_all += pt.switch(rates > 0, pt.log(pt.switch(rates > 0, rates, 1.0)), _IMPOSSIBLE)
        largest = log_all.max(axis=(-1, -2))
        # Widths are kept out of the logarithm: they are zero for ties.
        total = (widths * pt.exp(log_all - largest[..., None, None])).sum(axis=(-1, -2))
        return pt.log(total) + largest

    def _check_scores(self, shape: Sequence[int | None]) -> None:
        check_last_axis(shape, self.candidates, "statistic", "a score for each candidate")

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that the choice has different candidates: else a ValueError."""
        super().check_released(name, released)
        values = np.asarray(released)
        wrong = (values < 0) | (values >= self.candidates)
        refuse(name, wrong, values, f"candidates are 0, ..., {self.candidates - 1}")
        ordered = np.sort(values, axis=-1)
        again = ordered[..., 1:] == ordered[..., :-1]
        if np.any(again):
            first = ordered[..., 1:][again].flat[0]
            raise ValueError(f"'{name}': candidate {first} was chosen twice")

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        with about(f"'{name}'"):
            self._check_scores(statistic.type.shape)
        return (*statistic.type.shape[:-1], self.k)

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        law = {"gumbel": pm.Gumbel.dist, "laplace": pm.Laplace.dist, "exponential": _exponential}
        shape = statistic.shape
        if not rv_size_is_none(size):
            shape = pt.concatenate([pt.as_tensor(size, dtype="int64", ndim=1), shape[-1:]])
        noisy = statistic + law[self.noise](0.0, np.asarray(self.scale), size=shape)
        chosen = pt.argsort(-noisy, axis=-1)[..., : self.k]
        return pt.sort(chosen, axis=-1) if self._is_set else chosen

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._check_scores(statistic.shape)
        noise = getattr(rng, self.noise)(scale=self.scale, size=statistic.shape)
        chosen = np.argsort(-(statistic + noise), axis=-1)[..., : self.k]
        return np.sort(chosen, axis=-1) if self._is_set else chosen


_STEPS = np.linspace(-3.4, 3.4, 205)
_LOG_X = -np.log1p(np.exp(-np.pi * np.sinh(_STEPS)))
"""Nodes between 0 and 1, as logarithms: the rule of Takahasi and Mori."""
_X = np.exp(_LOG_X)
_LOG_MINUS_LOG_X = np.log(-_LOG_X)
_LOG_WEIGHTS = (
    _LOG_X
    - np.log1p(np.exp(np.pi * np.sinh(_STEPS)))
    + np.log(np.pi * np.cosh(_STEPS) * (_STEPS[1] - _STEPS[0]))
)
_IMPOSSIBLE = np.float64(-1e300)
"""Log of zero: compiled code may lose infinities."""

Law = tuple[TensorVariable, TensorVariable, TensorVariable]


def _laplace_law(noise: TensorVariable) -> Law:
    """Log-probabilities to be below and above, and the density as a share of the latter."""
    tail = 0.5 * pt.exp(-pt.abs(noise))
    log_tail, log_rest = -pt.abs(noise) - np.log(2.0), pt.log1p(-tail)
    is_low = noise < 0
    return (
        pt.switch(is_low, log_tail, log_rest),
        pt.switch(is_low, log_rest, log_tail),
        pt.switch(is_low, tail / (1.0 - tail), 1.0),
    )


def _exponential_law(noise: TensorVariable) -> Law:
    positive_noise = pt.switch(noise > 0, noise, 1.0)
    return (
        pt.switch(noise > 0, pt.log(-pt.expm1(-positive_noise)), _IMPOSSIBLE),
        -pt.maximum(noise, 0.0),
        pt.gt(noise, 0).astype("float64"),
    )


def _exponential(start: float, scale: np.ndarray, size: Any) -> TensorVariable:
    return start + pm.Exponential.dist(scale=scale, size=size)


def _ways(one_way: bool, sensitivity: Any) -> int:
    """In how many directions one record can change scores; for a replaced record always two."""
    if not flag(one_way, "one_way"):
        return 2
    if neighbours_of(sensitivity) == "replace":
        raise ValueError(
            "one_way is for scores that one record changes in the same direction. But the "
            "sensitivity is for a person who changes, which lowers one score and raises another. "
            "Use neighbours='add_remove' for the statistic and the budget"
        )
    return 1
