"""How far one record can move a statistic: in each norm, and in the one that a noise needs."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from pymc_dapper.checks import shown

Neighbours = Literal["replace", "add_remove"]
Norm = Literal["l1", "l2", "linf"]

_NAMES = {"l1": "L1", "l2": "L2", "linf": "L-infinity"}


class Sensitivity(float):
    """How far one record can move a statistic, in some norm.

    A number that can be used wherever a float can. What is computed from it is a plain float, which
    has forgotten the norm.

    Parameters
    ----------
    value : float
        The number.
    norm : {"l1", "l2", "linf"}
        The norm: sum of absolute differences, Euclidean distance, or largest absolute difference.
    exact : bool
        Whether some pair of neighbouring data sets is that far apart, to the precision of a float
        (rounded up). Otherwise no pair is farther apart, but perhaps none is as far.
    neighbours : {"replace", "add_remove"}
        Which data sets are neighbours, as of `Sensitivities`.
    """

    __slots__ = ("_exact", "_neighbours", "_norm")
    _exact: bool
    _neighbours: Neighbours
    _norm: Norm

    def __new__(
        cls, value: float, *, norm: Norm, exact: bool, neighbours: Neighbours = "replace"
    ) -> "Sensitivity":
        """Make a float that knows its norm, whether it is exact, and for which neighbours."""
        self = super().__new__(cls, value)
        self._norm, self._exact = norm, exact
        self._neighbours = check_neighbours(neighbours)
        return self

    @property
    def norm(self) -> Norm:
        """The norm in which distances are measured."""
        return self._norm

    @property
    def exact(self) -> bool:
        """Whether some pair of neighbouring data sets is that far apart."""
        return self._exact

    @property
    def neighbours(self) -> Neighbours:
        """Which data sets are neighbours."""
        return self._neighbours

    def __repr__(self) -> str:
        relation = "" if self.neighbours == "replace" else f", neighbours={self.neighbours!r}"
        return f"Sensitivity({float(self)!r}, norm={self.norm!r}, exact={self.exact}{relation})"

    def __str__(self) -> str:
        return str(float(self))

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        """Let it be pickled and copied."""
        options = {"norm": self.norm, "exact": self.exact, "neighbours": self.neighbours}
        return (float(self),), options


@dataclass(frozen=True)
class Sensitivities:
    """How far a statistic's values for two neighbouring data sets can lie apart.

    Mechanisms and `pymc_dapper.budget` take it whole, and pick the norm that they need.

    Attributes
    ----------
    l1 : Sensitivity
        Largest sum of the entries' absolute differences: for Laplace noise.
    l2 : Sensitivity
        Largest Euclidean distance: for Gaussian noise.
    linf : Sensitivity
        Largest difference of a single entry: for L-infinity noise.
    neighbours : {"replace", "add_remove"}
        Which data sets are neighbours: those that differ in the values of one record, or those of
        which one has one record more.
    """

    l1: Sensitivity
    l2: Sensitivity
    linf: Sensitivity
    neighbours: Neighbours = "replace"

    def times(self, factor: Fraction) -> "Sensitivities":
        """Return those of the statistic times a number other than zero, rounded up.

        Raises
        ------
        ValueError
            If one is too large for a float.
        """
        l1, l2, linf = (Fraction(float(x)) * abs(factor) for x in (self.l1, self.l2, self.linf))
        return sensitivities(l1, l2 * l2, linf, self.neighbours, exact=self.l1.exact)


def check_neighbours(neighbours: Any) -> Neighbours:
    """Refuse anything but a known relation."""
    if not isinstance(neighbours, str) or neighbours not in get_args(Neighbours):
        raise ValueError(
            f"neighbours must be 'replace' (one record has other values) or 'add_remove' (one "
            f"record more or less), got {neighbours!r}"
        )
    return neighbours  # type: ignore[return-value]


def neighbours_of(sensitivity: Any) -> Neighbours | None:
    """Which data sets a sensitivity compares; None of a plain number, which doesn't say."""
    known = isinstance(sensitivity, Sensitivity | Sensitivities)
    return sensitivity.neighbours if known else None


def as_l1(sensitivity: Any) -> Any:
    """Take a sensitivity for the L1 one: the rule for the noise of another norm is the same."""
    if not isinstance(sensitivity, Sensitivity):
        return sensitivity
    return Sensitivity(
        float(sensitivity),
        norm="l1",
        exact=sensitivity.exact,
        neighbours=sensitivity.neighbours,
    )


def in_norm(sensitivity: Any, norm: Norm, owner: str) -> Any:
    """Take a sensitivity in the norm that a noise needs, which ``owner`` has.

    It is taken of all of a statistic's. A plain number is taken as it is, and so is what isn't a
    sensitivity; one in another norm is refused, and so is a statistic.
    """
    if isinstance(sensitivity, Sensitivities):
        return getattr(sensitivity, norm)
    if isinstance(getattr(sensitivity, "sensitivity", None), Sensitivities):
        raise TypeError(
            f"sensitivity must be a statistic's sensitivity, got {shown(sensitivity)}: pass its "
            ".sensitivity"
        )
    if isinstance(sensitivity, Sensitivity) and sensitivity.norm != norm:
        raise ValueError(
            f"{owner} needs the {_NAMES[norm]} sensitivity, got the {_NAMES[sensitivity.norm]} "
            "one. Pass the statistic's .sensitivity as a whole, and the norm that is needed is "
            "picked; or float(...) of the number if you mean it"
        )
    return sensitivity


def sensitivities(
    l1: Fraction | int,
    l2_squared: Fraction | int,
    linf: Fraction | int,
    neighbours: Neighbours,
    *,
    exact: bool = True,
) -> Sensitivities:
    """Round sensitivities up to floats, so that noise by them is never too small."""
    try:
        values = _round_up(Fraction(l1)), _root_up(Fraction(l2_squared)), _round_up(Fraction(linf))
    except OverflowError:
        raise ValueError(
            "the statistic's sensitivity is too large for a float: scale the records, and narrow "
            "the limits that they are clamped to"
        ) from None
    return Sensitivities(
        Sensitivity(values[0], norm="l1", exact=exact, neighbours=neighbours),
        Sensitivity(values[1], norm="l2", exact=exact, neighbours=neighbours),
        Sensitivity(values[2], norm="linf", exact=exact, neighbours=neighbours),
        neighbours,
    )


def _round_up(value: Fraction) -> float:
    """Smallest float that isn't below a number."""
    nearest = float(value)
    if nearest < value:
        nearest = math.nextafter(nearest, math.inf)
    if math.isinf(nearest):
        raise OverflowError
    return nearest


def _root_up(square: Fraction) -> float:
    """Smallest float that isn't below a root."""
    # A root in whole numbers, of 64 bits or more: where it isn't exact, the next one is above it.
    shift = max(0, 64 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    scaled, rest = divmod(square.numerator << 2 * shift, square.denominator)
    root = math.isqrt(scaled)
    return _round_up(Fraction(root + (rest > 0 or root * root < scaled), 1 << shift))
