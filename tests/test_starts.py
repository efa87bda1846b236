"""Where what is published bounds the true values, `pmd.sample` finds a start by itself."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError

import pymc_dapper as pmd
from pymc_dapper.records.compiled.start import RecordStart
from tests.evaluated_in_python import evaluated_in_python

DECADES = np.arange(0, 100, 10)
CHANGES = {"i": [0, 1, 1, 2, 2, 2], "v": [0, -1, 1, -2, 0, 1], "p": [1, 0.5, 0.5, 0.2, 0.5, 0.3]}
MECHANISMS = {
    "rounded": pmd.RandomRounding(3),
    "by keys": pmd.CellKey(CHANGES),
    "as they are": pmd.TransitionMechanism([[1]], differences=[0], repeats=1),
    "truncated noise": pmd.TulapMechanism(0.5, 0.4),
}


def categories():
    p = pm.Dirichlet("p", np.ones(5))
    x = pm.Categorical("x", p=p, shape=1000)
    return pmd.statistics.counts(x, 5).value, [600, 250, 3, 0, 147]


def table():
    p = pm.Dirichlet("p", np.ones(5))
    return pm.Multinomial("x", n=1000, p=p), [600, 250, 3, 0, 147]


def ages():
    mean = pm.Normal("mean", 40, 20)
    x = pm.Normal("x", mean, 10, shape=200)
    bins = pt.stack([((x >= low) & (x < low + 10)).sum() for low in DECADES])
    return bins, np.histogram(np.random.default_rng(2).normal(55, 12, 200), [*DECADES, 100])[0]


def draw(build, mechanism, **options):
    """Draw once; return whether what was released is possible there."""
    with evaluated_in_python(), pm.Model() as model:
        statistic, truth = build()
        released = mechanism.release(truth, random_seed=1)
        mechanism.potential("published", statistic, released=released)
        drawn = pmd.sample(
            draws=1,
            tune=1,
            chains=1,
            cores=1,
            random_seed=1,
            tabulate=False,
            interweave=False,
            keep_records=True,
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        ).posterior["x"]
        log_densities = mechanism.logp(released, statistic).eval(
            {model["x"]: drawn.values[0, 0]}, mode="FAST_COMPILE"
        )
        return np.isfinite(log_densities)


@pytest.mark.long
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("build", [categories, table, ages])
def test_a_chain_starts_where_what_was_published_is_possible(build, name):
    assert draw(build, MECHANISMS[name]).all()


@pytest.mark.long
@pytest.mark.parametrize("build", [categories, ages])
def test_without_a_search_it_does_not(build, monkeypatch):
    monkeypatch.setattr(RecordStart, "__call__", lambda self, rng, records, given: records)
    with pytest.raises(SamplingError, match="no possible start"):
        draw(build, MECHANISMS["rounded"], dapper={"max_start_sweeps": 10})
