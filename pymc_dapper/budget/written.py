"""Budgets as JSON has them, and back."""

from dataclasses import asdict
from typing import Any

from pymc_dapper.budget.kinds import ZCDP, ApproxDP, PureDP

KINDS = {kind.__name__: kind for kind in (PureDP, ZCDP, ApproxDP)}


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
    numbers = dict(content)
    kind = numbers.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"there is no budget of kind {kind!r}, but {', '.join(KINDS)}")
    try:
        return KINDS[kind](**numbers)
    except (TypeError, ValueError) as error:
        raise type(error)(f"budget of kind {kind}: {error}") from None
