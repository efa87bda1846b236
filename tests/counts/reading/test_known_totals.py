"""What is known exactly of counts, at parameters and data."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import ReadingError
from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.reading.known_totals import totals_of
from pymc_dapper.counts.reading.model import read_counts


def test_equations_follow_the_data():
    with pm.Model() as model:
        total = pm.Data("total", 60)
        table = pm.Multinomial("table", total, np.ones(3) / 3)
        other = pm.Poisson("other", 4.0, shape=2)
        invariant("sum", other.sum(), 7)
        pm.Normal("cells", table, 2.0, observed=[20.0, 25.0, 13.0])
    values = [model.rvs_to_values[x] for x in (table, other)]
    reading = read_counts(model, values)
    known, totals = reading.known, totals_of(reading)
    np.testing.assert_array_equal(known.matrix.toarray(), [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]])
    assert known.factors == ("table", "sum")
    np.testing.assert_array_equal(totals([np.array(60)]), [60, 7])
    np.testing.assert_array_equal(totals([np.array(80)]), [80, 7])


def test_nothing_known_is_no_equation():
    with pm.Model() as model:
        x = pm.Poisson("x", 4.0, shape=2)
        pm.Normal("cells", x, 2.0, observed=[3.0, 5.0])
    reading = read_counts(model, model.value_vars)
    assert reading.known.matrix.shape == (0, 2)
    assert totals_of(reading)([]).shape == (0,)


def test_a_total_that_another_step_would_change_is_refused():
    with pm.Model() as model:
        n = pm.Poisson("n", 20)
        x = pm.Multinomial("x", n, np.ones(2) / 2)
        pm.Normal("cells", x, 2.0, observed=[3.0, 5.0])
    reading = read_counts(model, [model.rvs_to_values[x]])
    with pytest.raises(ReadingError, match=r"'x' fixes depends on 'n', which another step would"):
        totals_of(reading)
