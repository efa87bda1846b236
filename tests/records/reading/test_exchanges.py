"""What is known exactly of sums over records, and which records exchange to keep it."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.stats import poisson

import pymc_dapper as pmd
from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.exchange_groups import reached_in_pairs, read_exchange
from pymc_dapper.records.reading.exchanges import ByShift, BySwap, ByValue

N = 6
P = np.linspace(0.2, 0.8, N)


def exchange_of(build):
    """Read the exchanges of the model that `build` makes of its records."""
    with pm.Model() as model:
        records = build()
    records = list(records) if isinstance(records, tuple) else [records]
    values = [model.rvs_to_values[x] for x in records]
    point = model.initial_point()
    reading = read_model(model, values, point)
    return reading, read_exchange(reading, point)


def bernoulli(says):
    """Six binary records, and what a model says of them."""

    def build():
        x = pm.Bernoulli("x", P, shape=N)
        pm.Potential("known", says(x))
        return x

    return build


INF = np.inf
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
def test_an_equality_is_read_in_whatever_form(says):
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


def crossed():
    x = pm.Categorical("x", np.ones(6) / 6, shape=N)
    table = pt.eye(6)[x].sum(axis=0).reshape((2, 3))
    pmd.invariant("rows", table.sum(axis=1), [2, 4])
    pmd.invariant("columns", table.sum(axis=0), [2, 2, 2])
    return x


def grouped():
    x = pm.Binomial("x", 3, 0.4, shape=N)
    pmd.invariant("totals", pt.inc_subtensor(pt.zeros(2)[[0, 0, 0, 1, 1, 1]], x), [4, 5])
    return x


def partly():
    x = pm.Bernoulli("x", P, shape=N)
    pmd.invariant("of_some", x[:4].sum(), 2)
    pm.Potential("noisy", -(x.sum() ** 2))
    return x


def two_variables():
    x, y = pm.Bernoulli("x", 0.5, shape=N), pm.Normal("y", 0, 1, shape=N)
    pmd.invariant("total", x.sum(), 2)
    return x, y


def incomes():
    x = pm.LogNormal("x", 0, 1, shape=N)
    pm.Potential("total", pt.switch(pt.abs((x * [1, 1, 2, 2, 1, 1]).sum() - 9) < 1e-6, 0, -np.inf))
    return x


def histogram():
    x = pm.Normal("x", 0, 1, shape=N)
    pmd.invariant(
        "histogram", pt.eye(3)[pt.searchsorted(np.array([-0.5, 0.5]), x)].sum(axis=0), [1, 2, 3]
    )
    return x


def rare():
    x = pm.Normal("x", 0, 1, shape=N)
    pmd.invariant("high", (x > 3).sum(), 1)
    return x


def rare_counts():
    x = pm.Poisson("x", 0.001, shape=N)
    pmd.invariant("total", x.sum(), 2)
    return x


def histogram_of_unlike_records():
    x = pm.Normal("x", [-9.0, -9.0, 0.0, 0.0, 9.0, 9.0], 1, shape=N)
    pmd.invariant(
        "histogram", pt.eye(3)[pt.searchsorted(np.array([-4, 4]), x)].sum(axis=0), [2, 2, 2]
    )
    return x


KINDS = [
    (crossed, ByValue, [0] * 6),
    (grouped, ByValue, [0, 0, 0, 1, 1, 1]),
    (partly, ByValue, [0, 0, 0, 0, -1, -1]),
    (two_variables, ByShift, [0] * 6),
    (incomes, ByShift, [0] * 6),
    (histogram, BySwap, [0] * 6),
    (rare, BySwap, [0] * 6),
    (rare_counts, ByShift, [0] * 6),
    (histogram_of_unlike_records, BySwap, [0] * 6),
]


@pytest.mark.parametrize(("build", "kind", "groups"), KINDS, ids=[b.__name__ for b, *_ in KINDS])
def test_who_exchanges_and_how(build, kind, groups):
    _, exchange = exchange_of(build)
    assert isinstance(exchange, kind)
    assert list(exchange.groups) == groups


def test_pairs_are_of_one_group_and_all_orders_of_records_are_drawn():
    _, exchange = exchange_of(partly)
    rng, met = np.random.default_rng(1), np.zeros((N, N))
    for _ in range(2_000):
        order = exchange.draw_pairs(rng)
        assert sorted(order) == list(range(N))
        assert sorted(order[4:]) == [4, 5]
        met[order[0], order[1]] += 1
        met[order[2], order[3]] += 1
    assert np.all(met[4:] == 0)
    # Each of 12 ordered pairs is one of two in 4,000: 333, and standard deviation 17.5.
    expected = 4_000 / 12 * (1 - np.eye(4))
    assert np.abs(met[:4, :4] - expected).max() < 4 * np.sqrt(4_000 / 12)


# What is proposed, evaluated without compiling ------------------------------------------------


def proposed(reading, exchange, records, proposals, first, second, u):
    change = exchange.propose(
        [pt.constant(x) for x in records],
        [pt.constant(x) for x in proposals],
        pt.constant(first),
        pt.constant(second),
        pt.constant(u),
    )
    outputs = [*change.records, change.log_present, change.log_proposed]
    with reading.model:
        *after, present, new = pytensor.function([], outputs, mode="FAST_COMPILE")()
    return after, present, new


def test_a_shift_keeps_the_total_and_is_weighed_by_the_prior_of_the_second():
    means = np.arange(1.0, 7.0)

    def build():
        x = pm.Poisson("x", means, shape=N)
        pmd.invariant("total", x.sum(), 20)
        return x

    reading, exchange = exchange_of(build)
    records, proposals = np.array([1, 5, 2, 4, 3, 5]), np.array([4, 0, 0, 7, 9, 0])
    pairs = np.array([0, 2, 3]), np.array([1, 4, 5])
    [after], present, new = proposed(reading, exchange, [records], [proposals], *pairs, np.zeros(3))
    assert list(after) == [4, 2, 0, 7, 5, 2]
    np.testing.assert_allclose(present, poisson.logpmf([5, 3, 5], means[[1, 4, 5]]))
    np.testing.assert_allclose(new, poisson.logpmf([2, 5, 2], means[[1, 4, 5]]))
    # Nobody can have less than nothing: both stay as they are.
    [after], _, new = proposed(reading, exchange, [records], [np.full(N, 10)], *pairs, np.zeros(3))
    assert list(after) == list(records)
    assert np.all(np.isneginf(new))


def test_a_weighted_continuous_total_is_kept_in_the_space_of_the_prior():
    reading, exchange = exchange_of(incomes)
    records, proposals = np.log([1.0, 1, 2, 1, 1, 1]), np.log([0.5, 9, 1.5, 9, 9, 9])
    [after], _, new = proposed(
        reading, exchange, [records], [proposals], np.array([0, 2]), np.array([3, 1]), np.zeros(2)
    )
    # The fourth counts twice: it takes half of what the first lost; the second twice of the third.
    np.testing.assert_allclose(np.exp(after), [0.5, 2, 1.5, 1.25, 1, 1])
    # Log-normal, as a density of the income and not of its logarithm.
    at = np.log([1.25, 2.0])
    np.testing.assert_allclose(new, -0.5 * at**2 - np.log(2 * np.pi) / 2 - at)


def test_of_several_values_that_keep_the_totals_one_is_drawn_by_its_probability():
    def build():
        x = pm.Categorical("x", [0.4, 0.3, 0.2, 0.1], shape=N)
        pmd.invariant("high", (x >= 2).sum(), 3)
        return x

    reading, exchange = exchange_of(build)
    records, proposals = np.array([0, 2, 3, 1, 2, 0]), np.array([2, 0, 0, 0, 0, 0])
    pairs = np.array([0]), np.array([1])
    seen = [
        proposed(reading, exchange, [records], [proposals], *pairs, np.array([u]))
        for u in (0.56, 0.58)
    ]
    # The first becomes 2, so the second becomes 0 or 1: in 4 of 7 and 3 of 7 cases.
    assert [list(after[0]) for after, *_ in seen] == [[2, 0, 3, 1, 2, 0], [2, 1, 3, 1, 2, 0]]
    for _, present, new in seen:
        np.testing.assert_allclose([np.exp(present), np.exp(new)], [[0.3], [0.7]])


# What pairs don't reach, and what can't be kept -----------------------------------------------


def test_sets_of_points_that_pairs_connect():
    corners = np.array([[0.0, 0], [0, 1], [1, 0], [1, 1]])
    one_of_three = np.eye(3)
    margins = np.array([[*a, *b] for a in one_of_three for b in np.eye(4)])
    for points in (corners, one_of_three, margins, np.arange(5.0)[:, None] * [[1, 2]]):
        assert reached_in_pairs(points)
    # 3 + 3 = 2 + 2 + 2: with 0, exchanges of two lead from one to the other in no number of steps.
    assert not reached_in_pairs(np.array([[0.0], [2], [3]]))
    assert not reached_in_pairs(corners[[0, 1, 2, 3]] * [1, 1] + [[0, 0], [0, 0], [0, 0], [1, 1]])


def weighted():
    x = pm.Bernoulli("x", P, shape=N)
    pmd.invariant("weighted", (np.array([1, 1, 1, 2, 2, 2]) * x).sum(), 5)
    return x


def uneven():
    x = pm.Categorical("x", [0.4, 0.3, 0.3], shape=N)
    pmd.invariant("uneven", pt.constant([0, 2, 3])[x].sum(), 6)
    return x


def holes():
    x = pm.Categorical("x", np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]] * 2), shape=N)
    pmd.invariant("holes", pt.eye(3)[x].sum(axis=0), [2, 2, 2])
    return x


def clipped():
    x = pm.Normal("x", 0, 1, shape=N)
    pm.Potential("clipped", pt.switch(pt.abs(pt.clip(x, -1, 1).sum()) < 1e-6, 0.0, -INF))
    return x


def equal_floats():
    x = pm.Normal("x", 0, 1, shape=N)
    pm.Potential("equal", pt.switch(pt.eq(x.sum(), 0.5), 0.0, -INF))
    return x


def latent_total():
    n = pm.Poisson("n", 3.0)
    x = pm.Bernoulli("x", P, shape=N)
    pm.Potential("same", pt.switch(pt.eq(x.sum(), n), 0.0, -INF))
    return x


def unheard_of():
    x = pm.Normal("x", 0, 1, shape=N)
    pmd.invariant("high", (x > 40).sum(), 1)
    return x


REFUSED = [
    (weighted, "what 'weighted' holds fixed"),
    (uneven, "what 'uneven' holds fixed"),
    (holes, "what 'holes' holds fixed"),
    (clipped, "what 'clipped' holds fixed"),
    (equal_floats, "'equal' holds a sum over the records 'x' equal .* isn't whole"),
    (unheard_of, "'high' holds a sum over the records 'x' fixed, but no value"),
    (latent_total, "'same' holds the records 'x' equal to a function of 'n'"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[b.__name__ for b, _ in REFUSED])
def test_what_exchanges_cannot_keep_or_reach_is_refused(build, message):
    with pytest.raises(ReadingError, match=message):
        exchange_of(build)


def test_totals_that_no_value_changes_need_no_exchange():
    def build():
        x = pm.Normal("x", 0, 1, shape=N)
        table = pt.eye(3)[pt.searchsorted(np.array([-0.5, 0.5]), x)].sum(axis=0)
        pmd.invariant("all", table.sum(), N)
        return x

    assert exchange_of(build)[1] is None


def test_a_start_shows_what_the_prior_hardly_ever_draws():
    with pm.Model() as model:
        x = unheard_of()
    point = {"x": np.array([0.0, 1.0, 41.0, 0.0, 0.0, 0.0])}
    reading = read_model(model, [model.rvs_to_values[x]], point)
    assert isinstance(read_exchange(reading, point), BySwap)


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
    with pytest.raises(ValueError, match="changed what the records 'x' count for in 'total'"):
        step.setup_chain(np.random.default_rng(0), 0, 1)
    assert model["x"] is x
