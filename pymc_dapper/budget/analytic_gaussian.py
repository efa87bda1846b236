"""The exact (epsilon, delta) of the continuous Gaussian.

With t = sensitivity / sigma, a = epsilon / t - t / 2 and b = a + t, Balle and Wang's delta is
Q(a) - exp(epsilon) Q(b), where Q is the normal law's upper tail. As exp(epsilon) phi(b) = phi(a),
that is phi(a) (M(a) - M(b)) with Mills' ratio M = Q / phi, which doesn't under- or overflow.
"""

import math

import numpy as np
from scipy.special import erfcx, ndtr

from pymc_dapper.budget.numbers import TINY
from pymc_dapper.budget.roots import root

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _mills(x: float) -> float:
    """Mills' ratio of the normal law, upper tail over density."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def log_delta(ratio: float, epsilon: float) -> float:
    """Log of the Gaussian's exact delta, with `ratio` = sensitivity / sigma."""
    a = epsilon / ratio - ratio / 2
    b = a + ratio
    if a > 100:  # Below any float, so only its order matters.
        return -a * a / 2
    log_phi = -a * a / 2 - math.log(2 * math.pi) / 2
    if ratio < 0.1:  # M(a) and M(b) are near each other: integrate -M'(x) = 1 - x M(x) instead.
        points = a + ratio * (_NODES + 1) / 2
        slopes = np.array([1 - x * _mills(x) for x in points.tolist()])
        return log_phi + math.log(ratio / 2) + math.log(float(_WEIGHTS @ slopes))
    if a > 0:
        return log_phi + math.log(_mills(a) - _mills(b))
    return math.log1p(-(float(ndtr(a)) + math.exp(log_phi) * _mills(b)))


def smallest_epsilon(ratio: float, log_inverse_delta: float) -> float:
    """Smallest epsilon at which the Gaussian's exact delta is low enough; 0 if it always is."""

    def excess(epsilon: float) -> float:
        return log_delta(ratio, epsilon) + log_inverse_delta

    if excess(0.0) <= 0:
        return 0.0
    simple = ratio * ratio / 2 + ratio * math.sqrt(2 * log_inverse_delta)
    if excess(simple) >= 0:  # only by rounding, if epsilon is beyond about 1e15
        return simple
    return root(excess, 0.0, simple, xtol=TINY)


def largest_ratio(epsilon: float, log_inverse_delta: float, *, at_least: float) -> float:
    """Largest sensitivity / sigma at which the Gaussian's exact delta is low enough."""

    def excess(log_ratio: float) -> float:
        return log_delta(math.exp(log_ratio), epsilon) + log_inverse_delta

    low = math.log(at_least)
    if excess(low) >= 0:  # only by rounding, if epsilon is beyond about 1e15
        return at_least
    high = low + 0.5
    while excess(high) < 0:
        low, high = high, high + 0.5
    return math.exp(root(excess, low, high))
