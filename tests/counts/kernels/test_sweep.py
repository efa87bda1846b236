"""The sweep over counts leaves exact conditional posteriors as they are, by enumeration."""

from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from numba import njit
from scipy import stats
from scipy.special import gammaln

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.kernels import exchanges
from pymc_dapper.counts.kernels.draws import choose
from pymc_dapper.counts.kernels.exchanges import pair_cells
from pymc_dapper.counts.kernels.joint import copy_terms, measure_locally, new_memory, propose
from pymc_dapper.counts.kernels.lattice import reduce_basis
from pymc_dapper.counts.kernels.line import (
    LARGEST,
    State,
    count_terms,
    find_change,
    log_density_at,
    new_line,
    start_values,
    update_line,
)
from pymc_dapper.counts.kernels.schedule import Grids, room
from pymc_dapper.counts.kernels.sweep import (
    SweepOutcome,
    joint_directions,
    move_jointly,
    sweep_counts,
)
from tests.broken import edited
from tests.counts_enumeration import (
    SWEEP,
    Model,
    connected,
    grid,
    log_density,
    schedule,
    scripted,
    some_draws,
)
from tests.long_cases import one_in_three

N, P = 3, np.array([0.2, 0.3, 0.5])
RELEASED, SD, PAIR, SCALE = np.array([1.4, 0.7, 2.5]), 1.1, 0.3, 1.5
TABLES = [x for x in product(range(N + 1), repeat=3) if sum(x) == N]
COUNTS = np.arange(N + 1)


def normalised(logp):
    weights = np.exp(np.array(logp) - np.max(logp))
    return weights / weights.sum()


def exact():
    """Probabilities of three cells, given noisy counts and a noisy total of two."""
    return normalised(
        [
            stats.multinomial.logpmf(x, N, P)
            + stats.norm.logpdf(RELEASED, x, SD).sum()
            + stats.laplace.logpdf(PAIR, x[0] + x[1], SCALE)
            for x in TABLES
        ]
    )


def cells_and_pair(coefficient=1):
    """The same as terms; without the multinomial coefficient if that is 0."""
    of_cells = [
        COUNTS * np.log(p) - coefficient * gammaln(COUNTS + 1) + stats.norm.logpdf(r, COUNTS, SD)
        for p, r in zip(P, RELEASED, strict=True)
    ]
    of_pair = stats.laplace.logpdf(PAIR, COUNTS, SCALE)
    return Model([*np.eye(3), [1, 1, 0]], [*of_cells, of_pair])


def error(matrix, posterior):
    """Largest change that a sweep makes to a posterior."""
    return np.abs(posterior @ matrix - posterior).max()


EXCHANGES = [[1, -1, 0], [0, 1, -1], [1, 0, -1]]


@pytest.mark.parametrize("curvature", [0.1, 1.5], ids=["wide", "narrow"])
def test_exchanges_leave_the_posterior_as_it_is(curvature):
    model = cells_and_pair()
    matrices = [
        model.matrix(TABLES, schedule(directions=[each]), [curvature] * 4) for each in EXCHANGES
    ]
    assert max(error(matrix, exact()) for matrix in matrices) < 1e-10
    assert connected(*matrices)
    assert not connected(matrices[0])


def test_widths_that_depend_on_the_table_do_not():
    # Which is why they are measured while tuning only. With one mode they would do no harm.
    bowl, humps = -18 * (np.arange(6) - 2.5) ** 2, np.array([0.0, 1.0, -39.0, -40.0, 0.5, 1.5])
    model, posterior = Model([[1], [1]], [bowl, humps]), normalised(bowl + humps)
    counts, moves = [(k,) for k in range(6)], schedule(single=[0])
    assert error(model.matrix(counts, moves, [0.5, 2.0]), posterior) < 1e-10
    assert error(model.matrix(counts, moves, None), posterior) > 1e-4


def test_a_prior_without_its_coefficient_shows():
    moves = schedule(directions=EXCHANGES[:1])
    assert error(cells_and_pair(0).matrix(TABLES, moves, [1.0] * 4), exact()) > 1e-2


# Counts that move by themselves, with a noisy total ----------------------------------------------

SUM, TIGHT = 1.4, 0.4


def two_counts(m, n):
    """A Binomial and a BetaBinomial, bounded by their density only, and their noisy total."""
    tables = list(product(range(m + 1), range(n + 1)))
    first = stats.binom.logpmf(np.arange(m + 1), m, 0.3)
    second = stats.betabinom.logpmf(np.arange(n + 1), n, 1.5, 2.0)
    total = stats.norm.logpdf(SUM, np.arange(m + n + 1), TIGHT)
    posterior = normalised([first[x] + second[y] + total[x + y] for x, y in tables])
    return Model([[1, 0], [0, 1], [1, 1]], [first, second, total]), tables, posterior


def test_single_moves_leave_the_posterior_as_it_is():
    model, tables, posterior = two_counts(2, 3)
    matrices = [model.matrix(tables, schedule(single=[each]), [1.0] * 3) for each in (0, 1)]
    assert max(error(matrix, posterior) for matrix in matrices) < 1e-10
    assert connected(*matrices)


def test_one_single_move_after_the_other_does_so():
    # The fewer tables and the narrower slices, the sooner enumerated.
    model, tables, posterior = two_counts(1, 1)
    matrix = model.matrix(tables, schedule(single=[0, 1]), [3.0] * 3)
    assert error(matrix, posterior) < 1e-10
    assert connected(matrix)


@njit
def stale_values(
    log_density, context, structure, lines, grids, linked, joint, room, counts, curvatures, draws
):
    """Forget what a move does to the totals that other moves see."""
    state = State(counts.copy(), start_values(structure, counts))
    line = new_line(structure, 4)
    before = state.values.copy()
    for cell in lines.single:
        line.cells[0], line.steps[0] = cell, 1
        update_line(log_density, context, structure, curvatures, state, line, 1, draws)
        state.values[:] = before
    return SweepOutcome(state.counts, 0.0, 0, 0.0, 0.0, curvatures)


def test_a_stale_total_shows():
    model, tables, posterior = two_counts(1, 1)
    moves = schedule(single=[0, 1])
    matrix = model.matrix(tables, moves, [3.0] * 3, scripted(stale_values))
    assert error(matrix, posterior) > 1e-3


# Known margins ----------------------------------------------------------------------------------


def test_only_swaps_connect_tables_of_known_margins():
    rates, released = np.array([0.7, 1.1, 2.0, 0.4]), np.array([0.2, 1.0, 0.9, 0.4])
    tables = [(0, 2, 1, 0), (1, 1, 0, 1)]  # rows add up to 2 and 1, columns to 1 and 2
    terms = [
        stats.poisson.logpmf(COUNTS, rate) + stats.norm.logpdf(r, COUNTS, 1.0)
        for rate, r in zip(rates, released, strict=True)
    ]
    posterior = normalised([sum(terms[k][x] for k, x in enumerate(each)) for each in tables])
    model = Model(np.eye(4), terms)
    matrix = model.matrix(tables, schedule(directions=[[1, -1, -1, 1]]), [1.0] * 4)
    assert error(matrix, posterior) < 1e-10
    assert connected(matrix)
    assert not connected(model.matrix(tables, schedule(), [1.0] * 4))


# Directions of blocks ----------------------------------------------------------------------------

WINDOWS = np.array([[1, 1, 0], [0, 1, 1]])
TIGHT_SUMS = np.array([1.2, 1.6])
HIGHEST = (1, 2, 1)
SMALL = list(product(*(range(most + 1) for most in HIGHEST)))


def overlapping():
    """Three loose cells and two sums of them that overlap, known better."""
    of_cells = [np.log(np.array([0.5, 0.2, 0.3])[: most + 1]) for most in HIGHEST]
    of_sums = [stats.norm.logpdf(r, np.arange(4), 0.5) for r in TIGHT_SUMS]
    posterior = normalised(
        [
            sum(of_cells[k][x[k]] for k in range(3))
            + sum(of_sums[k][row @ x] for k, row in enumerate(WINDOWS))
            for x in SMALL
        ]
    )
    return Model([*np.eye(3), *WINDOWS], [*of_cells, *of_sums]), posterior


def reduced(curvatures):
    """Directions that are nearly orthogonal in the metric of some curvatures."""
    matrix = np.vstack([np.eye(3), WINDOWS])
    rows = reduce_basis(np.eye(3, dtype=np.int64), matrix.T @ np.diag(curvatures) @ matrix)
    return [row if row.max() > 0 else -row for row in rows]


CURVATURES = [0.1, 0.1, 0.1, 4.0, 4.0]


def test_directions_of_a_block_leave_the_posterior_as_it_is():
    model, posterior = overlapping()
    directions = reduced(CURVATURES)
    assert [1, -1, 1] in [row.tolist() for row in directions]
    matrices = [model.matrix(SMALL, schedule(directions=[each]), CURVATURES) for each in directions]
    assert max(error(matrix, posterior) for matrix in matrices) < 1e-10
    assert connected(*matrices)


def test_directions_that_depend_on_the_table_do_not():
    # Which is why they are found while tuning only.
    model, posterior = overlapping()
    by_metric = {
        known: model.matrix(
            SMALL, schedule(directions=reduced([0.1, 0.1, 0.1, known, known])[:1]), CURVATURES
        )
        for known in (0.01, 10.0)
    }
    first = WINDOWS[0] @ np.transpose(SMALL)
    matrix = np.where((first > 1)[:, None], by_metric[10.0], by_metric[0.01])
    assert max(error(each, posterior) for each in by_metric.values()) < 1e-10
    assert error(matrix, posterior) > 1e-3


# Several directions at once ---------------------------------------------------------------------


@njit
def jointly(
    log_density, context, structure, lines, grids, linked, joint, room, counts, curvatures, draws
):
    """Make no moves but these."""
    state = State(counts.copy(), start_values(structure, counts))
    moved, gain = move_jointly(
        log_density, context, structure, lines, joint, curvatures, state, draws
    )
    return SweepOutcome(state.counts, 0.0, moved, 0.0, gain, curvatures)


@njit
def one_way(
    log_density, context, structure, lines, grids, linked, joint, room, counts, curvatures, draws
):
    """Forget that the way back may be more or less probable than the way there."""
    state = State(counts.copy(), start_values(structure, counts))
    memory = new_memory(structure, counts.size)
    terms, line = np.arange(count_terms(structure)), memory.line
    measure_locally(log_density, context, structure, curvatures, state.values, terms, True, memory)
    copy_terms(structure, memory, terms, memory.reached, memory.present)
    directions = joint_directions(lines, joint, 0, 0)
    proposal = propose(structure, directions, state, memory, draws)
    if proposal.n_cells > 0:
        change, gain = find_change(structure, line, proposal.n_cells), 0.0
        for t in range(2):
            density = log_density_at(log_density, context, state.values, line, change, t)
            gain = density - gain
        chance = np.exp(min(0.0, gain))
        if choose(draws, np.array([1 - chance, chance])):
            for i in range(proposal.n_cells):
                state.counts[line.cells[i]] += line.steps[i]
    return SweepOutcome(state.counts, 0.0, 0, 0.0, 0.0, curvatures)


JOINTLY = scripted(jointly)

STIFF = [2.0, 2.0, 2.0, 4.0, 4.0]


def together(curvatures):
    """Directions of the block, moving together."""
    matrix = np.vstack([np.eye(3), WINDOWS])
    directions = np.array(reduced(curvatures))
    images = directions @ matrix.T
    factor = np.linalg.cholesky((images * curvatures) @ images.T)
    return schedule(directions=directions, factor=factor)


def test_directions_taken_together_leave_the_posterior_as_it_is():
    model, posterior = overlapping()
    matrix = model.matrix(SMALL, together(STIFF), STIFF, JOINTLY)
    assert error(matrix, posterior) < 1e-10
    assert connected(matrix)
    assert posterior @ np.diag(matrix) < 0.7  # many proposals are accepted


def test_without_the_way_back_they_do_not():
    model, posterior = overlapping()
    matrix = model.matrix(SMALL, together(STIFF), STIFF, scripted(one_way))
    assert error(matrix, posterior) > 1e-3


@pytest.mark.long
def test_a_metric_that_depends_on_the_table_does_not_either():
    model, posterior = overlapping()
    metrics = STIFF, [1.0, 1.0, 1.0, 4.0, 4.0]
    tight, loose = (model.matrix(SMALL, together(each), each, JOINTLY) for each in metrics)
    first = WINDOWS[0] @ np.transpose(SMALL)
    matrix = np.where((first > 1)[:, None], tight, loose)
    assert max(error(tight, posterior), error(loose, posterior)) < 1e-10
    assert error(matrix, posterior) > 1e-3


# Impossible tables, and which lines are drawn ----------------------------------------------------


def swept(draws, counts, context, structure, moves, curvatures):
    density = in_python(log_density)
    return in_python(sweep_counts)(
        density, context, structure, *moves, room(moves), counts, curvatures, draws
    )


@pytest.mark.parametrize("start", [0, 199])
def test_from_an_impossible_table_a_possible_one_is_found(start):
    narrow = np.full(200, -np.inf)
    narrow[120:123] = 0.0
    model = Model([[1]], [narrow])
    rng, counts, outcome = np.random.default_rng(3), np.array([start]), None
    for _ in range(200):
        moves = schedule(single=[0])
        outcome = swept(some_draws(rng), counts, model.context, model.structure, moves, np.ones(1))
        counts = outcome.counts
    assert 120 <= counts[0] <= 122
    assert outcome.log_density == 0


def test_counts_grow_to_the_largest_and_not_beyond():
    """Without a log-density that could stop them; integers would overflow before long."""
    model, counts = Model([[1, 0], [0, 1]], [np.zeros(1)] * 2), np.array([LARGEST - 3, 2])
    no_terms = {"terms": np.full(2, -1), "kinds": np.zeros(0, dtype=np.int64)}
    flat, rng = model.structure._replace(**no_terms), np.random.default_rng(2)
    for _ in range(50):
        counts = swept(
            some_draws(rng), counts, model.context, flat, schedule(single=[0, 1]), np.zeros(2)
        ).counts
        assert counts.min() >= 0
        assert counts.max() <= LARGEST


@njit
def chosen_early(
    log_density, context, structure, lines, grids, linked, joint, room, counts, curvatures, draws
):
    """Leave out pairs without people at the start of the sweep, though cells move before."""
    state = State(counts.copy(), start_values(structure, counts))
    line, corners = new_line(structure, 4), np.empty((2, 4), dtype=np.int64)
    n_pairs = pair_cells(grids.cells, counts, corners, draws)
    for k in range(lines.single.size + n_pairs):
        n_cells = 1 if k < lines.single.size else 2
        for i in range(n_cells):
            line.cells[i] = lines.single[k] if n_cells == 1 else corners[k - 1, i]
            line.steps[i] = 1 - 2 * i
        update_line(log_density, context, structure, curvatures, state, line, n_cells, draws)
    return SweepOutcome(state.counts, 0.0, 0, 0.0, 0.0, curvatures)


def test_pairs_without_people_are_left_out_when_their_turn_comes():
    """A cell that is filled by its own move exchanges people afterwards."""
    tables, total = list(product(range(2), repeat=2)), np.array([0.0, -0.2, -0.9])
    cells = [np.array([0.0, -0.4]), np.array([-0.3, -0.1])]
    model = Model([[1, 0], [0, 1], [1, 1]], [*cells, total])
    posterior = normalised([cells[0][x] + cells[1][y] + total[x + y] for x, y in tables])
    moves = grid(1, np.arange(2), passes=1)._replace(lines=schedule(single=[0]).lines)
    exactly, early = (
        model.matrix(tables, moves, [3.0] * 3, kernel) for kernel in (SWEEP, scripted(chosen_early))
    )
    assert error(exactly, posterior) < 1e-10
    assert connected(exactly)
    assert error(early, posterior) > 1e-3


# Whole sweeps of many lines ----------------------------------------------------------------------


def grids_of(*shapes, single=(), directions=()):
    """One pass over each grid, in turn, given the cells at each place, row by row."""
    places = [cells for rows in shapes for row in rows for cells in row]
    sizes = [(len(rows), len(rows[0])) for rows in shapes]
    rows, columns = np.array(sizes).T
    starts = np.cumsum([0, *map(len, places)])
    grids = Grids(
        rows, columns, np.cumsum(rows * columns) - rows * columns, starts,
        np.concatenate(places), np.ones(len(sizes), dtype=np.int64),
    )  # fmt: skip
    return schedule(single, directions)._replace(grids=grids)


def group(*cells):
    return [[[cell] for cell in cells]]


def places(n_rows, n_columns):
    return np.arange(n_rows * n_columns).reshape(n_rows, n_columns, 1).tolist()


def people(n, n_cells, *known):
    """All tables of so many people, with these sums of cells."""
    each = combinations_with_replacement(np.eye(n_cells, dtype=int), n)
    tables = [tuple(sum(x).tolist()) for x in each]
    return [x for x in tables if all(np.dot(cells, x) == total for cells, total in known)]


WEIGHTS = np.array([1, 2, 2, 2])
WHOLE = {
    "three pairs, fewer people than cells": (people(2, 6), grids_of(group(*range(6))), "pairs"),
    "groups that share cells, with one cell alone, and one that stays empty": (
        people(2, 5, ([0, 1, 0, 0, 0], 0)),
        grids_of(group(*range(5)), group(1, 2, 3, 4)),
        "pairs",
    ),
    "cells of an unknown number, then their group": (
        list(product(range(2), repeat=4)),
        grids_of(group(*range(4)), single=[0, 2]),
        "pairs",
    ),
    "changes of two people and of one, after exchanges": (
        [x for x in product(range(5), repeat=4) if WEIGHTS @ x == 4],
        grids_of(group(1, 2, 3), directions=[[2, -1, 0, 0]]),
        None,
    ),
    "a table of 4 x 3, with empty cells": (
        people(3, 12, *((np.arange(12) // 3 == k, k < 3) for k in range(4))),
        grids_of(places(4, 3)),
        "swaps",
    ),
    "2 x 2 places, some of two cells, after exchanges within these": (
        people(2, 6, ([1, 1, 1, 0, 0, 0], 1), ([1, 1, 0, 1, 0, 0], 1)),
        grids_of(group(0, 1), group(4, 5), [[[0, 1], [2]], [[3], [4, 5]]]),
        None,
    ),
}
IN_ANOTHER_ORDER = {
    "pairs": ("pair_cells", {"for low in range(cells.size):": "for low in alone[::-1]:"}),
    "swaps": (
        "pair_corners",
        {"shuffle(rows, draws)": "rows[:] = rows[np.argsort(-counts[rows * columns.size])]"},
    ),
}


@pytest.mark.parametrize("name", one_in_three(WHOLE))
def test_whole_sweeps_leave_the_posterior_as_it_is(name):
    """The order of lines must not depend on who has people. Sums tie cells of several lines."""
    tables, moves, fault = WHOLE[name]
    rng, n = np.random.default_rng(2), len(tables[0])
    cells = np.eye(n, dtype=int)
    seen = np.vstack([cells, cells[:3] + cells[1:4]])
    terms = rng.normal(0.0, 0.7, size=(n + 3, 2 + max(map(sum, tables))))
    for cell, most in enumerate(np.max(tables, axis=0)):
        terms[cell, most + 1 :] = -np.inf
    posterior = normalised([terms[np.arange(n + 3), seen @ x].sum() for x in tables])
    model, laws = Model(seen, list(terms)), {}

    def matrix():
        return model.matrix(tables, moves, np.ones(n + 3), model.by_lines(tables, laws))

    exactly = matrix()
    assert error(exactly, posterior) < 1e-10
    assert posterior @ np.diag(exactly) < 0.98
    if fault is not None:
        with edited(exchanges, *IN_ANOTHER_ORDER[fault]):
            assert error(matrix(), posterior) > 1e-6
