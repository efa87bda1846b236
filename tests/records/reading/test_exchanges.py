"""What two records exchange, and what that adds to the acceptance ratio: without compiling."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from scipy.stats import poisson

import pymc_dapper as pmd
from tests.records.known import N, exchange_of, incomes, partly


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
    # The fourth counts twice: it takes half of the first's loss, the second twice the third's.
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
