"""How well tables mix under CountStep where statistics overlap or the prior ties cells together."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats
from pymc.step_methods import CompoundStep

import pymc_dapper as pmd
from pymc_dapper.counts import step as steps
from pymc_dapper.counts.compiled import blocks as count_blocks
from pymc_dapper.counts.step import CountStep

pytestmark = pytest.mark.long


def overlapping(kind):
    """A Poisson table with noisy sums that overlap; how noisy, shared data say."""
    shape = {"windows": (20,), "three margins": (3, 4, 5)}[kind]
    with pm.Model() as model:
        x = pm.Poisson("x", 5_000.0, shape=shape)
        if kind == "windows":
            sums = [pt.stack([x[k : k + 4].sum() for k in range(17)])]
        else:
            sums = [x.sum(axis=axis) for axis in range(3)]
        sigma = pm.Data("sigma", np.ones(2))
        cells = pm.Data("cells", np.zeros(shape))
        pm.Potential("of_cells", -0.5 * (((x - cells) / sigma[1]) ** 2).sum())
        for k, statistic in enumerate(sums):
            values = pm.Data(
                f"sums{k}",
                np.zeros(statistic.shape.eval({x: np.zeros(shape, int)}, mode="FAST_COMPILE")),
            )
            pm.Potential(f"of_sums{k}", -0.5 * (((statistic - values) / sigma[0]) ** 2).sum())
        compiled = pm.compile([x], sums, mode="FAST_COMPILE")
    return model, compiled


def release(model, sums, sigma, rng):
    """Draw a table and its release."""
    truth = rng.poisson(5_000, model["x"].shape.eval(mode="FAST_COMPILE"))
    data = {"sigma": np.array(sigma), "cells": truth + rng.normal(0, sigma[1], truth.shape)}
    for k, values in enumerate(sums(truth)):
        data[f"sums{k}"] = values + rng.normal(0, sigma[0], values.shape)
    pm.set_data(data, model=model)
    return truth


def shares(draws):
    """Effective draws per sweep of each column."""
    return np.array(
        [
            float(array_stats.ess(x[None], chain_axis=0, draw_axis=1, method="mean")) / len(x)
            for x in draws.T
        ]
    )


def sweeps(step, point, names, draws, rng):
    step.setup_chain(rng, tune=100, draws=draws)
    kept = []
    for k in range(100 + draws):
        point, _ = step.step(point)
        if k >= 100:
            kept.append(np.concatenate([np.ravel(point[name]) for name in names]))
    return np.array(kept, dtype=float)


@pytest.fixture(scope="module", params=["windows", "three margins"])
def table(request):
    model, sums = overlapping(request.param)
    return model, sums, CountStep([model["x"]], model=model)


@pytest.mark.parametrize("sigma", [(0.5, 10.0), (0.5, 1_000.0), (10.0, 1_000.0), (1_000.0, 0.5)])
def test_cells_mix_where_sums_overlap(table, sigma):
    model, sums, step = table
    rng = np.random.default_rng(4)
    truth = release(model, sums, sigma, rng)
    assert shares(sweeps(step, {"x": truth}, ["x"], 1_500, rng)).min() > 0.1


def test_without_directions_of_blocks_they_do_not(monkeypatch):
    find = steps.moves_of
    monkeypatch.setattr(steps, "moves_of", lambda *args: replace(find(*args), blocks=()))
    model, sums = overlapping("windows")
    step, rng = CountStep([model["x"]], model=model), np.random.default_rng(4)
    truth = release(model, sums, (0.5, 10.0), rng)
    assert shares(sweeps(step, {"x": truth}, ["x"], 1_500, rng)).min() < 0.03


def test_cells_mix_where_all_is_nearly_exact(table, monkeypatch):
    model, sums, step = table
    found = []
    for passes in (count_blocks.JOINT_PASSES, 0):
        monkeypatch.setattr(count_blocks, "JOINT_PASSES", passes)
        rng = np.random.default_rng(4)
        truth = release(model, sums, (0.5, 0.5), rng)
        found.append(shares(sweeps(step, {"x": truth}, ["x"], 1_500, rng)).min())
    assert found[0] > 0.2
    if len(model["x"].type.shape) == 3:
        assert found[1] < 0.2  # by one direction at a time


@pytest.fixture(scope="module")
def nearly_empty():
    """A Dirichlet-multinomial with cells that may be empty, and precise sums over windows."""
    weights = np.random.default_rng(1).gamma(3, size=20)
    weights /= weights.sum()
    truth = np.random.default_rng(3).multinomial(1_000, weights)
    with pm.Model():
        x = pm.DirichletMultinomial("x", n=1_000, a=40 * weights)
        windows = pt.stack([x[k : k + 4].sum() for k in range(17)])
        values = np.convolve(truth, np.ones(4), "valid")
        pm.Potential("privacy", -0.5 * (((windows - values) / 0.5) ** 2).sum())
        return CountStep([x]), truth


def least_of_chains(step, truth, chains=8):
    return min(
        shares(sweeps(step, {"x": truth}, ["x"], 1_000, np.random.default_rng(seed))).min()
        for seed in range(chains)
    )


def test_directions_fit_wherever_they_were_measured(nearly_empty, monkeypatch):
    step, truth = nearly_empty
    assert least_of_chains(step, truth) > 0.1
    monkeypatch.setattr(count_blocks, "EMPTIEST", 1e9)  # as if there was always room
    assert least_of_chains(step, truth) < 0.1


@pytest.fixture(scope="module", params=["a table's probabilities", "a share in common"])
def counts_below(request):
    """Counts whose conjugate parameter is marginalised, or drawn by a step of its own."""
    with pm.Model() as model:
        n, sigma = pm.Data("n", 100), pm.Data("sigma", 1.0)
        if request.param == "a share in common":
            p, shape = pm.Beta("p", 1, 1), (20,)
            x = pm.Binomial("x", n=n, p=p, shape=shape)
        else:
            p, shape = pm.Dirichlet("p", np.ones(2)), (2,)
            x = pm.Multinomial("x", n=n, p=p)
        released = pm.Data("released", np.full(shape, 50.0))
        pm.Potential("privacy", -0.5 * (((x - released) / sigma) ** 2).sum())
        alone = CompoundStep([CountStep([x]), pmd.ConjugateStep([p])])
        return model, shape, [CountStep([x], integrate=[p]), alone]


@pytest.mark.parametrize("n", [10_000, 1_000_000])
@pytest.mark.parametrize("sigma", [10.0, 1_000.0, 10_000.0])
def test_parameters_mix_once_marginalised(counts_below, n, sigma):
    model, shape, steps = counts_below
    rng = np.random.default_rng(8)
    truth = rng.multinomial(n, [0.49, 0.51]) if shape == (2,) else rng.binomial(n, 0.3, shape)
    released = truth + rng.normal(0, sigma, shape)
    pm.set_data({"n": n, "sigma": sigma, "released": released}, model=model)
    point = {**model.initial_point(), "x": truth}
    name = model.rvs_to_values[model["p"]].name
    marginalised, alone = (shares(sweeps(step, point, [name], 1_500, rng)).min() for step in steps)
    assert marginalised > 0.1
    if sigma == 10_000:
        assert alone < 0.05


@pytest.mark.parametrize(("n", "sigma"), [(10_000, 1_000.0), (1_000_000, 10_000.0)])
def test_cells_that_grow_together_do_so_by_long_steps(n, sigma, monkeypatch):
    rng = np.random.default_rng(5)
    truth = rng.binomial(n, 0.3, 20)
    with pm.Model() as model:
        p = pm.Gamma("p", 1, 1e-5)
        x = pm.Poisson("x", p * np.linspace(0.5, 1.5, 20))
        released = truth + rng.normal(0, sigma, 20)
        pm.Potential("privacy", -0.5 * (((x - released) / sigma) ** 2).sum())
        step = CountStep([x], integrate=[p])
    point = {**model.initial_point(), "x": truth}
    name = model.rvs_to_values[p].name

    def share():
        return shares(sweeps(step, point, [name], 1_500, np.random.default_rng(6))).min()

    assert share() > 0.3
    monkeypatch.setattr(count_blocks, "SOFT", -np.inf)  # short steps only
    assert share() < 0.15
