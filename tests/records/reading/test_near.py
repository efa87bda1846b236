"""Proposals near the present records, against their conditional distribution by enumeration."""

from contextlib import nullcontext

import arviz as az
import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading import near
from tests.broken import edited

FEW, MANY = 30_000, 160_000
RELEASED, SCALE, SHARE, MEAN = 9, 3.0, 0.6, 14.0


def hurdle(name, **kwargs):
    return pm.ZeroInflatedPoisson(name, psi=SHARE, mu=MEAN, **kwargs)


def read(make=hurdle, mechanism=None, **kwargs):
    mechanism = mechanism or pmd.DiscreteLaplaceMechanism(SCALE)
    with pm.Model() as model:
        x = make("x", **{"shape": FEW} | kwargs)
        mechanism.potential("privacy", x, released=np.full(model.initial_point()["x"].shape, 9))
    return read_model(model, [model.rvs_to_values[x]], model.initial_point())


def conditional(values):
    """Probabilities of values given what was released, up to a constant."""
    with_zeros = SHARE * stats.poisson.pmf(values, MEAN) + (1 - SHARE) * (values == 0)
    return with_zeros * np.exp(-abs(values - RELEASED) / SCALE)


TWINS = {
    "none": {},
    "rows begin at the present value": {
        "place = pt.floor(VALUES * u[1])": "place = pt.zeros_like(u[1])"
    },
    "distances depend on the present value": {
        "distance = pt.floor((1 + pt.abs(draws[1]) / 8) ** u[2])": (
            "distance = pt.floor((1 + pt.abs(x) / 2) ** u[2])"
        )
    },
    "the prior doesn't count in a row": {
        "log = log + vectorize_graph(log_likelihood, {record: values})": (
            "log = vectorize_graph(log_likelihood, {record: values})"
        )
    },
    "separable factors don't count in a row": {
        "log = log + vectorize_graph(log_likelihood, {record: values})": "pass"
    },
    "all draws from the prior are taken": {
        "gains = pt.log(u) < pt.switch(pt.isfinite(present), drawn - present, 0.0)": (
            "gains = pt.ones_like(u, dtype='bool')"
        )
    },
    "the last move isn't made": {
        "return or_drawn(in_row(or_drawn(record, draws[0], u[0])), draws[2], u[4])": (
            "return in_row(or_drawn(record, draws[0], u[0]))"
        )
    },
}

QUICK = ("none", "rows begin at the present value", "all draws from the prior are taken")
"""Of these, few records tell the twins apart by far; two of the others take many."""


@pytest.mark.parametrize(
    ("twin", "n"),
    [*((x, FEW) for x in QUICK), *(pytest.param(x, MANY, marks=pytest.mark.long) for x in TWINS)],
)
def test_proposals_leave_the_conditional_distribution_as_it_is_and_are_reversible(twin, n):
    values = np.arange(80)
    p = conditional(values) / conditional(values).sum()
    rng = np.random.default_rng(1)
    before = rng.choice(values, size=n, p=p)
    with edited(near, "_near", TWINS[twin]) if TWINS[twin] else nullcontext():
        reading = near.read_near(read(shape=n))
    [after], possible = reading.proposing_in_python()(rng, [before], [])
    assert possible.all()
    assert np.mean(after != before) > 0.3
    flows = np.zeros((80, 80))
    np.add.at(flows, (before, after), 1)
    # Each pair of values must be as frequent as its reverse.
    there, back = flows[np.triu_indices(80, 1)], flows.T[np.triu_indices(80, 1)]
    often = there + back >= 20
    statistic = ((there - back)[often] ** 2 / (there + back)[often]).sum()
    p_reversible = stats.chi2.sf(statistic, often.sum())
    often = n * p > 10
    found = np.array([*np.bincount(after, minlength=80)[often], np.sum(~often[after])])
    expected = n * np.array([*p[often], p[~often].sum()])
    p_invariant = stats.chisquare(found, expected).pvalue
    exact = min(p_reversible, p_invariant) > 1e-4
    assert exact == (twin == "none"), (p_reversible, p_invariant)


def test_a_record_far_away_comes_back_and_impossible_ones_become_possible():
    reading = near.read_near(read())
    rng = np.random.default_rng(1)
    [after], _ = reading.proposing_in_python()(rng, [np.full(FEW, -5)], [])
    assert after.min() >= 0
    assert reading.proposes_conditionally


@pytest.mark.parametrize(
    ("make", "kwargs", "is_near"),
    [
        (hurdle, {}, True),
        (lambda name, shape: pm.Binomial(name, 40, 0.3, shape=shape), {}, True),
        (lambda name, shape: pm.HurdlePoisson(name, 0.5, 3.0, shape=shape), {}, True),
        (lambda name, shape: pm.Normal(name, 0.0, 1.0, shape=shape), {}, False),
        (lambda name, shape: pm.Bernoulli(name, 0.3, shape=shape), {}, False),
        (hurdle, {"shape": (20, 2)}, False),
    ],
)
def test_vectors_of_whole_numbers_with_factors_of_their_own_are_proposed_so(make, kwargs, is_near):
    reading = read(make, pmd.LaplaceMechanism(2), **kwargs)
    assert near.read_near(reading).near == is_near
    assert is_near or near.read_near(reading) is reading


def test_records_of_a_noisy_histogram_are_drawn_from_their_prior():
    with pm.Model() as model:
        x = hurdle("x", shape=10)
        pmd.LaplaceMechanism(2).potential("privacy", x.sum(), released=30)
    reading = read_model(model, [model.rvs_to_values[x]], model.initial_point())
    assert near.read_near(reading) is reading


@pytest.mark.long
@pytest.mark.parametrize("twin", ["none", "rows begin at the present value"])
def test_a_posterior_of_counts_and_their_share_of_zeros_is_that_by_quadrature(twin):
    people, released, total = np.array([12.0, 8.0, 15.0]), np.array([5, 3, 6]), 16
    with pm.Model():
        share = pm.Beta("share", 2, 2)
        k = pm.ZeroInflatedPoisson("k", psi=share, mu=people, shape=3)
        pmd.DiscreteLaplaceMechanism(3).potential("privacy", k, released=released)
        pmd.DiscreteLaplaceMechanism(6).potential("total", k.sum(), released=total)
        with edited(near, "_near", TWINS[twin]) if TWINS[twin] else nullcontext():
            idata = pmd.sample(
                chains=2, draws=8000, tune=500, random_seed=1, progressbar=False,
                compute_convergence_checks=False,
            )  # fmt: skip

    s, w = np.polynomial.legendre.leggauss(40)
    s, w = (s + 1) / 2, w * stats.beta.pdf((s + 1) / 2, 2, 2)
    values = np.arange(60)
    of_each = [
        (s[:, None] * stats.poisson.pmf(values, mu) + (1 - s[:, None]) * (values == 0))
        * np.exp(-abs(values - r) / 3)
        for mu, r in zip(people, released, strict=True)
    ]
    grid = values[:, None, None], values[:, None], values
    joint = np.einsum("g,gi,gj,gk->gijk", w, *of_each) * np.exp(-abs(sum(grid) - total) / 6)
    joint /= joint.sum()
    expected = {
        "share": (joint.sum(axis=(1, 2, 3)) * s).sum(),
        **{f"k{i}": (joint.sum(axis=0) * grid[i]).sum() for i in range(3)},
        **{f"zero{i}": (joint.sum(axis=0) * (grid[i] == 0)).sum() for i in range(3)},
    }
    draws = idata.posterior["k"].values
    found = {"share": idata.posterior["share"].values}
    for i in range(3):
        found |= {f"k{i}": draws[..., i], f"zero{i}": (draws[..., i] == 0).astype(float)}
    z = [(x.mean() - expected[key]) / az.mcse(x) for key, x in found.items()]
    assert (np.max(np.abs(z)) < 4) == (twin == "none"), dict(zip(found, z, strict=True))
