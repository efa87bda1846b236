"""Noise laws on the integers, in many digits, by adding weights up.

NumPy and Python's `decimal` only: shares nothing with the package.
"""

from decimal import Decimal, localcontext
from functools import lru_cache

import numpy as np

DIGITS = 50
DIGITS_LAPLACE = 120


def _tail(first_ratio, ratio_of_ratios):
    """Sum of terms that begins with 1, whose ratios fall geometrically or are constant."""
    total, term, ratio = Decimal(0), Decimal(1), first_ratio
    if ratio_of_ratios == 1:
        return 1 / (1 - ratio)
    while term > total * Decimal(10) ** -40:
        total += term
        term *= ratio
        ratio *= ratio_of_ratios
    return total


class ExactGaussian:
    """Discrete Gaussian law."""

    def __init__(self, mu, sigma):
        with localcontext(prec=DIGITS):
            self.nearest = round(Decimal(float(mu)))
            self.remainder = Decimal(float(mu)) - self.nearest
            self.h = 1 / (2 * Decimal(float(sigma)) ** 2)
            self.ratio_of_ratios = (-2 * self.h).exp()
            sides = [self._relative_tail(a) for a in (self.remainder, -self.remainder)]
            self.log_sum = (sides[0] + sides[1] - 1).ln()

    def _relative_tail(self, distance):
        """Sum of exp(-h ((distance + n)^2 - distance^2)) over n = 0, 1, ..."""
        return _tail((-self.h * (1 + 2 * distance)).exp(), self.ratio_of_ratios)

    def _log_weight(self, steps):
        return -self.h * steps * (steps - 2 * self.remainder)

    def logp(self, k):
        """Log-probability of an integer."""
        with localcontext(prec=DIGITS):
            return float(self._log_weight(int(k) - self.nearest) - self.log_sum)

    def log_tails(self, k):
        """Logs of P(X <= k) and of P(X > k)."""
        with localcontext(prec=DIGITS):
            steps = int(k) - self.nearest
            is_lower = steps + Decimal("0.5") <= self.remainder
            steps += not is_lower
            tail = self._relative_tail(abs(steps - self.remainder))
            log_tail = self._log_weight(steps) + tail.ln() - self.log_sum
            tails = float(log_tail), float(_log1mexp(log_tail))
        return tails if is_lower else tails[::-1]


class ExactLaplace:
    """Discrete Laplace law."""

    def __init__(self, mu, scale):
        with localcontext(prec=DIGITS_LAPLACE):
            self.mu, self.t = Decimal(float(mu)), 1 / Decimal(float(scale))
            self.below = int(self.mu.to_integral_value("ROUND_FLOOR"))
            series = 1 / _one_minus_exp(-self.t)
            to_below, to_above = self.mu - self.below, self.below + 1 - self.mu
            self.log_sum = (series * ((-to_below * self.t).exp() + (-to_above * self.t).exp())).ln()
            self.log_series = series.ln()

    def logp(self, k):
        """Log-probability of an integer."""
        with localcontext(prec=DIGITS_LAPLACE):
            return float(-abs(int(k) - self.mu) * self.t - self.log_sum)

    def log_tails(self, k):
        """Logs of P(X <= k) and of P(X > k)."""
        with localcontext(prec=DIGITS_LAPLACE):
            is_lower = int(k) + Decimal("0.5") <= self.mu
            first = self.mu - int(k) if is_lower else int(k) + 1 - self.mu
            log_tail = -first * self.t + self.log_series - self.log_sum
            tails = float(log_tail), float(_log1mexp(log_tail))
        return tails if is_lower else tails[::-1]

    def quantile(self, p):
        """Smallest integer at which the cdf is at least p, but for rounding of p."""
        if p in (0, 1):
            return -np.inf if p == 0 else np.inf
        with localcontext(prec=DIGITS_LAPLACE):
            low, high = self.below - 1, self.below + 1
            while self._cdf(low) >= p:
                low -= self.below + 1 - low
            while self._cdf(high) < p:
                high += high - self.below
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self._cdf(middle) >= p else (middle, high)
        return high

    def _cdf(self, k):
        return Decimal(self.log_tails(k)[0]).exp() * (1 + Decimal("1e-14"))


def _one_minus_exp(x):
    """1 - exp(x) for x < 0, digits kept where x is small."""
    with localcontext(prec=DIGITS_LAPLACE + 40):
        return 1 - x.exp()


def _log1mexp(x):
    """log(1 - exp(x)) for x < 0."""
    if x < -70:  # the next term, exp(x)^3 / 3, is beyond what matters
        return -x.exp() * (1 + x.exp() / 2)
    return _one_minus_exp(x).ln()


exact_gaussian = lru_cache(maxsize=None)(ExactGaussian)
exact_laplace = lru_cache(maxsize=None)(ExactLaplace)
