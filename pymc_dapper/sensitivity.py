"""How far one record can move a statistic: in each norm, and in the one that a noise needs."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from pymc_dapper.checks import shown

Neighbours = Literal["replace", "add_remove"]
Norm = Literal["l1", "l2", "linf"]

CHANGE = {"replace": "one person changes", "add_remove": "one person joins or leaves"}
"""Neighbouring data sets in words."""

_NAMES = {"l1": "L1", "l2": "L2", "linf": "L-infinity"}

_TOO_LARGE = (
    "the statistic's sensitivity is too large for a float: scale the records, and narrow the "
    "limits that they are clamped to"
)


class Sensitivity(float):
    """How far one record can move a statistic, in some norm.

    A number that can be used like a float. Results of computations are plain floats, without the
    norm.

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
        Neighbouring data sets, as in `Sensitivities`.
    if_joined : Sensitivity, optional
        The value for ``"add_remove"``, if the neighbours aren't decided yet. The number itself is
        then for ``"replace"``.
    """

    norm: Norm
    """The norm in which distances are measured."""
    exact: bool
    """Whether some pair of neighbouring data sets is that far apart."""
    neighbours: Neighbours
    """Which data sets are neighbours."""
    if_joined: "Sensitivity | None"
    """The value for one person who joins or leaves, if the neighbours aren't decided."""

    def __new__(
        cls,
        value: float,
        *,
        norm: Norm,
        exact: bool,
        neighbours: Neighbours = "replace",
        if_joined: "Sensitivity | None" = None,
    ) -> "Sensitivity":
        """Make a float that knows its norm, whether it is exact, and for which neighbours."""
        self = super().__new__(cls, value)
        self.norm, self.exact, self.if_joined = norm, exact, if_joined
        self.neighbours = check_neighbours(neighbours)
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        """Let it be pickled and copied."""
        return (float(self),), vars(self)

    def __repr__(self) -> str:
        told = f"{float(self)!r} if {CHANGE[self.neighbours]}"
        if self.if_joined is not None:
            told += f", {float(self.if_joined)!r} if {CHANGE['add_remove']}"
        return f"Sensitivity({told}, norm={self.norm!r}, exact={self.exact})"

    def __str__(self) -> str:
        return str(float(self))

    def times(self, factor: Fraction) -> "Sensitivity":
        """Return the one of the statistic times a number other than zero, rounded up."""
        scaled = _round_up(Fraction(float(self)) * abs(factor))
        joined = None if self.if_joined is None else self.if_joined.times(factor)
        return Sensitivity(scaled, **{**vars(self), "if_joined": joined})

    def among(self, neighbours: Neighbours) -> "Sensitivity":
        """Return the value for given neighbours, if they weren't decided; else this one."""
        if self.if_joined is None:
            return self
        if neighbours == "add_remove":
            return self.if_joined
        return Sensitivity(float(self), **{**vars(self), "if_joined": None})


@dataclass(frozen=True, repr=False)
class Sensitivities:
    """Largest distances of a statistic between two neighbouring data sets.

    Mechanisms and `pymc_dapper.budget` take it whole, and pick the norm that they need. If the
    statistic was made without ``neighbours=``, it holds the numbers for both relations: a
    calibration takes those for the neighbours that its budget names.

    Attributes
    ----------
    l1 : Sensitivity
        Largest sum of the entries' absolute differences: for Laplace noise.
    l2 : Sensitivity
        Largest Euclidean distance: for Gaussian noise.
    linf : Sensitivity
        Largest difference of a single entry: for L-infinity noise.
    neighbours : {"replace", "add_remove"}
        Neighbouring data sets: they differ in the values of one record, or in the presence of one
        record. By default ``"replace"``.
    """

    l1: Sensitivity
    l2: Sensitivity
    linf: Sensitivity
    neighbours: Neighbours = "replace"

    def __repr__(self) -> str:
        told = [("replace", self)] if self.l1.if_joined else [(self.neighbours, self)]
        if self.l1.if_joined:
            told.append(("add_remove", self.among("add_remove")))
        parts = (
            f"l1={each.l1:.6g}, l2={each.l2:.6g}, linf={each.linf:.6g} if {CHANGE[relation]}"
            for relation, each in told
        )
        return f"Sensitivities({'; '.join(parts)})"

    def among(self, neighbours: Neighbours) -> "Sensitivities":
        """Return the sensitivities for given neighbours, if they weren't decided; else these."""
        if self.l1.if_joined is None:
            return self
        l1, l2, linf = (one.among(neighbours) for one in (self.l1, self.l2, self.linf))
        return Sensitivities(l1, l2, linf, neighbours)

    def times(self, factor: Fraction) -> "Sensitivities":
        """Return those of the statistic times a number other than zero, rounded up.

        Raises
        ------
        ValueError
            If one is too large for a float.
        """
        try:
            l1, l2, linf = (one.times(factor) for one in (self.l1, self.l2, self.linf))
        except OverflowError:
            raise ValueError(_TOO_LARGE) from None
        return Sensitivities(l1, l2, linf, self.neighbours)


def for_either(
    neighbours: Neighbours | None, of: Callable[[Neighbours], Sensitivities]
) -> Sensitivities:
    """Return a statistic's sensitivities for given neighbours; for both if they aren't given."""
    if neighbours is not None:
        return of(check_neighbours(neighbours))
    changed, joined = of("replace"), of("add_remove")
    pairs = ((changed.l1, joined.l1), (changed.l2, joined.l2), (changed.linf, joined.linf))
    l1, l2, linf = (Sensitivity(x, norm=x.norm, exact=x.exact, if_joined=j) for x, j in pairs)
    return Sensitivities(l1, l2, linf)


def check_neighbours(neighbours: Any) -> Neighbours:
    """Refuse anything but a known relation."""
    if not isinstance(neighbours, str) or neighbours not in get_args(Neighbours):
        raise ValueError(
            f"neighbours must be 'replace' (one record has other values) or 'add_remove' (one "
            f"record more or less), got {neighbours!r}"
        )
    return neighbours  # type: ignore[return-value]


def neighbours_of(sensitivity: Any) -> Neighbours | None:
    """Return the neighbours of a sensitivity; None if undecided, as for a plain number."""
    one = sensitivity.l1 if isinstance(sensitivity, Sensitivities) else sensitivity
    said = isinstance(one, Sensitivity) and one.if_joined is None
    return one.neighbours if said else None


def as_l1(sensitivity: Any) -> Any:
    """Take a sensitivity for the L1 one: the rule for the noise of another norm is the same."""
    if not isinstance(sensitivity, Sensitivity):
        return sensitivity
    options = {"norm": "l1", "if_joined": as_l1(sensitivity.if_joined)}
    return Sensitivity(float(sensitivity), **{**vars(sensitivity), **options})


def in_norm(sensitivity: Any, norm: Norm, owner: str) -> Any:
    """Take a sensitivity in the norm that a noise needs, which ``owner`` has.

    Picked from a statistic's sensitivities. Plain numbers and objects that aren't sensitivities are
    returned unchanged; a number in another norm is refused, and so is a statistic.
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
        raise ValueError(_TOO_LARGE) from None
    pairs = zip(get_args(Norm), values, strict=True)
    each = [Sensitivity(x, norm=norm, exact=exact, neighbours=neighbours) for norm, x in pairs]
    return Sensitivities(each[0], each[1], each[2], neighbours)


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
    # A root in integers of 64 bits or more, rounded up if it isn't exact.
    shift = max(0, 64 - (square.numerator.bit_length() - square.denominator.bit_length()) // 2)
    scaled, rest = divmod(square.numerator << 2 * shift, square.denominator)
    root = math.isqrt(scaled)
    return _round_up(Fraction(root + (rest > 0 or root * root < scaled), 1 << shift))
