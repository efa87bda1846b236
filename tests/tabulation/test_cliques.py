"""Which variables are counted together."""

import numpy as np
import pytest

from pymc_dapper.tabulation.cliques import all_earlier, cliques, given_of


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
