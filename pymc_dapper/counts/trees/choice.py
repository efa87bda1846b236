"""Whether counts on a tree are drawn jointly, by numbers of operations."""

from collections.abc import Sequence

import numpy as np

from pymc_dapper.counts.compiled.sweep import schedule_of
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.kernels.sweep import count_lines
from pymc_dapper.counts.reading.moves import Moves
from pymc_dapper.counts.reading.tree import TreeReading
from pymc_dapper.counts.trees.model import ModelTree
from pymc_dapper.counts.trees.spectra import COST
from pymc_dapper.counts.trees.tables import Tables

EVALUATIONS = 8
"""Approximate number of tables that a move evaluates."""
TERM = 20
"""Multiplications that take as long as a term of a log-density."""
SHARE = 0.3
"""Effective draws per sweep of the slowest count: mostly half to twice this number."""
CALL = 5e5
"""Fixed cost of a draw, in multiplications. For small tables moves are so cheap that loading the
kernels for trees doesn't pay."""
GAIN = 2.0
"""How much cheaper a draw must be, since these numbers are rough."""
DRAWS = 2_000
"""Typical number of a chain's draws: work done once must not cost more than they do."""


def may_pay(tree: TreeReading, moves: Moves, structure: Structure) -> bool:
    """Whether draws on a tree can cost less, before windows are known."""
    return GAIN * (CALL + TERM * tree.parent.size) < sweep_cost(moves, structure)


def pays(
    tree: ModelTree,
    counts: np.ndarray,
    given: Sequence[np.ndarray],
    moves: Moves,
    structure: Structure,
) -> bool:
    """Whether draws with messages computed once cost less than moves."""
    cost = sweep_cost(moves, structure)
    if solve_cost(tree.left, tree.right, tree.tables(counts, given)) > DRAWS * cost:
        return False
    widths = tree.solve(counts, given).messages.widths
    return GAIN * draw_cost(tree.left, tree.right, widths) < cost


def sweep_cost(moves: Moves, structure: Structure) -> float:
    """Multiplications that take as long as an effective draw by moves."""
    lines = count_lines(schedule_of(moves))
    terms_of_line = 2 * structure.rows.size / max(structure.starts.size - 1, 1)
    return lines * EVALUATIONS * terms_of_line * TERM / SHARE


def solve_cost(left: np.ndarray, right: np.ndarray, tables: Tables) -> float:
    """Multiplications that take as long as tables and messages up, at most."""
    widths = np.diff(tables.starts).astype(np.float64)
    total = TERM * float(widths.sum())
    for i in np.flatnonzero(right >= 0):
        a, b = widths[left[i]], widths[right[i]]
        both = a + b
        total += min(a * b, 3 * COST * both * np.log2(max(both, 2.0)))
        widths[i] = min(widths[i], both) if widths[i] else both
    return total


def draw_cost(left: np.ndarray, right: np.ndarray, widths: np.ndarray) -> float:
    """Multiplications that take as long as a draw down the tree, at most."""
    split = right >= 0
    narrower = np.minimum(widths[left[split]], widths[right[split]])
    return CALL + 2 * float(narrower.sum()) + TERM * left.size
