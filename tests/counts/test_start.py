"""Counts at which a chain can start."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import invariant
from pymc_dapper.counts.compiled.sweep import compile_count_sweep
from pymc_dapper.counts.reading.known_totals import moves_of
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.counts.start import FAR, Starts
from pymc_dapper.graphs.errors import ReadingError
from tests.evaluated_in_python import evaluated_in_python


def found(model, max_sweeps=50):
    """Starts, and the sweep that they are for."""
    reading = read_counts(model, model.value_vars)
    starts = Starts(reading, max_sweeps)
    with evaluated_in_python():
        return starts, compile_count_sweep(reading, moves_of(reading), {})


@pytest.fixture(scope="module")
def total():
    with pm.Model() as model:
        x = pm.Poisson("x", 4.0, shape=3)
        invariant("sum", x.sum(), 12)
        pm.Potential("few", pm.math.switch(x[0] < 3, 0.0, -np.inf))
    return found(model)


def test_a_table_gets_the_known_totals_and_then_a_positive_density(total):
    starts, sweep = total
    with evaluated_in_python():
        counts = starts.with_known_totals(np.array([9, 9, 9]), [], ReadingError)
        assert counts.sum() == 12
        rng = np.random.default_rng(1)
        possible = starts.possible(sweep, np.array([9, 9, 9]), [], rng, ReadingError)
    assert possible.sum() == 12
    assert possible[0] < 3


def test_where_nothing_is_possible_the_error_is_the_one_asked_for():
    with pm.Model() as model:
        x = pm.Poisson("x", 4.0, shape=2)
        pm.Potential("never", pm.math.switch(x.sum() < 0, 0.0, -np.inf))
    starts, sweep = found(model, max_sweeps=2)
    rng = np.random.default_rng(1)
    with (
        evaluated_in_python(),
        pytest.raises(ArithmeticError, match=r"no possible start .* after 2 sweeps .*'never'"),
    ):
        starts.possible(sweep, np.array([1, 1]), [], rng, ArithmeticError)


def test_what_is_far_from_the_release_comes_near():
    released = np.array([7 * 10**8, 3 * 10**8])
    with pm.Model() as model:
        x = pm.Multinomial("x", 10**9, [0.7, 0.3])
        pm.Normal("noisy", x, 1.0, observed=released)
    starts, sweep = found(model)
    start = np.array([5 * 10**8, 5 * 10**8])
    with evaluated_in_python():
        assert sweep.log_density(start, []) < -FAR
        near = starts.near(sweep, start, [])
    assert near.sum() == 10**9
    assert np.abs(near - released).max() < 1_000
