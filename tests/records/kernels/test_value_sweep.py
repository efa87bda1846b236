"""Decisions on records that contribute by their value only are those by their rows; in Python."""

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels.block_sweep import sweep_by_blocks
from pymc_dapper.records.kernels.entry_sweep import decide_by_entries
from pymc_dapper.records.kernels.value_sweep import Values, sweep_by_value
from pymc_dapper.records.reading.rows_by_value import differing_columns
from tests.records.kernels.test_entry_sweep import NONE, RELEASED, of_entry

N = 30
TABLE = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 0.5], [2.0, 1.0, 0.5], [-1.0, 0.0, 0.5]])


def test_decisions_are_those_by_rows():
    rng = np.random.default_rng(3)
    values = rng.integers(0, len(TABLE), (2, N), dtype="uint8")
    differing = differing_columns(pt.constant(TABLE)).eval(mode="FAST_COMPILE")
    deciding = (NONE, NONE, np.log(rng.random(N)))
    accepted, final = in_python(sweep_by_value)(
        of_entry, RELEASED, Values(TABLE, *values, differing), *deciding
    )
    present, proposed = (lambda arrays, start, stop, k=k: arrays[k][start:stop] for k in range(2))
    expected = in_python(sweep_by_blocks)(
        in_python(decide_by_entries), of_entry, RELEASED, present, proposed, TABLE[values],
        TABLE.shape[1], N, *deciding,
    )  # fmt: skip
    assert 0 < accepted.sum() < N
    np.testing.assert_array_equal(accepted, expected[0])
    np.testing.assert_allclose(final, expected[1])
