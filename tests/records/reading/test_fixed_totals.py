"""Known totals that contradict the number of records, and all that mustn't be taken for such."""

import warnings
from itertools import product
from types import SimpleNamespace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.graphs.terms.equations import KnownTotals
from pymc_dapper.records.reading.fixed_totals import check_fixed_totals
from tests.records.known import INF, exchange_of

GROUP = np.array([0, 0, 0, 1, 1, 1])


def category(k=3, p=None):
    return pm.Categorical("x", np.ones(k) / k if p is None else p, shape=6)


def one_way():
    x = category()
    pmd.invariant("table", pmd.statistics.counts(x, 3).value, [2, 3, 2])
    return x


def cell_by_cell():
    x = category()
    for k, count in enumerate([2, 3, 2]):
        pmd.invariant(f"cell{k}", pt.eq(x, k).sum(), count)
    return x


def known_on_the_left():
    x = category()
    pm.Potential("table", pt.log(pt.all(pt.eq([2, 3, 2], pt.eye(3)[x].sum(axis=0)))))
    return x


def group_sizes():
    x = category()
    pmd.invariant("table", pt.zeros((2, 3))[GROUP, x].inc(1), [[1, 1, 0], [2, 1, 1]])
    return x


def one_of_two_margins():
    x = category(6)
    table = pt.eye(6)[x].sum(axis=0).reshape((2, 3))
    pmd.invariant("rows", table.sum(axis=1), [2, 4])
    pmd.invariant("columns", table.sum(axis=0), [2, 2, 3])
    return x


def many_values_beside_others():
    x, z = category(40), pm.Normal("z", 0, 1, shape=6)
    pmd.invariant("table", pmd.statistics.counts(x, 40).value, [7, *[0] * 39])
    return x, z


def within():
    x = category()
    off = pt.abs(pt.eye(3)[x].sum(axis=0) - [2, 3, 2])
    pm.Potential("table", pt.switch(pt.all(off <= 0.3), 0.0, -INF))
    return x


CONTRADICTIONS = [
    (
        one_way,
        "'table', totals add up to 7. But they add up to 6 whatever values the 6 records 'x'",
    ),
    (cell_by_cell, "'cell0', 'cell1', 'cell2', totals add up to 7"),
    (known_on_the_left, "'table', totals add up to 7. But they add up to 6 "),
    (group_sizes, "'table', totals add up to 2. But they add up to 3 "),
    (one_of_two_margins, "according to 'columns', totals add up to 7. But they add up to 6 "),
    (many_values_beside_others, "'table', totals add up to 7. But they add up to 6 "),
    (within, "'table', totals add up to 7. But they add up to 6 "),
]


@pytest.mark.parametrize(
    ("build", "message"), CONTRADICTIONS, ids=[build.__name__ for build, _ in CONTRADICTIONS]
)
def test_totals_that_contradict_the_number_of_records_are_refused(build, message):
    with pytest.raises(ReadingError, match=message):
        exchange_of(build)


def one_not_counted():
    # At most one in a billion, in no draw: but it can be.
    x = category(4, p=[0.3, 0.3, 0.4 - 1e-9, 1e-9])
    pmd.invariant("table", pmd.statistics.counts(x, 3).value, [2, 2, 1])
    return x


def counted_twice():
    x = category()
    pmd.invariant("table", 2 * pt.eye(3)[x].sum(axis=0), [4, 4, 4])
    return x


def constants():
    x = category()
    is_so = pt.eq(pt.eye(3)[x].sum(axis=0) + 0.1, np.array([2, 2, 2]) + 0.1)
    pm.Potential("table", pt.switch(pt.all(is_so), 0.0, -INF))
    return x


def wide_tolerance():
    x = category()
    off = pt.abs(pt.eye(3)[x].sum(axis=0) - [2, 3, 2])
    pm.Potential("table", pt.switch(pt.all(off <= 0.4), 0.0, -INF))
    return x


@pytest.mark.parametrize("build", [one_not_counted, counted_twice, constants, wide_tolerance])
def test_what_is_possible_passes(build):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        exchange_of(build)


@pytest.mark.parametrize("total", [6, 7])
def test_what_draws_alone_show_is_warned_of(total):
    def build():
        x = pm.Normal("x", 0, 1, shape=6)
        cell = pt.searchsorted(np.array([-0.5, 0.5]), x)
        pmd.invariant("table", pt.eye(3)[cell].sum(axis=0), [2, 2, total - 4])
        return x

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exchange_of(build)
    assert [
        "'table', totals add up to 7. But they add up to 6 whatever values the 6 records 'x' were "
        "drawn with" in str(each.message)
        for each in caught
    ] == [True] * (total - 6)


def test_no_model_that_is_refused_has_a_possible_state():
    """Of random equations, all states of few records are listed."""
    rng, n_records, n_values = np.random.default_rng(0), 3, 3
    refused = 0
    for _ in range(400):
        m = rng.integers(1, 5)
        each = rng.integers(0, 3, (n_records, n_values, m)) * rng.integers(-1, 2, m)
        if rng.random() < 0.7:  # a table, in which each is counted, some of them elsewhere
            each = np.eye(m, dtype=int)[rng.integers(0, m, (n_records, n_values))]
        totals = np.array([
            sum(each[i, v] for i, v in enumerate(state))
            for state in product(range(n_values), repeat=n_records)
        ])  # fmt: skip
        wanted = totals[rng.integers(len(totals))] + (rng.random(m) < 0.3)
        offset = pytensor.shared(-wanted.astype(float))
        factors = tuple(rng.choice(["a", "b"], m))
        known = KnownTotals(factors, np.eye(m), offset, np.zeros(m))
        reading = SimpleNamespace(parameters=(), records=(), n_records=3, quoted_names="'x'")
        try:
            check_fixed_totals(
                reading,
                known,
                offset.get_value() + rng.normal(0, 1e-9, m),
                lambda v, each=each: each[:, v].astype(float),
                range(n_values),
            )
        except ReadingError:
            refused += 1
            assert not (totals == wanted).all(axis=1).any()
    assert refused > 50
