"""Decisions on records that are counted in a cell of each table are those by their rows."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels import cell_sweep
from pymc_dapper.records.kernels.cell_sweep import Cells, check_cells, sweep_by_cell
from pymc_dapper.records.kernels.entry_sweep import decide_by_entries
from pymc_dapper.records.kernels.sums_sweep import sweep_by_blocks
from tests.broken import in_place

N = 300
"""More than are looked up at a time."""
SIZES = np.array([2, 3, 4])
# A table of the first two variables, one of the last two, and one of the last in two cells.
COLUMNS = np.array([[2, 0, 1], [2, 1, 2], [1, 2, 0]])
STRIDES = np.array([[3, 1], [4, 1], [1, 0]])
STARTS = np.array([0, 6, 18])
CELLS = np.concatenate([np.arange(6), 6 + np.arange(12), [18, -1, 19, 18]])
N_CELLS = 20


def of_cell(count, values):
    return -0.5 * ((count - values[0]) / 2.0) ** 2


def rows(records):
    found = np.zeros((len(records), N_CELLS))
    for i, (a, b, c) in enumerate(records):
        for cell in (CELLS[3 * a + b], CELLS[6 + 4 * b + c], CELLS[18 + c]):
            if cell >= 0:
                found[i, cell] += 1
    return found


def decided(sweep, seed=3):
    rng = np.random.default_rng(seed)
    present, proposed = (rng.integers(0, SIZES, (N, 3)) for _ in range(2))
    context = rng.integers(0, 20, (N_CELLS, 1)).astype(float)
    thresholds = np.log(rng.random(N))
    cells = Cells(SIZES, CELLS, STARTS, COLUMNS, STRIDES, present.T, proposed.T)
    found = sweep(of_cell, context, cells, thresholds)
    of_blocks = [lambda arrays, start, stop, k=k: arrays[k][start:stop] for k in range(2)]
    arrays = (rows(present), rows(proposed))
    expected = in_python(sweep_by_blocks)(
        in_python(decide_by_entries), of_cell, context, *of_blocks, arrays, N_CELLS, N, thresholds
    )
    return found, expected


def test_decisions_are_those_by_rows():
    found, expected = decided(in_python(sweep_by_cell))
    assert 0 < found[0].sum() < N
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])


@pytest.mark.parametrize(
    "fault",
    [
        {"total[cell] += 2 * side - 1": "total[cell] -= 2 * side - 1"},
        {
            "gain += proposed_terms[t, side] - terms[cell]": (
                "gain = proposed_terms[t, side] - terms[cell]"
            )
        },
        {"terms[cell] = proposed_terms[t, side]": "pass"},
        {"places[r] = tables.starts[t]": "places[r] = 0"},
        {
            "look_up(cells, proposed, undecided[:n_undecided], cells_of[:, :, 1])": (
                "look_up(cells, present, undecided[:n_undecided], cells_of[:, :, 1])"
            )
        },
        {"counts[np.uint64(own)] += 1": ("counts[np.uint64((own + 1) % n_cells)] += 1")},
    ],
)
def test_a_fault_shows(fault):
    with in_place(fault):
        found, expected = decided(in_python(cell_sweep.sweep_by_cell))
    assert not np.array_equal(found[0], expected[0])


def test_values_without_a_place_are_refused():
    right = np.zeros((3, 4), dtype=np.int64)
    wrong = right.copy()
    wrong[1, 2] = 3
    in_python(check_cells)(SIZES, right, right)
    for present, proposed in ((right, wrong), (wrong, right), (right - 1, right)):
        with pytest.raises(IndexError, match="can't take"):
            in_python(check_cells)(SIZES, present, proposed)
