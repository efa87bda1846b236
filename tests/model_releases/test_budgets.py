"""What a model says of its releases' budgets, written into a result and read from it."""

import numpy as np
import pymc as pm

import pymc_dapper as pmd
from pymc_dapper.model_releases.budgets import Releases, read_releases

BUDGET = pmd.ZCDP(0.25)


def test_mechanisms_are_told_from_other_factors():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=8)
        calibrated = pmd.GaussianMechanism(2**0.5, budget=BUDGET)
        calibrated.potential("calibrated", x.sum(), released=3.0)
        pmd.GaussianMechanism(2.0).potential("by scale", x.sum(), released=3.0)
        pm.Potential("by hand", -(x.sum() ** 2))
    found = read_releases(model, ["calibrated", "by scale", "by hand"])
    assert found == Releases({"calibrated": BUDGET, "by scale": None}, ("by hand",))


def test_what_is_written_is_read_again():
    budgets = {
        "a": pmd.PureDP(np.log(3)),
        "b": BUDGET,
        "c": pmd.ApproxDP(1.0, 1e-6),
        "d": None,
    }
    releases = Releases(budgets, ("other",))
    assert Releases.from_json(releases.to_json()) == releases
