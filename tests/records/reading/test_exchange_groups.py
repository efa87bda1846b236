"""Which records exchange, and how; and what exchanges can neither keep nor reach."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.exchange_groups import reached_in_pairs, read_exchange
from pymc_dapper.records.reading.exchanges import ByShift, BySwap, ByValue
from tests.records.known import INF, N, P, exchange_of, incomes, partly


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


def two_variables():
    x, y = pm.Bernoulli("x", 0.5, shape=N), pm.Normal("y", 0, 1, shape=N)
    pmd.invariant("total", x.sum(), 2)
    return x, y


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


def total(x):
    pm.Potential("total", pt.switch(pt.abs(x.sum() - 2) < 1e-6, 0.0, -INF))
    return x


def with_a_number_that_has_a_probability():
    return total(pm.Censored("x", pm.Normal.dist(), lower=None, upper=1, shape=N))


def by_hand(draw):
    def random(rng=None, size=None):
        return draw(rng.standard_normal(size))

    return pm.CustomDist("x", logp=lambda x: -0.5 * x**2, random=random, shape=N)


def with_one_by_hand():
    return total(by_hand(lambda z: np.minimum(z, 1)))


REFUSED = [
    (with_a_number_that_has_a_probability, "what 'total' holds fixed"),
    (with_one_by_hand, "what 'total' holds fixed"),
    (weighted, "what 'weighted' holds fixed"),
    (uneven, "what 'uneven' holds fixed"),
    (holes, "what 'holes' holds fixed"),
    (clipped, "what 'clipped' holds fixed"),
    (equal_floats, "'equal' holds a sum over the records 'x' equal .* aren't whole"),
    (unheard_of, "'high' holds a sum over the records 'x' fixed, but none of their values"),
    (latent_total, "'same' holds the records 'x' equal to a function of 'n'"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=[b.__name__ for b, _ in REFUSED])
def test_what_exchanges_cannot_keep_or_reach_is_refused(build, message):
    with pytest.raises(ReadingError, match=message):
        exchange_of(build)


def test_a_density_by_hand_is_taken_for_one_where_no_number_comes_twice():
    assert isinstance(exchange_of(lambda: total(by_hand(lambda z: z)))[1], ByShift)


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
