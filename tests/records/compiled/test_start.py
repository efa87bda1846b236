"""Chains start at records that can have led to a release, wherever the prior hardly leads."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.reading import read_model
from pymc_dapper.records.compiled.start import RecordStart
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
    find = RecordStart(reading, read_exchange(reading, point))
    [found] = find(np.random.default_rng(1), [point[value.name]], [])
    assert has_totals(found)
    assert found.dtype == point[value.name].dtype
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")({value.name: found}))
    # What has them already stays as it is.
    [again] = find(np.random.default_rng(2), [found], [])
    assert np.array_equal(again, found)


# Where noise is bounded ---------------------------------------------------------------------------

ROUNDING = pmd.RandomRounding(3)
RNG = np.random.default_rng(3)


def within(name, statistic, released, width):
    apart = pt.abs(released - statistic)
    pm.Potential(name, pt.switch(apart <= width, 0.0, -np.inf))


def many_categories():
    truth = RNG.multinomial(1000, RNG.dirichlet(np.full(16, 0.3)))
    x = pm.Categorical("x", np.full(16, 1 / 16), shape=1000)
    ROUNDING.potential("cells", pmd.statistics.counts(x, 16), released=truth // 3 * 3)
    return x


def two_attributes_with_margins():
    x = pm.Categorical("x", np.full(6, 1 / 6), shape=500)
    table = pmd.statistics.counts(x, 6).value
    ROUNDING.potential("cells", table, released=[3, 0, 300, 12, 180, 3])
    ROUNDING.potential("first", table.reshape((2, 3)).sum(axis=1), released=[306, 195])
    return x


def all_within_a_limit():
    x = pm.Categorical("x", np.full(4, 0.25), shape=400)
    table = pmd.statistics.counts(x, 4).value
    near = pt.all(pt.abs(np.array([10, 230, 48, 111]) - table) <= 2)
    pm.Potential("privacy", pt.switch(near, 0.0, -np.inf))
    return x


def counts_with_gaps():
    changes = [[0.3, 0, 0.5, 0.2]]
    changed = pmd.TransitionMechanism(changes, differences=[-2, -1, 0, 1], repeats=1)
    x = pm.Categorical("x", np.full(5, 0.2), shape=1000)
    table = pmd.statistics.counts(x, 5).value
    changed.potential("cells", table, released=[601, 249, 4, 0, 147])
    return x


def sum_far_from_the_prior():
    x = pm.Normal("x", 0, 1, shape=200)
    within("sum", x.sum(), 200 * 6.0, 0.5)
    return x


def mean_and_square():
    x = pm.Normal("x", 0, 5, shape=200)
    within("sum", x.sum(), 600.0, 1.0)
    squares = (x**2).sum()
    pm.Potential("squares", pt.switch((squares > 2498.0) & (squares < 2502.0), 0.0, -np.inf))
    return x


def ages_by_decade():
    x = pm.Normal("x", 40, 15, shape=300)
    bins = pt.stack([((x >= low) & (x < low + 20)).sum() for low in (0, 20, 40, 60)])
    ROUNDING.potential("bins", bins, released=[60, 60, 60, 117])
    return x


def heights_far_from_the_prior():
    x = pm.Normal("x", 0, 16, shape=300)
    bins = pt.stack([((x >= low) & (x < low + 10)).sum() for low in (50, 60, 70, 80, 90)])
    ROUNDING.potential("bins", bins, released=[0, 30, 120, 117, 30])
    return x


def counts_of_people():
    group = np.arange(60) % 3
    x = pm.Poisson("x", 4.0, shape=60)
    total = pt.inc_subtensor(pt.zeros(3)[group], x)
    ROUNDING.potential("totals", pt.cast(total, "int64"), released=[60, 120, 240])
    return x


def truncated_tulap():
    x = pm.Bernoulli("x", 0.5, shape=300)
    pmd.TulapMechanism(0.5, 0.4).potential("yes", x.sum(), released=280.3)
    return x


BOUNDED = [
    *(
        many_categories,
        two_attributes_with_margins,
        all_within_a_limit,
        counts_with_gaps,
        sum_far_from_the_prior,
    ),
    *(mean_and_square, ages_by_decade, heights_far_from_the_prior, counts_of_people),
    truncated_tulap,
]


@pytest.mark.parametrize("build", BOUNDED)
def test_records_that_can_have_led_to_a_release_are_found(build):
    with pm.Model() as model:
        x = build()
    point, value = model.initial_point(), model.rvs_to_values[x]
    log_density = model.compile_logp(mode="FAST_COMPILE")
    assert not np.isfinite(log_density(point))
    reading = read_model(model, [value], point)
    assert read_exchange(reading, point) is None
    [found] = RecordStart(reading)(np.random.default_rng(1), [point[value.name]], [])
    assert np.isfinite(log_density({value.name: found}))
    assert found.dtype == point[value.name].dtype


@pytest.mark.usefixtures("in_python")
def test_steps_lead_to_no_category_that_a_table_lacks():
    with pm.Model() as model:
        x = pm.Categorical("x", [0.2, 0.3, 0.5], shape=7)
        y = pm.Normal("y", pt.constant([0.0, 1.0, 2.0])[x], 0.5, shape=7)
        rows = pt.eye(3)[x]
        pmd.invariant("table", rows.sum(axis=0), [2, 2, 3])
        totals = (rows * y[:, None]).sum(axis=0)
        pmd.LaplaceMechanism(1.0).potential("totals", totals, released=[1.0, -2.0, 3.0])
        step = pmd.DapperStep([x, y])
    for seed in range(8):
        step.setup_chain(np.random.default_rng(seed), tune=0, draws=1)
        point, _ = step.step(model.initial_point())
        assert list(np.bincount(point["x"])) == [2, 2, 3]
