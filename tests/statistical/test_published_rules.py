"""Simulation-based calibration of whole chains, for a release that three rules were applied to."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests.short_chains import chain, p_value

DRAWS, THIN, TUNE, REPLICATES = 7, 40, 200, 120


def rounded_first(mechanism):
    return mechanism.rounded(5).published_if(">=", 10).clamped(None, 30)


def suppressed_first(mechanism):
    return mechanism.published_if(">=", 10).rounded(5).clamped(None, 30)


def build_model(rules):
    with pm.Model() as model:
        rate = pm.Gamma("rate", 4, 0.4)
        count = pm.Poisson("count", rate, shape=4)
        released = pm.Data("released", np.array([10.0, 15.0, -np.inf, 20.0]))
        rules(pmd.LaplaceMechanism(2.0)).potential("table", count, released=released)
        steps = [pmd.CountStep([count]), pmd.ConjugateStep([rate])]
    return model, steps


def uniformity(model, steps, seed):
    """P-values of the ranks of the truth among draws, by quantity, as rules of the truth release.

    Releases of which nothing is published are refused, and left out: ranks are uniform given any
    release.
    """
    rng = np.random.default_rng(seed)
    released_by = rounded_first(pmd.LaplaceMechanism(2.0))
    ranks = []
    while len(ranks) < REPLICATES:
        rate = rng.gamma(4, 1 / 0.4)
        count = rng.poisson(rate, size=4)
        released = released_by.release(count, random_seed=rng)
        if released.mask.all():
            continue
        pm.set_data({"released": np.where(released.mask, -np.inf, released.data)}, model=model)
        points = [*chain(model.initial_point(), steps, rng, tune=TUNE, draws=DRAWS, thin=THIN)]
        counts = np.array([x["count"] for x in points])
        draws = {"rate": np.exp([x["rate_log__"] for x in points]), "total": counts.sum(axis=1)}
        hidden = released.mask
        if hidden.any():
            draws["hidden"] = counts[:, hidden].sum(axis=1)
        true = {"rate": rate, "total": count.sum(), "hidden": count[hidden].sum()}
        ranks.append({name: rank(rng, true[name], x) for name, x in draws.items()})
    return {
        name: p_value([x[name] for x in ranks if name in x], DRAWS)
        for name in ("rate", "total", "hidden")
    }


def rank(rng, true, draws):
    ties = np.count_nonzero(draws == true)
    return np.count_nonzero(draws < true) + int(rng.integers(ties + 1))


@pytest.mark.long
def test_chains_are_calibrated_and_those_of_rules_in_another_order_are_not():
    assert min(uniformity(*build_model(rounded_first), seed=1).values()) > 1e-3
    assert min(uniformity(*build_model(suppressed_first), seed=1).values()) < 1e-6
