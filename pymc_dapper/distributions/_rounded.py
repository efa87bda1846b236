r"""Probabilities of continuous noise that was rounded or clamped, in logarithms that keep digits.

Noise X is around 0 and symmetric. Clamped, it needs P(X <= x), and rounded P(d - 1/2 < X < d + 1/2)
with d >= 0. A difference of cdfs has no digits left where the noise is wide: at a scale of 1e8, its
terms agree in eight of them, and the last of d + 1/2 are lost if d is large. So each law says for
itself what its cell weighs.

Laplace, h = 1 / (2 scale), y = d / scale
    From d = 1/2 on exp(-(y - h)) (1 - exp(-2h)) / 2. Before that the cell contains 0, and
    (1 - exp(-(h - y))) / 2 + (1 - exp(-(h + y))) / 2.

Gaussian, h = 1 / (2 sigma), x = d / sigma, phi the density and M = (1 - Phi) / phi
    If h < 1/4 and x h <= 1, it is 2h phi(x) times the mean of exp(-x h u - h^2 u^2 / 2) over u from
    -1 to 1, by Gauss quadrature with 8 nodes. The function's 16th derivative in u is at most
    E((x h + h^2)^2 + (h Y)^2)^8 < 5.2 times its value, with a standard normal Y, so that the error
    is below 5.2 e 2^17 8!^4 / (17 16!^3) < 4e-17 of the mean.
    Else it is phi(x - h) (M(x - h) - exp(-2 x h) M(x + h)) if d >= 1/2, where the second term is at
    most 0.7 of the first, and 1 - Q(h - x) - Q(h + x) with Q = 1 - Phi if d < 1/2, at least 0.19.

Tulap
    Its density is constant within the cells around integers, and b times as large in the next one.
    So a cell around d weighs a mean of the two next to it. A cell that truncation cuts weighs what
    is left of the tail.

Squares are `pt.sqr` here: PyTensor would write (d / sigma) (d / sigma) as d^2 / sigma^2, which
overflows.
"""

import math

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.distributions._lattice import known_value
from pymc_dapper.distributions.tulap import Tulap

WIDE_FROM = 2.0
"""From this sigma on, cells of Gaussian noise are narrow: quadrature."""
_NODES, _WEIGHTS = (half[4:].tolist() for half in np.polynomial.legendre.leggauss(8))
_LOG_2 = math.log(2.0)
_LOG_ROOT_2_PI = math.log(2.0 * math.pi) / 2.0
_ROOT_HALF = math.sqrt(0.5)


def laplace_log_tail(limit: TensorVariable, scale: TensorVariable) -> TensorVariable:
    """Log of P(X <= limit) of Laplace noise. PyMC's has log 2 in single precision."""
    steps = limit / scale
    above = pt.log1p(-0.5 * pt.exp(-pt.maximum(steps, 0.0)))
    return pt.switch(steps > 0, above, steps - _LOG_2)


def rounded_laplace(distance: TensorVariable, scale: TensorVariable) -> TensorVariable:
    """Log-probability of Laplace noise that was rounded to a distance from 0."""
    near, far = (distance - 0.5) / scale, (distance + 0.5) / scale
    # Around 0. Each part is the mass between 0 and an end of the cell.
    ends = pt.maximum(-near, 0.0), far
    inside = -0.5 * (pt.expm1(-ends[0]) + pt.expm1(-ends[1]))
    outside = 0.5 * (pt.exp(-ends[0]) + pt.exp(-ends[1]))
    around = pt.switch(inside < 0.5, pt.log(inside), pt.log1p(-outside))
    beside = pt.log(-pt.expm1(-1.0 / scale)) - _LOG_2 - near
    return pt.switch(near < 0, around, beside)


def gaussian_log_tail(limit: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Log of P(X <= limit) of Gaussian noise. PyMC's has the root of 2 in single precision."""
    z = limit / sigma
    below = pt.minimum(z, 0.0)
    lower = pt.log(0.5 * pt.erfcx(-_ROOT_HALF * below)) - 0.5 * pt.sqr(below)
    upper = pt.log1p(-0.5 * pt.erfc(_ROOT_HALF * pt.maximum(z, 0.0)))
    return pt.switch(z < 0, lower, upper)


def rounded_gaussian(distance: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    """Log-probability of Gaussian noise that was rounded to a distance from 0."""
    known = known_value(sigma)
    if known is not None and np.all(known < WIDE_FROM):
        return _by_tails(distance, sigma)
    x, h = distance / sigma, 0.5 / sigma
    narrow = (sigma >= WIDE_FROM) & (x * h <= 1.0)
    # What isn't chosen is kept finite: its derivative is multiplied by zero.
    slope = pt.minimum(x * h, 1.0)
    curve = -0.5 * pt.sqr(pt.minimum(h, 0.25))
    mean = sum(
        weight * pt.cosh(slope * node) * pt.exp(curve * node**2)
        for node, weight in zip(_NODES, _WEIGHTS, strict=True)
    )
    by_density = pt.log(mean) - 0.5 * pt.sqr(x) - pt.log(sigma) - _LOG_ROOT_2_PI
    return pt.switch(narrow, by_density, _by_tails(distance, sigma))


def _by_tails(distance: TensorVariable, sigma: TensorVariable) -> TensorVariable:
    near, far = (distance - 0.5) / sigma, (distance + 0.5) / sigma
    ends = pt.maximum(-near, 0.0), far
    outside = 0.5 * (pt.erfc(_ROOT_HALF * ends[0]) + pt.erfc(_ROOT_HALF * ends[1]))
    around = pt.log1p(-pt.minimum(outside, 0.9))
    start = pt.maximum(near, 0.0)
    # Both tails, in units of the density at the nearer end of the cell.
    decay = pt.exp(-(distance / sigma) / sigma)
    mass = 0.5 * (pt.erfcx(_ROOT_HALF * start) - decay * pt.erfcx(_ROOT_HALF * far))
    beside = pt.log(pt.switch(mass > 0, mass, 1.0)) - 0.5 * pt.sqr(start)
    return pt.switch(near < 0, around, beside)


def rounded_tulap(distance: TensorVariable, b: TensorVariable, q: TensorVariable) -> TensorVariable:
    """Log-probability of Tulap noise that was rounded to a distance from 0."""
    cell = pt.floor(distance)
    into_next = distance - cell
    log_mean = cell * pt.log(b) + pt.log1p(-into_next * (1.0 - b))
    whole = log_mean + pt.log1p(-b) - pt.log1p(b) - pt.log1p(-q)
    known = known_value(q)
    if known is not None and np.all(known == 0):
        return whole
    is_cut = pt.isinf(Tulap.logcdf(-0.5 - distance, 0.0, b, q))
    return pt.switch(is_cut, Tulap.logcdf(0.5 - distance, 0.0, b, q), whole)
