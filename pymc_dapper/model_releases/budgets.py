"""What a model says about how its releases were made, written into a result and read from it."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from pymc import Model

from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.budget.written import budget_from_dict, budget_to_dict

ATTRIBUTE = "pymc_dapper_releases"


@dataclass(frozen=True)
class Releases:
    """The factors through which records act, and the budgets of those that are mechanisms."""

    budgets: dict[str, PureDP | ZCDP | ApproxDP | None]
    """Budget that each release's mechanism was calibrated to, by the release's name; None where the
    mechanism doesn't say."""
    other_factors: tuple[str, ...]
    """Names of the factors that the records enter and that aren't mechanisms known as such."""

    def to_json(self) -> str:
        """Write as text."""
        budgets = {name: budget_to_dict(budget) for name, budget in self.budgets.items()}
        return json.dumps({"budgets": budgets, "other_factors": list(self.other_factors)})

    @classmethod
    def from_json(cls, text: str) -> "Releases":
        """Read what :meth:`to_json` wrote."""
        content = json.loads(text)
        return cls(
            {name: budget_from_dict(budget) for name, budget in content["budgets"].items()},
            tuple(content["other_factors"]),
        )


def read_releases(model: Model, factors: Sequence[str]) -> Releases:
    """Find out which factors are mechanisms, and what they were calibrated to.

    The factors are those that the records enter, by name, their prior not included.
    """
    mechanisms = {name: getattr(model[name].tag, "mechanism", None) for name in factors}
    return Releases(
        {name: m.budget for name, m in mechanisms.items() if m is not None},
        tuple(name for name, m in mechanisms.items() if m is None),
    )
