"""Chains start at records that have the known totals, wherever the prior alone hardly leads."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.reading import read_model
from pymc_dapper.records.compiled.exchange_start import ExchangeStart
from pymc_dapper.records.reading.exchange_groups import read_exchange

MARGIN = [10, 20, 30, 40, 50, 60, 70, 20]


def categories():
    x = pm.Categorical("x", np.ones(8) / 8, shape=300)
    pmd.invariant("margin", pt.eye(8)[x].sum(axis=0), MARGIN)
    return x, lambda x: np.array_equal(np.bincount(x), MARGIN)


def groups_of_counts():
    group, totals = np.arange(30) % 3, [5, 60, 300]
    x = pm.Poisson("x", 4.0, shape=30)
    pmd.invariant("totals", pt.inc_subtensor(pt.zeros(3)[group], x), totals)
    return x, lambda x: np.array_equal(np.bincount(group, x), totals)


def incomes():
    x = pm.LogNormal("x", 0, 1, shape=6)
    pm.Potential("total", pt.switch(pt.abs(x.sum() - 300) < 1e-6, 0.0, -np.inf))
    return x, lambda x: abs(np.exp(x).sum() - 300) < 1e-6


def shares():
    x = pm.Uniform("x", 0, 1, shape=6)
    pm.Potential("total", pt.switch(pt.abs(x.sum() - 0.5) < 1e-6, 0.0, -np.inf))
    return x, lambda x: abs((1 / (1 + np.exp(-x))).sum() - 0.5) < 1e-6


def above():
    x = pm.Normal("x", 0, 1, shape=20)
    pmd.invariant("above", (x > 0).sum(), 19)
    return x, lambda x: (x > 0).sum() == 19


@pytest.mark.parametrize("build", [categories, groups_of_counts, incomes, shares, above])
def test_records_with_the_known_totals_are_found(build):
    with pm.Model() as model:
        x, has_totals = build()
    point, value = model.initial_point(), model.rvs_to_values[x]
    reading = read_model(model, [value], point)
    find = ExchangeStart(reading, read_exchange(reading, point))
    [found] = find(np.random.default_rng(1), [point[value.name]], [])
    assert has_totals(found)
    assert found.dtype == point[value.name].dtype
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")({value.name: found}))
    # What has them already stays as it is.
    [again] = find(np.random.default_rng(2), [found], [])
    assert np.array_equal(again, found)
