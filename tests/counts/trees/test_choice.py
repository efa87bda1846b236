"""Numbers of operations by which draws on a tree are chosen."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.reading.moves import Moves
from pymc_dapper.counts.trees import choice


def cells(n):
    """So many cells that move by themselves, each seen by two terms."""
    moves = replace(Moves.none(), single=np.arange(n), directions=sparse.csr_array((0, n)))
    integers = np.zeros(0, dtype=np.int64)
    rows = np.repeat(np.arange(n), 2)
    return moves, Structure(2 * np.arange(n + 1), rows, rows, *4 * [integers])


def pairs(n, width):
    """So many sums of two leaves each, with tables of so many counts, and messages as wide."""
    kind = np.tile([0, 0, 1], n)
    left = np.where(kind, np.arange(3 * n) - 2, -1)
    widths = np.full(3 * n, width)
    tables = SimpleNamespace(starts=np.append(0, np.cumsum(widths)))
    solved = SimpleNamespace(messages=SimpleNamespace(widths=widths))
    return SimpleNamespace(
        left=left, right=left + kind, tables=lambda *_: tables, solve=lambda *_: solved
    )


def test_costs_are_linear_in_the_number_of_cells():
    assert choice.terms_of_sweep(*cells(80)) == 10 * choice.terms_of_sweep(*cells(8)) == 320
    for n in (1, 10):
        tree = pairs(n, 50)
        assert choice.multiplications(tree.left, tree.right, np.full(3 * n, 50)) == n * 2_500


@pytest.mark.parametrize("width", [100, 300, 1_000, 100_000])
def test_narrow_messages_pay(width):
    """A pair of cells has eight terms; a draw goes through one of two messages."""
    tree, moved = pairs(1_000, width), cells(2_000)
    assert choice.pays(tree, None, [], *moved) == (width < 8 * choice.PER_TERM)


def test_what_is_computed_once_must_not_take_longer_than_all_draws():
    tree, moved = pairs(1_000, 700), cells(2_000)
    assert choice.pays(tree, None, [], *moved)
    tree.tables = lambda *_: SimpleNamespace(starts=np.arange(3_001) * 2_000)
    assert not choice.pays(tree, None, [], *moved)


def test_few_cells_are_not_worth_a_call():
    assert not choice.may_pay(*cells(4))
    assert choice.may_pay(*cells(4_000))
