"""A misread model, or a map that is no map, is found out before anything is sampled."""

import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import ReadingError
from pymc_dapper.interweaving.reading.self_check import check_noise
from pymc_dapper.interweaving.step import InterweaveStep
from tests.interweaving.linked import LINKED, linked_model, read
from tests.interweaving.wald import inverse_gaussian, wald_model


def test_a_record_that_chooses_another_ones_parameter():
    """A count used as an index must come out as an integer."""
    with pm.Model() as model:
        theta = pm.Gamma("theta", 2, 2)
        k = pm.Poisson("k", theta, shape=4)
        y = pm.Normal("y", pt.as_tensor([0.0, 1.0, 3.0])[pt.minimum(k, 2)], theta, shape=4)
        pm.Normal("release", y.sum(), 1, observed=0.3)
    reading = read(model, ["theta"], ["k", "y"])
    assert [record.dtype for record in reading.moved_records] == ["int64", "float64"]
    check_noise(reading, model.initial_point())


def test_the_log_density_is_compared_with_the_model():
    model = linked_model()
    reading = read(model, *LINKED)
    check_noise(reading, model.initial_point())
    wrong = type(reading)(
        **{**vars(reading), "log_density": reading.log_density + reading.proposed[0]}
    )
    with pytest.raises(ReadingError, match="can't read the model exactly"):
        check_noise(wrong, model.initial_point())


def test_a_map_that_does_not_bring_records_back_is_found_out(register_wald):
    register_wald(inverse_gaussian(1.01))
    model = wald_model()
    with pytest.raises(ReadingError, match=r"'x' isn't the inverse.*`RecordMap.records` must undo"):
        InterweaveStep([model["scale"]], records=[model["x"]], model=model)
