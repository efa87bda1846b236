"""Exchanges of people between random cells."""

from itertools import combinations, product

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.kernels.exchanges import plan_exchanges
from tests.counts_enumeration import grid, some_draws

PLAN = in_python(plan_exchanges)


def lines(moves, counts, seed=0):
    """The cells of the lines of a pass."""
    corners = np.zeros((9, 4), dtype=np.int64)
    n = PLAN(moves.grids, 0, np.array(counts), corners, some_draws(np.random.default_rng(seed)))
    return corners[:n, : 2 * min(moves.grids.rows[0], 2)].tolist()


@pytest.mark.parametrize("people", [[1, 1, 1, 1, 1], [2, 0, 0, 1, 0]])
def test_a_pass_pairs_all_cells_of_a_group_at_random(people):
    moves, counts = grid(1, np.arange(10, 15), passes=1), np.append(np.zeros(10, int), people)
    drawn = [lines(moves, counts, seed) for seed in range(4_000)]
    for pairs in drawn:
        met = [cell for pair in pairs for cell in pair]
        assert len(set(met)) == len(met)
        assert all(counts[pair].any() for pair in pairs)
    assert people[1] == 0 or all(len(pairs) == 2 for pairs in drawn)
    # Any two of five cells are a pair in 1/5 of the passes, if there is anybody.
    seen = [frozenset(pair) for pairs in drawn for pair in pairs]
    for a, b in combinations(range(10, 15), 2):
        share = 0.2 * bool(counts[a] + counts[b])
        found = seen.count(frozenset((a, b))) / 4_000
        assert abs(found - share) <= 4.5 * np.sqrt(share * (1 - share) / 4_000)


def test_a_pass_over_a_grid_swaps_each_cell_once():
    moves, change = grid(2, np.arange(6), passes=1), np.zeros(6, dtype=int)
    [swap] = lines(moves, np.ones(6, dtype=int))
    change[swap] = [1, -1, -1, 1]
    table = change.reshape(2, 3)
    assert np.all(table.sum(axis=0) == 0)
    assert np.all(table.sum(axis=1) == 0)
    assert np.abs(table).sum() == 4


def test_swaps_are_left_out_if_there_is_nobody_to_swap():
    moves = grid(2, np.arange(4), passes=1)
    for counts in product(range(2), repeat=4):
        able = counts[0] * counts[3] + counts[1] * counts[2] > 0
        assert len(lines(moves, counts)) == able
