r"""A Poisson count with Laplace noise: likelihood and posterior in closed form.

A confidential count s ~ Poisson(theta) is released as c = s + Laplace noise of scale b. Write
eps = 1 / b and m = floor(c). The likelihood of theta is the sum over s of

    exp(-theta) theta^s / s!  *  exp(-eps |c - s|) / (2 b).

**Likelihood.** Split the sum at m. Up to m, |c - s| = c - s and the term is a Poisson probability
with theta exp(eps) in the place of theta; beyond, |c - s| = s - c and it is one with theta
exp(-eps). A Poisson distribution function is an incomplete gamma function: a Poisson variable of
mean z is at most m with probability Q(m + 1, z) = Gamma(m + 1, z) / Gamma(m + 1), and above m with
probability P(m + 1, z) = 1 - Q(m + 1, z). So

    2 b L(theta; c) = exp(-eps c + theta (e^eps - 1))  Q(m + 1, theta e^eps)
                    + exp( eps c - theta (1 - e^-eps)) P(m + 1, theta e^-eps).

Where c < 0 there is no first term, and P is 1 in the second.

**Score and information.** The derivative of a Poisson probability in theta is that of s - 1 less
that of s. Moving s up by one is moving c down by one, whence

    L'(theta; c) = L(theta; c - 1) - L(theta; c),

and the same again for the second derivative. With r_k = L(theta; c - k) / L(theta; c), the score is
r_1 - 1 and the observed information r_1^2 - r_2. L' is the Poisson mean of the noise density's
increase from s to s + 1, which is positive for s < c - 1/2 and negative for s > c - 1/2. A Poisson
mean has no more changes of sign in theta than the function has in s (variation diminishing; Karlin
1968). So for c > 1/2 the likelihood rises and then falls, and the maximum is unique; otherwise it
lies at 0.

**Posterior.** With the prior theta ~ Gamma(alpha, beta), beta the rate, the posterior's density is

    theta^(alpha - 1) exp(-beta theta) beta^alpha / Gamma(alpha) * L(theta; c) / Z.

For the normaliser Z integrate first over theta: s is negative binomial. The part with s <= m is a
finite sum, and, with q = e^-eps, the part with s > m is

    exp(eps c) / (2 b) * (beta / (1 + beta - q))^alpha * I(q / (1 + beta); m + 1, alpha),

I being the regularised incomplete beta function (which is 1 where c < 0). Given s, theta ~
Gamma(alpha + s, beta + 1): the posterior's distribution function and moments are those of a
mixture, with the distribution functions P(alpha + s, (beta + 1) theta).

References
----------
Gong, R. (2022). Exact inference with approximate computation for differentially private data via
perturbations. Journal of Privacy and Confidentiality 12(2). arXiv:1909.12237. The example.

Karlin, S. (1968). Total Positivity. Stanford University Press.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import (
    betainc,
    betaln,
    gammainc,
    gammaincc,
    gammaln,
    hyp1f1,
    hyp2f1,
    logsumexp,
    xlogy,
)

from pymc_dapper.checks import finite_number, real_numbers
from pymc_dapper.reference._log_contrast import invert_cdf

FloatArray = NDArray[np.float64]

NEGLIGIBLE = 1e-18
"""Share of the posterior's mixture that is left out."""


@dataclass(frozen=True)
class PoissonLaplace:
    """Likelihood of a Poisson mean, given the count with Laplace noise.

    Attributes
    ----------
    released : float
        The noisy count.
    scale : float
        Scale of the noise; 1 / epsilon for a count of sensitivity 1.

    Raises
    ------
    ValueError
        If `released` isn't finite or `scale` isn't positive and finite.

    Notes
    -----
    Derived in the documentation of this module.

    Examples
    --------
    >>> estimate, information = PoissonLaplace(37.4, scale=5).maximum()
    >>> print(f"{estimate:.3f} {information:.3e}")
    37.237 1.582e-02
    """

    released: float
    scale: float

    def __post_init__(self) -> None:
        """Check the values."""
        finite_number(self.released, "released")
        finite_number(self.scale, "scale", above=0)

    def loglik(self, theta: ArrayLike) -> FloatArray:
        """Log-likelihood of the Poisson mean, normalised as a density of the released value.

        Parameters
        ----------
        theta : array_like
            Poisson means, positive.

        Returns
        -------
        ndarray
            Of the shape of `theta`.

        Raises
        ------
        ValueError
            If a mean isn't positive and finite.
        """
        means = real_numbers(theta, "theta", positive=True)
        eps, c = 1 / self.scale, self.released
        below = self._log_below(means)
        above = eps * c + means * np.expm1(-eps)
        if c >= 0:
            above = above + _log_gammainc(math.floor(c) + 1, np.log(means) - eps)
        return np.asarray(np.logaddexp(below, above) - math.log(2 * self.scale))

    def _log_below(self, means: FloatArray) -> FloatArray:
        """Logarithm of the sum over the counts up to the released value."""
        eps, c = 1 / self.scale, self.released
        if c < 0:
            return np.full(means.shape, -np.inf)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            tail = gammaincc(math.floor(c) + 1, means * np.exp(eps))
            in_range = tail > 1e-290
            closed = -eps * c + means * np.expm1(eps) + np.log(tail)
        if in_range.all():
            return np.asarray(closed)
        # The incomplete gamma function underflows: add up the terms.
        s = np.arange(math.floor(c) + 1)
        terms = s * (np.log(means)[..., None] + eps) - gammaln(s + 1)
        return np.where(in_range, closed, logsumexp(terms, axis=-1) - means - eps * c)

    def score(self, theta: ArrayLike) -> FloatArray:
        """First derivative of the log-likelihood, of the shape of `theta`."""
        return np.asarray(self._ratio(theta, 1) - 1)

    def information(self, theta: ArrayLike) -> FloatArray:
        """Observed information: minus the second derivative of the log-likelihood."""
        return np.asarray(self._ratio(theta, 1) ** 2 - self._ratio(theta, 2))

    def _ratio(self, theta: ArrayLike, k: int) -> FloatArray:
        shifted = PoissonLaplace(self.released - k, self.scale)
        return np.asarray(np.exp(shifted.loglik(theta) - self.loglik(theta)))

    def maximum(self) -> tuple[float, float]:
        """Maximum likelihood estimate of the Poisson mean, and the observed information there.

        Returns
        -------
        estimate, information : float

        Raises
        ------
        ValueError
            If the released value is 1/2 or below: the likelihood is then largest at a mean of 0,
            the end of its range, where the information says nothing about precision.
        """
        if self.released <= 0.5:
            raise ValueError(
                f"the likelihood is largest at a mean of 0, as the released value "
                f"{self.released:g} isn't above 1/2. Report the estimate 0, or a posterior."
            )
        low = high = self.released
        while self.score(low) < 0:
            low /= 2
        while self.score(high) > 0:
            high *= 2
        estimate = float(brentq(lambda theta: float(self.score(theta)), low, high, xtol=1e-12))
        return estimate, float(self.information(estimate))


@dataclass(frozen=True)
class PoissonLaplacePosterior:
    """Exact posterior of a Poisson mean with a gamma prior, given the count with Laplace noise.

    Attributes
    ----------
    released, scale : float
        The noisy count and the scale of the noise, as in `PoissonLaplace`.
    shape, rate : float
        The prior theta ~ Gamma(shape, rate), of mean shape / rate.

    Raises
    ------
    ValueError
        If `released` isn't finite, or if another value isn't positive and finite.

    Notes
    -----
    Derived in the documentation of this module. The density is exact up to rounding; of the
    mixture behind `cdf`, `mean` and `sd`, components with a share below 1e-18 are left out.

    Examples
    --------
    >>> posterior = PoissonLaplacePosterior(37.4, scale=5, shape=25, rate=1)
    >>> print(f"{posterior.mean:.3f} {posterior.sd:.3f}")
    28.576 4.734
    """

    released: float
    scale: float
    shape: float
    rate: float

    def __post_init__(self) -> None:
        """Check the values."""
        self.likelihood  # noqa: B018  (checks the release and the scale)
        finite_number(self.shape, "shape", above=0)
        finite_number(self.rate, "rate", above=0)

    @cached_property
    def likelihood(self) -> PoissonLaplace:
        """The likelihood of the Poisson mean."""
        return PoissonLaplace(self.released, self.scale)

    @cached_property
    def log_evidence(self) -> float:
        """Log-density of the released value, theta marginalised: the logarithm of Z."""
        eps, c = 1 / self.scale, self.released
        q = math.exp(-eps)
        above = eps * c + self.shape * math.log(self.rate / (1 + self.rate - q))
        if c >= 0:
            above += _log_betainc(self._first_above, self.shape, q / (1 + self.rate))
        below = self._log_terms(np.arange(self._first_above))
        return float(logsumexp(np.append(below, above)) - math.log(2 * self.scale))

    def logpdf(self, theta: ArrayLike) -> FloatArray:
        """Log-density at `theta`, in its shape; -inf for values that aren't positive."""
        points = np.asarray(theta, dtype=float)
        inside = points > 0
        x = np.where(inside, points, 1.0)
        log_prior = self.shape * math.log(self.rate) - gammaln(self.shape)
        log_prior = log_prior + xlogy(self.shape - 1, x) - self.rate * x
        value = log_prior + self.likelihood.loglik(x) - self.log_evidence
        return np.where(inside, value, -np.inf)

    def pdf(self, theta: ArrayLike) -> FloatArray:
        """Density at `theta`, of the shape of `theta`."""
        return np.asarray(np.exp(self.logpdf(theta)))

    def cdf(self, theta: ArrayLike) -> FloatArray:
        """Distribution function at `theta`, of the shape of `theta`."""
        s, weights = self.counts
        x = np.maximum(np.asarray(theta, dtype=float), 0)[..., None]
        return np.asarray(gammainc(self.shape + s, (self.rate + 1) * x) @ weights)

    def quantile(self, q: ArrayLike) -> FloatArray:
        """Quantiles at probabilities `q`, of the shape of `q`.

        Raises
        ------
        ValueError
            If a probability isn't strictly between 0 and 1.
        """
        largest = np.max(np.asarray(q, dtype=float), initial=0.0)
        high = self.mean + self.sd
        while self.cdf(high) < largest and self.cdf(high) < 1:
            high += high
        return invert_cdf(lambda x: float(self.cdf(x)), q, low=0.0, high=high)

    @property
    def mean(self) -> float:
        """Posterior mean."""
        s, weights = self.counts
        return float(weights @ (self.shape + s)) / (self.rate + 1)

    @property
    def sd(self) -> float:
        """Posterior standard deviation."""
        s, weights = self.counts
        means = (self.shape + s) / (self.rate + 1)
        within = means / (self.rate + 1)
        return float(np.sqrt(weights @ (within + (means - self.mean) ** 2)))

    @cached_property
    def counts(self) -> tuple[FloatArray, FloatArray]:
        """Confidential counts, and the posterior probability of each; the last ones left out."""
        log_share = math.log(NEGLIGIBLE) + self.log_evidence + math.log(2 * self.scale)
        last = max(self._first_above, 1)
        # Each further term is smaller than the one before by `ratio` or more.
        while True:
            ratio = (self.shape + last) / (last + 1) * math.exp(-1 / self.scale) / (1 + self.rate)
            if ratio < 1 and self._log_terms(last) - math.log1p(-ratio) < log_share:
                break
            last *= 2
        s = np.arange(last + 1)
        log_weights = self._log_terms(s)
        return s.astype(float), np.exp(log_weights - logsumexp(log_weights))

    @property
    def _first_above(self) -> int:
        """The smallest count above the released value."""
        return max(math.floor(self.released) + 1, 0)

    def _log_terms(self, s: ArrayLike) -> FloatArray:
        """Negative binomial probability of s times exp(-|c - s| / scale), in logarithms."""
        count = np.asarray(s, dtype=float)
        log_binomial = gammaln(self.shape + count) - gammaln(self.shape) - gammaln(count + 1)
        log_odds = self.shape * math.log(self.rate) - (self.shape + count) * math.log1p(self.rate)
        return np.asarray(log_binomial + log_odds - np.abs(self.released - count) / self.scale)


def _log_gammainc(a: float, log_x: FloatArray) -> FloatArray:
    """Logarithm of P(a, x); by its confluent hypergeometric series if P is small."""
    x = np.exp(log_x)
    small = x < a
    low = np.minimum(x, a)
    series = a * log_x - x - gammaln(a + 1) + np.log(hyp1f1(1.0, a + 1.0, low))
    with np.errstate(divide="ignore"):
        direct = np.log(gammainc(a, x))
    return np.where(small, series, direct)


def _log_betainc(a: float, b: float, x: float) -> float:
    """Logarithm of I(x; a, b); by its hypergeometric series if I underflows."""
    value = float(betainc(a, b, x))
    if value > 1e-290:
        return math.log(value)
    power = a * math.log(x) + b * math.log1p(-x) if x > 0 else -math.inf
    return power - math.log(a) - float(betaln(a, b)) + math.log(hyp2f1(a + b, 1, a + 1, x))
