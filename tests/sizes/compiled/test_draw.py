"""The compiled log-density at all numbers of records."""

import pytest

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.sizes.step import SizeStep
from tests.evaluated_in_python import evaluated_in_python
from tests.sizes.models import bernoulli


def test_what_is_compiled_agrees_with_the_model():
    SizeStep([(model := bernoulli())["n"]], model=model)  # compares them, and refuses what differs


def test_what_differs_is_refused(monkeypatch):
    monkeypatch.setattr("pymc_dapper.sizes.step.CheckedSizes.agrees", lambda *_: False)
    model = bernoulli()
    with evaluated_in_python(), pytest.raises(ReadingError, match="the compiled log-density is"):
        SizeStep([model["n"]], model=model)
