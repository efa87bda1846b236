"""The arrays of the kernels: what stays and what moves."""

from typing import NamedTuple

import numpy as np


class Fixed(NamedTuple):
    """What moves don't change. Areas have the user's numbers. The blocks of an area are a run."""

    parent: np.ndarray
    depth: np.ndarray
    """Int64, shape (areas,): the area that each is a part of, -1 for none; how many are above."""
    begin: np.ndarray
    end: np.ndarray
    """Int64, shape (areas,): the run of blocks of each area."""
    exact: np.ndarray
    """Bool, shape (areas,): whose totals are known."""
    base: np.ndarray
    """Int64, shape (areas, queries): where the residuals of a query begin; -1 if not measured."""
    weight: np.ndarray
    """Float64, shape (areas, queries): 1 / (2 sigma**2)."""
    classes: np.ndarray
    """Int64, shape (cells, queries): the class of each cell; -1 for those not counted."""
    kin: np.ndarray
    """Int64, shape (queries with small classes, cells): cells, those of a class together."""
    kin_begin: np.ndarray
    kin_end: np.ndarray
    """Likewise: the run in ``kin`` of the class of each cell; empty if it isn't counted."""
    leaf: np.ndarray
    group: np.ndarray
    """Int64, shape (blocks,): the area of each block, and the number of its group."""
    together: np.ndarray
    """Int64, shape (groups,): the area of each group."""
    alpha: np.ndarray
    cumulative: np.ndarray
    """Float64, shape (groups, cells): parameters of the Dirichlet prior, and their sums."""
    prior: np.ndarray
    first: np.ndarray
    second: np.ndarray
    table_starts: np.ndarray
    table_lowest: np.ndarray
    tables: np.ndarray
    """The prior of the blocks' totals, as in `counts.trees.nodes.Nodes`."""
    middle: np.ndarray
    precision: np.ndarray
    """Float64, shape (blocks,): the totals that were released, and 1 / (2 variance); 0 if exact."""


class Tables(NamedTuple):
    """Counts, and which of them aren't zero. The last row holds people while they are moved."""

    counts: np.ndarray
    """Int32, shape (rows, cells)."""
    cells: np.ndarray
    """Int16, shape (rows, cells): the cells with people come first."""
    occupied: np.ndarray
    total: np.ndarray
    """Int64, shape (rows,): how many cells have people, and how many people."""


class Moves(NamedTuple):
    """Which moves are made."""

    on: np.ndarray
    """Bool, shape (4,): each kind."""
    lid: np.ndarray
    """Int64, shape (blocks,): the smallest area around each block whose total is known; the root if
    there is none. Who changes places with somebody is drawn from an area around that one."""


class State(NamedTuple):
    """What moves change: what noise has left of the released values, and two kinds of tables."""

    residual: np.ndarray
    people: Tables
    groups: Tables
