"""Shared code of the methods for a private proportion: checks, Laplace noise, tests by tails."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from pymc_dapper.budget import PureDP, laplace_scale
from pymc_dapper.budget.kinds import check_replace
from pymc_dapper.checks import choice, finite_number, real_numbers, whole_number

Alternative = Literal["greater", "less", "two-sided"]


class Interval(NamedTuple):
    """A confidence interval."""

    lower: np.ndarray
    """Lower ends, in the shape of the release."""
    upper: np.ndarray
    """Upper ends."""


@dataclass(frozen=True, eq=False)
class ProportionTest:
    """A private test of H0: theta = theta0 about a proportion, as a function of the data.

    Attributes
    ----------
    n : int
        Number of records.
    theta0 : float
        Proportion under the null hypothesis.
    alternative : {"greater", "less", "two-sided"}
        The alternative hypothesis.
    level : float
        Level that was asked for.
    lower, upper : float
        The test rejects if the released value is at most `lower` or at least `upper`; nan if the
        test has another form.
    rejection : (n + 1,) array
        Probability of rejection given that x = 0..n of the records have the property.
    """

    n: int
    theta0: float
    alternative: Alternative
    level: float
    lower: float
    upper: float
    rejection: np.ndarray

    @property
    def size(self) -> float:
        """Probability of rejection at theta0, exactly."""
        return float(self.power(self.theta0))

    def power(self, theta: ArrayLike) -> np.ndarray:
        """Probability of rejection, exactly.

        Parameters
        ----------
        theta : array_like
            True proportions, within [0, 1].

        Returns
        -------
        ndarray
            In the shape of `theta`.
        """
        true = np.asarray(theta, dtype=float)
        if not np.all((true >= 0) & (true <= 1)):
            raise ValueError(f"theta must be within [0, 1], got {theta!r}.")
        pmf = binom.pmf(np.arange(self.n + 1), self.n, true[..., None])
        return np.asarray(pmf @ self.rejection)


def check_n(n: int) -> int:
    """Return the number of records, at least 1."""
    return whole_number(n, "n, the number of records,", at_least=1)


def check_released(released: ArrayLike) -> np.ndarray:
    """Return released values as floats, all of them finite."""
    return real_numbers(released, "what was released", finite=True)


def check_theta0(theta0: float) -> float:
    """Return a proportion that can be tested: neither 0 nor 1."""
    return finite_number(theta0, "theta0", above=0, below=1)


def p_value_of(below: np.ndarray, above: np.ndarray, alternative: Alternative) -> np.ndarray:
    """p-value, from the one-sided ones: against "less" (below) and against "greater" (above).

    Two-sided is twice the smaller one: equal tails.
    """
    choice(alternative, "alternative", get_args(Alternative))
    if alternative == "two-sided":
        return np.minimum(1.0, 2 * np.minimum(below, above))
    return above if alternative == "greater" else below


def tail_test(
    n: int,
    theta0: float,
    alternative: Alternative,
    level: float,
    critical: Callable[[float], float],
    exceeds: Callable[[float], np.ndarray],
) -> ProportionTest:
    """Test that rejects in one tail of the released value, or in both with half the level each.

    `critical` gives the value that the release exceeds with a given probability (nominally) under
    the null hypothesis. `exceeds` maps a value to the probabilities that the release exceeds it,
    given x = 0..n.
    """
    choice(alternative, "alternative", get_args(Alternative))
    sides = 2 if alternative == "two-sided" else 1
    tail = finite_number(level, "level", above=0, below=1) / sides
    lower = -np.inf if alternative == "greater" else critical(1 - tail)
    upper = np.inf if alternative == "less" else critical(tail)
    rejection = 1 - exceeds(lower) + exceeds(upper)
    return ProportionTest(n, theta0, alternative, level, lower, upper, rejection)


def proportion_scale(n: int, budget: PureDP) -> float:
    """Scale of Laplace noise on a proportion of n records, for one replaced record."""
    scale = laplace_scale(budget, sensitivity=1 / check_n(n))
    check_replace(budget, "a release of a proportion", "the number of records is public")
    return scale


def laplace_noise(
    rng: np.random.Generator, scale: float, size: int | tuple[int, ...]
) -> np.ndarray:
    """Draw Laplace noise: -sign(w) log(1 - 2 |w|) times the scale, w uniform on (-1/2, 1/2)."""
    # From [0, 1) to (-1/2, 1/2]: its upper end would be infinite, so go to (-1/2, 1/2) by clipping.
    w = np.maximum(rng.random(size) - 0.5, np.nextafter(-0.5, 0.0))
    return -scale * np.sign(w) * np.log1p(-2 * np.abs(w))
