"""Models whose reading, or whose draws, the model itself contradicts."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import simplex

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.records.reading import self_check
from pymc_dapper.records.reading.model import read_model
from tests.records.refusals import refuse, with_mechanism
from tests.sweep_parts import take_apart


def test_a_statistic_that_loses_its_digits_is_never_used():
    def build():
        x = pm.Normal("x", 1e6, 1, shape=50)
        pm.Potential("privacy", -((x.var() - 1) ** 2))
        return x

    refuse(build, "can't read the factor 'privacy' exactly.*subtract a public constant")


def test_shapes_that_do_not_fit():
    def build():
        released = pm.Data("released", np.zeros(3))
        x = pm.Categorical("x", np.ones(4) / 4, shape=9)
        pm.Potential("privacy", -((released - pt.eye(4)[x].sum(axis=0)) ** 2).sum())
        return x

    refuse(build, "'privacy' can't be evaluated with the shapes")


def test_a_transform_that_the_prior_never_reaches():
    def build():
        start = np.full((6, 3), 1 / 3)
        return with_mechanism(pm.Gamma("x", 2, 1, shape=(6, 3), transform=simplex, initval=start))

    refuse(build, r"only 0\.00% of its draws .* can reach: 'x' \(ChainedTransform\)")


def gram(x, y):
    xy = (x * y).sum()
    return pt.stacklists([[(x**2).sum(), xy], [xy, (y**2).sum()]])


def test_a_matrix_that_records_make_singular():
    def build():
        x, y = pm.Normal("x", shape=5), pm.Normal("y", shape=5)
        pm.Potential("privacy", -pt.abs(pt.linalg.inv(gram(x, y))[0, 0]))
        return [x, y]

    refuse(build, r"'privacy' can't be evaluated: Matrix is singular.*pt\.linalg\.solve")


@pytest.mark.long
def test_a_singular_matrix_is_an_impossible_state_to_solve():
    # At small probabilities, the states that the reading is checked at are singular, too.
    with pm.Model() as model:
        x, y = pm.Bernoulli("x", 0.02, shape=5), pm.Bernoulli("y", 0.02, shape=5)
        pm.Potential("privacy", -pt.abs(pt.linalg.solve(gram(x, y), np.ones(2))[0]))
    values = [model.rvs_to_values[rv] for rv in (x, y)]
    decide = take_apart(read_model(model, values, model.initial_point())).decide
    assert not np.isfinite(decide(*np.zeros((4, 5), dtype=int), np.zeros(5))[-1])


@pytest.fixture(scope="module")
def tables():
    """A reading of three tables of the same form."""
    with pm.Model() as model:
        x = [pm.Categorical(f"x{k}", np.full(3, 1 / 3), shape=30) for k in range(3)]
        for k in range(3):
            counted = pmd.statistics.cross_counts(x[k], x[k - 1], 3, 3)
            pmd.LaplaceMechanism(2.0).potential(f"t{k}", counted, released=np.full((3, 3), 3.0 + k))
    point = model.initial_point()
    return read_model(model, [model.rvs_to_values[rv] for rv in x], point), point


def test_the_state_of_the_check_has_the_models_log_density(tables):
    reading, point = tables
    state = self_check.check_reading(reading, point)
    written = reading.in_python([factor.as_written for factor in reading.factors])
    expected = np.sum(written(*state.records, *state.parameters))
    np.testing.assert_allclose(state.log_density(state.records, state.parameters), expected)


def half(graph):
    return graph / 2


@pytest.mark.parametrize("wrong", ["log-density", "contributions", "of another table"])
def test_one_that_differs_is_checked(tables, wrong):
    reading, point = tables
    first, second, third = reading.factors
    [sum_], [of_third] = second.sums, third.sums
    if wrong == "log-density":
        second = replace(second, log_density=half(second.log_density))
    elif wrong == "contributions":
        second = replace(second, sums=(replace(sum_, contributions=sum_.contributions[::-1] * 2),))
    else:
        second = replace(second, sums=(replace(sum_, contributions=of_third.contributions),))
    misread = replace(reading, factors=(first, second, third))
    with pytest.raises(ReadingError, match="can't read the factor 't1' exactly"):
        self_check.check_reading(misread, point)
