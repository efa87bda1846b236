"""Lines along which counts move end where a count would."""

import numpy as np
import pytest

from pymc_dapper.counts.kernels import line as count_line
from pymc_dapper.counts.kernels.line import LARGEST
from tests.counts_enumeration import Model


@pytest.mark.parametrize(
    ("counts", "steps", "expected"),
    [
        ([5], [1], (-5, LARGEST - 5)),
        ([7, 4], [2, -1], (-3, 4)),
        ([7, 4], [2, 3], (-1, (LARGEST - 4) // 3)),
        ([LARGEST, 3], [1, -1], (-(LARGEST - 3), 0)),
        ([LARGEST, 0], [1, 1], (0, 0)),
        ([0, LARGEST], [1, -1], (0, LARGEST)),
    ],
)
def test_lines_end_where_counts_would_be_negative_or_too_large(counts, steps, expected):
    line = count_line.new_line(Model([[1]], [np.zeros(3)]).structure, len(counts))
    line.cells[:], line.steps[:] = range(len(counts)), steps
    lowest, highest = count_line.ends(np.array(counts), line, len(counts))
    assert (lowest, highest) == expected
    for t in (lowest, highest):
        table = [count + t * step for count, step in zip(counts, steps, strict=True)]
        assert min(table) >= 0
        assert max(table) <= LARGEST
