"""Budgets as JSON has them, and back; those of a model's releases, as a result keeps them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pymc import Model

from pymc_dapper.budget.kinds import ZCDP, ApproxDP, Budget, PureDP
from pymc_dapper.checks import about, is_a, known

ATTRIBUTE = "pymc_dapper_releases"

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (PureDP, ZCDP, ApproxDP)}


def budget_to_dict(budget: Budget | None) -> dict[str, Any] | None:
    """Write a budget as a dict of its kind and its numbers; None if there is none."""
    return None if budget is None else {"kind": type(budget).__name__, **asdict(budget)}


def budget_from_dict(content: Any) -> Budget | None:
    """Read what :func:`budget_to_dict` wrote.

    Raises
    ------
    TypeError, ValueError
        If it is something else, or not a budget.
    """
    if content is None:
        return None
    kind, numbers = kind_of(content, KINDS, "budget")
    with about(f"budget of kind {kind.__name__}"):
        return kind(**numbers)


def kind_of(content: Any, kinds: Mapping[str, Any], what: str) -> tuple[Any, dict[str, Any]]:
    """Return the kind of an object that was written as a dict, and its arguments.

    Raises
    ------
    TypeError, ValueError
        If it isn't a dict, or of no kind that is known.
    """
    is_a(content, dict, f"a {what} is written as a dict")
    given = dict(content)
    kind = given.pop("kind", None)
    known([kind], kinds, f"there is no {what} of kind")
    return kinds[kind], given


@dataclass(frozen=True)
class ReleaseBudgets:
    """The factors through which records act, and the budgets of those that are mechanisms."""

    budgets: dict[str, Budget | None]
    """Budget to which each release's mechanism was calibrated, by the release's name; None if it
    wasn't."""
    other_factors: tuple[str, ...]
    """Names of the records' factors that aren't known to be mechanisms."""

    def to_json(self) -> str:
        """Write as text."""
        budgets = {name: budget_to_dict(budget) for name, budget in self.budgets.items()}
        return json.dumps({"budgets": budgets, "other_factors": list(self.other_factors)})

    @classmethod
    def from_json(cls, text: str) -> "ReleaseBudgets":
        """Read what :meth:`to_json` wrote."""
        content = json.loads(text)
        budgets = {name: budget_from_dict(x) for name, x in content["budgets"].items()}
        return cls(budgets, tuple(content["other_factors"]))


def budgets_of_releases(model: Model, factors: Sequence[str]) -> ReleaseBudgets:
    """Find the factors that are mechanisms, and the budgets to which they were calibrated.

    The factors are those that the records enter, by name, their prior not included.
    """
    mechanisms = {name: getattr(model[name].tag, "mechanism", None) for name in factors}
    budgets = {name: m.budget for name, m in mechanisms.items() if m is not None}
    return ReleaseBudgets(budgets, tuple(x for x in mechanisms if x not in budgets))
