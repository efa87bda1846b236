"""The kinds of budget: their promises, conversions between them, and sums."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from pymc_dapper.budget.bounds import Bound, conversion
from pymc_dapper.budget.numbers import TINY, held, positive, probability
from pymc_dapper.checks import shown
from pymc_dapper.html import table
from pymc_dapper.sensitivity import (
    CHANGE,
    Neighbours,
    Norm,
    Sensitivity,
    check_neighbours,
    in_norm,
    neighbours_of,
)


class _Unsaid(str):
    """The neighbours of a budget that was made without ``neighbours=``."""

    __slots__ = ()


UNSAID: Any = _Unsaid("replace")
"""Default neighbours of a budget. Distinguished from "replace" only where the choice matters."""

_NEIGHBOURS: Any = field(default=UNSAID, kw_only=True)


class _Budget:
    """Shared base of the kinds of budget: amounts that add up over releases, and the neighbours."""

    neighbours: Neighbours
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse wrong arguments, such as a delta, and list the right ones."""
        known = {one.name: not one.kw_only for one in fields(cls)}
        unknown = [name for name in kwargs if name not in known]
        if unknown or len(args) > sum(known.values()):
            got = f"got {unknown[0]}=..." if unknown else f"got {len(args)} numbers"
            raise TypeError(
                f"{cls.__name__} is made of {', '.join(known)}, {got}. Epsilon alone is PureDP(1), "
                "with a delta ApproxDP(1, 1e-6), rho ZCDP(0.5)"
            )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        check_neighbours(self.neighbours)
        for name, amount in _amounts(self).items():
            check = probability if name == "delta" else positive
            object.__setattr__(self, name, check(amount, name))

    def split(self, parts: int | Sequence[float]) -> tuple[Self, ...]:
        """Share the budget out between several releases on the same records.

        Parameters
        ----------
        parts : int or sequence of float
            Number of equal parts; or positive weights, one for each part, of which only the ratios
            matter.

        Returns
        -------
        tuple of budgets
            Of the same kind. By `compose` they add up to this budget, up to rounding.

        Raises
        ------
        TypeError
            If `parts` is neither a whole number nor a sequence of numbers.
        ValueError
            If there is no part, if a weight isn't positive, or if a part is too small for a float.

        Examples
        --------
        >>> ZCDP(0.5).split(2)
        (ZCDP(rho=0.25, one person changes), ZCDP(rho=0.25, one person changes))
        >>> PureDP(1).split([3, 1])
        (PureDP(epsilon=0.75, one person changes), PureDP(epsilon=0.25, one person changes))
        """
        amounts = _values(self)
        shares = [[amount / divisor for amount in amounts] for divisor in _divisors(parts)]
        if min(map(min, shares)) < TINY:
            raise ValueError(f"a part of {self} would be too small for a float. Make fewer parts.")
        return tuple(_with_amounts(self, share) for share in shares)

    def compose(self, *others: Self) -> Self:
        """Add up this budget and others of its kind that are spent on the same records.

        As `pymc_dapper.budget.compose` does it, with the same errors.

        Examples
        --------
        >>> ZCDP(0.5).compose(ZCDP(0.25), ZCDP(0.25))
        ZCDP(rho=1.0, one person changes)
        """
        return compose(self, *others)

    def __repr__(self) -> str:
        return self._shown("")

    def __str__(self) -> str:
        return self._shown(".6g")

    def _repr_html_(self) -> str:
        rows = [(name, f"{amount:.6g}") for name, amount in _amounts(self).items()]
        return table(type(self).__name__, (), [*rows, ("if", CHANGE[self.neighbours])])

    def _shown(self, form: str, neighbours: Neighbours | None = None) -> str:
        """Show the amounts, and in words what changes; or as typed, for given neighbours."""
        parts = [f"{name}={amount:{form}}" for name, amount in _amounts(self).items()]
        told = f"neighbours={neighbours!r}" if neighbours else CHANGE[self.neighbours]
        return f"{type(self).__name__}({', '.join([*parts, told])})"

    def among(self, neighbours: Neighbours | None) -> Self:
        """Return the budget for given neighbours, as ``neighbours=`` of a calibration.

        Raises
        ------
        ValueError
            If it is for others, or if `neighbours` is unknown.
        """
        if neighbours is None:
            return self
        said = not isinstance(self.neighbours, _Unsaid)
        if said and self.neighbours != check_neighbours(neighbours):
            raise ValueError(f"neighbours={neighbours!r} contradicts the budget, {self}")
        return replace(self, neighbours=neighbours)


@dataclass(frozen=True, repr=False)
class PureDP(_Budget):
    """Pure differential privacy.

    Changing one record changes the probability of no outcome by more than a factor of
    ``exp(epsilon)``.

    Parameters
    ----------
    epsilon : float
        Privacy loss, positive and finite.
    neighbours : {"replace", "add_remove"}
        What changes between neighbouring data sets: one record's values, or its presence. By
        default the budget is for ``"replace"``, but a calibration is refused if the statistic's
        sensitivity depends on the neighbours.

    Raises
    ------
    TypeError
        If `epsilon` isn't a number.
    ValueError
        If `epsilon` isn't positive and finite, or if `neighbours` is unknown.

    References
    ----------
    Dwork, McSherry, Nissim and Smith (2006), Definition 1.

    Examples
    --------
    >>> PureDP(1).to_zcdp()
    ZCDP(rho=0.5, one person changes)
    """

    epsilon: float
    neighbours: Neighbours = _NEIGHBOURS

    def to_replace(self) -> Self:
        """Return the budget for one replaced record: 2 epsilon, as removing and adding one.

        Returns
        -------
        PureDP
            The budget itself if it is for replaced records already.

        Raises
        ------
        ValueError
            If epsilon would be too large for a float.

        References
        ----------
        Dwork and Roth (2014), Theorem 2.2: the privacy of groups, here of two records.

        Examples
        --------
        >>> PureDP(0.5, neighbours="add_remove").to_replace()
        PureDP(epsilon=1.0, one person changes)
        """
        if self.neighbours == "replace":
            return self
        epsilon = held(2 * self.epsilon, f"epsilon of {self} for a replaced record")
        return type(self)(epsilon, neighbours="replace")

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
        rho = held(self.epsilon * self.epsilon / 2, f"rho of {self}")
        return ZCDP(rho, neighbours=self.neighbours)

    def to_approx(self, *, delta: float) -> "ApproxDP":
        """Return the approximate budget that every mechanism with this budget keeps.

        Epsilon stays the same, for any delta. Use it to `compose` a pure budget with an approximate
        one. Deltas add up, so take a small one.

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
        return ApproxDP(self.epsilon, delta, neighbours=self.neighbours)


@dataclass(frozen=True, repr=False)
class ZCDP(_Budget):
    """Zero-concentrated differential privacy.

    For every order alpha > 1, the Renyi divergence between the outcome's laws before and after one
    record is changed is at most ``alpha * rho``.

    Parameters
    ----------
    rho : float
        Privacy loss, positive and finite.
    neighbours : {"replace", "add_remove"}
        What changes between neighbouring data sets: one record's values, or its presence. By
        default the budget is for ``"replace"``, but a calibration is refused if the statistic's
        sensitivity depends on the neighbours.

    Raises
    ------
    TypeError
        If `rho` isn't a number.
    ValueError
        If `rho` isn't positive and finite, or if `neighbours` is unknown.

    References
    ----------
    Bun and Steinke (2016), Definition 1.1.

    Examples
    --------
    >>> print(ZCDP(0.1).to_approx(delta=1e-10))
    ApproxDP(epsilon=3.13485, delta=1e-10, one person changes)
    >>> print(ZCDP(0.1).to_approx(delta=1e-10, bound="tight"))
    ApproxDP(epsilon=2.88183, delta=1e-10, one person changes)
    """

    rho: float
    neighbours: Neighbours = _NEIGHBOURS

    def to_replace(self) -> Self:
        """Return the budget for one replaced record: 4 rho, as removing and adding one.

        Returns
        -------
        ZCDP
            The budget itself if it is for replaced records already.

        Raises
        ------
        ValueError
            If rho would be too large for a float.

        References
        ----------
        Bun and Steinke (2016), on the privacy of groups: here of two records.

        Examples
        --------
        >>> ZCDP(0.5, neighbours="add_remove").to_replace()
        ZCDP(rho=2.0, one person changes)
        """
        if self.neighbours == "replace":
            return self
        rho = held(4 * self.rho, f"rho of {self} for a replaced record")
        return type(self)(rho, neighbours="replace")

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
            With the given delta or epsilon. If the other one is 0, or too small for a float, it is
            `TINY`.

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
        by = conversion(bound)
        return approx_budget(
            partial(by.epsilon, self.rho),
            partial(by.log_delta, self.rho),
            delta=delta,
            epsilon=epsilon,
            owner=f"{self} with the {bound} bound",
            neighbours=self.neighbours,
        )


@dataclass(frozen=True, repr=False)
class ApproxDP(_Budget):
    """Approximate differential privacy.

    Changing one record changes the probability of any set of outcomes by no more than a factor of
    ``exp(epsilon)`` and an added ``delta``.

    Parameters
    ----------
    epsilon : float
        Privacy loss, positive and finite.
    delta : float
        Above 0 (at least 2.2e-308, below which floats lose precision) and below 1.
    neighbours : {"replace", "add_remove"}
        What changes between neighbouring data sets: one record's values, or its presence. By
        default the budget is for ``"replace"``, but a calibration is refused if the statistic's
        sensitivity depends on the neighbours.

    Raises
    ------
    TypeError
        If an argument isn't a number.
    ValueError
        If an argument is out of range, or if `neighbours` is unknown.

    References
    ----------
    Dwork and Roth (2014), Definition 2.4.

    Examples
    --------
    >>> print(ApproxDP(1, 1e-6).to_zcdp())
    ZCDP(rho=0.0174689, one person changes)
    """

    epsilon: float
    delta: float
    neighbours: Neighbours = _NEIGHBOURS

    def to_replace(self) -> Self:
        """Return the budget for one replaced record, as removing and adding one.

        Epsilon is doubled, and delta is ``(1 + exp(epsilon)) delta``.

        Returns
        -------
        ApproxDP
            The budget itself if it is for replaced records already.

        Raises
        ------
        ValueError
            If nothing is promised: delta would be 1 or more.

        Notes
        -----
        The definition is used twice: for the record that is removed, and for the one that is added.

        Examples
        --------
        >>> print(ApproxDP(1, 1e-6, neighbours="add_remove").to_replace())
        ApproxDP(epsilon=2, delta=3.71828e-06, one person changes)
        """
        if self.neighbours == "replace":
            return self
        epsilon = held(2 * self.epsilon, f"epsilon of {self} for a replaced record")
        log_delta = math.log(self.delta) + float(np.logaddexp(0, self.epsilon))
        if log_delta >= 0:
            raise ValueError(
                f"{self} promises nothing to a replaced record: delta would be 1 or more."
            )
        return type(self)(epsilon, math.exp(log_delta), neighbours="replace")

    def to_zcdp(self, *, bound: Bound = "simple") -> ZCDP:
        """Return the largest zCDP budget that is enough for this budget.

        A mechanism that keeps the zCDP budget keeps this one. The converse is false: use this to
        choose noise, not to describe a release with known epsilon and delta only.

        Parameters
        ----------
        bound : {"simple", "tight"}
            As in `ZCDP.to_approx`; this is its inverse.

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
        rho = conversion(bound).rho(self.epsilon, -math.log(self.delta))
        return ZCDP(held(rho, f"rho of {self}"), neighbours=self.neighbours)


Budget = PureDP | ZCDP | ApproxDP


def check_budget(budget: Any) -> None:
    """Refuse anything but a budget or None."""
    if budget is not None and not isinstance(budget, Budget):
        number = isinstance(budget, int | float) and not isinstance(budget, bool)
        instead = f": write pmd.PureDP({budget})" if number else ""
        raise TypeError(f"budget must be a PureDP, ZCDP or ApproxDP, got {shown(budget)}{instead}")


def compose[B: _Budget](*budgets: B) -> B:
    """Add up budgets that are spent on the same records.

    Each release may depend on the ones before. The sums are those of basic composition: epsilon
    for pure, rho for zero-concentrated, epsilon and delta for approximate differential privacy.

    Parameters
    ----------
    *budgets : PureDP, ZCDP or ApproxDP
        At least one; all of the same kind.

    Returns
    -------
    PureDP, ZCDP or ApproxDP
        Of the same kind: the total that the releases spend.

    Raises
    ------
    TypeError
        If there is none, or if they are of different kinds: the message names the conversion to
        make first.
    ValueError
        If the deltas add up to 1 or more, or if the budgets are for different neighbours.

    References
    ----------
    Pure and approximate: Dwork and Roth (2014), Theorem 3.16 and Appendix B. Zero-concentrated:
    Bun and Steinke (2016), Lemmas 1.7 and 2.3.

    Examples
    --------
    >>> compose(PureDP(0.25), PureDP(0.5))
    PureDP(epsilon=0.75, one person changes)
    """
    if not budgets:
        raise TypeError("compose needs at least one budget, got none.")
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
    check_alike(budgets)
    totals = [sum(amounts) for amounts in zip(*map(_values, budgets), strict=True)]
    if isinstance(budgets[0], ApproxDP) and totals[1] >= 1:
        raise ValueError(
            f"the deltas add up to {totals[1]:.6g}, and a delta of 1 or more promises nothing. "
            "Compose budgets of smaller delta."
        )
    return _with_amounts(budgets[0], totals)


def largest[B: _Budget](budgets: Sequence[B]) -> B:
    """Return the largest of budgets of one kind; refuse them if they are for other neighbours."""
    check_alike(budgets)
    return max(budgets, key=_values)


def is_below(budget: _Budget, other: _Budget) -> bool:
    """Whether a budget promises more than another of its kind; rounding is let pass.

    Budgets of different kinds aren't compared.
    """
    if type(budget) is not type(other):
        return False
    pairs = list(zip(_values(budget), _values(other), strict=True))
    return all(a <= b * (1 + 1e-9) for a, b in pairs) and any(a < b * (1 - 1e-9) for a, b in pairs)


def check_alike(budgets: Iterable[_Budget]) -> None:
    """Refuse budgets that don't compare the same data sets."""
    first, *others = budgets
    for other in others:
        if other.neighbours != first.neighbours:
            changed, moved = sorted((first, other), key=lambda one: one.neighbours == "add_remove")
            raise ValueError(
                f"budgets for different neighbours don't go together: {changed} and {moved}. "
                "Convert the latter by .to_replace(): its promise if one person changes"
            )


def needed(budget: _Budget, sensitivity: Any, norm: Norm, owner: str) -> Any:
    """Return a sensitivity in a norm, for a budget's neighbours; plain numbers are unchanged.

    Raises
    ------
    ValueError
        If the sensitivity is for other neighbours than the budget's. Or if neither the budget nor
        the statistic was given ``neighbours=``, and the sensitivity depends on them.
    """
    one = in_norm(sensitivity, norm, owner)
    if not isinstance(one, Sensitivity):
        return one
    if one.if_joined is not None:
        if isinstance(budget.neighbours, _Unsaid) and one.if_joined != one:
            typed = [budget._shown(".6g", each) for each in ("replace", "add_remove")]
            raise ValueError(
                f"{_differs(one)}, and the budget doesn't say which it is for. Write {typed[0]} if "
                f"the number of people is public, or {typed[1]} if it isn't, as for releases of "
                "OpenDP, Tumult and PipelineDP"
            )
        return one.among(budget.neighbours)
    if one.neighbours != budget.neighbours:
        raise ValueError(
            f"sensitivity holds if {CHANGE[one.neighbours]}, but the budget is {budget}. Use the "
            f"same neighbours for both: {budget._shown('.6g', one.neighbours)}, or the statistic "
            f"with neighbours={str(budget.neighbours)!r}"
        )
    return one


def spent_by(sensitivity: Any, norm: Norm, owner: str) -> tuple[Any, Neighbours]:
    """Take a sensitivity in a norm, with the neighbours for which a budget by it is.

    Raises
    ------
    ValueError
        If the statistic was made without ``neighbours=``, and the sensitivity depends on them.
    """
    one = in_norm(sensitivity, norm, owner)
    if isinstance(one, Sensitivity) and one.if_joined is not None and one.if_joined != one:
        raise ValueError(
            f"{_differs(one)}. Say which the privacy loss is for: give the statistic "
            "neighbours='replace' if the number of people is public, or neighbours='add_remove' if "
            "it isn't"
        )
    return one, neighbours_of(one) or UNSAID


def _differs(one: Sensitivity) -> str:
    return (
        f"the statistic's sensitivity is {one:.6g} if {CHANGE['replace']} and {one.if_joined:.6g} "
        f"if {CHANGE['add_remove']}"
    )


def check_replace(budget: _Budget, owner: str, why: str) -> None:
    """Refuse a budget for added or removed records if nothing is known to keep it."""
    if budget.neighbours != "replace":
        raise ValueError(
            f"{owner} keeps no budget if {CHANGE[budget.neighbours]}, got {budget}: {why}. Give a "
            "budget with neighbours='replace'"
        )


def approx_budget(
    epsilon_of: Callable[[float], float],
    log_delta_of: Callable[[float], float],
    *,
    delta: float | None,
    epsilon: float | None,
    owner: str,
    neighbours: Neighbours,
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
        Name of the budget's owner, for messages.
    neighbours : {"replace", "add_remove"}
        Which data sets it compares.
    """
    if delta is not None and epsilon is None:
        chance = probability(delta, "delta")
        least = max(epsilon_of(-math.log(chance)), TINY)
        return ApproxDP(held(least, f"epsilon of {owner}"), chance, neighbours=neighbours)
    if epsilon is None or delta is not None:
        raise TypeError(
            f"give either delta or epsilon, got delta={delta} and epsilon={epsilon}: "
            "the other one is computed"
        )
    loss = positive(epsilon, "epsilon")
    found = math.exp(log_delta_of(loss))
    if found >= 1:
        raise ValueError(
            f"{owner} promises nothing at epsilon={loss:.6g}: delta would be 1. "
            "Give a larger epsilon."
        )
    return ApproxDP(loss, max(found, TINY), neighbours=neighbours)


def _with_amounts[B: _Budget](budget: B, amounts: Iterable[float]) -> B:
    """Return a budget of other amounts, for the same neighbours."""
    return replace(budget, **dict(zip(_amounts(budget), amounts, strict=True)))


def _amounts(budget: _Budget) -> dict[str, float]:
    """Return the amounts that add up, by name."""
    return {one.name: getattr(budget, one.name) for one in fields(budget) if not one.kw_only}


def _values(budget: _Budget) -> tuple[float, ...]:
    return tuple(_amounts(budget).values())


def _divisors(parts: object) -> list[float]:
    """Return the divisors of a budget for its parts."""
    if isinstance(parts, int | np.integer) and not isinstance(parts, bool):
        if parts < 1:
            raise ValueError(f"parts must be at least 1, got {parts}.")
        return [int(parts)] * int(parts)
    if isinstance(parts, str) or not isinstance(parts, Sequence | np.ndarray):
        raise TypeError(
            f"parts must be a whole number or a sequence of weights, got {parts!r}. "
            "Use split(3) for three equal parts, split([2, 1]) for unequal ones."
        )
    weights = [positive(weight, "a weight") for weight in parts]
    if not weights:
        raise ValueError("parts must have at least one weight, got none.")
    total = sum(weights)
    return [total / weight for weight in weights]


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
