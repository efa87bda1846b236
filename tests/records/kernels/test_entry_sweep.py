"""Decisions by the entries that change are those by all of them; in Python."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels.entry_sweep import decide_by_entries
from pymc_dapper.records.kernels.sums_sweep import decide_by_sums, sweep_by_blocks

N, D = 30, 3
RELEASED = np.array([[1.0], [-2.0], [0.5]])

sweep = in_python(sweep_by_blocks)
by_entries, by_sums = in_python(decide_by_entries), in_python(decide_by_sums)


def of_entry(entry, values):
    return -abs(entry - values[0])


def of_sums(sums, context):
    return sum(of_entry(entry, values) for entry, values in zip(sums, RELEASED, strict=True))


@pytest.mark.parametrize("records_in_block", [N, 7])
def test_decisions_are_those_by_all_entries(records_in_block):
    rng = np.random.default_rng(2)
    rows = rng.integers(-2, 3, (2, N, D)).astype(float)
    present, proposed = (lambda arrays, start, stop, k=k: arrays[k][start:stop] for k in range(2))
    thresholds = np.log(rng.random(N))
    found, expected = (
        sweep(decide, density, context, present, proposed, rows, D, records_in_block, thresholds)
        for decide, density, context in (
            (by_entries, of_entry, RELEASED),
            (by_sums, of_sums, ()),
        )
    )
    assert 0 < expected[0].sum() < N
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_allclose(found[1], expected[1])
