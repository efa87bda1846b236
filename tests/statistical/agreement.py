"""Run DapperStep in pm.sample, and say how far the draws lie from exact posteriors."""

from dataclasses import dataclass

import numpy as np
import pymc as pm

from tests.monte_carlo import smallest_ess, z_scores

FEW = 1_500
"""Draws of each chain by which most faults show at more than twice the limit."""


@dataclass(frozen=True)
class Agreement:
    """How draws compare with exact answers.

    Attributes
    ----------
    z : dict
        Monte Carlo standard errors between draws and exact answer, by quantity and summary.
    ess : float
        Fewest effective draws behind any summary.
    """

    z: dict
    ess: float

    @property
    def worst(self):
        return max(abs(value) for value in self.z.values())


def compare(model, steps, answers, *, draws=5_000, tune=500, chains=2, seed=11):
    """Sample a model and compare.

    Parameters
    ----------
    model : Model
        The model.
    steps : list
        Steps for some of the variables; PyMC chooses the others'.
    answers : dict
        An exact answer for each variable's name; a list of them for the entries of a vector.
    """
    with model:
        posterior = pm.sample(
            draws=draws,
            tune=tune,
            chains=chains,
            cores=1,
            step=steps,
            random_seed=seed,
            var_names=list(answers),
            progressbar=False,
        ).posterior
    z, sizes = {}, []
    for name, answer in answers.items():
        values = posterior[name].values
        entries = np.moveaxis(values.reshape(*values.shape[:2], -1), -1, 0)
        exact = answer if isinstance(answer, list) else [answer]
        for k, (x, exact_x) in enumerate(zip(entries, exact, strict=True)):
            z.update({(name, k, summary): v for summary, v in z_scores(x, exact_x).items()})
            sizes.append(smallest_ess(x))
    return Agreement(z, min(sizes))


def assert_agrees(agreement):
    """Check that enough effective draws agree with the exact answers."""
    assert agreement.ess >= 1_000, agreement
    assert agreement.worst < 4, agreement


def assert_disagrees(agreement):
    """Check that a fault shows."""
    assert agreement.worst > 4, agreement
