r"""Probabilities of continuous noise that was rounded or clamped, in logarithms that keep digits.

Noise X is symmetric around 0. Clamping needs P(X <= x), and rounding P(d - w/2 < X < d + w/2) with
a width w and d >= 0. The interval is given by its ends, since d loses digits if one of them is near
0. If the noise is wide, a difference of cdfs has no digits left: at a scale of 1e8 and w = 1, its
terms agree to eight digits, and d + w/2 loses the last ones if d is large. So each law has its own
formula for a cell.

Laplace, h = w / (2 scale), y = d / scale
    From d = w/2 on exp(-(y - h)) (1 - exp(-2h)) / 2. Before that the cell contains 0, and
    (1 - exp(-(h - y))) / 2 + (1 - exp(-(h + y))) / 2.

Gaussian, h = w / (2 sigma), x = d / sigma, phi the density and M = (1 - Phi) / phi
    If h < 1/4 and x h <= 1, it is 2h phi(x) times the mean of exp(-x h u - h^2 u^2 / 2) over u from
    -1 to 1, by Gauss quadrature with 8 nodes. The function's 16th derivative in u is at most
    E((x h + h^2)^2 + (h Y)^2)^8 < 5.2 times its value, with a standard normal Y, so that the error
    is below 5.2 e 2^17 8!^4 / (17 16!^3) < 4e-17 of the mean.
    Else it is phi(x - h) (M(x - h) - exp(-2 x h) M(x + h)) if d >= w/2, where the second term is at
    most 0.7 of the first, and 1 - Q(h - x) - Q(h + x) with Q = 1 - Phi if d < w/2, at least 0.19.

Tulap, w = 1
    Its density is constant within the cells around integers, and b times as large in the next one.
    So a cell around d weighs a mean of the two next to it. A cell that truncation cuts weighs what
    is left of the tail.

Discrete Laplace, n integers from a on, t = 1 / scale, mirrored so that most of them are above 0
    From a = 1 on exp(-a t) (1 - exp(-n t)) / (1 + exp(-t)). Before that the range contains 0, and
    what is from 0 up and what is below 0 are of that form.

Discrete Gaussian, n integers from a on, c that in their middle
    As for the Gaussian: by tails, whose ratio is far from 1 if the range is wide; else P(c) times
    the sum over integers u of exp(-c u / sigma^2 - u^2 / (2 sigma^2)), by the Gauss quadrature with
    8 nodes that is exact for sums of polynomials over n integers (the Gram polynomials are
    orthogonal there). Its error is below that of the integral: nodes lie closer together.

Squares are `pt.sqr` here: PyTensor would write (d / sigma) (d / sigma) as d^2 / sigma^2, which
overflows.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.distributions._lattice import known_value
from pymc_dapper.distributions.discrete_gaussian import DiscreteGaussian
from pymc_dapper.distributions.tulap import Tulap

WIDE_FROM = 2.0
"""From this sigma on, in widths, cells of Gaussian noise are narrow: quadrature."""
_NODES, _WEIGHTS = (half[4:].tolist() for half in np.polynomial.legendre.leggauss(8))
_LOG_2 = math.log(2.0)
_LOG_ROOT_2_PI = math.log(2.0 * math.pi) / 2.0
_ROOT_HALF = math.sqrt(0.5)


def laplace_log_tail(limit: TensorVariable, scale: TensorVariable) -> TensorVariable:
    """Log of P(X <= limit) of Laplace noise. PyMC's has log 2 in single precision."""
    steps = limit / scale
    above = pt.log1p(-0.5 * pt.exp(-pt.maximum(steps, 0.0)))
    return pt.switch(steps > 0, above, steps - _LOG_2)


def laplace_between(
    near: TensorVariable, far: TensorVariable, width: Any, scale: TensorVariable
) -> TensorVariable:
    """Log-probability of Laplace noise between two ends; ``near`` is the one closer to 0.

    ``far`` is positive; ``near`` is negative if the cell contains 0.
    """
    near, far = near / scale, far / scale
    # Around 0. Each part is the mass between 0 and an end of the cell.
    ends = pt.maximum(-near, 0.0), far
    inside = -0.5 * (pt.expm1(-ends[0]) + pt.expm1(-ends[1]))
    outside = 0.5 * (pt.exp(-ends[0]) + pt.exp(-ends[1]))
    around = pt.switch(inside < 0.5, pt.log(inside), pt.log1p(-outside))
    beside = pt.log(-pt.expm1(-width / scale)) - _LOG_2 - near
    return pt.switch(near < 0, around, beside)


def gaussian_log_tail(limit: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Log of P(X <= limit) of Gaussian noise. PyMC's has the root of 2 in single precision."""
    z = limit / sigma
    below = pt.minimum(z, 0.0)
    lower = pt.log(0.5 * pt.erfcx(-_ROOT_HALF * below)) - 0.5 * pt.sqr(below)
    upper = pt.log1p(-0.5 * pt.erfc(_ROOT_HALF * pt.maximum(z, 0.0)))
    return pt.switch(z < 0, lower, upper)


def gaussian_between(
    near: TensorVariable, far: TensorVariable, width: Any, sigma: TensorVariable
) -> TensorVariable:
    """Log-probability of Gaussian noise between two ends, as for Laplace noise."""
    by_tails = _by_tails(near, far, width, sigma)
    known = known_value(sigma)
    if known is not None and isinstance(width, float) and np.all(width >= known / WIDE_FROM):
        return by_tails
    x, h = 0.5 * (near + far) / sigma, 0.5 * width / sigma
    narrow = (h <= 0.5 / WIDE_FROM) & (x * h <= 1.0)
    # Keep the branch that isn't chosen finite: its derivative is multiplied by zero.
    slope = pt.minimum(x * h, 1.0)
    curve = -0.5 * pt.sqr(pt.minimum(h, 0.25))
    rule = zip(_NODES, _WEIGHTS, strict=True)
    mean = sum(weight * pt.cosh(slope * node) * pt.exp(curve * node**2) for node, weight in rule)
    by_density = pt.log(mean) - 0.5 * pt.sqr(x) - pt.log(sigma / width) - _LOG_ROOT_2_PI
    return pt.switch(narrow, by_density, by_tails)


def _by_tails(
    near: TensorVariable, far: TensorVariable, width: Any, sigma: TensorVariable
) -> TensorVariable:
    distance, near, far = 0.5 * (near + far), near / sigma, far / sigma
    ends = pt.maximum(-near, 0.0), far
    outside = 0.5 * (pt.erfc(_ROOT_HALF * ends[0]) + pt.erfc(_ROOT_HALF * ends[1]))
    around = pt.log1p(-pt.minimum(outside, 0.9))
    start = pt.maximum(near, 0.0)
    # Both tails, in units of the density at the nearer end of the cell.
    decay = pt.exp(-(distance / sigma) * (width / sigma))
    mass = 0.5 * (pt.erfcx(_ROOT_HALF * start) - decay * pt.erfcx(_ROOT_HALF * far))
    beside = pt.log(pt.switch(mass > 0, mass, 1.0)) - 0.5 * pt.sqr(start)
    return pt.switch(near < 0, around, beside)


def tulap_between(
    near: TensorVariable, far: TensorVariable, width: Any, b: TensorVariable, q: TensorVariable
) -> TensorVariable:
    """Log-probability of Tulap noise between two ends, as for Laplace noise; of width 1 only."""
    distance = 0.5 * (near + far)
    cell = pt.floor(distance)
    into_next = distance - cell
    log_mean = cell * pt.log(b) + pt.log1p(-into_next * (1.0 - b))
    whole = log_mean + pt.log1p(-b) - pt.log1p(b) - pt.log1p(-q)
    known = known_value(q)
    if known is not None and np.all(known == 0):
        return whole
    is_cut = pt.isinf(Tulap.logcdf(-0.5 - distance, 0.0, b, q))
    return pt.switch(is_cut, Tulap.logcdf(0.5 - distance, 0.0, b, q), whole)


def discrete_laplace_range(first: TensorVariable, n: Any, scale: TensorVariable) -> TensorVariable:
    """Log-probability of n integers from a first one on, of discrete Laplace noise."""
    first = _mirrored(first, n)
    last = first + (n - 1)
    t = 1.0 / scale
    # Those from 0 on, and those below; then the part outside of the range.
    up, down = pt.maximum(last, 0) + 1, pt.maximum(-first, 0)
    inside = -pt.expm1(-up / scale) - pt.exp(-t) * pt.expm1(-down / scale)
    outside = pt.exp(-up / scale) + pt.exp(-(down + 1) / scale)
    log_ends = pt.log1p(pt.exp(-t))
    is_most = inside >= 0.5 * pt.exp(log_ends)
    rest = pt.switch(is_most, outside * pt.exp(-log_ends), 0.5)
    around = pt.switch(is_most, pt.log1p(-rest), pt.log(inside) - log_ends)
    beside = pt.log(-pt.expm1(-n / scale)) - pt.maximum(first, 1) / scale - log_ends
    return pt.switch(first > 0, beside, around)


MOST_INTEGERS = 4096
"""Ranges of up to this number of integers count as narrow; wider ones are differences of tails."""


def discrete_gaussian_range(first: TensorVariable, n: Any, sigma: TensorVariable) -> TensorVariable:
    """Log-probability of n integers from a first one on, of discrete Gaussian noise."""
    first = _mirrored(first, n)
    last = first + (n - 1)

    def log_tail(start: TensorVariable) -> TensorVariable:
        return pm.logcdf(DiscreteGaussian.dist(0, sigma), -start)

    near, far = log_tail(pt.maximum(first, 1)), log_tail(last + 1)
    left = log_tail(pt.maximum(-first, 0) + 1)
    around = pt.log1p(-pt.minimum(pt.exp(far) + pt.exp(left), 0.9))
    # If both are minus infinity, or nearly equal, it isn't chosen, or nothing is left.
    gap = pt.switch(near > far, far - near, -1.0)
    beside = near + pt.log1mexp(gap)
    by_tails = pt.switch(first > 0, beside, around)
    centre = first + (n - 1) // 2
    half, x = 0.5 * n / sigma, centre / sigma
    narrow = (half < 0.25) & (x * half <= 1.0) & pt.le(n, MOST_INTEGERS)
    nodes, weights = _nodes_of(n)
    slope = pt.minimum(x / sigma, 2.0 / n)
    curve = -0.5 * pt.sqr(1.0 / pt.maximum(sigma, 2.0 * n))
    rule = zip(nodes, weights, strict=True)
    total = sum(weight * pt.exp(-slope * node + curve * pt.sqr(node)) for node, weight in rule)
    by_density = pm.logp(DiscreteGaussian.dist(0, sigma), centre) + pt.log(total)
    return pt.switch(narrow, by_density, by_tails)


def _mirrored(first: TensorVariable, n: Any) -> TensorVariable:
    """First of the n integers, or of their negatives if more of them are below 0 than above."""
    last = first + (n - 1)
    return pt.switch(first + last < 0, -last, first)


def _nodes_of(n: Any) -> tuple[list[Any], list[Any]]:
    """Nodes, counted from the middle integer, and weights of sums over n integers."""
    if isinstance(n, int):
        nodes, weights = integer_quadrature(n) if n <= MOST_INTEGERS else np.zeros((2, 8))
        return list(pt.constant(nodes)), list(pt.constant(weights))
    rules = np.array([integer_quadrature(k) for k in range(1, MOST_INTEGERS + 1)])
    chosen = pt.clip(n, 1, MOST_INTEGERS) - 1
    nodes, weights = ([pt.constant(rules[:, k, j])[chosen] for j in range(8)] for k in range(2))
    return nodes, weights


@lru_cache(maxsize=MOST_INTEGERS)
def integer_quadrature(n: int) -> np.ndarray:
    """Nodes and weights of the Gauss quadrature with 8 nodes of sums over n integers.

    The integers are counted from the one in their middle, or the one below that. With 8 integers
    and fewer, nodes are the integers. (By Golub and Welsch, from the recurrence of Gram's
    polynomials.)
    """
    k = np.arange(1, min(n, 8))
    beside = np.sqrt(k**2 * (n**2 - k**2) / (4.0 * (4.0 * k**2 - 1)))
    nodes, vectors = np.linalg.eigh(np.diag(beside, 1) + np.diag(beside, -1))
    rule = np.zeros((2, 8))
    rule[0, : len(nodes)] = nodes + (0.0 if n % 2 else 0.5)
    rule[1, : len(nodes)] = n * vectors[0] ** 2
    return rule
