"""Tables with overlapping sums: a chain of tables, with directions that fit the sums."""

from collections.abc import Sequence

import numpy as np
import xarray as xr
from scipy import sparse

from pymc_dapper.answers.law import CellLaw
from pymc_dapper.answers.prior import Prior
from pymc_dapper.answers.smooth import LIMITS
from pymc_dapper.answers.trees import DROP, NO_TABLE, Windows
from pymc_dapper.answers.walk import IMPOSSIBLE, Terms, log_weight, walk
from pymc_dapper.answers.windows import LARGEST, LARGEST_DROP, Support, tabulate
from pymc_dapper.counts.compiled.blocks import block_moves
from pymc_dapper.counts.reading.moves import directions_of, find_moves
from pymc_dapper.counts.trees.priors import to_tables
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.nearest_counts import nearest_counts

CHAINS = 4
TUNING = 300
"""Sweeps before the first kept table."""
ENOUGH = 0.1
"""Target for effective draws, as a share of all; the chain is thinned to reach it."""
MOST_MOVES = 1e8
"""Limit on the moves of all chains for that target."""
FEW = 6
"""With up to this number of cells, all pairs exchange people; with more, some do."""
MOST_SWAPS = 50_000
"""Largest number of swaps of four cells, which are made if sums are known."""

Known = Sequence[tuple[np.ndarray, np.ndarray]]


def draw_chain(
    laws: Sequence[CellLaw],
    groups: Sequence[np.ndarray],
    known: Known,
    prior: Prior,
    likely: np.ndarray,
    draws: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, str]:
    """Draw all cells of a table by a chain.

    Parameters
    ----------
    laws : sequence of CellLaw
        The released queries.
    groups : sequence of ndarray
        For each query, the number of the sum that each cell belongs to.
    known : sequence of (ndarray, ndarray)
        Known sums: the number of the sum that each cell belongs to, and the sums.
    prior : Prior
        The prior of the cells.
    likely : ndarray of int64, shape (cells,)
        Likely counts.
    draws : int
        Number of draws.
    rng : Generator
        Advanced by the draws.

    Returns
    -------
    counts : ndarray of int64, shape (cells, draws)
        The draws.
    method : str
        Description of the method.
    """
    start = _start(known, prior, likely)
    own, drop = -(-draws // CHAINS), DROP
    rngs, sweeps, tuning = rng.spawn(CHAINS), 1, TUNING
    while True:
        terms, windows, matrix = _terms(laws, groups, known, prior, start, drop)
        mean = np.clip(np.log(start.mean() + 1.0), *LIMITS[1])
        sums = (matrix @ start).astype(np.int64)
        states = [(start.copy(), sums.copy(), np.array([0.5, mean])) for _ in rngs]
        found = _chains(rngs, terms, states, own, sweeps, tuning)
        inside = all(windows.hold(terms.table, matrix @ tables.T) for tables in found)
        if inside or drop >= LARGEST_DROP:
            break
        drop, start = min(2 * drop, LARGEST_DROP), found[0, -1].copy()
    weights = [log_weight(terms, row, int(at)) for row, at in enumerate(matrix @ found[0, -1])]
    if min(weights) <= IMPOSSIBLE:
        raise ValueError(NO_TABLE)
    while True:
        worst, least = _looked_at(found)
        more = 2 * sweeps * CHAINS * own * terms.widths.size
        if least >= ENOUGH * found[..., 0].size or more > MOST_MOVES:
            break
        sweeps *= 2
        found = _chains(rngs, terms, states, own, sweeps, 0)
    counts = np.ascontiguousarray(found.reshape(CHAINS * own, -1)[:draws].T)
    told = f"R-hat is at most {worst:.2f}, with at least {least:,.0f} effective draws of {draws:,}"
    doubt = "" if worst < 1.02 and least > 0.05 * draws else ": take more draws"
    return counts, f"a chain, as released sums overlap; {told}{doubt}"


State = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Cells, sums and parameters of a chain."""


def _chains(
    rngs: Sequence[np.random.Generator],
    terms: Terms,
    states: Sequence[State],
    draws: int,
    sweeps: int,
    tuning: int,
) -> np.ndarray:
    """Continue all chains; return tables, of shape (chains, draws, cells)."""
    found = np.empty((len(rngs), draws, states[0][0].size), dtype=np.int64)
    for rng, state, drawn in zip(rngs, states, found, strict=True):
        if tuning:
            walk(rng, terms, *state, tuning, drawn[:1])
        walk(rng, terms, *state, sweeps, drawn)
    return found


def _looked_at(found: np.ndarray) -> tuple[float, float]:
    """Return the largest R-hat and the smallest number of effective draws."""
    from arviz_stats import ess, rhat

    free = np.ptp(found, axis=(0, 1)) > 0
    if not free.any():
        return 1.0, float(found[..., 0].size)
    cells = xr.DataArray(found[..., free].astype(float), dims=("chain", "draw", "cell"))
    both = xr.Dataset({"cells": cells})
    return float(rhat(both)["cells"].max()), float(ess(both, method="bulk")["cells"].min())


def _sums(of: np.ndarray) -> sparse.csr_array:
    """Return the matrix of sums, of shape (sums, cells)."""
    return sparse.csr_array((np.ones(of.size, dtype=np.int64), (of, np.arange(of.size))))


def _start(known: Known, prior: Prior, likely: np.ndarray) -> np.ndarray:
    """Return the table nearest to a likely one among those with the known sums."""
    likely = likely.astype(np.int64)
    if not known:
        return likely
    exact, each = [_sums(of) for of, _ in known], sparse.eye_array(likely.size)
    values = np.concatenate([values for _, values in known]).astype(np.float64)
    limits = (prior.lowest, min(prior.highest, int(values.max())))
    low, high = (np.append(values, np.full(likely.size, float(end))) for end in limits)
    matrix = sparse.csr_array(sparse.vstack([*exact, each]))
    found = nearest_counts(matrix, (low, high), likely)
    if found is None:
        raise ValueError("total: no table within the prior has all sums that are known")
    return found


def _terms(
    laws: Sequence[CellLaw],
    groups: Sequence[np.ndarray],
    known: Known,
    prior: Prior,
    start: np.ndarray,
    drop: float,
) -> tuple[Terms, Windows, sparse.csr_array]:
    """Tabulate the released sums; also return their windows, and their matrix."""
    windows, numbers, bends = Windows(), [], []
    for law, of in zip(laws, groups, strict=True):
        sizes = np.bincount(of)
        high = min(int(sizes.max()) * prior.highest, LARGEST)
        support = Support(int(sizes.min()) * prior.lowest, high, True)
        tables = tabulate(law, support, drop=drop, pieces=None)
        numbers.append(windows.add(tables, support, drop)[law.which])
        weights, counts = tables.weights(), tables.nodes[:, :-1]
        total = weights.sum(axis=1)
        mean = (weights * counts).sum(axis=1) / total
        variance = (weights * (counts - mean[:, None]) ** 2).sum(axis=1) / total
        bends.append(1 / np.maximum(variance, 0.1)[law.which])
    matrices = [_sums(of) for of in groups]
    matrix = sparse.csr_array(sparse.vstack(matrices))
    moves = _directions(matrices, known, prior, start, np.concatenate(bends))
    effects = sparse.csr_array(moves @ matrix.T)
    effects.eliminate_zeros()
    squares = effects.astype(float).power(2) @ np.concatenate(bends)
    squares += moves.astype(float).power(2) @ (1 / np.maximum(start, 1.0) ** 2)
    has_total = any(not of.any() for of, _ in known)
    terms = Terms(
        np.concatenate(numbers),
        *to_tables(windows.rows, windows.lowest),
        np.array([prior.lowest, prior.highest]),
        *_parts(moves),
        *_parts(effects),
        np.ceil(2.5 / np.sqrt(squares)).astype(np.int64),
        0 if prior.kind == "flat" else 1 + has_total,
        LIMITS,
    )
    return terms, windows, matrix


def _parts(matrix: sparse.csr_array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return tuple(x.astype(np.int64) for x in (matrix.indptr, matrix.indices, matrix.data))


def _directions(
    matrices: Sequence[sparse.csr_array],
    known: Known,
    prior: Prior,
    start: np.ndarray,
    bends: np.ndarray,
) -> sparse.csr_array:
    """Return directions that connect all tables, and directions of their largest spread."""
    n, rng = start.size, np.random.default_rng(0)
    exact = sparse.csr_array((0, n), dtype=np.int64)
    if known:
        exact = sparse.csr_array(sparse.vstack([_sums(of) for of, _ in known]))
    names = [f"total {k}" for k in range(exact.shape[0])]
    bounded = np.full(n, prior.highest < LARGEST)
    try:
        moves = find_moves(exact, matrices, bounded, names)
    except ReadingError as error:
        raise ValueError(f"total: {error}") from None
    rows: list[dict[int, int]] = [{int(cell): 1} for cell in moves.single]
    for group in moves.groups:
        pairs = np.stack(np.triu_indices(min(group.size, FEW), 1), axis=1)
        if group.size > FEW:  # neighbours connect all tables
            next_to = np.arange(group.size - 1)[:, None] + np.arange(2)
            pairs = np.concatenate([next_to, rng.integers(group.size, size=(2 * group.size, 2))])
        rows += [{a: 1, b: -1} for a, b in group[pairs].tolist() if a != b]
    for grid in moves.grids:
        at = np.array([[int(cells[0]) for cells in row] for row in grid.cells])
        up, down = np.triu_indices(at.shape[0], 1)
        left, right = np.triu_indices(at.shape[1], 1)
        chosen = np.arange(up.size * left.size)
        if known and chosen.size > MOST_SWAPS:
            raise ValueError("total: a table of so many known sums needs a model")
        if not known and chosen.size > 2 * at.size:  # they aren't needed to connect tables
            chosen = rng.choice(chosen, 2 * at.size, replace=False)
        i, j = np.divmod(chosen, left.size)
        corners = [at[up[i], left[j]], at[up[i], right[j]], at[down[i], left[j]]]
        corners.append(at[down[i], right[j]])
        rows += [{a: 1, b: -1, c: -1, d: 1} for a, b, c, d in np.transpose(corners).tolist()]
    found = [directions_of(rows, n), moves.directions]
    seen = sparse.vstack(matrices).astype(float)
    for block in moves.blocks:
        inside = sparse.eye_array(n, dtype=np.int64, format="csr")[block.cells]
        seen_inside, at = seen[:, block.cells].toarray(), start[block.cells]
        moved = block_moves(block.basis, seen_inside, bends, at).directions
        found.append(sparse.csr_array(moved) @ inside)
    every = sparse.csr_array(sparse.vstack(found).astype(np.int64))
    return every[np.diff(every.indptr) > 0]
