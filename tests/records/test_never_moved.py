"""A warning about records that can't change one at a time, unless they are known exactly."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.reading import read_model
from pymc_dapper.records.never_moved import NeverMoved

INF = np.inf


def message(build, records, then=None, exempt=(), tune=10):
    """What is said of records that are as they were when a chain has been tuned."""
    with pm.Model() as model:
        x = build()
    reading = read_model(model, [model.rvs_to_values[x]], model.initial_point())
    known = np.isin(np.arange(reading.n_records), exempt)
    watch = NeverMoved(reading, known, [np.array(records)], tune)
    after = [np.array(records if then is None else then)]
    *_, told = (watch.look(sweep, after, []) for sweep in range(1, tune + 1))
    return told


def bernoulli(says):
    def build():
        x = pm.Bernoulli("x", 0.5, shape=4)
        pm.Potential("known", says(x))
        return x

    return build


STUCK = {
    "a known order": lambda x: pt.switch(
        pt.eq(pt.sort(x)[1], 0) & pt.eq(pt.sort(x)[2], 1), 0, -INF
    ),
    "a parity": lambda x: pt.switch(pt.eq(x.sum() % 2, 0), 0.0, -INF),
    "bounds on both sides": lambda x: pt.switch((x.sum() <= 2) & (x.sum() >= 2), 0.0, -INF),
    "nearly equal": lambda x: pt.switch(pt.isclose(x.sum(), 2.0), 0.0, -INF),
    "nan elsewhere": lambda x: pt.sqrt(-((x.sum() - 2.0) ** 2)),
}


@pytest.mark.parametrize("says", STUCK.values(), ids=STUCK)
def test_records_that_cannot_move_by_themselves_are_named_with_what_holds_them(says):
    told = message(bernoulli(says), [0, 1, 1, 0])
    assert told.startswith("DapperStep: 4 of 4 records of 'x' never moved while tuning")
    assert "ruled out by 'known'" in told
    assert "state them with pmd.invariant" in told


def test_one_group_of_several():
    says = lambda x: pt.switch(pt.eq(x[:2].sum() % 2, 1), 0.0, -INF)  # noqa: E731
    told = message(bernoulli(says), [0, 1, 1, 0], then=[0, 1, 0, 1])
    assert told.startswith("DapperStep: 2 of 4 records of 'x'")


def test_records_that_moved_and_came_back_are_not_meant():
    with pm.Model() as model:
        bernoulli(STUCK["a parity"])()
    reading = read_model(model, model.value_vars, model.initial_point())
    watch = NeverMoved(reading, np.zeros(4, dtype=bool), [np.zeros(4, dtype=int)], 10)
    assert watch.look(5, [np.ones(4, dtype=int)], []) is None
    assert watch.is_done
    assert watch.look(10, [np.zeros(4, dtype=int)], []) is None


SILENT = {
    "noise": lambda x: -50.0 * (x.sum() - 2.0) ** 2,
    "a bound that leaves room": lambda x: pt.switch(x.sum() >= 1, 0.0, -INF),
    "each known by itself": lambda x: pt.switch(pt.eq(x, [0, 1, 1, 0]), 0.0, -INF),
    "answers that settle each": lambda x: pm.logp(pm.Bernoulli.dist(x), [0, 1, 1, 0]),
}


@pytest.mark.parametrize("says", SILENT.values(), ids=SILENT)
def test_records_that_stay_for_good_reasons_do_not_warn(says):
    assert message(bernoulli(says), [0, 1, 1, 0]) is None


def test_records_that_exchange_do_not_warn():
    says = STUCK["a parity"]
    assert message(bernoulli(says), [0, 1, 1, 0], exempt=range(4)) is None


def test_a_prior_that_allows_one_value_only_is_a_good_reason():
    def build():
        x = pm.Bernoulli("x", np.array([0.0, 1.0, 1.0, 0.0]), shape=4)
        pm.Potential("known", pt.switch(pt.eq(x.sum() % 2, 0), 0.0, -INF))
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert message(build, [0, 1, 1, 0]) is None
