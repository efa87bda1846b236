"""Acceptance of the records' proposals, compared with the bound of a privacy budget."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from arviz_stats.base import array_stats

from pymc_dapper.budget import Budget, PureDP, compose
from pymc_dapper.budget.kinds import check_budget
from pymc_dapper.budget.written import ATTRIBUTE, ReleaseBudgets
from pymc_dapper.diagnostics._result import group
from pymc_dapper.steps.stats import ACCEPT_STAT

STANDARD_ERRORS = 4
"""A rate is reported as too low from this many Monte Carlo standard errors below the floor on."""


@dataclass(frozen=True)
class Acceptance:
    """Acceptance of the records' proposals.

    Attributes
    ----------
    rates : DataArray, dims (chain,)
        Share of proposals accepted, over all records and draws; for several steps, dims (chain,
        step).
    errors : DataArray, dims as ``rates``
        Monte Carlo standard errors.
    floor : float or None
        Lower bound of the expected rate if the budget is right; None if unknown.
    below_floor : bool
        Whether a rate is below the floor by more than Monte Carlo error explains.
    explanation : str
        An explanation of the floor, or of why there is none.
    """

    rates: xr.DataArray
    errors: xr.DataArray
    floor: float | None
    below_floor: bool
    explanation: str

    def __str__(self) -> str:
        """Show rates, floor and explanation."""
        of_chains = zip(self.rates["chain"].values, self.rates, self.errors, strict=True)
        chains = "\n".join(
            f"chain {chain}: {_listed(rate.values)} (Monte Carlo error {_listed(error.values)})"
            for chain, rate, error in of_chains
        )
        return f"{chains}\n{self.explanation}"


def _listed(values: np.ndarray) -> str:
    return ", ".join(f"{value:.3g}" for value in np.atleast_1d(values))


def acceptance(idata: Any, budget: Budget | None = None) -> Acceptance:
    """Compare the acceptance of records with the floor that a pure privacy budget implies.

    Under epsilon-differential privacy for one replaced record, replacing a record changes the
    density of the release by a factor of at least exp(-epsilon). If the records enter only the
    mechanism, this factor is the acceptance probability of a proposal, so it is a lower bound, the
    floor, of the mean acceptance.

    Parameters
    ----------
    idata : DataTree
        The result of ``pmd.sample``, or of ``pm.sample`` with a ``DapperStep``.
    budget : PureDP, ZCDP or ApproxDP, optional
        Privacy loss of all releases in the model together. By default the total that ``pmd.sample``
        wrote into the result, the sum of the mechanisms' budgets. A budget for added or removed
        records (its ``neighbours``) counts twice, because replacing a record is removing one and
        adding another: ``budget.to_replace()``.

    Returns
    -------
    Acceptance
        Rates per chain, with their Monte Carlo error and the floor.

    Raises
    ------
    TypeError
        If ``idata`` isn't a result, or ``budget`` isn't a budget.
    ValueError
        If no ``DapperStep`` was among the steps.

    Warns
    -----
    UserWarning
        If a rate is below the floor by more than four Monte Carlo standard errors: the
        sensitivity or the noise scale was given wrongly, or the budget is another one.

    Notes
    -----
    zCDP and approximate differential privacy imply no floor: with some probability the ratio of
    densities may be arbitrarily small.

    A high rate is no sign of good mixing. At a small budget this very bound is near 1, while
    parameters and records follow each other slowly: look at effective sample sizes and at
    :func:`missing_information`.

    References
    ----------
    Ju, N., Awan, J. A., Gong, R., and Rao, V. A. (2022). Data augmentation MCMC for Bayesian
    inference from privatized data. Advances in Neural Information Processing Systems 35.
    Section 3.2.
    """
    stats = group(idata, "sample_stats")
    check_budget(budget)
    if ACCEPT_STAT not in stats:
        raise ValueError(
            "no DapperStep was among the steps, so records have no acceptance rate. If "
            "pmd.sample replaced them by a table, tabulate=False samples the records"
        )
    by_draw = stats[ACCEPT_STAT]
    by_draw = by_draw.rename({dim: "step" for dim in by_draw.dims if dim not in ("chain", "draw")})
    by_draw = by_draw.transpose("chain", "draw", ...)
    rates = by_draw.mean("draw")
    errors = xr.apply_ufunc(_error, by_draw, input_core_dims=[["draw"]], vectorize=True)

    floor, explanation = None, ""
    if budget is None:
        budget, explanation = _budget_of(idata)
    if isinstance(budget, PureDP):
        floor = math.exp(-budget.to_replace().epsilon)
        moves = budget.neighbours == "add_remove"
        twice = ", counted twice for a replaced record" if moves else ""
        explanation = (
            f"By {budget}{twice}, proposals are accepted with probability {floor:.3g} at least, if "
            "the records enter nothing but the mechanism. A rate near 1 is no sign of good mixing."
        )
    elif budget is not None:
        explanation = (
            f"{budget} implies no floor of the acceptance: only pure differential privacy does. A "
            "rate near 1 is no sign of good mixing."
        )
    below = floor is not None and bool(np.any(rates + STANDARD_ERRORS * errors < floor))
    if below:
        explanation = (
            f"A rate is below {floor:.3g}, what {budget} allows, by more than Monte Carlo error. "
            "The sensitivity or the scale of the noise was given wrongly, the budget is another "
            "one, or the records enter more than the mechanism."
        )
        warnings.warn(explanation, UserWarning, stacklevel=2)
    return Acceptance(rates, errors, floor, below, explanation)


def _error(draws: np.ndarray) -> float:
    if np.ptp(draws) == 0:
        return 0.0
    return float(array_stats.mcse(draws[None], chain_axis=0, draw_axis=1, method="mean"))


def _budget_of(idata: Any) -> tuple[Budget | None, str]:
    """Add up the budgets in a result; or say why that isn't the whole loss."""
    text = idata.attrs.get(ATTRIBUTE)
    if text is None:
        return None, (
            "The result doesn't know its budget (pmd.sample writes it): pass one, as in "
            "acceptance(idata, pmd.PureDP(1))."
        )
    releases = ReleaseBudgets.from_json(text)
    if releases.other_factors:
        names = ", ".join(f"'{name}'" for name in releases.other_factors)
        return None, (
            f"There is no floor: the records also enter {names}, and it isn't known to be a "
            "mechanism with a budget. If it is one, pass the budget of all releases together."
        )
    nameless = [name for name, budget in releases.budgets.items() if budget is None]
    if nameless:
        return None, (
            f"The mechanism of '{nameless[0]}' wasn't calibrated to a budget: pass one, as in "
            "acceptance(idata, pmd.PureDP(1))."
        )
    pure = [budget for budget in releases.budgets.values() if isinstance(budget, PureDP)]
    if len(pure) < len(releases.budgets):
        return next(x for x in releases.budgets.values() if not isinstance(x, PureDP)), ""
    alike = len({budget.neighbours for budget in pure}) == 1
    return compose(*(pure if alike else (budget.to_replace() for budget in pure))), ""
