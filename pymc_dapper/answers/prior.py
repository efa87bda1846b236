"""Priors of true values, by name."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dapper.answers.windows import LARGEST, Support
from pymc_dapper.checks import real_numbers, shown


@dataclass(frozen=True)
class Prior:
    """A prior of the cells of a table.

    Attributes
    ----------
    kind : str
        "flat" on counts, "smooth", or "range" of real numbers.
    lowest, highest : int, or ndarray of float64
        Limits. For a range of real numbers, of shape () or the table's.
    is_bent : bool
        Whether a parabola makes values in the middle likelier than near the limits.
    """

    kind: str
    lowest: Any = 0
    highest: Any = LARGEST
    is_bent: bool = False

    @property
    def whole(self) -> bool:
        """Whether true values are counts."""
        return self.kind != "range"

    @property
    def each_cell(self) -> bool:
        """Whether each cell has its own limits."""
        return np.ndim(self.lowest) > 0

    @property
    def other(self) -> "Prior":
        """The prior that this one is compared with."""
        if self.kind == "smooth":
            return Prior("flat")
        return Prior("smooth") if self == Prior("flat") else replace(self, is_bent=True)

    def log_weight(self, values: np.ndarray) -> np.ndarray:
        """Log-density of a bent prior, not normalised; limits are per row, if there are many."""
        low, high = (np.reshape(end, (-1, 1)) for end in (self.lowest, self.highest))
        with np.errstate(divide="ignore"):
            return np.log(np.maximum((values - low + self.whole) * (high - values + self.whole), 0))

    def support(self) -> Support:
        """Return the range of a cell."""
        return Support(self.lowest, self.highest, self.whole)

    def describe(self, *, total: bool) -> str:
        """Describe the prior."""
        if self.kind == "smooth":
            law = "Dirichlet-multinomial" if total else "gamma-Poisson"
            return f"smooth: {law}, concentration unknown"
        shape = "likelier in the middle" if self.is_bent else "flat"
        if self.kind == "range":
            low, high = np.min(self.lowest), np.max(self.highest)
            limits = ", each within its own limits" if self.each_cell else ""
            return f"real numbers, {shape} from {low:g} to {high:g}{limits}"
        counts = f"counts, {shape} on {self.lowest}, ..., {self.highest}"
        if (self.lowest, self.highest) == (0, LARGEST):
            counts = "counts, flat on 0, 1, 2 and so on"
        return f"{counts}, given what is known of sums" if total else counts


def read_prior(prior: Any, shape: tuple[int, ...]) -> Prior:
    """Read a prior in the form that users write it.

    Raises
    ------
    TypeError, ValueError
        If it isn't a prior.
    """
    if isinstance(prior, str) and prior in ("flat", "smooth"):
        return Prior(prior)
    if isinstance(prior, range):
        if prior.step != 1 or not len(prior):
            raise ValueError(f"prior must be a range of step 1 that isn't empty, got {prior}")
        return Prior("flat", prior[0], prior[-1])
    if isinstance(prior, tuple) and len(prior) == 2:
        low, high = (real_numbers(end, "prior") for end in prior)
        try:
            low, high = np.broadcast_arrays(low, high)
            if low.ndim:
                low, high = (np.broadcast_to(end, shape).reshape(-1) for end in (low, high))
        except ValueError:
            raise ValueError(
                f"prior: its limits must be numbers, or arrays of shape {shape} as the released "
                "values"
            ) from None
        if not (np.isfinite(low).all() and np.isfinite(high).all() and (low < high).all()):
            raise ValueError(f"prior: limits must be finite, the lower one first, got {prior}")
        return Prior("range", low, high)
    error = ValueError if isinstance(prior, str) else TypeError
    raise error(
        "prior must be 'flat' or 'smooth', for counts; range(0, 1001), for counts flat on these; "
        f"or (lower, upper), for real numbers flat between, such as sums; got {shown(prior)}"
    )
