"""Iterations that are computed many at a time, as `pmd.sample` has them, against a joint posterior.

Marginal laws alone wouldn't do: if parameters were drawn given records of the iteration before,
each would have the right law.
"""

import numpy as np
import pymc as pm
import pytest
from scipy.special import beta as beta_function
from scipy.special import comb

import pymc_dapper as pmd
from pymc_dapper.backend import iterations
from pymc_dapper.backend.iterations import Iterations
from pymc_dapper.steps import gibbs
from tests.monte_carlo import z_score_of_mean
from tests.preloaded import preloaded

N, A, B, RELEASED, SCALE = 6, 2.0, 3.0, 4.2, 1.0
DRAWS, TUNE = 12_000, 100

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def model():
    with pm.Model() as model:
        p = pm.Beta("p", A, B)
        record = pm.Bernoulli("record", p, shape=N)
        total = pm.Deterministic("total", record.sum())
        pmd.LaplaceMechanism(SCALE).potential("privacy", total, released=RELEASED)
    return model


def exact():
    """Posterior means of products of p and the total: p is marginalised by hand."""
    total = np.arange(N + 1)
    weight = comb(N, total) * beta_function(A + total, B + N - total)
    weight *= np.exp(-np.abs(RELEASED - total) / SCALE)
    weight /= weight.sum()
    p = (A + total) / (A + B + N)
    square = p * (A + total + 1) / (A + B + N + 1)
    return {
        "p": weight @ p,
        "p^2": weight @ square,
        "total": weight @ total,
        "p * total": weight @ (p * total),
        **{f"total = {k}": weight[k] for k in total[2:]},
    }


def sample(model, **options):
    usual = {"draws": DRAWS, "tune": TUNE, "chains": 1, "cores": 1, "interweave": False}
    return pmd.sample(
        **{**usual, **options},
        model=model,
        tabulate=False,
        random_seed=3,
        progressbar=False,
        compute_convergence_checks=False,
    )


def furthest(drawn):
    """Standard errors between the draws and what is furthest from its exact answer."""
    p, total = (drawn.posterior[name].values[0] for name in ("p", "total"))
    found = {"p": p, "p^2": p**2, "total": total, "p * total": p * total}
    found |= {f"total = {k}": total == k for k in range(2, N + 1)}
    return max(abs(z_score_of_mean(found[name], of)) for name, of in exact().items())


@pytest.fixture
def blocks(monkeypatch):
    """How many iterations each block had."""
    lengths, call = [], Iterations.__call__

    def counting(self, n, *arguments):
        lengths.append(n)
        return call(self, n, *arguments)

    monkeypatch.setattr(Iterations, "__call__", counting)
    return lengths


@pytest.mark.parametrize("interweave", [False, True])
def test_draws_are_from_the_joint_posterior(model, blocks, interweave):
    drawn = sample(model, interweave=interweave)
    assert furthest(drawn) < 4
    assert sum(blocks) > 0.9 * DRAWS
    if interweave:
        assert np.all(drawn.sample_stats["interweave_moves"] > 0)


def test_a_loop_that_passes_on_old_values_is_caught(model, blocks, monkeypatch):
    """p is drawn given the records of the iteration before."""
    source = iterations._source

    def stale(transitions, point, **options):
        written = source(transitions, point, **options)
        x = f"x{[*point].index('record')}"
        loop = "    for i in range(n):\n"
        edited = written.replace(loop, f"{loop}        before = {x}\n")
        return edited.replace(f"f1(rng1, {x}", "f1(rng1, before")

    monkeypatch.setattr(iterations, "_source", stale)
    assert furthest(sample(model)) > 6
    assert sum(blocks) > 0.9 * DRAWS


@pytest.mark.parametrize("options", [{}, {"mp_ctx": preloaded()}])
def test_processes_draw_the_same(model, options, monkeypatch):
    """Those that are forked, and those that begin with nothing; and without blocks."""
    several = {"draws": 2_200, "chains": 2, "cores": 2}
    drawn = sample(model, **several, **options).posterior
    monkeypatch.setattr(gibbs, "FEWEST", np.inf)
    one_by_one = sample(model, **several | {"cores": 1}).posterior
    for name in ("p", "total"):
        np.testing.assert_array_equal(drawn[name], one_by_one[name])
