"""Budgets as events of dp_accounting, and back."""

import importlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from scipy.special import expit

from pymc_dapper.budget import ZCDP, PureDP, compose
from pymc_dapper.checks import finite_number, shown, whole_number
from pymc_dapper.sensitivity import Neighbours, check_neighbours


def budget_of_event(event: Any, neighbours: Neighbours = "add_remove") -> PureDP | ZCDP:
    """Read the budget that an event of dp_accounting spends.

    Parameters
    ----------
    event : DpEvent
        Gaussian, Laplace or discrete Laplace noise, randomised response, zCDP, or compositions of
        these.
    neighbours : {"add_remove", "replace"}
        Neighbours of the budget. Noise multipliers hold for a record that is added or removed,
        dp_accounting's default; for a replaced record, convert the budget by ``to_replace()``.
        Randomised response is for a replaced record only.

    Returns
    -------
    PureDP or ZCDP
        Pure events add up to a pure budget; with Gaussian noise or zCDP among them, to zCDP.

    Raises
    ------
    TypeError
        If it isn't an event.
    ValueError
        If the event spends nothing or everything, or has no such budget, as sampled events.

    References
    ----------
    The dp-accounting library, `dp_accounting.dp_event`. Bun and Steinke (2016), Propositions 1.4
    and 1.6.

    Examples
    --------
    >>> budget_of_event(dp_accounting.GaussianDpEvent(noise_multiplier=5.0))
    ZCDP(rho=0.02, one person joins or leaves)
    """
    check_neighbours(neighbours)
    budgets = list(_budgets(event, 1, neighbours))
    if not budgets:
        raise ValueError(f"event spends no budget: {event!r}")
    pure = [budget for budget in budgets if isinstance(budget, PureDP)]
    if len(pure) == len(budgets):
        return compose(*pure)
    return compose(*[b.to_zcdp() if isinstance(b, PureDP) else b for b in budgets])


def event_of_budget(budget: PureDP | ZCDP) -> Any:
    """Write a budget as an event of dp_accounting.

    Parameters
    ----------
    budget : PureDP or ZCDP
        The budget.

    Returns
    -------
    DpEvent
        For zCDP, `ZCDpEvent`. For a pure budget, randomised response with two answers: it loses the
        most privacy of all mechanisms with this budget, in any composition. Accountants take it
        with ``NeighboringRelation.REPLACE_ONE``. If you know the mechanism, such as Gaussian noise,
        its own event gives a smaller loss.

    Raises
    ------
    TypeError
        If it isn't a budget, or is an approximate one, for which dp_accounting has no event.
    ValueError
        If it is pure and for a record that is added or removed: dp_accounting has no event for it.
    ImportError
        If dp_accounting isn't installed.

    References
    ----------
    Kairouz, P., Oh, S. and Viswanath, P. (2015). The composition theorem for differential privacy.
    International Conference on Machine Learning 32. Theorem 3.4.
    """
    if not isinstance(budget, PureDP | ZCDP):
        raise TypeError(
            "budget must be a PureDP or a ZCDP (dp_accounting has no event for an approximate one: "
            f"write down its mechanism), got {shown(budget)}"
        )
    try:
        events = importlib.import_module("dp_accounting.dp_event")
    except ImportError:
        raise ImportError(
            "budget: for events of dp_accounting, install it: pip install dp-accounting"
        ) from None
    if isinstance(budget, ZCDP):
        return events.ZCDpEvent(rho=budget.rho)
    if budget.neighbours != "replace":
        raise ValueError(
            f"budget: dp_accounting has no event for {budget}: write budget.to_zcdp(), or "
            "budget.to_replace()"
        )
    # The answer is another one with probability p / 2, and p / 2 = 1 / (1 + exp(epsilon)).
    return events.RandomizedResponseDpEvent(2 * float(expit(-budget.epsilon)), 2)


def _budgets(event: Any, times: int, neighbours: Neighbours) -> Iterator[PureDP | ZCDP]:
    """Yield the budgets of an event's parts, each repeated ``times`` times."""
    kind = type(event).__name__
    match kind:
        case "NoOpDpEvent":
            return
        case "ComposedDpEvent":
            for each in event.events:
                yield from _budgets(each, times, neighbours)
        case "SelfComposedDpEvent":
            count = whole_number(event.count, f"event: count of {kind}", at_least=0)
            yield from _budgets(event.event, times * count, neighbours)
        case _ if times:
            yield _times(_told_for(neighbours, kind, event), times)


def _times(budget: PureDP | ZCDP, times: int) -> PureDP | ZCDP:
    if isinstance(budget, PureDP):
        return replace(budget, epsilon=times * budget.epsilon)
    return replace(budget, rho=times * budget.rho)


def _told_for(neighbours: Neighbours, kind: str, event: Any) -> PureDP | ZCDP:
    budget = _budget(kind, event)
    if kind == "ZCDpEvent":
        return replace(budget, neighbours=neighbours)
    if kind == "RandomizedResponseDpEvent" and neighbours == "add_remove":
        raise ValueError(f"event: a {kind} is for a replaced record: write neighbours='replace'")
    return budget.to_replace() if budget.neighbours != neighbours else budget


def _budget(kind: str, event: Any) -> PureDP | ZCDP:
    if not kind.endswith("DpEvent"):
        raise TypeError(f"event must be a DpEvent of dp_accounting, got {shown(event)}")

    def of(name: str) -> float:
        return finite_number(getattr(event, name), f"event: {name} of {kind}", above=0)

    match kind:
        case "GaussianDpEvent":
            return ZCDP(0.5 / of("noise_multiplier") ** 2, neighbours="add_remove")
        case "LaplaceDpEvent":
            return PureDP(1 / of("noise_multiplier"), neighbours="add_remove")
        case "DiscreteLaplaceDpEvent":
            return PureDP(of("noise_parameter") * of("sensitivity"), neighbours="add_remove")
        case "RandomizedResponseDpEvent":
            # With probability p, the answer is drawn uniformly from all k.
            p, k = of("noise_parameter"), of("num_buckets")
            if not (p < 1 and k >= 2):
                raise ValueError(f"event: {event!r} spends no budget, or has nothing to hide")
            return PureDP(math.log1p(k * (1 - p) / p))
        case "ZCDpEvent":
            if getattr(event, "xi", 0):
                raise ValueError(f"event: {event!r} is zCDP with xi, which no budget here has")
            return ZCDP(of("rho"))
    raise ValueError(
        f"event: a {kind} has no pure or zero-concentrated budget of its own. Ask an "
        "accountant of dp_accounting for its epsilon at a delta"
    )
