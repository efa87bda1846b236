"""Moves along a sum of parameters leave their joint law as it is."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests import interweave_twins as twins
from tests.monte_carlo import z_score_of_mean

REPLICATES = 6_000
SPREAD, GROUP = 0.8, np.array([0, 0, 1, 2])


def model_of_levels():
    """A centre, levels around it, and deviations from these: data depend on their sum."""
    with pm.Model() as model:
        centre = pm.Normal("centre", 1, 0.7)
        level = pm.Normal("level", 0, SPREAD, shape=3)
        start = pm.Normal.dist(0, 1, shape=(4, 1))
        apart = pm.AR("apart", rho=[0.6], sigma=0.5, init_dist=start, shape=(4, 3))
        pm.Laplace("told", centre + level[GROUP, None] + apart, 0.5, shape=(4, 3))
    return model


def joint_draws(rng):
    centre, level = rng.normal(1, 0.7, REPLICATES), rng.normal(0, SPREAD, (REPLICATES, 3))
    apart = rng.normal(size=(REPLICATES, 4, 3))
    for t in (1, 2):
        apart[..., t] = 0.6 * apart[..., t - 1] + 0.5 * apart[..., t]
    total = centre[:, None, None] + level[:, GROUP, None] + apart
    told = rng.laplace(total, 0.5)
    return {"centre": centre, "level": level, "apart": apart, "told": told}


def functions(p):
    """Bounded functions of all variables, so that their means have standard errors."""
    centre, level, apart = p["centre"], p["level"], p["apart"]
    within = [apart[:, 0, 0], apart[:, 3, 2], apart[:, 2, 1] - 0.6 * apart[:, 2, 0]]
    each = [centre, *level.T, *within, centre * level[:, 0], level[:, 2] * within[1]]
    each += [x**2 for x in (centre, level[:, 1], *within)]
    each += [p["told"][:, 0, 0] - centre, p["told"][:, 2, 2] - apart[:, 2, 2]]
    return np.tanh(each)


def largest_change(step_type):
    model, rng = model_of_levels(), np.random.default_rng(1)
    moved = [model["centre"], model["level"]]
    step = step_type(moved, records=[model["apart"]], model=model, moves=2)
    step.setup_chain(np.random.default_rng(2), tune=0, draws=REPLICATES)
    before = joint_draws(rng)
    after = {name: x.copy() for name, x in before.items()}
    for k in range(REPLICATES):
        point, _ = step.step({name: x[k] for name, x in before.items()})
        for name, x in after.items():
            x[k] = point[name]
    np.testing.assert_array_equal(after["told"], before["told"])
    change = functions(after) - functions(before)
    assert (change.std(axis=1) > 0).all()
    return np.abs([z_score_of_mean(x, 0.0) for x in change]).max()


def test_the_joint_law_stays():
    assert largest_change(pmd.InterweaveStep) < 4


@pytest.mark.parametrize("forgotten", ["apart", pytest.param("level", marks=pytest.mark.long)])
def test_without_a_terms_own_law_it_does_not(forgotten, monkeypatch):
    broken = twins.with_fault(twins.without_factor(forgotten), monkeypatch)
    assert largest_change(broken) > 6
