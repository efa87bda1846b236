"""Which releases are decided on by where records lie among the candidates."""

import tracemalloc

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.view import view_of
from pymc_dapper.records.reading import self_check
from pymc_dapper.records.reading.factors import read_factors
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.ranks import ByRanks, read_ranks
from pymc_dapper.records.reading.self_check import check_reading

MEDIAN = pmd.QuantileMechanism([0.0, 1.0, 2.0], 0.5, 1.0)
NINTH = pmd.QuantileMechanism([1.0, 3.0], 0.9, 2.0, "exponential")


def ranks_of(*add, prior=pm.Normal.dist):
    with pm.Model() as model:
        x = model.register_rv(prior(size=(6,)), name="x")
        for k, each in enumerate(add):
            each(f"y{k}", x)
    view = view_of(model)
    others = [*model.observed_RVs, *model.potentials]
    records = [view.values[model.rvs_to_values[x]]]
    return read_ranks(records, read_factors(view.named_log_densities(others), records))


def release(mechanism, released):
    return lambda name, x: mechanism.observe(name, mechanism.statistic(x), released=released)


def test_releases_of_the_same_records_share_intervals():
    found = ranks_of(release(MEDIAN, 1.0), release(NINTH, 3.0))
    # Below 0, at it, between 0 and 1, at 1, ...: the candidate 1 is both releases'.
    assert found.columns.tolist() == [[0, 1, 2, 3, 4, 5, 6, 6, 6], [0, 0, 0, 1, 2, 2, 2, 3, 4]]
    assert [x.noise for x in found.mechanisms] == ["gumbel", "exponential"]
    assert [float(x.eval(mode="FAST_COMPILE")) for x in found.chosen] == [1, 1]


def test_whole_numbers_between_limits_are_read():
    mechanism = pmd.IntervalQuantileMechanism(0, 4, 0.5, 1.0)
    found = ranks_of(release(mechanism, 2.3), prior=lambda size: pm.Poisson.dist(2.0, size=size))
    assert found.columns.tolist() == [[0, 1, 2, 3, 4]]
    assert [x.tolist() for x in found.mechanisms[0].columns[:2]] == [[1, 2, 3, 4]] * 2


def laplace(name, x):
    release(pmd.QuantileMechanism([0.0, 1.0], 0.5, 1.0, "laplace"), 1.0)(name, x)


def tempered(name, x):
    pm.Potential(name, 0.5 * MEDIAN.logp(1.0, MEDIAN.statistic(x)))


def counted_twice(name, x):
    MEDIAN.potential(name, 2 * MEDIAN.statistic(x), released=1.0)


def of_a_sum(name, x):
    pmd.LaplaceMechanism(1.0).observe(name, x.sum(), released=1.0)


@pytest.mark.parametrize("other", [laplace, tempered, counted_twice, of_a_sum])
def test_what_is_not_such_a_choice_is_left_to_others(other):
    assert ranks_of(release(MEDIAN, 1.0)) is not None
    assert ranks_of(release(MEDIAN, 1.0), other) is None


def test_many_candidates_are_read_and_a_reading_is_checked_in_blocks(monkeypatch):
    n, mechanism = 20_000, pmd.QuantileMechanism(np.linspace(-3, 3, 151), 0.5, 1.0)
    with pm.Model() as model:
        x = pm.Normal("x", shape=n)
        release(mechanism, 0.0)("median", x)
    reading = read_model(model, [model.rvs_to_values[x]], model.initial_point())
    assert isinstance(reading.plan, ByRanks)
    assert reading.plan.columns.tolist() == [list(range(303))]

    def most_bytes(entries_at_once):
        monkeypatch.setattr(self_check, "ENTRIES_AT_ONCE", entries_at_once)
        tracemalloc.start()
        check_reading(reading, model.initial_point())
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    # A byte for each record and column would be more.
    assert most_bytes(0) < n * 303 < most_bytes(n * 303)
