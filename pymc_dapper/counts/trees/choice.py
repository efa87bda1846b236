"""Whether counts on a tree are drawn jointly, by numbers of operations."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pymc_dapper.counts.compiled.sweep import CompiledCountSweep, schedule_of
from pymc_dapper.counts.kernels.schedule import count_lines
from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.self_check import WrittenFactors, check_gain
from pymc_dapper.counts.reading.tree import TreeReading
from pymc_dapper.counts.trees.model import ModelTree, NoTreeError, compile_tree

FEWEST = 1_000
"""Lines of a sweep: with fewer, moves are so cheap that kernels for trees needn't be loaded."""
PER_LINE = 1_000_000
"""Most multiplications for messages, for each line of a sweep. This many take as long as some
thousand sweeps. A draw then takes less time than moves need for an effective draw of the slowest
count."""


def choose_tree(
    reading: CountReading,
    tree: TreeReading | str,
    wanted: bool | None,
    sweep: CompiledCountSweep,
    counts: np.ndarray,
    given: Sequence[np.ndarray],
    options: dict[str, Any],
) -> ModelTree | None:
    """Compile the draws of counts on their tree, if that is wanted, or costs less than moves.

    The draws are compared with the model at possible ``counts``. None if there are none.
    """
    if wanted is False or isinstance(tree, str):
        return None
    n_lines = count_lines(schedule_of(sweep.moves))
    # If parameters change, each draw needs new messages, and moves usually take less time.
    if wanted is None and (reading.parameters or n_lines < FEWEST):
        return None
    compiled = compile_tree(reading, tree, options)
    try:
        if wanted is None and not pays(compiled, counts, given, n_lines):
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


def pays(tree: ModelTree, counts: np.ndarray, given: Sequence[np.ndarray], n_lines: int) -> bool:
    """Whether draws with messages computed once take less time than moves along so many lines."""
    widths = np.diff(tree.tables(counts, given).starts)
    return multiplications(tree.left, tree.right, widths) <= PER_LINE * n_lines


def multiplications(left: np.ndarray, right: np.ndarray, widths: np.ndarray) -> float:
    """Return how many it takes to pass messages up, at most, given the widths of tables."""
    widths, total = widths.astype(np.float64), 0.0
    for i in np.flatnonzero(right >= 0):
        a, b = widths[left[i]], widths[right[i]]
        total += a * b
        widths[i] = min(widths[i], a + b) if widths[i] else a + b
    return total
