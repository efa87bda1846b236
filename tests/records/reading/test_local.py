"""Which records can be proposed near their present values."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.local import read_local
from tests.graphs.test_local_draws import COVARIANCE, N, proposals, read


def test_records_without_a_walk_are_drawn_anew():
    def mixed():
        group = pm.Bernoulli("group", 0.5, shape=N)
        x = pm.Normal("x", 3.0 * group, 1.0, shape=N)
        spread = pm.MvNormal("spread", np.zeros(2), COVARIANCE, shape=(N, 2))
        return [group, x, spread], None

    reading, _ = read(mixed)
    local = read_local(reading)
    rng = np.random.default_rng(1)
    present = [rng.integers(2, size=N), rng.normal(size=N), rng.normal(size=(N, 2))]
    group, x, spread = proposals(local, present, reach=0.1)
    drawn_group, drawn_x, drawn_spread = proposals(local, present, reach=1.0)
    np.testing.assert_array_equal(group, drawn_group)
    noise, drawn = (present[1] - 3.0 * present[0]), (drawn_x - 3.0 * drawn_group)
    expected = np.sqrt(0.99) * noise + 0.1 * drawn
    np.testing.assert_allclose(x - 3.0 * group, expected, rtol=1e-9)
    np.testing.assert_allclose(spread, np.sqrt(0.99) * present[2] + 0.1 * drawn_spread, rtol=1e-9)


@pytest.mark.parametrize(
    "prior", [lambda: pm.Exponential("x", 1, shape=N), lambda: pm.Poisson("x", 3.0, shape=N)]
)
def test_where_nothing_walks_there_is_no_such_reading(prior):
    reading, _ = read(lambda: ([prior()], None))
    assert read_local(reading) is None


def test_records_drawn_from_their_conditional_distribution_do_not_walk():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=N)
        pm.Normal("answers", x, 1.0, observed=np.ones(N))
    values = [model.rvs_to_values[x]]
    assert read_local(read_model(model, values, model.initial_point())) is None
