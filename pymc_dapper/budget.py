r"""Privacy budgets, and the noise that they buy.

Three kinds of budget say how much a release may tell about one record. From the strongest:

`PureDP`
    epsilon-differential privacy.
`ZCDP`
    rho-zero-concentrated differential privacy.
`ApproxDP`
    (epsilon, delta)-differential privacy.

A mechanism that keeps a stronger kind keeps a weaker one, too. ``PureDP.to_zcdp``,
``PureDP.to_approx`` and ``ZCDP.to_approx`` say which, so they state what a release guarantees.
``ApproxDP.to_zcdp`` goes the other way: it finds a stronger budget that is enough, so it serves to
choose noise and never to describe a release.

This is the only place where a privacy loss becomes a noise scale: `laplace_scale`,
`discrete_laplace_scale`, `gaussian_sigma` and `analytic_gaussian_sigma`. For each there is a
function that goes back, from the noise to the budget.

Between zCDP and approximate differential privacy there are two bounds. "simple" is a closed form.
"tight" promises more for the same noise, and needs less noise for the same promise. Both hold, so
whoever states an approximate budget has to say by which bound it is. "simple" is the default: it
takes the more noise, and it never promises more than the other.

A sensitivity may be a plain number, in the norm that the noise needs; or the `sensitivity` of a
statistic as a whole, of which that norm is picked. One of its numbers in another norm is refused.

Throughout, log is the natural logarithm, and a privacy loss is measured in its units (nats).

References
----------
Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy:
analytical calibration and optimal denoising. International Conference on Machine Learning 35.

Bun, M. and Steinke, T. (2016). Concentrated differential privacy: simplifications, extensions, and
lower bounds. Theory of Cryptography Conference. arXiv:1605.02065.

Canonne, C. L., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy.
Advances in Neural Information Processing Systems 33. arXiv:2004.00010.

Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to sensitivity in
private data analysis. Theory of Cryptography Conference.

Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy. Foundations and
Trends in Theoretical Computer Science 9, 211-407.

Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). Universally utility-maximizing privacy
mechanisms. SIAM Journal on Computing 41, 1673-1693.
"""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from fractions import Fraction
from numbers import Integral, Real
from typing import Literal, Self

import numpy as np
from scipy.optimize import brentq
from scipy.special import erfcx, ndtr

from pymc_dapper.checks import shown
from pymc_dapper.sensitivity import Norm, Sensitivities, in_norm

Bound = Literal["simple", "tight"]

TINY = sys.float_info.min
"""Smallest float of full precision, 2.2e-308. It stands for a smaller epsilon or delta."""

_BOUNDS = ("simple", "tight")

_ADVICE = {
    "epsilon": "It bounds a log ratio of probabilities: the smaller, the more noise.",
    "rho": "It bounds a Renyi divergence per order: the smaller, the more noise.",
    "delta": (
        "It is the probability left to chance, 1e-10 for example. "
        "If there is none, the budget is PureDP(epsilon)."
    ),
    "sensitivity": "It is the most that changing one record can change the statistic.",
    "scale": "Of Laplace noise it is the mean absolute value.",
    "sigma": "It is the standard deviation of Gaussian noise, not the variance.",
    "a weight": "For equal parts, give their number.",
}


@dataclass(frozen=True)
class _Budget:
    """What the kinds of budget share: every field of theirs adds up over releases."""

    def split(self, parts: int | Sequence[float]) -> tuple[Self, ...]:
        """Share the budget out between several releases on the same records.

        Parameters
        ----------
        parts : int or sequence of float
            How many equal parts; or positive weights, one for each part, of which only the ratios
            count.

        Returns
        -------
        tuple of budgets
            Of the same kind. By `compose` they add up to this budget, but for rounding.

        Raises
        ------
        TypeError
            If `parts` is neither a whole number nor a sequence of numbers.
        ValueError
            If there is no part, if a weight isn't positive, or if a part is too small for a float.

        Examples
        --------
        >>> ZCDP(0.5).split(2)
        (ZCDP(rho=0.25), ZCDP(rho=0.25))
        >>> PureDP(1).split([3, 1])
        (PureDP(epsilon=0.75), PureDP(epsilon=0.25))
        """
        amounts: tuple[float, ...] = astuple(self)
        shares = [[amount / divisor for amount in amounts] for divisor in _divisors(parts)]
        if min(map(min, shares)) < TINY:
            raise ValueError(f"a part of {self} would be too small for a float. Make fewer parts.")
        return tuple(type(self)(*share) for share in shares)

    def compose(self, *others: Self) -> Self:
        """Add up budgets that are spent on the same records.

        Each release may depend on the ones before. The sums are those of basic composition: epsilon
        for pure, rho for zero-concentrated, epsilon and delta for approximate differential privacy.

        Parameters
        ----------
        *others : budgets
            Of the same kind.

        Returns
        -------
        budget
            Of the same kind: what all the releases together spend.

        Raises
        ------
        TypeError
            If a budget is of another kind: the message names the conversion to make first.
        ValueError
            If the deltas add up to 1 or more.

        References
        ----------
        Pure and approximate: Dwork and Roth (2014), Theorem 3.16 and Appendix B. Zero-concentrated:
        Bun and Steinke (2016), Lemmas 1.7 and 2.3.

        Examples
        --------
        >>> ZCDP(0.5).compose(ZCDP(0.25), ZCDP(0.25))
        ZCDP(rho=1.0)
        """
        budgets = (self, *others)
        _same_kind(budgets)
        amounts = zip(*(astuple(one) for one in budgets), strict=True)
        totals = [sum(amount) for amount in amounts]
        if isinstance(self, ApproxDP) and totals[1] >= 1:
            raise ValueError(
                f"the deltas add up to {totals[1]:.6g}, and a delta of 1 or more promises nothing. "
                "Compose budgets of smaller delta."
            )
        return type(self)(*totals)

    def __str__(self) -> str:
        amounts = [f"{one.name}={getattr(self, one.name):.6g}" for one in fields(self)]
        return f"{type(self).__name__}({', '.join(amounts)})"


@dataclass(frozen=True)
class PureDP(_Budget):
    """Pure differential privacy.

    Changing one record changes the probability of no outcome by more than a factor of
    ``exp(epsilon)``.

    Parameters
    ----------
    epsilon : float
        Privacy loss, positive and finite.

    Raises
    ------
    TypeError
        If `epsilon` isn't a number.
    ValueError
        If `epsilon` isn't positive and finite.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Definition 1.

    Examples
    --------
    >>> PureDP(1).to_zcdp()
    ZCDP(rho=0.5)
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive(self.epsilon, "epsilon"))

    def to_zcdp(self) -> "ZCDP":
        """Return the zCDP budget that every mechanism with this budget keeps: epsilon^2 / 2.

        Returns
        -------
        ZCDP

        Raises
        ------
        ValueError
            If rho would be too small or too large for a float.

        References
        ----------
        Bun and Steinke (2016), Proposition 1.4.
        """
        return ZCDP(_holds(self.epsilon * self.epsilon / 2, f"rho of {self}"))

    def to_approx(self, *, delta: float) -> "ApproxDP":
        """Return the approximate budget that every mechanism with this budget keeps.

        Epsilon stays as it is, and any delta will do. It serves to `compose` a pure budget with an
        approximate one: as the deltas add up, take a small one.

        Parameters
        ----------
        delta : float
            Between 0 and 1.

        Returns
        -------
        ApproxDP

        Raises
        ------
        TypeError, ValueError
            If `delta` isn't a number between 0 and 1.

        References
        ----------
        Dwork and Roth (2014), Definition 2.4.
        """
        return ApproxDP(self.epsilon, delta)


@dataclass(frozen=True)
class ZCDP(_Budget):
    """Zero-concentrated differential privacy.

    For every order alpha > 1, the Renyi divergence between the outcome's laws before and after one
    record is changed is at most ``alpha * rho``.

    Parameters
    ----------
    rho : float
        Privacy loss, positive and finite.

    Raises
    ------
    TypeError
        If `rho` isn't a number.
    ValueError
        If `rho` isn't positive and finite.

    References
    ----------
    Bun and Steinke (2016), Definition 1.1.

    Examples
    --------
    >>> print(ZCDP(0.1).to_approx(delta=1e-10))
    ApproxDP(epsilon=3.13485, delta=1e-10)
    >>> print(ZCDP(0.1).to_approx(delta=1e-10, bound="tight"))
    ApproxDP(epsilon=2.88183, delta=1e-10)
    """

    rho: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", _positive(self.rho, "rho"))

    def to_approx(
        self,
        *,
        delta: float | None = None,
        epsilon: float | None = None,
        bound: Bound = "simple",
    ) -> "ApproxDP":
        r"""Return an approximate budget that every mechanism with this budget keeps.

        There is one for each delta, and one for each epsilon. Give one, get the other.

        Parameters
        ----------
        delta : float, optional
            Between 0 and 1.
        epsilon : float, optional
            Positive.
        bound : {"simple", "tight"}
            "simple": ``epsilon = rho + 2 sqrt(rho log(1 / delta))``. "tight": the smallest delta
            over all orders alpha > 1 of
            ``exp((alpha - 1) (alpha rho - epsilon)) / (alpha - 1) * (1 - 1 / alpha)^alpha``.

        Returns
        -------
        ApproxDP
            With the delta, or the epsilon, that was given. Where the other could be 0, or is too
            small for a float, it is `TINY`.

        Raises
        ------
        TypeError
            If not exactly one of `delta` and `epsilon` is given, or if it isn't a number.
        ValueError
            If a number is out of range, if `bound` is unknown, or if no delta below 1 holds at the
            `epsilon` given.

        References
        ----------
        Simple: Bun and Steinke (2016), Proposition 1.3. Tight: Canonne, Kamath and Steinke (2020),
        Proposition 12 and Corollary 13.
        """
        _check_bound(bound)
        rho = self.rho
        if bound == "simple":
            return _approx_budget(
                lambda log_inverse_delta: rho + 2 * math.sqrt(rho) * math.sqrt(log_inverse_delta),
                lambda epsilon: _simple_log_delta(rho, epsilon),
                delta=delta,
                epsilon=epsilon,
                owner=f"{self} with the simple bound",
            )
        return _approx_budget(
            lambda log_inverse_delta: _tight_epsilon(rho, log_inverse_delta),
            lambda epsilon: _tight_log_delta(rho, epsilon),
            delta=delta,
            epsilon=epsilon,
            owner=f"{self} with the tight bound",
        )


@dataclass(frozen=True)
class ApproxDP(_Budget):
    """Approximate differential privacy.

    Changing one record changes the probability of any set of outcomes by no more than a factor of
    ``exp(epsilon)`` and an added ``delta``.

    Parameters
    ----------
    epsilon : float
        Privacy loss, positive and finite.
    delta : float
        Above 0 (not below 2.2e-308, where floats lose precision) and below 1.

    Raises
    ------
    TypeError
        If an argument isn't a number.
    ValueError
        If an argument is out of range.

    References
    ----------
    Dwork and Roth (2014), Definition 2.4.

    Examples
    --------
    >>> print(ApproxDP(1, 1e-6).to_zcdp())
    ZCDP(rho=0.0174689)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", _positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "delta", _probability(self.delta, "delta"))

    def to_zcdp(self, *, bound: Bound = "simple") -> ZCDP:
        """Return the largest zCDP budget that is enough for this budget.

        A mechanism that keeps the zCDP budget keeps this one. The converse doesn't hold: use this
        to choose noise, not to describe a release of which only epsilon and delta are known.

        Parameters
        ----------
        bound : {"simple", "tight"}
            As in `ZCDP.to_approx`, of which this is the inverse.

        Returns
        -------
        ZCDP

        Raises
        ------
        ValueError
            If `bound` is unknown, or if rho would be too small for a float.

        References
        ----------
        Simple: Bun and Steinke (2016), Proposition 1.3, solved for rho. Tight: Canonne, Kamath and
        Steinke (2020), Corollary 13.
        """
        _check_bound(bound)
        log_inverse_delta = -math.log(self.delta)
        if bound == "simple":
            rho = _simple_rho(self.epsilon, log_inverse_delta)
        else:
            rho = _tight_rho(self.epsilon, log_inverse_delta)
        return ZCDP(_holds(rho, f"rho of {self}"))


def compose[B: _Budget](*budgets: B) -> B:
    """Add up budgets that are spent on the same records.

    Parameters
    ----------
    *budgets : PureDP, ZCDP or ApproxDP
        At least one; all of the same kind.

    Returns
    -------
    PureDP, ZCDP or ApproxDP
        What all the releases together spend, as the method ``compose`` of a budget says.

    Raises
    ------
    TypeError
        If there is none, or if they are of different kinds.
    ValueError
        If the deltas add up to 1 or more.

    Examples
    --------
    >>> compose(PureDP(0.25), PureDP(0.5))
    PureDP(epsilon=0.75)
    """
    if not budgets:
        raise TypeError("compose needs at least one budget, got none.")
    _same_kind(budgets)
    return budgets[0].compose(*budgets[1:])


def laplace_scale(budget: PureDP, *, sensitivity: float | Sensitivities) -> float:
    """Scale of the Laplace noise that keeps a budget: sensitivity / epsilon.

    Parameters
    ----------
    budget : PureDP
        The budget for the statistic as a whole.
    sensitivity : float or Sensitivities
        L1 sensitivity: the most that changing one record can change the statistic, in the sum of
        absolute values. In units of the statistic.

    Returns
    -------
    float
        Scale b of the density exp(-abs(z) / b) / (2 b), for each entry of the statistic. In units
        of the statistic.

    Raises
    ------
    TypeError
        If `budget` isn't pure, or if `sensitivity` isn't a number.
    ValueError
        If `sensitivity` isn't positive and finite.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Proposition 1.

    Examples
    --------
    >>> laplace_scale(PureDP(0.5), sensitivity=2)
    4.0
    """
    check_pure(budget, "laplace_scale")
    delta_1 = _sensitivity(sensitivity, "l1", "Laplace noise")
    return _holds(delta_1 / budget.epsilon, f"scale for {budget} and sensitivity {delta_1:.6g}")


def laplace_budget(scale: float, *, sensitivity: float | Sensitivities) -> PureDP:
    """Budget that Laplace noise spends: the inverse of `laplace_scale`.

    Parameters
    ----------
    scale : float
        Scale of the noise, in units of the statistic.
    sensitivity : float or Sensitivities
        L1 sensitivity, in units of the statistic.

    Returns
    -------
    PureDP

    Raises
    ------
    TypeError, ValueError
        If an argument isn't a positive finite number.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Proposition 1.

    Examples
    --------
    >>> laplace_budget(4, sensitivity=2)
    PureDP(epsilon=0.5)
    """
    b, delta_1 = _positive(scale, "scale"), _sensitivity(sensitivity, "l1", "Laplace noise")
    return PureDP(_holds(delta_1 / b, f"epsilon for scale {b:.6g} and sensitivity {delta_1:.6g}"))


def discrete_laplace_scale(budget: PureDP, *, sensitivity: int | Sensitivities) -> float:
    """Scale of the discrete Laplace (two-sided geometric) noise that keeps a budget.

    It is sensitivity / epsilon, as for continuous noise.

    Parameters
    ----------
    budget : PureDP
        The budget for the statistic as a whole.
    sensitivity : int or Sensitivities
        L1 sensitivity of a statistic of whole numbers: a whole number itself.

    Returns
    -------
    float
        Scale b of the probabilities proportional to exp(-abs(k) / b). Some libraries take the rate,
        which is 1 / b, or the ratio of neighbouring probabilities, which is exp(-1 / b).

    Raises
    ------
    TypeError
        If `budget` isn't pure, or if `sensitivity` isn't a number.
    ValueError
        If `sensitivity` isn't a positive whole number.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Section 2.

    Examples
    --------
    >>> discrete_laplace_scale(PureDP(0.5), sensitivity=1)
    2.0
    """
    check_pure(budget, "discrete_laplace_scale")
    return laplace_scale(budget, sensitivity=_whole_sensitivity(sensitivity))


def discrete_laplace_budget(scale: float, *, sensitivity: int | Sensitivities) -> PureDP:
    """Budget that discrete Laplace noise spends: the inverse of `discrete_laplace_scale`.

    Parameters
    ----------
    scale : float
        Scale b of the probabilities proportional to exp(-abs(k) / b).
    sensitivity : int or Sensitivities
        L1 sensitivity of a statistic of whole numbers.

    Returns
    -------
    PureDP

    Raises
    ------
    TypeError, ValueError
        If `scale` isn't a positive finite number, or `sensitivity` no positive whole number.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Section 2.

    Examples
    --------
    >>> discrete_laplace_budget(2, sensitivity=1)
    PureDP(epsilon=0.5)
    """
    return laplace_budget(scale, sensitivity=_whole_sensitivity(sensitivity))


def gaussian_sigma(
    budget: ZCDP | ApproxDP, *, sensitivity: float | Sensitivities, bound: Bound = "simple"
) -> float:
    """Sigma of the Gaussian noise that keeps a budget: sensitivity / sqrt(2 rho).

    It serves continuous noise and, added to whole numbers, discrete noise.

    Parameters
    ----------
    budget : ZCDP or ApproxDP
        The budget for the statistic as a whole. An approximate one is kept by way of the largest
        zCDP budget that is enough.
    sensitivity : float or Sensitivities
        L2 sensitivity: the most that changing one record can change the statistic, in Euclidean
        distance. In units of the statistic.
    bound : {"simple", "tight"}
        Which bound takes an approximate budget to zCDP; see `ApproxDP.to_zcdp`. Without effect on a
        zCDP budget.

    Returns
    -------
    float
        Sigma of the density proportional to exp(-z^2 / (2 sigma^2)), for each entry of the
        statistic. In units of the statistic.

    Raises
    ------
    TypeError
        If `budget` is pure or no budget, or if `sensitivity` isn't a number.
    ValueError
        If `sensitivity` isn't positive and finite, or if `bound` is unknown.

    See Also
    --------
    analytic_gaussian_sigma : The least continuous noise for an approximate budget.

    References
    ----------
    Continuous: Bun and Steinke (2016), Proposition 1.6. Discrete: Canonne, Kamath and Steinke
    (2020), Theorem 4 for one entry and Theorem 14 for several.

    Examples
    --------
    >>> gaussian_sigma(ZCDP(0.125), sensitivity=2)
    4.0
    >>> round(gaussian_sigma(ApproxDP(2 * math.log(3), 1e-10), sensitivity=2), 2)
    6.32
    """
    _check_bound(bound)
    if isinstance(budget, PureDP):
        raise TypeError(
            f"gaussian_sigma needs a ZCDP or an ApproxDP budget, got {budget}: no Gaussian noise "
            f"keeps a pure budget. If what follows from it is enough, pass {budget}.to_zcdp()."
        )
    if not isinstance(budget, ZCDP | ApproxDP):
        raise TypeError(
            f"gaussian_sigma needs a ZCDP or an ApproxDP budget, got {budget!r}. "
            "Write ZCDP(rho=...) or ApproxDP(epsilon=..., delta=...)."
        )
    delta_2 = _sensitivity(sensitivity, "l2", "Gaussian noise")
    rho = budget.rho if isinstance(budget, ZCDP) else budget.to_zcdp(bound=bound).rho
    return _holds(delta_2 / math.sqrt(2 * rho), f"sigma for {budget} and sensitivity {delta_2:.6g}")


def gaussian_budget(sigma: float, *, sensitivity: float | Sensitivities) -> ZCDP:
    """Budget that Gaussian noise spends: the inverse of `gaussian_sigma`.

    For an approximate budget, go on with `ZCDP.to_approx`.

    Parameters
    ----------
    sigma : float
        Standard deviation of continuous noise, or the parameter of that name of discrete noise. In
        units of the statistic.
    sensitivity : float or Sensitivities
        L2 sensitivity, in units of the statistic.

    Returns
    -------
    ZCDP

    Raises
    ------
    TypeError, ValueError
        If an argument isn't a positive finite number.

    References
    ----------
    Continuous: Bun and Steinke (2016), Proposition 1.6. Discrete: Canonne, Kamath and Steinke
    (2020), Theorem 4 for one entry and Theorem 14 for several.

    Examples
    --------
    >>> gaussian_budget(4, sensitivity=2)
    ZCDP(rho=0.125)
    """
    sd, delta_2 = _positive(sigma, "sigma"), _sensitivity(sensitivity, "l2", "Gaussian noise")
    ratio = delta_2 / sd
    return ZCDP(_holds(ratio * ratio / 2, f"rho for sigma {sd:.6g} and sensitivity {delta_2:.6g}"))


def analytic_gaussian_sigma(budget: ApproxDP, *, sensitivity: float | Sensitivities) -> float:
    """Smallest sigma of continuous Gaussian noise that keeps an approximate budget.

    It goes by the exact (epsilon, delta) of the Gaussian, not by a bound that holds for every
    mechanism of the same zCDP budget, so it is below `gaussian_sigma`. Discrete noise isn't
    covered, and several releases are still best composed as zCDP.

    Parameters
    ----------
    budget : ApproxDP
        The budget for the statistic as a whole.
    sensitivity : float or Sensitivities
        L2 sensitivity, in units of the statistic.

    Returns
    -------
    float
        Standard deviation of the noise, in units of the statistic.

    Raises
    ------
    TypeError
        If `budget` isn't approximate, or if `sensitivity` isn't a number.
    ValueError
        If `sensitivity` isn't positive and finite.

    References
    ----------
    Balle and Wang (2018), Theorem 8.

    Examples
    --------
    >>> round(analytic_gaussian_sigma(ApproxDP(2 * math.log(3), 1e-10), sensitivity=2), 2)
    5.53
    """
    if not isinstance(budget, ApproxDP):
        raise TypeError(
            f"analytic_gaussian_sigma needs an ApproxDP budget, got {budget!s}. "
            "For a ZCDP budget use gaussian_sigma."
        )
    delta_2 = _sensitivity(sensitivity, "l2", "Gaussian noise")
    rho = budget.to_zcdp(bound="tight").rho
    ratio = _analytic_ratio(budget.epsilon, -math.log(budget.delta), at_least=math.sqrt(2 * rho))
    return _holds(delta_2 / ratio, f"sigma for {budget} and sensitivity {delta_2:.6g}")


def analytic_gaussian_budget(
    sigma: float,
    *,
    sensitivity: float | Sensitivities,
    delta: float | None = None,
    epsilon: float | None = None,
) -> ApproxDP:
    """Exact approximate budget that continuous Gaussian noise spends.

    The inverse of `analytic_gaussian_sigma`. There is one budget for each delta, and one for each
    epsilon. Give one, get the other.

    Parameters
    ----------
    sigma : float
        Standard deviation of the noise, in units of the statistic.
    sensitivity : float or Sensitivities
        L2 sensitivity, in units of the statistic.
    delta : float, optional
        Between 0 and 1.
    epsilon : float, optional
        Positive.

    Returns
    -------
    ApproxDP
        With the delta, or the epsilon, that was given. Where the other could be 0, or is too small
        for a float, it is `TINY`.

    Raises
    ------
    TypeError
        If not exactly one of `delta` and `epsilon` is given, or if an argument isn't a number.
    ValueError
        If a number is out of range, or if no delta below 1 holds at the `epsilon` given.

    References
    ----------
    Balle and Wang (2018), Theorem 8.

    Examples
    --------
    >>> print(analytic_gaussian_budget(6.32, sensitivity=2, delta=1e-10))
    ApproxDP(epsilon=1.91073, delta=1e-10)
    """
    sd, delta_2 = _positive(sigma, "sigma"), _sensitivity(sensitivity, "l2", "Gaussian noise")
    owner = f"Gaussian noise of sigma {sd:.6g} at sensitivity {delta_2:.6g}"
    ratio = math.sqrt(2 * gaussian_budget(sd, sensitivity=delta_2).rho)
    return _approx_budget(
        lambda log_inverse_delta: _analytic_epsilon(ratio, log_inverse_delta),
        lambda epsilon: _analytic_log_delta(ratio, epsilon),
        delta=delta,
        epsilon=epsilon,
        owner=owner,
    )


# From rho to (epsilon, delta) and back.
#
# Write beta = alpha - 1 > 0 and L = log(1 / delta). The tight bound then says: for every beta,
#
#     -L = beta ((beta + 1) rho - epsilon - log(1 + 1 / beta)) - log(1 + beta)               (*)
#
# holds between numbers for which rho-zCDP implies (epsilon, delta)-DP. In beta, the right side is
# convex with derivative (2 beta + 1) rho - epsilon - log(1 + 1 / beta), so the best beta solves
#
#     (2 beta + 1) rho = epsilon + log(1 + 1 / beta),   and there   L = rho beta^2 + log(1 + beta).
#
# In these two no terms cancel, so u = log(beta) is found from them. With it, delta follows from the
# second. Epsilon and rho follow from (*): there an error in u enters only squared, and whatever u
# is, the result is a guarantee.


def _simple_log_delta(rho: float, epsilon: float) -> float:
    """Solve ``rho + 2 sqrt(rho L) = epsilon`` for -L; 0 where epsilon is below rho."""
    root = max(epsilon - rho, 0.0) / math.sqrt(rho) / 2
    return -root * root


def _simple_rho(epsilon: float, log_inverse_delta: float) -> float:
    """Solve ``rho + 2 sqrt(rho L) = epsilon`` for rho, with no difference of near numbers."""
    root = epsilon / (math.sqrt(log_inverse_delta + epsilon) + math.sqrt(log_inverse_delta))
    return root * root


def _tight_epsilon(rho: float, log_inverse_delta: float) -> float:
    """Smallest epsilon by the tight bound; negative or 0 where epsilon = 0 holds at this delta."""
    level = log_inverse_delta

    def excess(u: float) -> float:
        beta = math.exp(u)
        return math.log(rho * beta * beta + _softplus(u)) - math.log(level)

    # At the upper end one of the terms is all of L, at the lower end neither is above L / 2.
    high = min((math.log(level) - math.log(rho)) / 2, _log_expm1(level))
    low = min((math.log(level / 2) - math.log(rho)) / 2, _log_expm1(level / 2))
    u = _root(excess, low - 1e-9, high + 1e-9)
    beta = math.exp(u)
    return (beta + 1) * rho + (level - _softplus(u)) / beta - _softplus(-u)


def _tight_log_delta(rho: float, epsilon: float) -> float:
    """Log of the smallest delta by the tight bound; 0 where that is 1 to within rounding."""
    if rho - epsilon > 600:  # Then log(1 + 1 / beta) is larger still, and delta above 1 - 1e-260.
        return 0.0

    def slope(u: float) -> float:
        return 2 * math.exp(u) * rho + (rho - epsilon) - _softplus(-u)

    high = min(max(0.0, math.log(max(epsilon - rho, 0.0) + 1) - math.log(2 * rho)), 700.0)
    low = _step_down(lambda u: slope(u) <= 0, high)
    u = _root(slope, low, high) if low < high else high
    beta = math.exp(u)
    return -(rho * beta * beta + _softplus(u))


def _tight_rho(epsilon: float, log_inverse_delta: float) -> float:
    """Largest rho by the tight bound."""
    level = log_inverse_delta

    def shortfall(u: float) -> float:
        beta = math.exp(u)
        rest = (level - _softplus(u)) / beta
        return epsilon + _softplus(-u) - 2 * rest - rest / beta

    # The tight rho is above the simple one, and rho beta^2 is below L.
    high = _log_expm1(level)
    simple = _simple_rho(epsilon, level)
    if simple > 0:
        high = min(high, (math.log(level) - math.log(simple)) / 2)
    low = _step_down(lambda u: shortfall(u) <= 0, high)
    u = _root(shortfall, low, high) if low < high else high
    beta = math.exp(u)
    return (epsilon + _softplus(-u) - (level - _softplus(u)) / beta) / (beta + 1)


# The exact (epsilon, delta) of the continuous Gaussian.
#
# With t = sensitivity / sigma, a = epsilon / t - t / 2 and b = a + t, Balle and Wang's delta is
# Q(a) - exp(epsilon) Q(b), where Q is the normal law's upper tail. As exp(epsilon) phi(b) = phi(a),
# that is phi(a) (M(a) - M(b)) with Mills' ratio M = Q / phi, which doesn't under- or overflow.

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


def _mills(x: float) -> float:
    """Mills' ratio of the normal law, upper tail over density."""
    return math.sqrt(math.pi / 2) * float(erfcx(x / math.sqrt(2)))


def _analytic_log_delta(ratio: float, epsilon: float) -> float:
    """Log of the Gaussian's exact delta, where `ratio` is sensitivity / sigma."""
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


def _analytic_epsilon(ratio: float, log_inverse_delta: float) -> float:
    """Smallest epsilon at which the Gaussian's exact delta is low enough; 0 if it always is."""

    def excess(epsilon: float) -> float:
        return _analytic_log_delta(ratio, epsilon) + log_inverse_delta

    if excess(0.0) <= 0:
        return 0.0
    simple = ratio * ratio / 2 + ratio * math.sqrt(2 * log_inverse_delta)
    if excess(simple) >= 0:  # Only by rounding, where epsilon is beyond 1e15 or so.
        return simple
    return _root(excess, 0.0, simple, xtol=TINY)


def _analytic_ratio(epsilon: float, log_inverse_delta: float, *, at_least: float) -> float:
    """Largest sensitivity / sigma at which the Gaussian's exact delta is low enough."""

    def excess(log_ratio: float) -> float:
        return _analytic_log_delta(math.exp(log_ratio), epsilon) + log_inverse_delta

    low = math.log(at_least)
    if excess(low) >= 0:  # Only by rounding, where epsilon is beyond 1e15 or so.
        return at_least
    high = low + 0.5
    while excess(high) < 0:
        low, high = high, high + 0.5
    return math.exp(_root(excess, low, high))


def _approx_budget(
    epsilon_of: Callable[[float], float],
    log_delta_of: Callable[[float], float],
    *,
    delta: float | None,
    epsilon: float | None,
    owner: str,
) -> ApproxDP:
    """Complete an approximate budget, given one of its numbers.

    Parameters
    ----------
    epsilon_of : callable
        Maps log(1 / delta) to the smallest epsilon.
    log_delta_of : callable
        Maps epsilon to the log of the smallest delta.
    delta, epsilon : float or None
        One of them is None.
    owner : str
        What has this budget, for messages.
    """
    if delta is not None and epsilon is None:
        probability = _probability(delta, "delta")
        return ApproxDP(
            max(_finite(epsilon_of(-math.log(probability)), f"epsilon of {owner}"), TINY),
            probability,
        )
    if epsilon is None or delta is not None:
        raise TypeError(
            f"give either delta or epsilon, got delta={delta} and epsilon={epsilon}. "
            "The other is what is computed."
        )
    loss = _positive(epsilon, "epsilon")
    found = math.exp(log_delta_of(loss))
    if found >= 1:
        raise ValueError(
            f"{owner} promises nothing at epsilon={loss:.6g}: delta would be 1. "
            "Give a larger epsilon."
        )
    return ApproxDP(loss, max(found, TINY))


def _divisors(parts: object) -> list[float]:
    """Return what to divide a budget by to get each of its parts."""
    if isinstance(parts, int | np.integer) and not isinstance(parts, bool):
        if parts < 1:
            raise ValueError(f"parts must be at least 1, got {parts}.")
        return [int(parts)] * int(parts)
    if isinstance(parts, str) or not isinstance(parts, Sequence | np.ndarray):
        raise TypeError(
            f"parts must be a whole number or a sequence of weights, got {parts!r}. "
            "Use split(3) for three equal parts, split([2, 1]) for unequal ones."
        )
    weights = [_positive(weight, "a weight") for weight in parts]
    if not weights:
        raise ValueError("parts must have at least one weight, got none.")
    total = sum(weights)
    return [total / weight for weight in weights]


def _same_kind(budgets: Sequence[object]) -> None:
    """Refuse what isn't a budget, and budgets of different kinds."""
    for one in budgets:
        if not isinstance(one, _Budget):
            raise TypeError(
                f"only budgets can be composed, got {one!r}. If they are in a list, unpack it: "
                "compose(*budgets)."
            )
    kinds = sorted({type(one).__name__ for one in budgets})
    if len(kinds) > 1:
        if "ApproxDP" in kinds:
            way_out = "Convert the others with .to_approx(delta=...) first; the deltas add up."
        else:
            way_out = "Convert each PureDP with .to_zcdp() first."
        raise TypeError(f"budgets of different kinds don't add up: {', '.join(kinds)}. {way_out}")


def check_pure(budget: object, name: str) -> None:
    """Refuse anything but a pure budget."""
    if isinstance(budget, PureDP):
        return
    if isinstance(budget, ZCDP):
        enough = math.sqrt(2) * math.sqrt(budget.rho)
        way_out = f"A PureDP with epsilon = sqrt(2 rho), here {enough:.6g}, is enough for it."
    elif isinstance(budget, ApproxDP):
        way_out = f"A PureDP of the same epsilon, {budget.epsilon:.6g}, is enough for it."
    else:
        way_out = "Write PureDP(epsilon=...)."
    raise TypeError(f"{name} needs a PureDP budget, got {budget!s}. {way_out}")


def _check_bound(bound: object) -> None:
    """Refuse a bound that isn't known."""
    if not isinstance(bound, str) or bound not in _BOUNDS:
        raise ValueError(
            f"bound must be 'simple' or 'tight', got {bound!r}. 'simple' is a closed form, 'tight' "
            "needs less noise."
        )


def _number(value: object, name: str) -> float:
    """Return a real number as a float, too large a one as infinity."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number, got {shown(value)}. {_ADVICE[name]}")
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _positive(value: object, name: str) -> float:
    """Return a positive finite number as a float."""
    number = _number(value, name)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {value!r}. {_ADVICE[name]}")
    return number


def _probability(value: object, name: str) -> float:
    """Return a number between 0 and 1, and no subnormal one, as a float."""
    number = _number(value, name)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be above 0 and below 1, got {value!r}. {_ADVICE[name]}")
    if number < TINY:
        raise ValueError(
            f"{name} must not be below {TINY:.2g}, where floats lose precision, got {value!r}. "
            f"{_ADVICE[name]}"
        )
    return number


def _sensitivity(value: object, norm: Norm, owner: str) -> float:
    """Return a sensitivity in a norm, rounded up: noise must not be too small."""
    value = in_norm(value, norm, owner)
    number = _positive(value, "sensitivity")
    whole = int(value) if isinstance(value, Integral) else value
    if isinstance(whole, int | Fraction) and Fraction(number) < whole:
        number = math.nextafter(number, math.inf)
    return number


def _whole_sensitivity(value: object) -> int:
    """Return a sensitivity that is a positive whole number."""
    number = _sensitivity(value, "l1", "discrete Laplace noise")
    if not number.is_integer():
        raise ValueError(
            f"sensitivity must be a whole number for noise of whole numbers, got {value!r}. "
            "A statistic of whole numbers changes by whole numbers: round a bound down."
        )
    return int(number)


def _finite(value: float, what: str) -> float:
    """Refuse a result that overflowed."""
    if not math.isfinite(value):
        raise ValueError(f"the {what} is too large for a float.")
    return value


def _holds(value: float, what: str) -> float:
    """Refuse a result that under- or overflowed."""
    if not TINY <= value < math.inf:
        raise ValueError(f"the {what} is too {'small' if value < 1 else 'large'} for a float.")
    return value


def _softplus(u: float) -> float:
    """Return ``log(1 + exp(u))``."""
    return math.log1p(math.exp(u)) if u <= 0 else u + math.log1p(math.exp(-u))


def _log_expm1(x: float) -> float:
    """Return ``log(exp(x) - 1)`` for positive x."""
    return x + math.log(-math.expm1(-x))


def _step_down(condition: Callable[[float], bool], start: float) -> float:
    """Go down from `start` in growing steps until the condition holds, or to -700."""
    at, step = start, 1.0
    while at > -700 and not condition(at):
        at, step = max(at - step, -700.0), 2 * step
    return at


def _root(
    function: Callable[[float], float], low: float, high: float, *, xtol: float = 1e-15
) -> float:
    """Solve ``function(x) = 0`` between two points, to the precision of a float."""
    rtol = 4 * sys.float_info.epsilon
    return float(brentq(function, low, high, xtol=xtol, rtol=rtol, maxiter=5000))
