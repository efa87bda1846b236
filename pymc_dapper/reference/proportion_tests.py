r"""Tests and intervals for a private proportion.

Of n records, X ~ Binomial(n, theta) have some property.

`UMPProportion`, `ump_test`, `umpu_test`
    Released is Z = X + N with Tulap noise N. Among all differentially private tests of a one-sided
    hypothesis, rejecting for large Z is the uniformly most powerful one (Awan and Slavkovic 2018).
    P-values and intervals are exact: sums over the binomial law, with the noise's cdf.
`NormalProportion`, `normal_test`
    Released is X / n + Laplace(1 / (epsilon n)), taken as normal with the variance of sampling and
    noise added up (Vu and Slavkovic 2009). Simple, and right for large n only.
`randomized_response`, `randomized_response_sd`, `laplace_sd`
    Without a trusted curator: every record's answer is randomised. The price is a rate: the error
    due to privacy is of order 1 / (epsilon sqrt(n)), not 1 / (epsilon n).

The two-sided test here is the equal-tailed one: twice the smaller one-sided p-value. Z is
continuous, so at theta0 a one-sided p-value is uniform, and so is this: the size is exact. Each
interval is a pair of one-sided bounds, and covers with exactly its nominal probability for all
theta. The unbiased test, `umpu_test`, differs if the binomial law is skew.

References
----------
Awan, J. and Slavkovic, A. (2018). Differentially private uniformly most powerful tests for binomial
data. Advances in Neural Information Processing Systems 31.

Awan, J. and Slavkovic, A. (2020). Differentially private inference for binomial data. Journal of
Privacy and Confidentiality 10(1).

Vu, D. and Slavkovic, A. (2009). Differential privacy for clinical trial data: preliminary
evaluations. IEEE International Conference on Data Mining Workshops.

Warner, S. L. (1965). Randomized response: a survey technique for eliminating evasive answer bias.
Journal of the American Statistical Association 60, 63-69.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom, laplace, norm

from pymc_dapper.budget import ApproxDP, PureDP, check_pure
from pymc_dapper.budget.kinds import check_replace
from pymc_dapper.budget.roots import root
from pymc_dapper.checks import finite_number
from pymc_dapper.reference import _proportion
from pymc_dapper.reference._tulap import TulapNoise


@dataclass(frozen=True, eq=False)
class UMPProportion:
    """Inference about a proportion from a count with Tulap noise: exact.

    Parameters
    ----------
    released : array_like
        The released count, X + Tulap(0, b, q); or several releases, each of its own.
    n : int
        Number of records.
    budget : PureDP or ApproxDP
        Budget of the release: b = exp(-epsilon) and q = 2 delta b / (1 - b + 2 delta b).

    Raises
    ------
    TypeError
        If the budget is of another kind.
    ValueError
        If a number makes no sense.

    Examples
    --------
    >>> heard = UMPProportion(released=23.4, n=30, budget=PureDP(1.0))
    >>> float(heard.p_value(0.5).round(4))
    0.0034
    """

    released: ArrayLike
    n: int
    budget: PureDP | ApproxDP
    _noise: TulapNoise = field(init=False, repr=False)
    _values: np.ndarray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the numbers."""
        _proportion.check_n(self.n)
        object.__setattr__(self, "_noise", _tulap(self.budget))
        object.__setattr__(self, "_values", _proportion.check_released(self.released))

    @property
    def estimate(self) -> np.ndarray:
        """Unbiased estimate of the proportion; outside of [0, 1] at times."""
        return self._values / self.n

    @property
    def sd(self) -> np.ndarray:
        """Standard deviation of the estimate, with the proportion estimated within [0, 1]."""
        theta = np.clip(self.estimate, 0, 1)
        return np.sqrt(theta * (1 - theta) / self.n + (self._noise.sd / self.n) ** 2)

    def p_value(
        self, theta0: float, alternative: _proportion.Alternative = "greater"
    ) -> np.ndarray:
        """P-value of H0: theta = theta0, which one-sided is that of theta <= (or >=) theta0, too.

        Parameters
        ----------
        theta0 : float
            Proportion under the null hypothesis, within (0, 1).
        alternative : {"greater", "less", "two-sided"}
            Two-sided is the smaller one-sided p-value, doubled.

        Returns
        -------
        ndarray
            In the shape of `released`.
        """
        at_least = self._at_least(np.full(self._values.shape, _proportion.check_theta0(theta0)))
        return _proportion.p_value_of(1 - at_least, at_least, alternative)

    def interval(self, prob: float = 0.95) -> _proportion.Interval:
        """Confidence interval: the proportions that neither one-sided test rejects.

        Parameters
        ----------
        prob : float
            Probability of coverage; exact for every true proportion.

        Returns
        -------
        Interval
            If no proportion agrees with the release (a count far below 0 or above n), the interval
            is the point 0 or 1.
        """
        tail = (1 - finite_number(prob, "prob", above=0, below=1)) / 2
        return _proportion.Interval(self._solve(tail), self._solve(1 - tail))

    def _at_least(self, theta: np.ndarray) -> np.ndarray:
        """P(Z >= released) at a proportion for each release."""
        counts = np.arange(self.n + 1)
        pmf = binom.pmf(counts, self.n, theta[..., None])
        return np.asarray((pmf * self._noise.sf(self._values[..., None] - counts)).sum(axis=-1))

    def _solve(self, target: float) -> np.ndarray:
        """Find the proportion at which P(Z >= released), which rises with it, is the target."""
        low, high = np.zeros(self._values.shape), np.ones(self._values.shape)
        for _ in range(60):  # Bisection, all releases at once, to a float's precision at 1.
            middle = (low + high) / 2
            below = self._at_least(middle) < target
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        # If every proportion is on one side, that end is exact.
        edge = np.where(self._at_least(np.ones_like(low)) < target, 1.0, (low + high) / 2)
        return np.where(self._at_least(np.zeros_like(low)) > target, 0.0, edge)


@dataclass(frozen=True, eq=False)
class NormalProportion:
    """Inference about a proportion with Laplace noise, as if noise and sampling error were normal.

    Parameters
    ----------
    released : array_like
        The released proportion, X / n + Laplace(1 / (epsilon n)); or several.
    n : int
        Number of records.
    budget : PureDP
        Budget of the release.

    Raises
    ------
    TypeError
        If the budget isn't pure.
    ValueError
        If a number makes no sense.

    References
    ----------
    Vu and Slavkovic (2009).
    """

    released: ArrayLike
    n: int
    budget: PureDP
    estimate: np.ndarray = field(init=False, repr=False)
    """Unbiased estimate of the proportion; outside of [0, 1] at times."""
    _scale: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "_scale", _proportion.proportion_scale(self.n, self.budget))
        object.__setattr__(self, "estimate", _proportion.check_released(self.released))

    @property
    def sd(self) -> np.ndarray:
        """Standard deviation of the estimate, with the proportion estimated within [0, 1]."""
        return laplace_sd(np.clip(self.estimate, 0, 1), self.n, self.budget)

    def p_value(
        self, theta0: float, alternative: _proportion.Alternative = "greater"
    ) -> np.ndarray:
        """P-value by the normal law; see `UMPProportion.p_value`."""
        theta0 = _proportion.check_theta0(theta0)
        z = (self.estimate - theta0) / laplace_sd(theta0, self.n, self.budget)
        return _proportion.p_value_of(norm.cdf(z), norm.sf(z), alternative)

    def interval(self, prob: float = 0.95) -> _proportion.Interval:
        """Interval of the proportions that the two-sided test doesn't reject.

        Parameters
        ----------
        prob : float
            Nominal probability of coverage.

        Returns
        -------
        Interval
            Cut to [0, 1]; the point 0 or 1 if the release is too far outside for any proportion.
        """
        # (t - theta)^2 = z^2 (theta (1 - theta) / n + 2 scale^2), a quadratic equation in theta.
        z2 = norm.isf((1 - finite_number(prob, "prob", above=0, below=1)) / 2) ** 2
        t, share = self.estimate, z2 / self.n
        centre = (t + share / 2) / (1 + share)
        product = (t**2 - 2 * z2 * self._scale**2) / (1 + share)
        half = np.sqrt(np.maximum(centre**2 - product, 0.0))
        return _proportion.Interval(np.clip(centre - half, 0, 1), np.clip(centre + half, 0, 1))


def ump_test(
    n: int,
    theta0: float,
    budget: PureDP | ApproxDP,
    *,
    alternative: _proportion.Alternative = "greater",
    level: float = 0.05,
) -> _proportion.ProportionTest:
    """Return the uniformly most powerful private test for a count: reject for extreme X + Tulap.

    Parameters
    ----------
    n : int
        Number of records.
    theta0 : float
        Proportion under the null hypothesis, within (0, 1).
    budget : PureDP or ApproxDP
        The budget of the release.
    alternative : {"greater", "less", "two-sided"}
        One-sided it is most powerful; two-sided it is the equal-tailed test.
    level : float
        Its size, exactly.

    Returns
    -------
    ProportionTest
        In units of the count.

    References
    ----------
    Awan and Slavkovic (2018).
    """
    noise, counts = _tulap(budget), np.arange(_proportion.check_n(n) + 1)
    pmf = binom.pmf(counts, n, _proportion.check_theta0(theta0))
    reach = min(noise.edge, 0.5 + 800 / budget.epsilon)  # b^800/epsilon is nothing to a float.

    def critical(tail: float) -> float:
        return root(lambda z: float(pmf @ noise.sf(z - counts)) - tail, -reach, n + reach)

    return _proportion.tail_test(
        n, theta0, alternative, level, critical, lambda z: noise.sf(z - counts)
    )


def umpu_test(
    n: int, theta0: float, budget: PureDP | ApproxDP, *, level: float = 0.05
) -> _proportion.ProportionTest:
    """Return the most powerful private test of theta = theta0 among the unbiased ones.

    It rejects with probability F(abs(x - k) - m), where F is the cdf of Tulap noise, with k and m
    such that the size is the level and the power has its minimum at theta0.

    Parameters
    ----------
    n, theta0, budget, level
        As for `ump_test`.

    Returns
    -------
    ProportionTest
        Two-sided. There is no critical value: the count and a random draw decide.

    References
    ----------
    Awan and Slavkovic (2020).
    """
    noise, counts = _tulap(budget), np.arange(_proportion.check_n(n) + 1)
    finite_number(level, "level", above=0, below=1)
    pmf = binom.pmf(counts, n, _proportion.check_theta0(theta0))
    reach = n + min(noise.edge, 0.5 + 800 / budget.epsilon)

    def rejection(k: float) -> np.ndarray:
        distance = np.abs(counts - k)
        m = root(lambda m: float(pmf @ noise.cdf(distance - m)) - level, -reach, reach)
        return noise.cdf(distance - m)

    def slope(k: float) -> float:
        """Return the derivative of the power at theta0, up to a positive factor."""
        return float(pmf @ ((counts - n * theta0) * rejection(k)))

    # At k = 0 and k = n the tests are one-sided, and their power rises and falls.
    balanced = rejection(root(slope, 0.0, float(n)))
    return _proportion.ProportionTest(n, theta0, "two-sided", level, np.nan, np.nan, balanced)


def normal_test(
    n: int,
    theta0: float,
    budget: PureDP,
    *,
    alternative: _proportion.Alternative = "greater",
    level: float = 0.05,
) -> _proportion.ProportionTest:
    """Test by the normal approximation, with its exact size and power.

    Parameters
    ----------
    n, theta0, alternative
        As for `ump_test`.
    budget : PureDP
        The budget of the release.
    level : float
        Nominal size; the exact one is ``ProportionTest.size``.

    Returns
    -------
    ProportionTest
        In units of the proportion.

    References
    ----------
    Vu and Slavkovic (2009).
    """
    scale = _proportion.proportion_scale(n, budget)
    sd = float(laplace_sd(_proportion.check_theta0(theta0), n, budget))
    counts = np.arange(n + 1)

    def critical(tail: float) -> float:
        return theta0 + sd * float(norm.isf(tail))

    return _proportion.tail_test(
        n, theta0, alternative, level, critical, lambda t: laplace.sf(t, counts / n, scale)
    )


@dataclass(frozen=True)
class RandomizedResponseEstimate:
    """A proportion estimated from randomised answers.

    Attributes
    ----------
    estimate : float
        Unbiased; outside of [0, 1] at times.
    sd : float
        Its standard deviation, estimated.
    interval : tuple of float
        Normal confidence interval, cut to [0, 1].
    """

    estimate: float
    sd: float
    interval: tuple[float, float]


def randomized_response(
    yes: int, n: int, budget: PureDP, *, prob: float = 0.95
) -> RandomizedResponseEstimate:
    """Estimate a proportion from answers that are true with probability e^eps/(1+e^eps) each.

    Parameters
    ----------
    yes : int
        Number of randomised answers that report the property.
    n : int
        Number of answers.
    budget : PureDP
        Budget of each answer.
    prob : float
        Nominal probability that the interval covers.

    Returns
    -------
    RandomizedResponseEstimate

    Raises
    ------
    ValueError
        If `yes` is negative or above n.

    References
    ----------
    Warner (1965).
    """
    if not 0 <= yes <= _proportion.check_n(n):
        raise ValueError(f"yes must be a count from 0 to n = {n}, got {yes!r}.")
    keep = _keep_probability(budget)
    share = yes / n
    estimate = (share - (1 - keep)) / (2 * keep - 1)
    sd = float(np.sqrt(share * (1 - share) / n) / (2 * keep - 1))
    half = float(norm.isf((1 - finite_number(prob, "prob", above=0, below=1)) / 2)) * sd
    lower, upper = np.clip([estimate - half, estimate + half], 0, 1)
    return RandomizedResponseEstimate(estimate, sd, (float(lower), float(upper)))


def randomized_response_sd(theta: ArrayLike, n: ArrayLike, budget: PureDP) -> np.ndarray:
    """Compute the standard deviation of the estimator from randomised answers.

    Parameters
    ----------
    theta, n : array_like
        True proportion and number of records; they broadcast.
    budget : PureDP
        Budget of each answer.
    """
    keep = _keep_probability(budget)
    share = np.asarray(theta, dtype=float) * (2 * keep - 1) + 1 - keep
    return np.sqrt(share * (1 - share) / np.asarray(n)) / (2 * keep - 1)


def laplace_sd(theta: ArrayLike, n: ArrayLike, budget: PureDP) -> np.ndarray:
    """Compute the standard deviation of X / n + Laplace(1 / (epsilon n)).

    Parameters
    ----------
    theta, n : array_like
        True proportion and number of records; they broadcast.
    budget : PureDP
        The budget of the release.
    """
    check_pure(budget, "Laplace noise")
    check_replace(budget, "a release of a proportion", "the number of records is public")
    true, size = np.asarray(theta, dtype=float), np.asarray(n, dtype=float)
    return np.sqrt(true * (1 - true) / size + 2 / (budget.epsilon * size) ** 2)


def _tulap(budget: PureDP | ApproxDP) -> TulapNoise:
    if not isinstance(budget, PureDP | ApproxDP):
        raise TypeError(
            f"Tulap noise needs a PureDP or an ApproxDP budget, got {budget!s}. "
            "Write PureDP(epsilon=...) or ApproxDP(epsilon=..., delta=...)."
        )
    check_replace(budget, "a count of a known number of records", "that number is public")
    return TulapNoise.calibrate(budget)


def _keep_probability(budget: PureDP) -> float:
    check_pure(budget, "randomised response")
    check_replace(budget, "randomised response", "the number of records is public")
    return float(1 / (1 + np.exp(-budget.epsilon)))
