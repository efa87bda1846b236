"""A description of counts and their moves in words."""

import math
from collections import Counter

import numpy as np

from pymc_dapper.counts.kernels.linked import MOST_CHANGED
from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.moves import Moves
from pymc_dapper.counts.reading.tree import why_no_tree
from pymc_dapper.graphs.naming import counted

NAMED_CELLS = 6
"""Up to this number of cells of a variable are listed; of more, only the number is given."""


def describe_counts(reading: CountReading, moves: Moves) -> str:
    """Describe how a model's log-density depends on the counts, and how they move."""
    lines = [f"{reading.n_cells} cells:"]
    lines += [
        f"  {rv.name}  {count.type.shape}  {type(rv.owner.op).__name__.removesuffix('RV')}"
        + (f", of {told}" if (told := getattr(rv.tag, "people", None)) else "")
        for rv, count in zip(reading.rvs, reading.counts, strict=True)
    ]
    lines.append("Terms of the log-density, each of a few cells:")
    lines += dict.fromkeys(  # a factor may have several such terms of each cell
        f"  {terms.factor}: {counted(terms.size, 'term')} of {_cells(terms.linear.values())}"
        for terms in reading.terms
    )
    if reading.wholes:
        lines.append("Evaluated as a whole in each move of their cells:")
        lines += [f"  {whole.factor}: {whole.reason}" for whole in reading.wholes]
    if reading.totals.follows.any():
        lines.append("Latent totals, which follow from the cells that they add up:")
        lines.append(f"  {name_cells(reading, reading.totals.follows)}")
    if reading.known.factors:
        lines.append("Known exactly, and kept by all moves:")
        totals = Counter(reading.known.factors)
        lines += [f"  {name}: {counted(n, 'total')}" for name, n in totals.items()]
    crossing = why_no_tree(reading)
    if crossing is None:
        lines.append("On a tree: all known sums of cells are nested or disjoint.")
    else:
        lines.append(f"Not on a tree: {crossing}.")
    return "\n".join([*lines, "A sweep:", *_moves(moves)])


def summarise_counts(reading: CountReading) -> str:
    """Describe in one line what the counts are and which factors depend on them."""
    names = [rv.name for rv in reading.rvs]
    factors = [name for name in reading.as_written if name not in names]
    return f"{reading.n_cells} cells of {', '.join(names)}; {', '.join(factors)}"


def name_cells(reading: CountReading, chosen: np.ndarray) -> str:
    """Name the chosen cells, such as "'total', 'table' at [0, 2], [1, 1]"."""
    named, start = [], 0
    for count in reading.counts:
        shape = count.type.shape
        here = chosen[start : start + math.prod(shape)].reshape(shape)
        start += here.size
        if here.all():
            named.append(f"'{count.name}'")
        elif here.any():
            at = [str(index) for index in np.argwhere(here).tolist()]
            more = [f"{len(at) - NAMED_CELLS} more"] if len(at) > NAMED_CELLS else []
            named.append(f"'{count.name}' at {', '.join([*at[:NAMED_CELLS], *more])}")
    return ", ".join(named)


def _moves(moves: Moves) -> list[str]:
    lines = []
    if len(moves.single):
        lines.append(f"  {counted(len(moves.single), 'cell')}, each by itself")
    exchanges = zip(moves.passes, moves.groups, strict=True)
    pairs = sum(int(n) * (len(cells) // 2) for n, cells in exchanges)
    if pairs:
        groups = counted(len(moves.groups), "group")
        lines.append(f"  {pairs} exchanges between two cells, within {groups}")
    if moves.grids:
        lines.append(f"  2 x 2 swaps in {counted(len(moves.grids), 'table')}")
    for linked in moves.linked:
        tables = counted(len(linked.starts), "linked table")
        lines.append(f"  {len(linked.sets)} moves of up to {MOST_CHANGED} columns of {tables}")
    if moves.directions.shape[0]:
        lines.append(f"  {counted(moves.directions.shape[0], 'other move')}")
    if moves.blocks:
        most = max(len(block.cells) for block in moves.blocks)
        blocks = counted(len(moves.blocks), "block")
        lines.append(f"  moves of many cells at once, within {blocks} of up to {most} cells")
    return [*lines, "A sweep takes as long however many people are counted."]


def _cells(matrices) -> str:  # type: ignore[no-untyped-def]
    most = max(int(matrix.count_nonzero(axis=1).max(initial=0)) for matrix in matrices)
    return "a cell each" if most <= 1 else f"up to {most} cells each"
