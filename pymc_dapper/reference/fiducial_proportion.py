r"""Fiducial matching for a proportion, private or not.

Released is the proportion of n records that have a property, plus Laplace(1 / (epsilon n)) noise.
The data are read as seeds: record i has the property if its uniform seed u_i is at most theta.

**Without privacy.** k = n p of the records have the property. Which theta would lead to that, given
fresh seeds? Any between the order statistics u_(k) and u_(k+1). So theta = u_(k) + D (u_(k+1) -
u_(k)), with D from the mixing law. As (u_(k), u_(k+1) - u_(k), 1 - u_(k+1)) ~ Dirichlet(k, 1,
n - k),

- D ~ Beta(1/2, 1/2) splits the gap as a Dirichlet law splits a cell: theta ~ Beta(k + 1/2, n - k +
  1/2), the posterior under Jeffreys' prior;
- D ~ Beta(1, 1) gives a law of mean (k + 1/2) / (n + 1), which isn't a beta law. It is drawn from
  its definition, as (G_k + D G_1) / (G_k + G_1 + G_{n-k}) with gamma variables of these shapes;
- Beta(k + 1, n - k + 1), the posterior under a flat prior, is sometimes given as the law of the
  second rule. It is not (its mean is (k + 1) / (n + 2)), so here it is a rule of its own.

**With privacy.** Match twice: t = released - a fresh Laplace draw takes the place of p. Then
t > 1 gives theta = 1, t < 0 gives theta = 0, and else n t takes the place of k in the laws above.

The distribution of theta is read as a posterior would be. Its intervals are confidence intervals
only approximately; `fiducial_test` gives their exact coverage (one minus the size of the two-sided
test).

References
----------
Romanus, O. M., Boulaguiem, Y. and Molinari, R. (2025). Fiducial matching: differentially private
inference for categorical data. arXiv:2507.11762. (Presented in 2023 as JIMI.)

Hannig, J., Iyer, H., Lai, R. C. S. and Lee, T. C. M. (2016). Generalized fiducial inference: a
review and new results. Journal of the American Statistical Association 111, 1346-1361.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import betainc
from scipy.stats import laplace

from pymc_dapper.budget import PureDP
from pymc_dapper.budget.roots import root
from pymc_dapper.checks import choice, finite_number, whole_number
from pymc_dapper.reference import _proportion

Mixing = Literal["jeffreys", "uniform", "flat-prior"]

_BETA_SHIFT = {"jeffreys": 0.5, "flat-prior": 1.0}
_FAR = 45.0
"""Beyond this many scales Laplace noise has a probability of 1e-20."""


@dataclass(frozen=True, eq=False)
class FiducialProportion:
    """Draws of a proportion from its fiducial distribution.

    Attributes
    ----------
    draws : (..., chain, draw) array
        Independent draws, in chains for ArviZ's sake; leading axes are those of `released`.
    released : ndarray
        The given values.
    n : int
        Number of records.
    budget : PureDP or None
        Budget of the release; None for the confidential proportion.
    mixing : {"jeffreys", "uniform", "flat-prior"}
        The rule.
    """

    draws: np.ndarray
    released: np.ndarray
    n: int
    budget: PureDP | None
    mixing: Mixing

    @property
    def estimate(self) -> np.ndarray:
        """Median of the draws, in the shape of `released`."""
        return np.asarray(np.median(self.draws, axis=(-2, -1)))

    @property
    def mean(self) -> np.ndarray:
        """Mean of the draws, in the shape of `released`."""
        return np.asarray(self.draws.mean(axis=(-2, -1)))

    @property
    def sd(self) -> np.ndarray:
        """Standard deviation of the draws, in the shape of `released`."""
        return np.asarray(self.draws.std(axis=(-2, -1)))

    def interval(self, prob: float = 0.95) -> _proportion.Interval:
        """Equal-tailed interval, from quantiles of the draws.

        Parameters
        ----------
        prob : float
            Share of the draws within it; nominal probability of coverage.
        """
        tail = (1 - finite_number(prob, "prob", above=0, below=1)) / 2
        return _proportion.Interval(*np.quantile(self.draws, (tail, 1 - tail), axis=(-2, -1)))

    def p_value(
        self, theta0: float, alternative: _proportion.Alternative = "greater"
    ) -> np.ndarray:
        """P-value of H0: theta = theta0: the share of draws on the null hypothesis's side.

        Parameters
        ----------
        theta0 : float
            Proportion under the null hypothesis, within (0, 1).
        alternative : {"greater", "less", "two-sided"}
            Against "greater" it is the share of draws of at most theta0; two-sided is the smaller
            share, doubled.
        """
        below = (self.draws <= _proportion.check_theta0(theta0)).mean(axis=(-2, -1))
        return _proportion.p_value_of(1 - below, below, alternative)

    def to_datatree(self) -> Any:
        """Return the draws as ArviZ has them: group "posterior", variable "theta".

        Raises
        ------
        ValueError
            If there are several releases.
        """
        import arviz as az

        if self.released.ndim:
            raise ValueError("only draws given one release can be a DataTree: pick one of them.")
        return az.from_dict({"posterior": {"theta": self.draws}})


def fiducial_proportion(
    released: ArrayLike,
    n: int,
    budget: PureDP | None,
    *,
    mixing: Mixing = "jeffreys",
    draws: int = 10_000,
    chains: int = 1,
    random_seed: int | np.random.Generator | None = None,
) -> FiducialProportion:
    """Draw a proportion from its fiducial distribution.

    Parameters
    ----------
    released : array_like
        The released proportion, X / n + Laplace(1 / (epsilon n)); or several releases, each of its
        own, for a simulation.
    n : int
        Number of records.
    budget : PureDP or None
        Budget of the release. None: there is no noise, and `released` is the true proportion.
    mixing : {"jeffreys", "uniform", "flat-prior"}
        Law of theta's place between the order statistics: D ~ Beta(1/2, 1/2), D ~ Beta(1, 1), or
        the law Beta(n t + 1, n (1 - t) + 1).
    draws, chains : int
        Number of independent draws in each of the chains.
    random_seed : int or Generator, optional
        Seed.

    Returns
    -------
    FiducialProportion

    Raises
    ------
    TypeError
        If the budget isn't pure.
    ValueError
        If a number makes no sense, or if there is no noise and `released` isn't within [0, 1].

    Examples
    --------
    >>> fitted = fiducial_proportion(0.8, 30, PureDP(1.0), random_seed=1)
    >>> fitted.draws.shape
    (1, 10000)
    """
    values = _proportion.check_released(released)
    choice(mixing, "mixing", get_args(Mixing))
    number = {"chains": chains, "draws": draws}
    size = (*values.shape, *(whole_number(x, name, at_least=1) for name, x in number.items()))
    rng = np.random.default_rng(random_seed)
    t = np.broadcast_to(values[..., None, None], size)
    if budget is not None:
        t = t - _proportion.laplace_noise(rng, _proportion.proportion_scale(n, budget), size)
    elif not np.all((values >= 0) & (values <= 1)):
        raise ValueError(
            f"without noise the proportion is within [0, 1], got {released!r}. If there is noise, "
            "give its budget."
        )
    theta = _draw_given_proportion(np.clip(t, 0, 1), _proportion.check_n(n), mixing, rng)
    theta = np.where(t < 0, 0.0, np.where(t > 1, 1.0, theta))
    return FiducialProportion(theta, values, n, budget, mixing)


def fiducial_cdf(
    theta: float, released: float, n: int, budget: PureDP, *, mixing: Mixing = "jeffreys"
) -> float:
    """Probability, by quadrature, that a draw given a private proportion is at most theta.

    Parameters
    ----------
    theta : float
        Points of evaluation.
    released, n, budget
        As for `fiducial_proportion`, of a single release.
    mixing : {"jeffreys", "flat-prior"}
        A rule with a closed form.

    Returns
    -------
    float
        Accurate to about 1e-10. It jumps at 0 and at 1.

    Raises
    ------
    ValueError
        If the mixing has no closed form.
    """
    choice(mixing, "mixing", get_args(Mixing))
    if mixing == "uniform":
        raise ValueError(
            "with uniform mixing the distribution has no closed form: use draws, by "
            "fiducial_proportion(..., mixing='uniform')."
        )
    if theta < 0:
        return 0.0
    if theta >= 1:
        return 1.0
    scale = _proportion.proportion_scale(n, budget)
    shift, centre = _BETA_SHIFT[mixing], float(released)

    def density_and_law(scales: float) -> float:
        t = min(max(centre + scale * scales, 0.0), 1.0)
        law = float(betainc(n * t + shift, n * (1 - t) + shift, theta))
        return math.exp(-abs(scales)) / 2 * law

    ends = np.clip((np.array([0.0, 1.0]) - centre) / scale, -_FAR, _FAR)
    # The noise has a kink at the released value, and the beta cdf a rise at theta.
    points, errors = [0.0, (theta - centre) / scale], {"epsabs": 1e-11, "epsrel": 1e-10}
    within, _ = quad(density_and_law, *ends, points=points, limit=500, **errors)
    # t < 0: the noise is above the released value.
    return float(within + laplace.sf(centre, scale=scale))


def fiducial_test(
    n: int,
    theta0: float,
    budget: PureDP,
    *,
    mixing: Mixing = "jeffreys",
    alternative: _proportion.Alternative = "greater",
    level: float = 0.05,
) -> _proportion.ProportionTest:
    """Test by the fiducial p-value, with its exact size and power.

    Parameters
    ----------
    n : int
        Number of records.
    theta0 : float
        Proportion under the null hypothesis, within (0, 1).
    budget : PureDP
        Budget of the release.
    mixing : {"jeffreys", "flat-prior"}
        A rule with a closed form.
    alternative : {"greater", "less", "two-sided"}
        The alternative hypothesis.
    level : float
        Nominal size. The exact one is ``ProportionTest.size``. One minus that of the two-sided test
        is the interval's coverage at theta0.

    Returns
    -------
    ProportionTest
        In units of the proportion.
    """
    scale, counts = _proportion.proportion_scale(n, budget), np.arange(n + 1)
    _proportion.check_theta0(theta0)

    def critical(tail: float) -> float:
        # The p-value falls with the released value; the noise makes its tails exponential.
        reach = (20 - np.log(min(tail, 1 - tail))) * scale
        return root(
            lambda r: fiducial_cdf(theta0, r, n, budget, mixing=mixing) - tail, -reach, 1 + reach
        )

    return _proportion.tail_test(
        n, theta0, alternative, level, critical, lambda t: laplace.sf(t, counts / n, scale)
    )


def _draw_given_proportion(
    t: np.ndarray, n: int, mixing: Mixing, rng: np.random.Generator
) -> np.ndarray:
    """Draw theta given a proportion within [0, 1]."""
    if mixing != "uniform":
        shift = _BETA_SHIFT[mixing]
        return rng.beta(n * t + shift, n * (1 - t) + shift)
    below, gap, above = rng.gamma(n * t), rng.gamma(1.0, size=t.shape), rng.gamma(n * (1 - t))
    return (below + rng.random(t.shape) * gap) / (below + gap + above)
