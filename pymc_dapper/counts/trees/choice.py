"""Whether counts on a tree are drawn jointly, by numbers of operations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dapper.counts.compiled.sweep import CompiledCountSweep, schedule_of
from pymc_dapper.counts.kernels.line import Structure
from pymc_dapper.counts.kernels.sweep import count_lines
from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.moves import Moves
from pymc_dapper.counts.reading.self_check import WrittenFactors, check_gain
from pymc_dapper.counts.reading.tree import TreeReading
from pymc_dapper.counts.trees.model import ModelTree, NoTreeError, compile_tree

FEWEST = 4_000
"""Terms in a sweep's lines: with fewer, moves are so cheap that kernels for trees needn't be
loaded."""
PER_TERM = 100
"""Entries of messages that a draw goes through in half the time that moves take, for each of these
terms, to an effective draw of the slowest count."""
DRAWS = 2_000
"""Typical number of a chain's draws: work done once must not take more time than they do."""


def choose_tree(
    reading: CountReading,
    tree: TreeReading | str,
    wanted: bool | None,
    sweep: CompiledCountSweep,
    counts: np.ndarray,
    given: Sequence[np.ndarray],
    compile_kwargs: dict[str, Any],
) -> ModelTree | None:
    """Compile the draws of counts on their tree, if that is wanted, or costs less than a sweep.

    They are compared with the model at possible ``counts``. None if there are none.
    """
    moves, structure = sweep.moves, sweep.structure
    if wanted is False or isinstance(tree, str):
        return None
    # Otherwise each draw needs new messages, and moves usually take less time.
    if wanted is None and (reading.parameters or not may_pay(moves, structure)):
        return None
    compiled = compile_tree(reading, tree, compile_kwargs=compile_kwargs)
    try:
        if wanted is None and not pays(compiled, counts, given, moves, structure):
            return None
        solved = compiled.solve(counts, given)
    except NoTreeError:
        if wanted:
            raise
        return None
    drawn = compiled.draw(np.random.default_rng(0), solved)
    weight = compiled.log_weight(solved, drawn)
    check_gain(WrittenFactors(reading, given), counts, drawn, weight)
    return compiled


def may_pay(moves: Moves, structure: Structure) -> bool:
    """Whether draws on a tree can take less time, before windows are known."""
    return terms_of_sweep(moves, structure) > FEWEST


def pays(
    tree: ModelTree,
    counts: np.ndarray,
    given: Sequence[np.ndarray],
    moves: Moves,
    structure: Structure,
) -> bool:
    """Whether draws with messages computed once take less time than moves."""
    left, right, most = tree.left, tree.right, PER_TERM * terms_of_sweep(moves, structure)
    widths = np.diff(tree.tables(counts, given).starts)
    if multiplications(left, right, widths) > DRAWS * most:
        return False
    widths, split = tree.solve(counts, given).messages.widths, right >= 0
    return bool(np.minimum(widths[left[split]], widths[right[split]]).sum() < most)


def multiplications(left: np.ndarray, right: np.ndarray, widths: np.ndarray) -> float:
    """Return how many it takes to pass messages up, at most, given the widths of tables."""
    widths, total = widths.astype(np.float64), 0.0
    for i in np.flatnonzero(right >= 0):
        a, b = widths[left[i]], widths[right[i]]
        total += a * b
        widths[i] = min(widths[i], a + b) if widths[i] else a + b
    return total


def terms_of_sweep(moves: Moves, structure: Structure) -> float:
    """Return the number of terms that change along all lines of a sweep, about."""
    n_cells = max(structure.starts.size - 1, 1)
    return count_lines(schedule_of(moves)) * 2 * structure.rows.size / n_cells
