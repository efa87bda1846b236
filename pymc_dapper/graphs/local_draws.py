"""Random walks near present values that leave a distribution invariant.

With x = mu + L z, z standard normal, the walk is z' = sqrt(1 - r^2) z + r e, with e standard
normal, too (Neal, 1998, "Regression and classification using Gaussian process priors", section 5).
It is reversible: a pair (z, z') is as likely as (z', z). At reach r = 1 it is an independent draw.

With x = a + (b - a) u, u uniform on a circle of length 1, the walk is u' = u + r (v - 1/2), with v
uniform, too: each direction is as likely as the other.

A t variable is a normal one with a random spread, t = z / sqrt(v). Given t, v is gamma distributed.
The walk draws v, then moves z with v fixed. That is reversible for each v, and so as a whole.
"""

from functools import singledispatch
from typing import NamedTuple

import pytensor.tensor as pt
from pytensor.graph import Op
from pytensor.graph.basic import equal_computations
from pytensor.tensor.random import basic as laws
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable


class Walk(NamedTuple):
    """The start of a walk, and where it may go."""

    present: TensorVariable
    """Present values, on the scale of the random variable."""
    present_parameters: list[TensorVariable]
    """The distribution's parameters at the present values."""
    draw: TensorVariable
    """An independent draw of new values."""
    parameters: list[TensorVariable]
    """The parameters at which ``draw`` was made; they differ if they depend on other draws."""
    reach: TensorVariable
    """Length of the walk, from 0 (stay) to 1 (an independent draw)."""


@singledispatch
def local_draw(op: Op, walk: Walk) -> TensorVariable:
    """Draw new values near the present ones, at most ``reach`` times as far as an independent draw.

    Dispatched on the distribution's operation. Without a rule, the draw is independent.
    """
    return walk.draw


@local_draw.register(laws.NormalRV)
def _normal(op: Op, walk: Walk) -> TensorVariable:
    return walk.draw + _back(walk.present, walk.draw, walk)


@local_draw.register(laws.LogNormalRV)
def _log_normal(op: Op, walk: Walk) -> TensorVariable:
    return walk.draw * pt.exp(_back(pt.log(walk.present), pt.log(walk.draw), walk))


@local_draw.register(laws.MvNormalRV)
def _multivariate_normal(op: Op, walk: Walk) -> TensorVariable:
    mean, covariance = walk.parameters
    present_mean, present_covariance = walk.present_parameters
    if not equal_computations([covariance], [present_covariance]):
        return walk.draw
    keep = _keep(walk.reach)
    back = keep * (walk.present - present_mean) - (1 - walk.reach) * (walk.draw - mean)
    return walk.draw + back


@local_draw.register(laws.StudentTRV)
def _student_t(op: Op, walk: Walk) -> TensorVariable:
    nu, mu, sigma = walk.parameters
    present_nu, present_mu, present_sigma = walk.present_parameters
    if not equal_computations([nu], [present_nu]):
        return walk.draw
    size = walk.draw.shape
    t = (walk.present - present_mu) / present_sigma
    v = _precision(nu, t, size)
    _, z = laws.normal(0.0, 1.0, size=size, rng=random_generator_type(), return_next_rng=True)
    walked = mu + sigma * (_keep(walk.reach) * t + walk.reach * z / pt.sqrt(v))
    return pt.switch((walk.reach < 1) & (present_sigma > 0), walked, walk.draw)


def _precision(nu: TensorVariable, t: TensorVariable, size: TensorVariable) -> TensorVariable:
    """Draw v given t = z / sqrt(v), z standard normal and v gamma with mean 1 and shape nu / 2."""
    _, v = laws.gamma(
        (nu + 1) / 2,
        scale=2 / (nu + t**2),
        size=size,
        rng=random_generator_type(),
        return_next_rng=True,
    )
    return v


@local_draw.register(laws.UniformRV)
def _uniform(op: Op, walk: Walk) -> TensorVariable:
    (low, high), (present_low, present_high) = walk.parameters, walk.present_parameters
    u = (walk.present - present_low) / (present_high - present_low)
    v = (walk.draw - low) / (high - low)
    walked = low + (high - low) * _around(u + walk.reach * (v - 0.5))
    # No move if both limits are equal; at reach 1, exactly an independent draw.
    walks = (walk.reach < 1) & (present_low < present_high) & (low < high)
    return pt.switch(walks, walked, walk.draw)


def _around(u: TensorVariable) -> TensorVariable:
    """Wrap around the unit interval."""
    return u - pt.floor(u)


def _back(present: TensorVariable, draw: TensorVariable, walk: Walk) -> TensorVariable:
    """Return the part of the walk back to the present value; zero at reach 1."""
    (mean, sigma), (present_mean, present_sigma) = walk.parameters, walk.present_parameters
    kept = _keep(walk.reach) * (present - present_mean)
    if equal_computations([sigma], [present_sigma]):
        return kept - (1 - walk.reach) * (draw - mean)
    # If parameters aren't checked, a spread may be 0. There is then no noise to keep: take
    # the independent draw. It is as likely as the way back to the mean.
    back = kept * sigma / present_sigma - (1 - walk.reach) * (draw - mean)
    return pt.switch(present_sigma > 0, back, 0.0)


def _keep(reach: TensorVariable) -> TensorVariable:
    return pt.sqrt(1 - reach**2)
