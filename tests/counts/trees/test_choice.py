"""Numbers of operations by which draws on a tree are chosen."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.reading.moves import Moves
from pymc_dapper.counts.reading.tree import TreeReading
from pymc_dapper.counts.trees.choice import CALL, TERM, draw_cost, may_pay, solve_cost, sweep_cost
from pymc_dapper.counts.trees.tables import Tables


def cells(n):
    """So many cells that move by themselves, each seen by two terms."""
    moves = replace(Moves.none(), single=np.arange(n), directions=sparse.csr_array((0, n)))
    integers = np.zeros(0, dtype=np.int64)
    rows = np.repeat(np.arange(n), 2)
    return moves, Structure(2 * np.arange(n + 1), rows, rows, *4 * [integers])


def pairs(n, width):
    """So many sums of two leaves each, with tables of so many counts."""
    kind = np.tile([0, 0, 1], n)
    left = np.where(kind, np.arange(3 * n) - 2, -1)
    starts = np.arange(3 * n + 1) * width
    return left, left + kind, Tables(starts, *6 * [np.zeros(0)], 0)


def test_costs_are_linear_in_the_number_of_cells():
    assert sweep_cost(*cells(80)) == pytest.approx(10 * sweep_cost(*cells(8)), rel=1e-9)
    left, right, tables = pairs(10, 50)
    assert solve_cost(left, right, tables) == pytest.approx(10 * solve_cost(*pairs(1, 50)))
    drawn = [draw_cost(*pairs(n, 50)[:2], np.full(3 * n, 50)) - CALL for n in (1, 10)]
    assert drawn == [2 * 50 + 3 * TERM, 10 * (2 * 50 + 3 * TERM)]


def test_wide_windows_are_summed_by_transform():
    narrow, wide = (solve_cost(*pairs(1, width)) for width in (1_000, 10_000))
    assert wide < 40 * narrow


def test_few_cells_are_not_worth_a_call():
    def tree(n):
        none = np.zeros(0, dtype=np.int64)
        return TreeReading(np.full(n, -1), np.arange(n), none.astype(bool), none, none, none)

    assert not may_pay(tree(4), *cells(4))
    assert may_pay(tree(4_000), *cells(4_000))
