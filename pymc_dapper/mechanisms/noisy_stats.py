"""NoisyStats: a privately released regression line with one covariate."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable
from scipy.special import bernoulli, factorial

from pymc_dapper import budget as accounting
from pymc_dapper.budget import PureDP
from pymc_dapper.budget.kinds import check_replace
from pymc_dapper.checks import about, called_as, real_numbers, shown, whole_number
from pymc_dapper.mechanisms.arguments import check_last_axis
from pymc_dapper.mechanisms.base import Mechanism, as_tensor
from pymc_dapper.statistics import arrays

_N_SUMS = 4
FLATTEST = np.float64(1e-30)
"""Lines flatter than this have the density of this slope."""


@dataclass(frozen=True, eq=False, repr=False)
class NoisyStats(Mechanism):
    r"""Slope and intercept of a regression line, from a noisy covariance and variance.

    With x and y clamped and scaled to [0, 1], the curator draws

    - ``slope = (n cov + L1) / (n var + L2)``, where ``n cov = sum (x - mean x) (y - mean y)``,
      ``n var = sum (x - mean x)^2``, and L1, L2 are Laplace noise of scale
      ``3 (1 - 1/n) / epsilon``,
    - ``intercept = mean y - slope mean x + L3``, where L3 is Laplace noise of scale
      ``3 (1 + |slope|) / (n epsilon)``,

    and publishes ``(slope, intercept)`` and nothing else. If ``n var + L2`` isn't positive, the
    release is `NoisyStats.NA`.

    Attributes
    ----------
    epsilon : float
        Privacy loss of the whole release, for one replaced record.
    n : int
        Number of records, which is public. At least 2.
    NA : tuple of float
        A release without a line, in data and in simulated releases: two infinities. (PyMC would
        impute nan.)

    Raises
    ------
    TypeError, ValueError
        If `epsilon` isn't a positive number, or `n` isn't an integer of 2 or more.

    Notes
    -----
    The statistic is the vector of the sums of x, y, xy and x^2, of shape (..., 4): make it with
    `statistic`. A release has shape (..., 2). The published algorithm gives the line's heights at
    0.25 and 0.75 instead of slope and intercept; either pair follows from the other, see the
    documentation.

    References
    ----------
    Alabi, D., McMillan, A., Sarathy, J., Smith, A. and Vadhan, S. (2022). Differentially private
    simple linear regression. Proceedings on Privacy Enhancing Technologies 2022(2), 184-204.
    arXiv:2007.05157. Algorithm NoisyStats.

    Examples
    --------
    >>> NoisyStats.calibrate(PureDP(1.5), n=100)
    NoisyStats(epsilon=1.5, n=100, budget=PureDP(epsilon=1.5, one person changes))
    """

    epsilon: float
    n: int

    NA: ClassVar[tuple[float, float]] = (math.inf, math.inf)

    _signature = "(s)->(r)"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", PureDP(self.epsilon).epsilon)
        object.__setattr__(self, "n", whole_number(self.n, "n", at_least=2))

    @classmethod
    @called_as("{owner}.calibrate(budget, n=...), with a budget such as pmd.PureDP(0.5)")
    def calibrate(cls, budget: PureDP, *, n: int) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP
            The budget; each of the three noise terms gets a third of it.
        n : int
            Number of records.

        Returns
        -------
        NoisyStats

        Raises
        ------
        TypeError
            If the budget isn't pure.
        ValueError
            If `n` isn't an integer of 2 or more, or if the budget is for added or removed records.
        """
        accounting.check_pure(budget, cls.__name__)
        check_replace(budget, cls.__name__, "its noise goes by the number of records")
        return cls(budget.epsilon, n, budget=budget)

    def privacy_loss(self) -> PureDP:
        """Budget that a release spends.

        Returns
        -------
        PureDP
            With ``epsilon``, which is the smallest possible: some neighbouring data sets and
            releases attain it in the limit of steep slopes.
        """
        return PureDP(self.epsilon)

    @property
    def scale(self) -> float:
        """Scale of the Laplace noise on n times the covariance, and on n times the variance."""
        return accounting.laplace_scale(self._third, sensitivity=1 - 1 / self.n)

    def intercept_scale(self, slope: Any) -> Any:
        """Scale of the Laplace noise on the intercept, given the released slope.

        Parameters
        ----------
        slope : float, ndarray or tensor
            The released slope.

        Returns
        -------
        float, ndarray or tensor
            ``3 (1 + |slope|) / (n epsilon)``.
        """
        if not isinstance(slope, Variable):
            real_numbers(slope, "slope")
        return accounting.laplace_scale(self._third, sensitivity=1 / self.n) * (1 + abs(slope))

    @property
    def _third(self) -> PureDP:
        return PureDP(self.epsilon).split(3)[0]

    def statistic(
        self,
        x: arrays.Records,
        y: arrays.Records,
        *,
        clamp_x: tuple[float, float] = (0.0, 1.0),
        clamp_y: tuple[float, float] = (0.0, 1.0),
    ) -> Any:
        """Compute the statistic: the sums of x, y, xy and x^2.

        Privacy needs clamping, so x and y are always clamped, and the limits are mapped to 0 and 1.
        Slope and intercept are in these units.

        Parameters
        ----------
        x, y : tensor or array, shape (n,)
            Covariate and outcome of each record.
        clamp_x, clamp_y : (float, float)
            Limits (lower, upper), which must not depend on the data.

        Returns
        -------
        TensorVariable or ndarray, shape (4,)
            A sum over records; an array if x and y are arrays.

        Raises
        ------
        ValueError
            If x and y aren't vectors of n numbers, or limits aren't finite and in order.
        """
        covariate = arrays.as_records(x, "x", max_ndim=1)
        outcome = arrays.as_records(y, "y", max_ndim=1)
        covariate, outcome = arrays.as_pair(covariate, outcome, "x", "y")
        for length in (arrays.n_records(covariate), arrays.n_records(outcome)):
            if length not in (None, self.n):
                raise ValueError(f"the mechanism is for n={self.n} records, got {length}")
        u = _scaled(covariate, clamp_x, "clamp_x")
        v = _scaled(outcome, clamp_y, "clamp_y")
        return arrays.module_of(u).stack([u, v, u * v, u * u], axis=-1).sum(axis=0)

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        r"""Log-density of a released line, given the confidential sums.

        Parameters
        ----------
        released : tensor_like, shape (..., 2)
            Slope and intercept, or `NoisyStats.NA`.
        statistic : tensor_like, shape (..., 4)
            As `statistic` makes it.

        Returns
        -------
        TensorVariable, shape (...)
            Log-density of slope and intercept, which integrates to the probability of a line; for
            NA, its log-probability. One value for a release, since its entries are dependent.

        Notes
        -----
        In units of the noise scale, with ``A = n cov`` and ``V = n var``, the slope's density at b
        is the integral over w > 0 of ``w exp(-|b w - A| - |w - V|) / 4``, where w stands for the
        noisy n var. It is a product of a linear function and an exponential between its kinks at V
        and A / b, and has a closed form. NA has probability ``exp(-V) / 2``.
        """
        released, statistic = as_tensor(released, "the release"), as_tensor(statistic)
        check_last_axis(released.type.shape, 2, "release", "slope and intercept")
        _check_sums(statistic.type.shape)
        n_cov, n_var, mean_x, mean_y = self._moments(statistic, pt)
        slope, intercept = released[..., 0], released[..., 1]
        is_na = pt.isinf(slope)
        slope = pt.switch(is_na, 0.0, slope)  # keeps infinities away from the gradient
        intercept = pt.switch(is_na, 0.0, intercept)

        log_slope = _log_ratio_density(slope, n_cov / self.scale, n_var / self.scale)
        distance = pt.abs(intercept - (mean_y - slope * mean_x)) / self.intercept_scale(slope)
        log_intercept_scale = pt.log1p(pt.abs(slope)) + np.log(self.intercept_scale(0.0))
        log_intercept = -distance - log_intercept_scale - np.log(np.float64(2))
        log_na = -n_var / self.scale - np.log(np.float64(2))
        return pt.switch(is_na, log_na, log_slope + log_intercept)

    def _moments(self, statistic: Any, module: Any) -> tuple[Any, Any, Any, Any]:
        """Return n cov, n var, mean x and mean y."""
        sum_x, sum_y, sum_xy, sum_xx = (statistic[..., k] for k in range(_N_SUMS))
        mean_x, mean_y = sum_x / self.n, sum_y / self.n
        n_var = module.maximum(sum_xx - sum_x * mean_x, 0.0)  # not below, by rounding
        return sum_xy - sum_x * mean_y, n_var, mean_x, mean_y

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        zeros = pt.zeros_like(statistic[..., 0], dtype="float64")
        noise = [pm.Laplace.dist(zeros, 1.0, size=size) for _ in range(3)]
        return self._line(statistic, noise, pt)

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        _check_sums(statistic.shape)
        return np.asarray(self._line(statistic, rng.laplace(size=(3, *statistic.shape[:-1])), np))

    def _line(self, statistic: Any, noise: Any, module: Any) -> Any:
        """Compute the release from standard Laplace noise, with NumPy or PyTensor."""
        n_cov, n_var, mean_x, mean_y = self._moments(statistic, module)
        noisy_var = n_var + self.scale * noise[1]
        there_is = noisy_var > 0
        where = np.where if module is np else pt.switch
        slope = (n_cov + self.scale * noise[0]) / where(there_is, noisy_var, 1.0)
        intercept = mean_y - slope * mean_x + self.intercept_scale(slope) * noise[2]
        line = [where(there_is, z, na) for z, na in zip((slope, intercept), self.NA, strict=True)]
        return module.stack(line, axis=-1)

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that releases are two finite numbers, or `NoisyStats.NA`: else a ValueError."""
        values = np.asarray(released)
        if not np.all(np.isfinite(values).all(axis=-1) | (values == self.NA).all(axis=-1)):
            raise ValueError(
                f"'{name}': the release must be two finite numbers, slope and intercept, or "
                f"NoisyStats.NA where there was no line, got {values}"
            )

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        # (slope, intercept): shorter than the sums they follow from.
        with about(f"'{name}'"):
            _check_sums(statistic.type.shape)
        return (*statistic.type.shape[:-1], 2)


def _check_sums(shape: Sequence[int | None]) -> None:
    check_last_axis(shape, _N_SUMS, "statistic", "the sums that NoisyStats.statistic makes")


def _scaled(records: Any, clamp: Any, name: str) -> Any:
    """Clamp records, and map the limits to 0 and 1."""
    limits = real_numbers(clamp, name)
    if limits.shape != (2,):
        raise ValueError(f"{name} must be a pair (lower, upper), got {shown(clamp)}")
    arrays.check_limits(limits[0], limits[1], name, clamp)
    lower, upper = limits.tolist()
    return (arrays.module_of(records).clip(records, lower, upper) - lower) / (upper - lower)


# The mean of an exponential law that is cut off at 1, as a function of its rate x, is 1 / x - 1 /
# (exp(x) - 1) = 1/2 - x (B_2 / 2! + x^2 B_4 / 4! + ...) with Bernoulli's numbers B. For x < 1/2,
# these terms leave a relative error of 1e-17.
_EVEN = np.arange(2, 16, 2)
_MEAN_SERIES = (bernoulli(_EVEN[-1])[_EVEN] / factorial(_EVEN)).tolist()


def _log_ratio_density(b: Any, num: Any, den: Any) -> TensorVariable:
    r"""Log-density at b of (num + L1) / (den + L2) with a positive denominator.

    L1 and L2 are standard Laplace noise, and ``den >= 0``. The density is joint with the event that
    the denominator is positive, and not conditional on it.

    Notes
    -----
    The density is ``exp(-k) / 4`` times the integral over w > 0 of
    ``w exp(-|b| |w - m| - |w - den|)``, with ``m = max(num / b, 0)`` and k = |num| where num and b
    are of opposite signs, else 0. Let p <= q be m and den in order, d = q - p, and ``rate_p``,
    ``rate_q`` the rates (|b| or 1) that belong to them, with sum R and difference
    ``t = rate_q - rate_p``. Then the parts of the integral below p, between p and q, and above q,
    times R^2 and divided by exp(-min(rate_p, rate_q) d), are

    - exp(-max(t, 0) d) (R p - 1 + exp(-R p)),
    - R d M (R p + R d E), where M = (1 - exp(-|t| d)) / (|t| d), and E is the mean of an
      exponential law of rate |t| d that is cut off at 1 (of 1 minus it, where t > 0),
    - exp(-max(-t, 0) d) (R q + 1).

    No part is negative, and their sum is at least 1: so no digits are lost, and nothing underflows,
    however far out b is. M and E are smooth where a rate or a distance vanishes.
    """
    # m is finite if b is 0: then only |b| m matters. Gradients have squares of m, which are finite,
    # too.
    steep = pt.maximum(pt.abs(b), FLATTEST)
    same_sign = pt.switch(b < 0, -num, num)
    k = pt.maximum(-same_sign, 0.0)
    m = pt.maximum(same_sign, 0.0) / steep

    m_first = m < den
    p, q = pt.minimum(m, den), pt.maximum(m, den)
    rate_p, rate_q = pt.switch(m_first, steep, 1.0), pt.switch(m_first, 1.0, steep)
    d, total, t = q - p, 1.0 + steep, rate_q - rate_p
    decay, mass, mean = _cut_off_exponential(pt.abs(t) * d)
    mean = pt.switch(t > 0, 1.0 - mean, mean)
    below = pt.switch(t > 0, decay, 1.0) * (total * p + pt.expm1(-total * p))
    between = (total * d * mass) * (total * p + total * d * mean)
    above = pt.switch(t > 0, 1.0, decay) * (total * q + 1.0)
    return (
        pt.log(below + between + above)
        - 2.0 * pt.log1p(pt.abs(b))
        - pt.minimum(rate_p, rate_q) * d
        - k
        - np.log(np.float64(4))
    )


def _cut_off_exponential(
    x: TensorVariable,
) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
    """Take exp(-x t), 0 < t < 1, as a density: its value at 1, its integral, its mean; x >= 0."""
    small = x < 0.5
    near, far = pt.switch(small, x, 0.0), pt.switch(small, 1.0, x)
    decay, lost = pt.exp(-x), pt.switch(small, 1.0, -pt.expm1(-x))
    series = pt.zeros_like(near)
    for coefficient in reversed(_MEAN_SERIES):
        series = series * near**2 + np.float64(coefficient)
    mean_near = 0.5 - near * series
    mean = pt.switch(small, mean_near, 1.0 / far - decay / lost)
    mass = pt.switch(small, decay / (1.0 - near * mean_near), lost / far)
    return decay, mass, mean
