import numpy as np
import pytest

from pymc_dapper.kernels.arrays import copy_into


@pytest.mark.parametrize("copy", [copy_into, copy_into.py_func])
def test_an_array_is_written_into_another(copy):
    to = np.zeros(5)
    copy(to, 1, np.array([3.0, 4.0]))
    np.testing.assert_array_equal(to, [0, 3, 4, 0, 0])
