"""Report noisy max: which candidates have the largest noisy scores, and nothing else."""

from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.tensor.variable import TensorVariable

from pymc_dapper import budget as accounting
from pymc_dapper.budget import PureDP
from pymc_dapper.checks import choice, flag, places, shown, whole_number
from pymc_dapper.mechanisms.base import Mechanism, as_tensor, positive
from pymc_dapper.sensitivity import Sensitivities, as_l1, in_norm

MaxNoise = Literal["gumbel", "exponential"]


@dataclass(frozen=True, eq=False, repr=False)
class NoisyMaxMechanism(Mechanism):
    r"""The candidates with the largest scores, after noise was added to each score.

    The statistic holds a score for each candidate along its last axis: the counts of a table, if
    the largest cell was published. The release holds the k largest, by number, the largest first.

    With Gumbel noise this is the exponential mechanism: of the candidates that are left, i comes
    next with probability proportional to exp(score_i / scale). With exponential noise it is
    permute-and-flip.

    Attributes
    ----------
    scale : float
        Scale of the noise, in units of the scores.
    candidates : int
        Number of candidates, 2 or more.
    k : int
        How many are released, in their order. Of exponential noise, 1.
    noise : {"gumbel", "exponential"}
        The noise.

    Raises
    ------
    TypeError, ValueError
        If an argument is of a wrong kind or out of range.

    Notes
    -----
    Scores that were published beside the choice, with noise of their own, are another release:
    ``LaplaceMechanism(b).potential("scores", scores[chosen], released=...)``.

    With exponential noise, and c_j = exp((score_j - score_i) / scale), candidate i has the
    probability

    .. math:: \int_0^m \prod_{j \ne i} (1 - c_j u) \, du, \qquad m = 1 / \max(1, \max_j c_j).

    The integrand is a polynomial, and no factor is negative: Gauss quadrature is exact and loses no
    digits.

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

    Examples
    --------
    >>> NoisyMaxMechanism.calibrate(PureDP(1.0), sensitivity=1, candidates=5)
    NoisyMaxMechanism(scale=2, candidates=5, budget=PureDP(epsilon=1))
    """

    scale: float
    candidates: int
    k: int = 1
    noise: MaxNoise = "gumbel"

    integer = True

    _why_no_rules = "it releases which candidates are largest, and no noisy values"

    def __post_init__(self) -> None:
        scale = positive("scale", self.scale)
        if scale.ndim:
            raise TypeError(f"scale must be a single number, got {shown(self.scale)}")
        object.__setattr__(self, "scale", float(scale))
        object.__setattr__(
            self, "candidates", whole_number(self.candidates, "candidates", at_least=2)
        )
        object.__setattr__(self, "k", whole_number(self.k, "k", at_least=1))
        choice(self.noise, "noise", get_args(MaxNoise))
        if self.k > self.candidates:
            raise ValueError(f"k must be at most the number of candidates, {self.candidates}")
        if self.k > 1 and self.noise == "exponential":
            raise ValueError(
                "k must be 1 with exponential noise: for the k largest use Gumbel noise"
            )

    @classmethod
    def calibrate(
        cls,
        budget: PureDP,
        *,
        sensitivity: float | Sensitivities,
        candidates: int,
        k: int = 1,
        noise: MaxNoise = "gumbel",
        one_way: bool = False,
    ) -> Self:
        """Choose the noise for a budget: its scale is 2 k sensitivity / epsilon.

        Parameters
        ----------
        budget : PureDP
            The budget for all that is released.
        sensitivity : Sensitivities or float
            The L-infinity sensitivity of the scores: the most that one record changes any of them.
        candidates, k, noise
            The mechanism's.
        one_way : bool
            Whether one record changes all scores in the same direction, as where neighbouring data
            sets differ by a record that is there or isn't, and scores are counts. Half the scale is
            then enough.

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
        McSherry and Talwar (2007); McKenna and Sheldon (2020); Durfee and Rogers (2019).
        """
        accounting.check_pure(budget, cls.__name__)
        times = whole_number(k, "k", at_least=1) * (1 if flag(one_way, "one_way") else 2)
        largest = _in_max_norm(sensitivity)
        scale = times * accounting.laplace_scale(budget, sensitivity=largest)
        return cls(scale, candidates, k, noise, budget=budget)

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
        times = self.k * (1 if flag(one_way, "one_way") else 2)
        largest = _in_max_norm(sensitivity)
        return accounting.laplace_budget(self.scale / times, sensitivity=largest)

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-probability of a choice, given the scores; -inf of what isn't one.

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
        self._check_lengths(scores.type.shape, "statistic", self.candidates)
        self._check_lengths(chosen.type.shape, "release", self.k)
        scaled = scores / np.asarray(self.scale)
        numbers = np.arange(self.candidates)
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
        """Log-probability of a candidate, by how far each one's score is above its own."""
        if self.noise == "gumbel":
            return -pt.logsumexp(above, axis=-1)
        nodes, weights = np.polynomial.legendre.leggauss((self.candidates + 1) // 2)
        nodes, weights = 0.5 * (nodes + 1), 0.5 * weights
        # In units of the upper limit m, which is 1 over the largest ratio.
        highest = above.max(axis=-1, keepdims=True)
        ratios = pt.switch(is_chosen, 0.0, pt.exp(above - highest))
        factors = pt.log1p(-ratios[..., None] * nodes).sum(axis=-2)
        return pt.logsumexp(factors + np.log(weights), axis=-1) - highest[..., 0]

    def _check_lengths(self, shape: tuple[int | None, ...], what: str, length: int) -> None:
        if not shape or shape[-1] not in (None, length):
            kind = "a score for each candidate" if what == "statistic" else "k chosen candidates"
            raise ValueError(
                f"the {what} must hold {kind}, {length}, along its last axis, but its shape is "
                f"{shape}"
            )

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that what was chosen are different candidates: else a ValueError."""
        super().check_released(name, released)
        values = np.asarray(released)
        wrong = (values < 0) | (values >= self.candidates)
        if np.any(wrong):
            raise ValueError(
                f"'{name}': candidates are 0, ..., {self.candidates - 1}, but "
                f"{values[wrong].flat[0]} was chosen: {places(wrong)}"
            )
        ordered = np.sort(values, axis=-1)
        again = ordered[..., 1:] == ordered[..., :-1]
        if np.any(again):
            raise ValueError(
                f"'{name}': candidate {ordered[..., 1:][again].flat[0]} was chosen twice"
            )

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        try:
            self._check_lengths(statistic.type.shape, "statistic", self.candidates)
        except ValueError as error:
            raise ValueError(f"'{name}': {error}") from None
        return (*statistic.type.shape[:-1], self.k)

    def _event(self, statistic: TensorVariable) -> dict[str, Any]:
        return {"signature": "(d)->(k)"}

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        law = pm.Gumbel.dist if self.noise == "gumbel" else _exponential
        shape = statistic.shape
        if not rv_size_is_none(size):
            shape = pt.concatenate([pt.as_tensor(size, dtype="int64", ndim=1), shape[-1:]])
        noisy = statistic + law(0.0, np.asarray(self.scale), size=shape)
        return pt.argsort(-noisy, axis=-1)[..., : self.k]

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._check_lengths(statistic.shape, "statistic", self.candidates)
        if self.noise == "gumbel":
            noise = rng.gumbel(scale=self.scale, size=statistic.shape)
        else:
            noise = rng.exponential(self.scale, size=statistic.shape)
        return np.argsort(-(statistic + noise), axis=-1)[..., : self.k]


def _exponential(start: float, scale: np.ndarray, size: Any) -> TensorVariable:
    return start + pm.Exponential.dist(scale=scale, size=size)


def _in_max_norm(sensitivity: Any) -> Any:
    return as_l1(in_norm(sensitivity, "linf", "report noisy max"))
