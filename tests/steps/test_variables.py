"""Which variables a user can hand to a step."""

import pymc as pm
import pytest

from pymc_dapper import DapperStep, ReadingError
from tests.records.refusals import with_mechanism


def test_calls_that_make_no_sense():
    with pm.Model() as model:
        x = with_mechanism(pm.Normal("x", shape=5))
    with pytest.raises(ReadingError, match="DapperStep was given no variables"):
        DapperStep([], model=model)
    with pytest.raises(ReadingError, match="DapperStep was given None"):
        DapperStep(None, model=model)
    with pytest.raises(ReadingError, match="'x' was passed more than once"):
        DapperStep([x, x], model=model)
    with pytest.raises(ReadingError, match=r"'x' is a name: pass .* model\['x'\]"):
        DapperStep(["x"], model=model)
    with pytest.raises(TypeError, match="as in model=model"):
        DapperStep([x], model)
