"""Which factors are read as functions of order statistics, and of sums."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.orders import ByOrder
from pymc_dapper.records.reading.plan import ByFullEvaluation

N = 6
GROUP = np.array([0, 1, 1, 0, 1, 0])


def noisy(name, *statistics):
    for k, statistic in enumerate(statistics):
        gaps = pt.abs(0.3 - statistic)
        pm.Potential(f"{name}{k}", -gaps.sum())


def read(says):
    with pm.Model() as model:
        noisy("release", *says(pm.Normal("x", pm.Normal("mu"), 1, shape=N)))
    return read_model(model, [model.rvs_to_values[model["x"]]], model.initial_point())


ORDERS = {
    "a median": (lambda x: [pt.sort(x)[N // 2]], [[0, 3]]),
    "from the end": (lambda x: [pt.sort(x)[-2]], [[0, 4]]),
    "the two in the middle": (lambda x: [pt.median(x)], [[0, 2], [0, 3]]),
    "quartiles": (lambda x: [pt.sort(x)[[1, 3, 4]]], [[0, 1], [0, 3], [0, 4]]),
    "a range": (lambda x: [x.max() - x.min()], [[0, 5], [1, 5]]),
    "of a group": (lambda x: [pt.sort(x[GROUP == 1])[1]], [[0, 1]]),
    "the largest of a group": (lambda x: [pt.switch(GROUP, x, -np.inf).max()], [[0, 5]]),
    "of those above 0": (lambda x: [pt.sort(pt.switch(x > 0, x, np.nan))[1]], [[0, 1]]),
    "beside sums": (lambda x: [pt.sort(x)[3], x.sum(), (x**2).sum()], [[0, 3]]),
    "times a sum": (lambda x: [pt.sort(x)[3] * x.sum()], [[0, 3]]),
    "of another scale": (lambda x: [pt.sort(pt.exp(x))[3], x.max()], [[0, 5], [1, 3]]),
}


@pytest.mark.parametrize(("says", "ranks"), ORDERS.values(), ids=ORDERS)
def test_order_statistics_are_read(says, ranks):
    """The log-density at those of sorted columns, and at sums, is the model's."""
    reading = read(says)
    plan = reading.plan
    assert isinstance(plan, ByOrder)
    assert plan.ranks.tolist() == ranks
    [x], at = reading.records, np.random.default_rng(1).normal(size=N)
    sums = [s.contributions.sum(axis=0) for s in plan.sums]
    columns = compile_in_python(reading.model, [x], [*plan.columns, *sums])(at)
    n = len(plan.columns)
    values = [np.sort(columns[column])[rank] for column, rank in plan.ranks]
    given = [*plan.statistics, *(s.total for s in plan.sums)]
    found = compile_in_python(reading.model, given, [plan.log_density])(*values, *columns[n:])
    whole = pt.add(*(factor.as_written for factor in reading.factors))
    [expected] = compile_in_python(reading.model, [x], [whole])(at)
    np.testing.assert_allclose(found[0], expected, rtol=1e-12)


OTHERS = {
    "deviations from the median": lambda x: [pt.abs(x - pt.median(x)).sum()],
    "their median": lambda x: [pt.median(pt.abs(x - pt.median(x)))],
    "of deviations from the mean": lambda x: [pt.sort(x - x.mean())[3]],
    "records around the median": lambda x: [x - pt.median(x)],
    "a rank that depends on records": lambda x: [pt.sort(x)[(x > 0).sum() - 1]],
    "a record twice": lambda x: [pt.sort(x[[0, 0, 1]])[1]],
    "beside what isn't one": lambda x: [x.max(), (x[1:] * x[:-1]).sum()],
    "times a variance": lambda x: [x.max() * x.var()],
    "running": lambda x: [pt.cumsum(pt.sort(x))[3]],
}


@pytest.mark.parametrize("says", OTHERS.values(), ids=OTHERS)
def test_others_are_evaluated_from_all_records(says):
    assert isinstance(read(says).plan, ByFullEvaluation)


@pytest.mark.parametrize("n", [16, 17])
def test_many_order_statistics_are_not_followed(n):
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=40)
        noisy("release", pt.sort(x)[10 : 10 + n].mean())
    plan = read_model(model, [model.rvs_to_values[x]], model.initial_point()).plan
    assert isinstance(plan, ByOrder if n == 16 else ByFullEvaluation)


def known(x, statistic):
    return pm.Potential("known", pt.switch(pt.eq(statistic(x), 1.0), 0.0, -np.inf))


@pytest.mark.parametrize("statistic", [pt.max, pt.min, lambda x: pt.sort(x)[2] - 0.3])
def test_what_is_known_exactly_of_continuous_records_is_refused(statistic):
    with pytest.raises(ReadingError, match=r"'known0?': a maximum or another .* as a pm.Potential"):
        read(lambda x: [known(x, statistic)])


def test_what_is_known_exactly_of_whole_numbers_is_read():
    with pm.Model() as model:
        known(pm.Poisson("x", 2.0, shape=N), pt.max)
    reading = read_model(model, [model.rvs_to_values[model["x"]]], model.initial_point())
    assert isinstance(reading.plan, ByOrder)


def test_a_maximum_that_was_rounded_is_read():
    def rounded(x):
        return [pt.switch(pt.abs(x.max() - 1.0) < 0.05, 0.0, -np.inf)]

    assert isinstance(read(rounded).plan, ByOrder)


@pytest.mark.usefixtures("uncompiled")
def test_many_records_need_no_full_evaluation_and_the_step_says_so():
    with pm.Model():
        x = pm.Normal("x", 0, 1, shape=2_000)
        pmd.LaplaceMechanism(0.1).observe("median", pt.median(x), released=0.2)
        described = pmd.DapperStep([x]).describe()
    assert "  median  order statistics  " in described
    assert "decided on by 2 order statistics" in described
    assert "it grows linearly with n" in described
