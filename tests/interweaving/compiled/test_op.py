"""The operation around the moves, evaluated in Python, and compiled once for all models."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba import njit
from numba.core import event

from pymc_dapper.backend.accelerate.addresses import load
from pymc_dapper.backend.accelerate.switch import is_on
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.interweaving.compiled.op import ParameterMoves, moves_compiled_once
from pymc_dapper.interweaving.kernels.moves import draw_variates, move_parameters
from pymc_dapper.interweaving.kernels.tuning import unfitted

START = np.array([0.5, -1.0])
CENTRE = np.array([2.0, 1.0])


THETA = pt.dvector("theta").type.clone(shape=(2,))()
GIVEN = pt.dvector("centre")


def of_graph(log_density):
    return ParameterMoves(rewritten([THETA, GIVEN], [log_density], numba_mode(None)))


def of(context, theta):
    return -0.5 * np.sum((theta - context[0]) ** 2)


@pytest.mark.parametrize("movable", [True, False])
def test_moves_are_those_of_the_kernel_with_the_models_log_density(movable):
    moves = of_graph(-0.5 * ((THETA - GIVEN) ** 2).sum())
    fit = unfitted(np.zeros(2))
    variates = draw_variates(np.random.default_rng(0), 4, 2)
    flat = [x.ravel() for x in (*fit, *variates)]
    given = [pt.constant(x) for x in (START, np.array(movable), *flat, CENTRE)]
    outputs = moves(*given)
    path, outcome = pytensor.function([], outputs, mode="FAST_COMPILE")()
    expected = in_python(move_parameters)(of, (CENTRE,), START, movable, fit, variates)
    np.testing.assert_allclose(path, expected[0])
    np.testing.assert_allclose(outcome, expected[1])
    assert np.all(path == START) == (not movable)


def test_moves_are_compiled_once_for_all_models():
    """By accelerations: without them, for each model."""
    of_none = moves_compiled_once(njit(lambda context, theta: 0.0))
    assert hasattr(of_none, "external") == is_on("addresses")
    if is_on("addresses"):
        load(of_none.external)
    fit, variates = unfitted(np.zeros(2)), draw_variates(np.random.default_rng(0), 4, 2)
    flat = [x.ravel() for x in (*fit, *variates)]
    given = [pt.constant(x) for x in (START, np.array(True), *flat, CENTRE)]
    moves = of_graph(-((THETA - 2 * GIVEN) ** 4).sum())
    path, _ = expected = pytensor.function([], moves(*given), mode="FAST_COMPILE")()
    with event.install_recorder("numba:compile") as compiled:
        found = pytensor.function([], moves(*given), mode=numba_mode(None))()
    for each, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(each, other)
    names = {each.data["dispatcher"].py_func.__name__ for _, each in compiled.buffer}
    assert not (names & {"move_parameters", "moved"} and is_on("addresses"))
    assert not np.all(path == START)
