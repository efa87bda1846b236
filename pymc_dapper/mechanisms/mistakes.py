"""Probable mistakes in releases that are no errors by themselves.

Noise that was chosen for another statistic, epsilon given as a scale, added truth values.
"""

import logging
import warnings
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph import Apply, ancestors
from pytensor.scalar import Add
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedIncSubtensor, IncSubtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.budget import ZCDP, ApproxDP
from pymc_dapper.budget.kinds import is_below
from pymc_dapper.sensitivity import CHANGE, Sensitivities

LOGGER = logging.getLogger("pymc.dapper")


def tell_of_mistakes(name: str, mechanism: Any, statistic: Any) -> None:
    """Warn if noise doesn't keep its budget; log a note on noise that is smaller than one person.

    Parameters
    ----------
    name : str
        Name of the release.
    mechanism : Mechanism
        Its mechanism.
    statistic : tensor_like or Statistic
        What the user passed. The sensitivity is known for a `Statistic` only.
    """
    sensitivity = getattr(statistic, "sensitivity", None)
    if mechanism.unknown or not (hasattr(mechanism, "scale") or hasattr(mechanism, "sigma")):
        return
    if isinstance(sensitivity, Sensitivities) and mechanism.budget is not None:
        _check_kept(name, mechanism, sensitivity)
    elif mechanism.budget is None:
        _log_large(name, mechanism, statistic, sensitivity)


def refuse_sums_of_truth_values(name: str, model: Model, statistic: TensorVariable) -> None:
    """Refuse a statistic in which truth values are added up: in PyTensor, two of them make one."""
    for x in ancestors([statistic], blockers=model.basic_RVs):
        match x.owner:
            case Apply(
                op=Elemwise(scalar_op=Add())
                | IncSubtensor(set_instead_of_inc=False)
                | AdvancedIncSubtensor(set_instead_of_inc=False)
            ) if x.type.dtype == "bool":
                raise TypeError(
                    f"'{name}': the statistic adds up truth values. In PyTensor, their sum is a "
                    "truth value, not a number. Make numbers of them first: "
                    "pt.bincount(group, weights=(x > 0).astype('int64')). For 'or', write |"
                )


def _check_kept(name: str, mechanism: Any, sensitivity: Sensitivities) -> None:
    budget = mechanism.budget
    own = sensitivity.among(budget.neighbours)
    if own.neighbours != budget.neighbours or np.size(_noise(mechanism)) != 1:
        return
    # A record that moves all scores in one direction costs half the loss, which isn't known here.
    options = {"one_way": own.neighbours == "add_remove"} if hasattr(mechanism, "k") else {}
    spent = mechanism.privacy_loss(sensitivity=own, **options)
    if isinstance(spent, ZCDP) and isinstance(budget, ApproxDP):
        spent = spent.to_approx(delta=budget.delta, bound="tight")
    if is_below(budget, spent):
        warnings.warn(
            f"'{name}': the noise was chosen for {budget}, but with this statistic it spends "
            f"{spent}. The statistic's sensitivity is {own}: pass it as a whole, "
            f"{type(mechanism).__name__}.calibrate(budget, sensitivity=statistic.sensitivity)",
            stacklevel=6,
        )


def _log_large(name: str, mechanism: Any, statistic: Any, sensitivity: Any) -> None:
    """Log the budget if noise is smaller than the change that one person can make."""
    kind = type(mechanism).__name__
    laplace, gaussian = "LaplaceMechanism" in kind, "GaussianMechanism" in kind
    if not laplace and not gaussian:
        return
    noise = float(np.min(_noise(mechanism)))
    least = _least_change(statistic, sensitivity, "l1" if laplace else "l2")
    if least is None or noise >= least:
        return
    amount, budget = f"epsilon is {least / noise:.3g}", "PureDP"
    if not laplace:
        amount, budget = f"rho is {(least / noise) ** 2 / 2:.3g}", "ZCDP"
    LOGGER.info(
        f"'{name}': {kind} has noise of {'scale' if laplace else 'sigma'} {noise:.3g}, but one "
        f"person can change the statistic by {least:.3g}: {amount} at least if "
        f"{CHANGE['add_remove']}. If {noise:.3g} is the privacy budget, write "
        f"{kind}.calibrate(pmd.{budget}({noise:.3g}), sensitivity=...)"
    )


def _least_change(statistic: Any, sensitivity: Any, norm: str) -> float | None:
    """Least distance by which a joining person moves a statistic; None if it isn't known."""
    if isinstance(sensitivity, Sensitivities):
        return float(getattr(sensitivity.among("add_remove"), norm))
    dtype = np.dtype(getattr(getattr(statistic, "type", statistic), "dtype", "O"))
    return 1.0 if dtype.kind in "iu" else None


def _noise(mechanism: Any) -> np.ndarray:
    return np.asarray(getattr(mechanism, "scale", getattr(mechanism, "sigma", None)), dtype=float)
