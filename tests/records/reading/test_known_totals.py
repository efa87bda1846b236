"""Sums over records that a model fixes exactly, written in many forms."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import DapperStep
from pymc_dapper.records.reading.exchanges import ByValue
from tests.records.known import INF, N, P, bernoulli, exchange_of

FORMS = {
    "switch": lambda x: pt.switch(pt.eq(x.sum(), 3), 0.0, -INF),
    "the other way round": lambda x: pt.switch(pt.neq(x.sum(), 3), -INF, 0.0),
    "not unequal": lambda x: pt.switch(~pt.neq(x.sum(), 3), 0.0, -INF),
    "counts": lambda x: pt.switch(pt.all(pt.eq(pt.eye(2)[x].sum(axis=0), [3, 3])), 0.0, -INF),
    "entry by entry": lambda x: pt.switch(pt.eq(pt.eye(2)[x].sum(axis=0), [3, 3]), 0.0, -INF),
    "none unequal": lambda x: pt.switch(pt.any(pt.neq(pt.eye(2)[x].sum(axis=0), 3)), -INF, 0),
    "a logarithm": lambda x: pt.log(pt.eq(x.sum(), 3)),
    "of an indicator": lambda x: pt.log(pt.switch(pt.eq(x.sum(), 3), 1.0, 0.0)),
    "a mean": lambda x: pt.switch(pt.eq(x.mean(), 0.5), 0.0, -INF),
    "less than one apart": lambda x: pt.switch(pt.abs(x.sum() - 3) < 0.5, 0.0, -INF),
    "beside noise": lambda x: pt.switch(pt.eq(x.sum(), 3), -((P * x).sum() ** 2), -INF),
    "among others": lambda x: 2 * pt.switch(pt.eq(x.sum(), 3), 0, -INF) - (P * x).sum() ** 2,
    "and another": lambda x: pt.switch(pt.eq(x.sum(), 3) & (x.sum() > 1), 0.0, -INF),
    "or the other": lambda x: pt.switch(pt.neq(x.sum(), 3) | (x.sum() < 1), -INF, 0.0),
    "Dirac's delta": lambda x: pm.logp(pm.DiracDelta.dist(x.sum()), 3),
}


@pytest.mark.parametrize("says", FORMS.values(), ids=FORMS)
def test_an_equality_is_read_in_many_forms(says):
    _, exchange = exchange_of(bernoulli(says))
    assert isinstance(exchange, ByValue)
    assert np.array_equal(exchange.groups, np.zeros(N))


OTHERS = {
    "soft": lambda x: pt.switch(pt.eq(x.sum(), 3), 0.0, -1e3),
    "a bound": lambda x: pt.switch(x.sum() >= 3, 0.0, -INF),
    "noise": lambda x: -pt.abs(x.sum() - 3),
    "more than one apart": lambda x: pt.switch(pt.abs(x.sum() - 3) < 1.5, 0.0, -INF),
    "either": lambda x: pt.switch(pt.eq(x.sum(), 3) | pt.eq(x.sum(), 4), 0.0, -INF),
}


@pytest.mark.parametrize("says", OTHERS.values(), ids=OTHERS)
def test_what_lets_records_change_needs_no_exchange(says):
    assert exchange_of(bernoulli(says))[1] is None


@pytest.mark.usefixtures("uncompiled")
def test_shared_data_that_change_what_records_count_for_need_a_new_step():
    with pm.Model() as model:
        who = pm.Data("who", np.array([1, 1, 1, 0, 0, 0]))
        known = pm.Data("known", 2)
        x = pm.Bernoulli("x", P, shape=N)
        pm.Potential("total", pt.switch(pt.eq((who * x).sum(), known), 0.0, -INF))
        step = DapperStep([x])
        pm.set_data({"known": 1})
        step.setup_chain(np.random.default_rng(0), 0, 1)
        pm.set_data({"who": np.array([1, 1, 0, 0, 0, 0])})
    with pytest.raises(ValueError, match="changed the contributions of the records 'x' to 'total'"):
        step.setup_chain(np.random.default_rng(0), 0, 1)
    assert model["x"] is x
