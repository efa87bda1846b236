"""Sums over the first rows, as an operation."""

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.sizes.reading.first_sums import first_sums


def test_it_is_evaluated_in_python_and_its_shape_is_known():
    rows = pt.tensor("rows", dtype="float64", shape=(5, 2))
    sums = first_sums(rows)
    assert sums.type.shape == (6, 2)
    values = np.arange(10.0).reshape(5, 2)
    expected = [values[:k].sum(axis=0) for k in range(6)]
    np.testing.assert_array_equal(sums.eval({rows: values}, mode="FAST_COMPILE"), expected)
