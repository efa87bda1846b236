"""Numbers of budgets and of noise: checks of arguments, and results that floats can hold."""

import math
import sys
from fractions import Fraction
from numbers import Integral

from pymc_dapper.checks import finite_number

TINY = sys.float_info.min
"""Smallest float of full precision, 2.2e-308. It replaces a smaller epsilon or delta."""

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


def probability(value: object, name: str) -> float:
    """Return a number between 0 and 1, and no subnormal one, as a float."""
    number = positive(value, name, below=1)
    if number < TINY:
        raise ValueError(
            f"{name} must not be below {TINY:.2g}, where floats lose precision, got {value!r}. "
            f"{_ADVICE[name]}"
        )
    return number


def positive(value: object, name: str, *, below: float | None = None) -> float:
    """Return a positive finite number as a float; of other values, say what it must be."""
    try:
        return finite_number(value, name, above=0, below=below)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}. {_ADVICE[name]}") from None


def sensitivity_of(value: object) -> float:
    """Return a sensitivity as a float, rounded up: noise must not be too small."""
    number = positive(value, "sensitivity")
    whole = int(value) if isinstance(value, Integral) else value
    if isinstance(whole, int | Fraction) and Fraction(number) < whole:
        number = math.nextafter(number, math.inf)
    return number


def whole_sensitivity(value: object) -> int:
    """Return a sensitivity that is a positive whole number."""
    number = sensitivity_of(value)
    if not number.is_integer():
        raise ValueError(
            f"sensitivity must be a whole number for noise of whole numbers, got {value!r}. "
            "A statistic of whole numbers changes by whole numbers: round a bound down."
        )
    return int(number)


def held(value: float, what: str) -> float:
    """Refuse a result that under- or overflowed."""
    if not TINY <= value < math.inf:
        raise ValueError(f"the {what} is too {'small' if value < 1 else 'large'} for a float.")
    return value
