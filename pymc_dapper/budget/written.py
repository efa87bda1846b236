"""Budgets as JSON has them, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pymc_dapper.budget.kinds import ZCDP, ApproxDP, PureDP
from pymc_dapper.checks import about

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (PureDP, ZCDP, ApproxDP)}


def budget_to_dict(budget: PureDP | ZCDP | ApproxDP | None) -> dict[str, Any] | None:
    """Write a budget as a dict of its kind and its numbers; None if there is none."""
    return None if budget is None else {"kind": type(budget).__name__, **asdict(budget)}


def budget_from_dict(content: Any) -> PureDP | ZCDP | ApproxDP | None:
    """Read what :func:`budget_to_dict` wrote.

    Raises
    ------
    TypeError, ValueError
        If it is something else, or not a budget.
    """
    if content is None:
        return None
    if not isinstance(content, dict):
        raise TypeError(f"a budget is written as a dict or as null, got {content!r}")
    kind, numbers = kind_of(content, KINDS, "budget")
    with about(f"budget of kind {kind.__name__}"):
        budget: PureDP | ZCDP | ApproxDP = kind(**numbers)
        return budget


def kind_of(content: Any, kinds: Mapping[str, Any], what: str) -> tuple[Any, dict[str, Any]]:
    """Return of what kind a thing is that was written as a dict, and its arguments.

    Raises
    ------
    TypeError, ValueError
        If it isn't a dict, or of no kind that is known.
    """
    if not isinstance(content, dict):
        raise TypeError(f"a {what} is written as a dict, got {content!r}")
    given = dict(content)
    kind = given.pop("kind", None)
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"there is no {what} of kind {kind!r}, but {', '.join(kinds)}")
    return kinds[kind], given
