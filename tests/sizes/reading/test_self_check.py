"""What was read is compared with the model before anything is sampled."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import agree
from pymc_dapper.sizes.reading.model import read_size
from pymc_dapper.sizes.reading.self_check import check_size
from tests.sizes.unknown_numbers import MODELS


def read(model):
    point = model.initial_point()
    return read_size(model, model.rvs_to_values[model["n"]]), point


@pytest.mark.parametrize("name", MODELS)
def test_a_right_reading_passes(name):
    checked = check_size(*read(MODELS[name]()))
    assert np.all(agree(checked.log_density, checked.log_density, checked.tolerance))
    assert not np.all(agree(checked.log_density + 1e-4, checked.log_density, checked.tolerance))
    # A Poisson or negative binomial number goes on where the room ends.
    assert checked.ends_with_room == (name in ("bernoulli", "tied"))


def test_a_wrong_reading_is_refused():
    reading, point = read(MODELS["bernoulli"]())
    shifted = pt.concatenate([reading.log_weights[1:], reading.log_weights[:1]])
    with pytest.raises(ReadingError, match="can't read the model exactly: at n = 0"):
        check_size(replace(reading, log_weights=shifted), point)


def test_rows_that_differ_where_the_graph_hides_it_are_not_shuffled():
    reading, point = read(MODELS["tied"]())
    checked = check_size(replace(reading, tied=None), point)
    assert "changes if rows change places" in checked.reading.tied


def test_negative_numbers_of_records_are_refused():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", -1, 4)
        x = pm.Normal("x", shape=4)
        pm.Potential("total", -np.abs((pmd.present(n, 4) * x).sum()))
    with pytest.raises(ReadingError, match="'n' allows negative numbers"):
        check_size(*read(model))
