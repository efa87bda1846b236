"""The noise that keeps a budget, and the budget that noise spends."""

import math
from dataclasses import replace
from functools import partial

from pymc_dapper.budget.analytic_gaussian import largest_ratio, log_delta, smallest_epsilon
from pymc_dapper.budget.bounds import Bound, conversion
from pymc_dapper.budget.kinds import (
    ZCDP,
    ApproxDP,
    PureDP,
    approx_budget,
    check_pure,
    needed,
    spent_by,
)
from pymc_dapper.budget.numbers import held, positive, sensitivity_of, whole_sensitivity
from pymc_dapper.sensitivity import Sensitivities


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
        If `sensitivity` isn't positive and finite, or doesn't go with the budget's neighbours.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Proposition 1.

    Examples
    --------
    >>> laplace_scale(PureDP(0.5), sensitivity=2)
    4.0
    """
    check_pure(budget, "laplace_scale")
    delta_1 = sensitivity_of(needed(budget, sensitivity, "l1", "Laplace noise"))
    return held(delta_1 / budget.epsilon, f"scale for {budget} and sensitivity {delta_1:.6g}")


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
    PureDP(epsilon=0.5, one person changes)
    """
    b, (one, neighbours) = positive(scale, "scale"), spent_by(sensitivity, "l1", "Laplace noise")
    delta_1 = sensitivity_of(one)
    epsilon = held(delta_1 / b, f"epsilon for scale {b:.6g} and sensitivity {delta_1:.6g}")
    return PureDP(epsilon, neighbours=neighbours)


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
        If `sensitivity` isn't a positive whole number, or doesn't go with the budget's neighbours.

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012), Section 2.

    Examples
    --------
    >>> discrete_laplace_scale(PureDP(0.5), sensitivity=1)
    2.0
    """
    check_pure(budget, "discrete_laplace_scale")
    one = needed(budget, sensitivity, "l1", "discrete Laplace noise")
    return laplace_scale(budget, sensitivity=whole_sensitivity(one))


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
    PureDP(epsilon=0.5, one person changes)
    """
    one, neighbours = spent_by(sensitivity, "l1", "discrete Laplace noise")
    spent = laplace_budget(scale, sensitivity=whole_sensitivity(one))
    return replace(spent, neighbours=neighbours)


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
        The bound that converts an approximate budget to zCDP; see `ApproxDP.to_zcdp`. No effect on
        a zCDP budget.

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
        If `sensitivity` isn't positive and finite, or doesn't go with the budget's neighbours, or
        if `bound` is unknown.

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
    conversion(bound)
    if isinstance(budget, PureDP):
        raise TypeError(
            f"gaussian_sigma needs a ZCDP or an ApproxDP budget, got {budget}: no Gaussian noise "
            f"keeps a pure budget. If a weaker guarantee is enough, pass its .to_zcdp()."
        )
    if not isinstance(budget, ZCDP | ApproxDP):
        raise TypeError(
            f"gaussian_sigma needs a ZCDP or an ApproxDP budget, got {budget!r}. "
            "Write ZCDP(rho=...) or ApproxDP(epsilon=..., delta=...)."
        )
    delta_2 = sensitivity_of(needed(budget, sensitivity, "l2", "Gaussian noise"))
    rho = budget.rho if isinstance(budget, ZCDP) else budget.to_zcdp(bound=bound).rho
    return held(delta_2 / math.sqrt(2 * rho), f"sigma for {budget} and sensitivity {delta_2:.6g}")


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
    ZCDP(rho=0.125, one person changes)
    """
    sd, (one, neighbours) = positive(sigma, "sigma"), spent_by(sensitivity, "l2", "Gaussian noise")
    delta_2 = sensitivity_of(one)
    ratio = delta_2 / sd
    rho = held(ratio * ratio / 2, f"rho for sigma {sd:.6g} and sensitivity {delta_2:.6g}")
    return ZCDP(rho, neighbours=neighbours)


def analytic_gaussian_sigma(budget: ApproxDP, *, sensitivity: float | Sensitivities) -> float:
    """Smallest sigma of continuous Gaussian noise that keeps an approximate budget.

    It uses the exact (epsilon, delta) of the Gaussian, not a bound for every mechanism with the
    same zCDP budget, so it is below `gaussian_sigma`. It doesn't cover discrete noise, and several
    releases are best composed as zCDP.

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
        If `sensitivity` isn't positive and finite, or doesn't go with the budget's neighbours.

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
    delta_2 = sensitivity_of(needed(budget, sensitivity, "l2", "Gaussian noise"))
    rho = budget.to_zcdp(bound="tight").rho
    ratio = largest_ratio(budget.epsilon, -math.log(budget.delta), at_least=math.sqrt(2 * rho))
    return held(delta_2 / ratio, f"sigma for {budget} and sensitivity {delta_2:.6g}")


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
        With the given delta or epsilon. If the other one is 0, or too small for a float, it is
        `TINY`.

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
    ApproxDP(epsilon=1.91073, delta=1e-10, one person changes)
    """
    sd, (one, neighbours) = positive(sigma, "sigma"), spent_by(sensitivity, "l2", "Gaussian noise")
    delta_2 = sensitivity_of(one)
    owner = f"Gaussian noise of sigma {sd:.6g} at sensitivity {delta_2:.6g}"
    ratio = math.sqrt(2 * gaussian_budget(sd, sensitivity=delta_2).rho)
    return approx_budget(
        partial(smallest_epsilon, ratio),
        partial(log_delta, ratio),
        delta=delta,
        epsilon=epsilon,
        owner=owner,
        neighbours=neighbours,
    )
