"""The compiled log-density at all numbers of records, and the operations of a draw."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.sizes.compiled.draw import DrawIndex, Shuffle
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


@pytest.mark.long
def test_compiled_operations_agree_with_python():
    """Compiled, they do what their kernels do in Python."""
    rows = pt.tensor("rows", dtype="float64", shape=(9, 2))
    of_one, uniforms = pt.vector("of_one", shape=(9,)), pt.vector("uniforms")
    outputs = [
        Shuffle()(rows, uniforms[:-1]),
        Shuffle()(of_one.astype("int8"), uniforms[:-1]),
        DrawIndex(7)(of_one, uniforms[-1]),
    ]
    rng = np.random.default_rng(1)
    values = rng.normal(size=(9, 2)), 9 * rng.random(9), rng.random(7)
    compiled, in_python = (
        pytensor.function([rows, of_one, uniforms], outputs, mode=mode)(*values)
        for mode in (numba_mode(None), "FAST_COMPILE")
    )
    for ours, expected in zip(compiled, in_python, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-13)
        assert ours.dtype == expected.dtype
