"""Numbers of operations by which draws on a tree are chosen."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from pymc_dapper.counts.reading.moves import Moves
from pymc_dapper.counts.trees import choice


def pairs(n, width):
    """So many sums of two leaves each, with tables of so many counts."""
    kind = np.tile([0, 0, 1], n)
    left = np.where(kind, np.arange(3 * n) - 2, -1)
    tables = SimpleNamespace(starts=np.arange(3 * n + 1) * width)
    return SimpleNamespace(left=left, right=left + kind, tables=lambda *_: tables)


def test_costs_are_linear_in_the_number_of_sums():
    for n in (1, 10):
        tree = pairs(n, 50)
        assert choice.multiplications(tree.left, tree.right, np.full(3 * n, 50)) == n * 2_500


@pytest.mark.parametrize("width", [100, 1_400, 1_500, 100_000])
def test_narrow_messages_pay(width):
    """Each of the two cells of a sum moves along a line."""
    assert choice.pays(pairs(1_000, width), None, [], 2_000) == (width**2 <= 2 * choice.PER_LINE)


@pytest.mark.parametrize(
    ("n_cells", "width", "parameters", "wanted", "drawn"),
    [
        (choice.FEWEST, 100, (), None, True),
        (choice.FEWEST - 1, 100, (), None, False),
        (choice.FEWEST - 1, 100, (), True, True),
        (choice.FEWEST, 100_000, (), None, False),
        (choice.FEWEST, 100_000, (), True, True),
        (choice.FEWEST, 100, ("rate",), None, False),
        (choice.FEWEST, 100, (), False, False),
    ],
)
def test_a_tree_is_drawn_where_it_is_wanted_or_pays(
    n_cells, width, parameters, wanted, drawn, monkeypatch
):
    tree = pairs(n_cells // 2, width)
    tree.solve = tree.draw = lambda *_: None
    tree.log_weight = lambda *_: 0.0
    for name in ("check_gain", "WrittenFactors"):
        monkeypatch.setattr(choice, name, lambda *_: None)
    monkeypatch.setattr(choice, "compile_tree", lambda *_, **__: tree)
    reading = SimpleNamespace(parameters=parameters)
    moves = replace(Moves.none(), single=np.arange(n_cells))
    sweep = SimpleNamespace(moves=moves)
    found = choice.choose_tree(reading, None, wanted, sweep, np.zeros(n_cells), [], {})
    assert found is (tree if drawn else None)
