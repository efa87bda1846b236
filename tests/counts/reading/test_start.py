"""Tables to start from have the known totals."""

import numpy as np
import pytest
from scipy import sparse

from pymc_dapper.counts.reading.start import find_start
from tests.counts.systems import SYSTEMS


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_start_has_the_known_totals(name):
    equations, known = SYSTEMS[name]
    matrix = sparse.csr_array(np.array(equations, dtype=float))
    names = [f"known{k}" for k in range(len(known))]
    start = find_start(matrix, np.array(known, dtype=float), names, np.full(matrix.shape[1], 7))
    np.testing.assert_array_equal(matrix @ start, known)
    assert start.min() >= 0
