"""Which variables are counted together, and what rules that out."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.tabulation.cliques import all_earlier, cliques, given_of
from pymc_dapper.tabulation.reading import read_table


@pytest.mark.parametrize(
    ("n_variables", "together", "given", "tables"),
    [
        (1, [], ((),), [(0,)]),
        (3, [], ((), (), ()), [(0,), (1,), (2,)]),
        (3, [[0, 1], [1, 2]], ((), (0,), (1,)), [(0, 1), (1, 2)]),
        (4, [[0, 3], [0, 1], [2, 0]], ((), (0,), (0,), (0,)), [(0, 1), (0, 2), (0, 3)]),
        (3, [[0, 1], [1, 2], [0, 2]], ((), (0,), (0, 1)), [(0, 1, 2)]),
        # A ring: 2 has to be with 0, since 3 is given both.
        (4, [[0, 1], [1, 2], [2, 3], [0, 3]], ((), (0,), (0, 1), (0, 2)), [(0, 1, 2), (0, 2, 3)]),
        # What has no variable in common with the last isn't tied to it.
        (4, [[0, 1], [2, 3]], ((), (0,), (), (2,)), [(0, 1), (2, 3)]),
        # Two that are given to one later variable, and that nothing else ties.
        (3, [[0, 1, 2]], ((), (0,), (0, 1)), [(0, 1, 2)]),
    ],
)
def test_variables_are_counted_with_what_is_seen_together_with_them(
    n_variables, together, given, tables
):
    assert given_of(n_variables, together) == given
    assert cliques(given) == tables


@pytest.mark.parametrize("seed", range(20))
def test_what_a_variable_is_given_is_in_the_table_of_the_last_of_it(seed):
    rng = np.random.default_rng(seed)
    together = [rng.choice(7, size=rng.integers(1, 4), replace=False) for _ in range(6)]
    given = given_of(7, together)
    for earlier in given:
        assert not earlier or set(earlier) <= {*given[earlier[-1]], earlier[-1]}
    assert all(any(set(x) <= set(table) for table in cliques(given)) for x in together)


def test_all_earlier_variables_are_one_table_in_the_end():
    assert all_earlier(3) == ((), (0,), (0, 1))
    assert cliques(all_earlier(3)) == [(0, 1, 2)]


def _chain(n, categories, see):
    """Three columns, each seen with the next; the last one also by ``see``."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((2, categories, categories)))
        a = pm.Categorical("a", np.full(categories, 1 / categories), shape=n)
        b = pm.Categorical("b", p[0][a])
        c = pm.Categorical("c", p[1][b])
        for name, pair in {"ab": (a, b), "bc": (b, c)}.items():
            table = pmd.statistics.joint_counts(pair, (categories,) * 2)
            pmd.GaussianMechanism(2.0).potential(name, table, released=np.zeros((categories,) * 2))
        see(c, n)
    return model


def _nothing(c, n):
    """Nothing else sees it."""


def _noisy(c, n):
    pmd.LaplaceMechanism(1.0).observe("known", c.sum(), released=3.0)


def _invariant(c, n):
    pmd.invariant("known", pt.eq(c, 1).sum(), 2)


def _within_a_tolerance(c, n):
    pm.Potential("known", pt.switch(pt.abs(c.mean() - 2 / n) < 1e-6, 0.0, -np.inf))


def _observed(c, n):
    pm.DiracDelta("known", c.sum(), observed=2)


@pytest.mark.parametrize("see", [_nothing, _noisy, _invariant, _within_a_tolerance, _observed])
def test_what_is_known_exactly_is_counted_in_one_table(see):
    model = _chain(10**12, 2, see)
    tables = read_table(model, [model[x] for x in "abc"]).tables
    assert tables == ([(0, 1), (1, 2)] if see in (_nothing, _noisy) else [(0, 1, 2)])


def test_one_table_of_what_is_known_exactly_may_be_too_large():
    assert pmd.tabulate(_chain(1_000, 20, _nothing))["b_c_counts"] is not None
    with pytest.raises(pmd.TabulationError, match="'a', 'b', 'c' can have 8000 values, more than"):
        pmd.tabulate(_chain(1_000, 20, _invariant))
