"""What kernels return doesn't depend on what was in memory: run in Python, over left-overs."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.kernels.draws import Draws
from pymc_dapper.counts.kernels.schedule import room
from pymc_dapper.counts.kernels.sweep import sweep_counts
from pymc_dapper.interweaving.kernels.moves import draw_variates, move_parameters
from pymc_dapper.interweaving.kernels.tuning import unfitted
from pymc_dapper.records.kernels.cell_sweep import Cells, sweep_by_cell
from pymc_dapper.records.kernels.entry_sweep import decide_by_entries
from pymc_dapper.records.kernels.full_sweep import sweep_by_full_evaluation
from pymc_dapper.records.kernels.sums_sweep import decide_by_sums, sweep_by_blocks
from tests.counts_enumeration import Model, schedule
from tests.memory import whatever_was_in_memory

N, D = 40, 3


def of_sums(sums, context):
    return -0.05 * float(np.sum(sums**2)) if sums[0] > -40 else -np.inf


def of_entry(entry, values):
    return -0.05 * (entry - values[0]) ** 2 if entry > -40 else -np.inf


@pytest.fixture(scope="module")
def changes():
    """Present and proposed contributions, and what decides."""
    rng = np.random.default_rng(0)
    removed, added = rng.normal(size=(2, N, D))
    added[::3] = removed[::3]
    return removed, added, np.log(rng.random(N))


def by_blocks(decide, log_density, context, in_block):
    def sweep(removed, added, *deciding):
        present, proposed = (
            lambda arrays, start, stop, k=k: arrays[k][start:stop] for k in range(2)
        )
        return in_python(sweep_by_blocks)(
            in_python(decide),
            log_density,
            context,
            present,
            proposed,
            (removed, added),
            D,
            in_block,
            *deciding,
        )

    return sweep


def by_sums(in_block):
    return by_blocks(decide_by_sums, of_sums, (), in_block)


def by_entries(in_block):
    return by_blocks(decide_by_entries, of_entry, np.zeros((D, 1)), in_block)


def by_cell(removed, added, *deciding):
    """Of which only the number is taken."""
    one = np.ones(1, dtype=int)
    present, proposed = np.random.default_rng(0).integers(0, D, (2, 1, N))
    cells = Cells(D * one, np.arange(D), 0 * one, np.array([[1, 0]]), one[None], present, proposed)
    return in_python(sweep_by_cell)(of_entry, np.zeros((D, 1)), cells, *deciding)


SWEEPS = {
    "by sums": by_sums(N),
    "by entries": by_entries(N),
    "by cell": by_cell,
    "full": lambda *of: in_python(sweep_by_full_evaluation)(
        lambda records, context: of_sums(records.sum(axis=0), context), (), of[:2], *of[2:]
    ),
    "blocks by sums": by_sums(16),
    "blocks by entries": by_entries(16),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_sweeps_over_records(changes, name):
    one, other = whatever_was_in_memory(lambda: SWEEPS[name](*changes))
    assert 0 < one[0].sum() < N
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]


@pytest.mark.parametrize("movable", [True, False])
def test_moves_of_parameters(movable):
    fit = unfitted(np.zeros(2))
    variates = draw_variates(np.random.default_rng(0), 5, 2)
    start = np.array([0.3, 1.0])

    def log_density(context, theta):
        return of_sums(theta, context)

    one, other = whatever_was_in_memory(
        lambda: in_python(move_parameters)(log_density, (), start, movable, fit, variates)
    )
    for before, after in zip(one, other, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("curvatures", [np.zeros(0), np.ones(4)], ids=["measured", "known"])
def test_sweeps_over_counts(curvatures):
    density = -0.5 * (np.arange(9) - 3.0) ** 2
    model = Model([*np.eye(3), [1, 1, 0]], [density] * 4)
    directions = [[1, -1, 0], [0, 1, -1]]
    factor = np.linalg.cholesky(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    moves = schedule(single=[0, 2], directions=directions, factor=factor)

    def log_density(first, values, slopes, terms, n_terms, whole, t):
        total = 0.0
        for term in terms[:n_terms]:
            place = int(values[first[term]] + t * slopes[first[term]])
            total += density[place] if 0 <= place < 9 else -np.inf
        return total

    def sweep():
        draws = Draws(np.random.default_rng(4).random(1_000), np.zeros(1, dtype=np.int64))
        return in_python(sweep_counts)(
            log_density,
            model.structure.first,
            model.structure,
            *moves,
            room(moves),
            np.array([2, 3, 1]),
            curvatures,
            draws,
        )

    one, other = whatever_was_in_memory(sweep)
    for before, after in zip(one, other, strict=True):
        np.testing.assert_array_equal(before, after)
