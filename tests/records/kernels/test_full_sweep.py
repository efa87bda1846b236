"""Decisions by evaluating the log-density of all records, one after the other; in Python."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels.full_sweep import sweep_by_full_evaluation

sweep = in_python(sweep_by_full_evaluation)


def of_the_largest(records, context):
    return -records.max()


@pytest.mark.parametrize(
    ("log_uniforms", "expected"),
    [
        ([-2.0, -2.0], [True, True]),
        ([-0.5, -0.5], [False, False]),
        ([-0.5, -2.0], [False, True]),
        # The second costs nothing once the first is as large.
        ([-2.0, -0.5], [True, True]),
    ],
)
def test_each_record_is_decided_on_given_those_before(log_uniforms, expected):
    present, proposed = np.zeros((2, 1)), np.ones((2, 1))
    accepted, log_density = sweep(of_the_largest, (), (present, proposed), np.array(log_uniforms))
    np.testing.assert_array_equal(accepted, expected)
    assert log_density == -max(expected)
