"""From rho to (epsilon, delta) and back, by either bound.

Write beta = alpha - 1 > 0 and L = log(1 / delta). The tight bound then says: for every beta,

    -L = beta ((beta + 1) rho - epsilon - log(1 + 1 / beta)) - log(1 + beta)               (*)

holds between numbers for which rho-zCDP implies (epsilon, delta)-DP. In beta, the right side is
convex with derivative (2 beta + 1) rho - epsilon - log(1 + 1 / beta), so the best beta solves

    (2 beta + 1) rho = epsilon + log(1 + 1 / beta),   and there   L = rho beta^2 + log(1 + beta).

In these two no terms cancel, so they determine u = log(beta). Then the second gives delta, and (*)
gives epsilon and rho: there an error in u only enters squared, and the result is a guarantee for
any u.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple

from pymc_dapper.budget.roots import root, root_below
from pymc_dapper.checks import choice

Bound = Literal["simple", "tight"]


def _simple_epsilon(rho: float, log_inverse_delta: float) -> float:
    return rho + 2 * math.sqrt(rho) * math.sqrt(log_inverse_delta)


def _simple_log_delta(rho: float, epsilon: float) -> float:
    """Solve ``rho + 2 sqrt(rho L) = epsilon`` for -L; 0 if epsilon is below rho."""
    root_of_level = max(epsilon - rho, 0.0) / math.sqrt(rho) / 2
    return -root_of_level * root_of_level


def _simple_rho(epsilon: float, log_inverse_delta: float) -> float:
    """Solve ``rho + 2 sqrt(rho L) = epsilon`` for rho, with no difference of near numbers."""
    root_of_rho = epsilon / (math.sqrt(log_inverse_delta + epsilon) + math.sqrt(log_inverse_delta))
    return root_of_rho * root_of_rho


def _tight_epsilon(rho: float, level: float) -> float:
    """Smallest epsilon by the tight bound; negative or 0 if epsilon = 0 holds at this delta."""

    def excess(u: float) -> float:
        beta = math.exp(u)
        return math.log(rho * beta * beta + _softplus(u)) - math.log(level)

    # At the upper end one of the terms is all of L, at the lower end neither is above L / 2.
    high = min((math.log(level) - math.log(rho)) / 2, _log_expm1(level))
    low = min((math.log(level / 2) - math.log(rho)) / 2, _log_expm1(level / 2))
    u = root(excess, low - 1e-9, high + 1e-9)
    beta = math.exp(u)
    return (beta + 1) * rho + (level - _softplus(u)) / beta - _softplus(-u)


def _tight_log_delta(rho: float, epsilon: float) -> float:
    """Log of the smallest delta by the tight bound; 0 if delta is 1 up to rounding."""
    if rho - epsilon > 600:  # Then log(1 + 1 / beta) is larger still, and delta above 1 - 1e-260.
        return 0.0

    def slope(u: float) -> float:
        return 2 * math.exp(u) * rho + (rho - epsilon) - _softplus(-u)

    high = min(max(0.0, math.log(max(epsilon - rho, 0.0) + 1) - math.log(2 * rho)), 700.0)
    u = root_below(slope, high)
    beta = math.exp(u)
    return -(rho * beta * beta + _softplus(u))


def _tight_rho(epsilon: float, level: float) -> float:
    """Largest rho by the tight bound."""

    def shortfall(u: float) -> float:
        beta = math.exp(u)
        rest = (level - _softplus(u)) / beta
        return epsilon + _softplus(-u) - 2 * rest - rest / beta

    # The tight rho is above the simple one, and rho beta^2 is below L.
    high = _log_expm1(level)
    simple = _simple_rho(epsilon, level)
    if simple > 0:
        high = min(high, (math.log(level) - math.log(simple)) / 2)
    u = root_below(shortfall, high)
    beta = math.exp(u)
    return (epsilon + _softplus(-u) - (level - _softplus(u)) / beta) / (beta + 1)


def _softplus(u: float) -> float:
    """Return ``log(1 + exp(u))``."""
    return math.log1p(math.exp(u)) if u <= 0 else u + math.log1p(math.exp(-u))


def _log_expm1(x: float) -> float:
    """Return ``log(exp(x) - 1)`` for positive x."""
    return x + math.log(-math.expm1(-x))


class Conversion(NamedTuple):
    """Numbers between which every rho-zCDP mechanism is (epsilon, delta)-DP, with L = -log(delta).

    Each is the best that the bound has for the other two.
    """

    epsilon: Callable[[float, float], float]
    """A function of rho and L; not positive if epsilon = 0 holds."""
    log_delta: Callable[[float, float], float]
    """A function of rho and epsilon; 0 if nothing holds."""
    rho: Callable[[float, float], float]
    """Of epsilon and L."""


_CONVERSIONS = {
    "simple": Conversion(_simple_epsilon, _simple_log_delta, _simple_rho),
    "tight": Conversion(_tight_epsilon, _tight_log_delta, _tight_rho),
}


def conversion(bound: object) -> Conversion:
    """Find a bound by its name, and refuse one that isn't known."""
    return _CONVERSIONS[choice(bound, "bound", _CONVERSIONS)]
