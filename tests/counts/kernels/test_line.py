"""Lines along which counts move end where a count would."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.kernels import line as count_line
from pymc_dapper.counts.kernels.line import LARGEST
from tests.counts_enumeration import Model, log_density


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


@pytest.mark.parametrize(
    ("values", "at", "expected"),
    [
        (-0.3 * np.arange(9) ** 2, 4, 0.6),
        (-0.3 * np.arange(9) ** 2, 0, 0.6),  # at the end of the range
        (np.array([0.0, -0.4]), 1, 1.0),  # as for one answer: yes or no
        (np.array([0.0, -0.4]), 5, 0.0),  # where nothing is possible
    ],
)
def test_curvature_is_measured_where_counts_are_possible(values, at, expected):
    """It says how far to look; looking everywhere in a narrow range would take long."""
    model = Model([[1]], [values])
    memory, state = count_line.new_line(model.structure, 1), np.array([float(at)])
    found = in_python(count_line.find_curvatures)(
        in_python(log_density), model.context, model.structure, state, memory
    )
    assert found[0] == pytest.approx(expected)
