"""A misread model of counts is found out before anything is sampled."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import multinomial, norm

from pymc_dapper import ReadingError
from pymc_dapper.counts.reading.self_check import WrittenFactors, by_variable, check_gain
from tests.counts.systems import read

BEFORE, AFTER = np.array([3, 2, 3]), np.array([5, 0, 5])


@pytest.fixture
def reading():
    with pm.Model() as model:
        x = pm.Multinomial("x", n=5, p=np.array([0.3, 0.7]))
        y = pm.Binomial("y", n=x[0], p=0.5)
        pm.Normal("released", x[0] + y, 2.0, observed=1.0)
    return read(model, "x", "y")


def test_cells_are_split_among_the_variables(reading):
    x, y = by_variable(reading, np.array([3, 2, 1]))
    assert (x.tolist(), y.tolist(), y.shape) == ([3, 2], 1, ())


def test_factors_are_those_of_the_model(reading):
    at = WrittenFactors(reading, [])(np.array([3, 2, 1]))
    expected = {
        "x": float(multinomial.logpmf([3, 2], 5, [0.3, 0.7])),
        "y": float(np.log(3 / 8)),
        "released": norm.logpdf(1.0, 4.0, 2.0),
    }
    found = dict(zip(reading.as_written, at.tolist(), strict=True))
    assert found == pytest.approx(expected)


def test_a_gain_that_differs_from_the_models_is_reported(reading):
    written = WrittenFactors(reading, [])
    gain = (written(AFTER) - written(BEFORE)).sum()
    check_gain(written, BEFORE, AFTER, gain)
    for wrong in (gain + 1e-4, np.nan):
        with pytest.raises(ReadingError, match="moves changed the log-density by"):
            check_gain(written, BEFORE, AFTER, wrong)
