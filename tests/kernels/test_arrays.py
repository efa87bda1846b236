import numpy as np
import pytest

from pymc_dapper.kernels.arrays import copy_into, int64, numbered


@pytest.mark.parametrize("copy", [copy_into, copy_into.py_func])
def test_an_array_is_written_into_another(copy):
    to = np.zeros(5)
    copy(to, 1, np.array([3.0, 4.0]))
    np.testing.assert_array_equal(to, [0, 3, 4, 0, 0])


@pytest.mark.parametrize("x", [1, np.int16(1), np.int32(1), True])
def test_numbers_of_all_types_become_int64(x):
    assert isinstance(int64.py_func(x), np.int64)
    assert int64(x) == 1


@pytest.mark.parametrize("n", [0, 4])
def test_numbers_count_up_from_0(n):
    np.testing.assert_array_equal(numbered(n), np.arange(n))
    np.testing.assert_array_equal(numbered.py_func(n), np.arange(n))
