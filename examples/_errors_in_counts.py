r"""A regression on noisy counts: the naive fit, and the exact likelihood.

The curator holds n pairs (x, y) with x ~ Poisson(rate) and y = a + b x + N(0, sd^2), and releases
each x and each y with Laplace noise of its own, of scale 1 / epsilon.

**The naive fit** uses the noisy pairs as if exact. The noise in y only adds to its residuals. The
noise in x biases the slope: the noisy x has variance Var(x) + 2 / epsilon^2 and the same covariance
with y, so the least squares slope converges to

    b Var(x) / (Var(x) + 2 / epsilon^2)

as n grows. That is the attenuation of an errors-in-variables regression (Fuller 1987). The
intercept goes to the value that leaves the line through the means, and the confidence region
shrinks around the wrong point.

**The likelihood** is a product over pairs, as each has noise of its own. Given x, the noisy y less
a + b x is the sum of a normal and a Laplace variable, with density

    h(z) = exp(sd^2 / (2 s^2)) / (2 s) * (exp(-z / s) Phi(z / sd - sd / s)
                                          + exp(z / s) Phi(-z / sd - sd / s))

for noise of scale s. A pair's likelihood is the sum over x of the Poisson probability, the Laplace
density of noisy x less x, and h.

References
----------
Fuller, W. A. (1987). Measurement Error Models. Wiley. Section 1.1.

Gong, R. (2022). Exact inference with approximate computation for differentially private data via
perturbations. Journal of Privacy and Confidentiality 12(2). arXiv:1909.12237. The example.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, log_ndtr, logsumexp
from scipy.stats import f

from pymc_dapper.checks import finite_number
from pymc_dapper.reference.monte_carlo_em import EMEstimate, monte_carlo_em

FloatArray = NDArray[np.float64]
Pairs = tuple[FloatArray, FloatArray]

TERMS = 2_000_000
"""Largest number of terms of the likelihood that are held at a time."""

HALVINGS = 60
"""Number of halvings until the terms of a sum are negligible."""


def attenuation(variance: float, scale: float) -> float:
    """Factor by which the least squares slope shrinks if the covariate has Laplace noise.

    Parameters
    ----------
    variance : float
        Variance of the covariate without noise.
    scale : float
        Scale of its noise: sensitivity / epsilon.

    Returns
    -------
    float
        ``variance / (variance + 2 scale^2)``, the limit for many records.

    Raises
    ------
    ValueError
        If a value isn't positive and finite.
    """
    finite_number(variance, "variance", above=0)
    finite_number(scale, "scale", above=0)
    return variance / (variance + 2 * scale**2)


@dataclass(frozen=True, eq=False)
class LeastSquares:
    """A least squares line, with the usual covariance of its coefficients.

    Attributes
    ----------
    estimate : (2,) array
        Intercept and slope.
    covariance : (2, 2) array
        Residual variance times the inverse of X'X.
    residual_df : int
        Number of pairs less 2.
    """

    estimate: FloatArray
    covariance: FloatArray
    residual_df: int

    @classmethod
    def fit(cls, x: ArrayLike, y: ArrayLike) -> "LeastSquares":
        """Fit a line.

        Parameters
        ----------
        x, y : (n,) array_like
            The pairs, taken as they are; n >= 3.

        Returns
        -------
        LeastSquares

        Raises
        ------
        ValueError
            If there are fewer than 3 pairs, or if all x are the same.
        """
        x, y = _checked_pairs(x, y)
        if x.size < 3 or np.ptp(x) == 0:
            raise ValueError("a line with residuals needs at least 3 pairs, not all x the same.")
        design = np.stack([np.ones_like(x), x], axis=1)
        estimate = np.linalg.lstsq(design, y, rcond=None)[0]
        residual_df = x.size - 2
        variance = float(((y - design @ estimate) ** 2).sum()) / residual_df
        return cls(estimate, variance * np.linalg.inv(design.T @ design), residual_df)

    def radius(self, level: float = 0.95) -> float:
        """Size of the confidence region in standard deviations, by the F distribution."""
        return math.sqrt(2 * f.ppf(level, 2, self.residual_df))

    def covers(self, coefficients: ArrayLike, level: float = 0.95) -> bool:
        """Whether the confidence region holds a point."""
        error = np.asarray(coefficients, dtype=float) - self.estimate
        distance = error @ np.linalg.solve(self.covariance, error)
        return bool(distance <= self.radius(level) ** 2)

    def region(self, level: float = 0.95, *, points: int = 200) -> FloatArray:
        """Boundary of the confidence region of intercept and slope, shape (points, 2)."""
        return ellipse(self.estimate, self.covariance, self.radius(level), points)


@dataclass(frozen=True)
class CountRegression:
    """A line through pairs whose covariate is a count, both released with Laplace noise.

    Intercept and slope are unknown; the other quantities are known.

    Attributes
    ----------
    rate : float
        Poisson mean of x.
    sd : float
        Standard deviation of y given x.
    scale : float
        Scale of the noise on each x and each y: 1 / epsilon for values of sensitivity 1.

    Raises
    ------
    ValueError
        If one of them isn't positive and finite.

    Notes
    -----
    The likelihood is derived in the documentation of this module.
    """

    rate: float
    sd: float
    scale: float

    def __post_init__(self) -> None:
        """Check the values."""
        for name in ("rate", "sd", "scale"):
            finite_number(getattr(self, name), name, above=0)

    def simulate(self, line: ArrayLike, n: int, rng: np.random.Generator) -> Pairs:
        """Draw confidential pairs.

        Parameters
        ----------
        line : (2,) array_like
            Intercept and slope.
        n : int
            Number of pairs.
        rng : Generator
            Random numbers.

        Returns
        -------
        x, y : (n,) array
        """
        return self._pairs(line, (n,), rng)

    def release(self, x: ArrayLike, y: ArrayLike, rng: np.random.Generator) -> Pairs:
        """Add noise to pairs, for simulations.

        Returns
        -------
        x, y : (n,) array
            The noisy pairs.
        """
        x, y = _checked_pairs(x, y)
        return x + rng.laplace(0, self.scale, x.shape), y + rng.laplace(0, self.scale, y.shape)

    def loglik(self, lines: ArrayLike, x: ArrayLike, y: ArrayLike) -> FloatArray:
        """Exact log-likelihood of lines, given the noisy pairs.

        Parameters
        ----------
        lines : (..., 2) array_like
            Intercepts and slopes.
        x, y : (n,) array_like
            The noisy pairs.

        Returns
        -------
        (...) array
            Normalised as a density of the noisy pairs. Of the sum over counts, terms are left out
            that add up to less than 1e-15 of it.

        Raises
        ------
        ValueError
            If a shape or a value makes no sense.
        """
        coefficients = np.asarray(lines, dtype=float)
        if coefficients.shape[-1:] != (2,) or not np.isfinite(coefficients).all():
            raise ValueError(
                "lines must be finite, with intercept and slope along the last axis, got shape "
                f"{coefficients.shape}."
            )
        x, y = _checked_pairs(x, y)
        each = coefficients.reshape(-1, 2)
        counts = np.arange(self._largest_count(each, x, y) + 1)
        log_joint = (
            counts * math.log(self.rate)
            - self.rate
            - gammaln(counts + 1)
            - np.abs(x[:, None] - counts) / self.scale
            - math.log(2 * self.scale)
        )
        parts = max(1, math.ceil(len(each) * log_joint.size / TERMS))
        values = [
            logsumexp(
                log_joint + self._log_noisy_normal(y[:, None] - (a + b * counts)), axis=-1
            ).sum(axis=-1)
            for a, b in (part.T[:, :, None, None] for part in np.array_split(each, parts))
        ]
        return np.concatenate(values).reshape(coefficients.shape[:-1])

    def monte_carlo_em(self, x: ArrayLike, y: ArrayLike, **options: Any) -> EMEstimate:
        """Estimate intercept and slope from the noisy pairs, by Monte Carlo EM.

        Each pair has importance weights of its own. The M-step is weighted least squares.

        Parameters
        ----------
        x, y : (n,) array_like
            The noisy pairs.
        **options
            Passed on to `monte_carlo_em`. By default the start is the naive fit with its
            attenuation undone.

        Returns
        -------
        EMEstimate

        Notes
        -----
        The likelihood can have several maxima, of either sign of the slope: EM finds one of them,
        which need not be the largest. Compare `loglik` from several starts.
        """
        noisy_x, noisy_y = _checked_pairs(x, y)
        start = options.pop("start", None)

        def log_mechanism(pairs: Pairs) -> FloatArray:
            distance = np.abs(noisy_x - pairs[0]) + np.abs(noisy_y - pairs[1])
            return np.asarray(-distance / self.scale)

        def log_likelihood(line: FloatArray, pairs: Pairs) -> FloatArray:
            return np.asarray(-0.5 * ((pairs[1] - line[0] - line[1] * pairs[0]) / self.sd) ** 2)

        def score(line: FloatArray, pairs: Pairs) -> FloatArray:
            residuals = (pairs[1] - line[0] - line[1] * pairs[0]) / self.sd**2
            return np.stack([residuals, residuals * pairs[0]], axis=-1)

        def least_squares(pairs: Pairs, weights: FloatArray) -> FloatArray:
            mean_x, mean_y = (np.average(values, weights=weights) for values in pairs)
            dx = pairs[0] - mean_x
            slope = (weights * dx * pairs[1]).sum() / (weights * dx * dx).sum()
            return np.array([mean_y - slope * mean_x, slope])

        return monte_carlo_em(
            lambda line, size, rng: self._pairs(line, (size, noisy_x.size), rng),
            log_mechanism,
            log_likelihood,
            self._unattenuated(noisy_x, noisy_y) if start is None else start,
            maximise=least_squares,
            score=score,
            **options,
        )

    def _pairs(self, line: ArrayLike, shape: tuple[int, ...], rng: np.random.Generator) -> Pairs:
        intercept, slope = np.asarray(line, dtype=float)
        x = rng.poisson(self.rate, shape).astype(float)
        return x, rng.normal(intercept + slope * x, self.sd)

    def _unattenuated(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Least squares line, made steeper, through the means."""
        slope = LeastSquares.fit(x, y).estimate[1] / attenuation(self.rate, self.scale)
        return np.array([y.mean() - slope * x.mean(), slope])

    def _log_noisy_normal(self, z: FloatArray) -> FloatArray:
        """Log-density of a normal plus a Laplace variable."""
        ratio = self.sd / self.scale
        right = log_ndtr(z / self.sd - ratio) - z / self.scale
        left = log_ndtr(-z / self.sd - ratio) + z / self.scale
        return np.logaddexp(right, left) + ratio**2 / 2 - math.log(2 * self.scale)

    def _largest_count(self, lines: FloatArray, x: FloatArray, y: FloatArray) -> int:
        """Count beyond which nothing matters.

        From one count to the next, a term changes by rate / (x + 1); beyond the noisy x, by less.
        The density of the noisy y makes up for exp(|slope| / scale) at most, and for nothing once
        the line has gone past it. So there is a count beyond which terms halve, or better.
        """
        intercepts, slopes = lines[:, :1], np.abs(lines[:, 1:])
        with np.errstate(divide="ignore", invalid="ignore"):
            crossing = np.abs(y - intercepts) / slopes
        tilted = 2 * self.rate * np.exp(np.minimum(slopes / self.scale, 100.0))
        halving = np.fmin(crossing, tilted).max(initial=2 * self.rate)
        return math.ceil(max(float(halving), float(x.max(initial=0.0)))) + HALVINGS


def _checked_pairs(x: ArrayLike, y: ArrayLike) -> Pairs:
    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if first.ndim != 1 or first.shape != second.shape:
        raise ValueError(
            f"x and y must be vectors of one length, got shapes {first.shape} and {second.shape}."
        )
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise ValueError("x and y must be finite.")
    return first, second


def ellipse(
    center: ArrayLike, covariance: ArrayLike, radius: float, points: int = 200
) -> FloatArray:
    """Points v, shape (points, 2), with (v - center)' covariance^-1 (v - center) = radius^2.

    The first one comes again as the last.
    """
    angle = np.linspace(0, 2 * np.pi, points)
    circle = radius * np.stack([np.cos(angle), np.sin(angle)])
    factor = np.linalg.cholesky(np.asarray(covariance, dtype=float))
    return np.asarray(center, dtype=float) + (factor @ circle).T
