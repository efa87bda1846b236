"""The operation around the moves, evaluated in Python."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.interweaving.compiled.op import ParameterMoves
from pymc_dapper.interweaving.kernels.moves import draw_variates, move_parameters
from pymc_dapper.interweaving.kernels.tuning import unfitted

START = np.array([0.5, -1.0])
CENTRE = np.array([2.0, 1.0])


def of(theta, context):
    return -0.5 * np.sum((theta - context[0]) ** 2)


@pytest.mark.parametrize("movable", [True, False])
def test_moves_are_those_of_the_kernel_with_the_models_log_density(movable):
    theta, centre = pt.dvector("theta").type.clone(shape=(2,))(), pt.dvector("centre")
    log_density = rewritten(
        [theta, centre], [-0.5 * ((theta - centre) ** 2).sum()], numba_mode(None)
    )
    fit = unfitted(np.zeros(2))
    variates = draw_variates(np.random.default_rng(0), 4, 2)
    given = [pt.constant(x) for x in (START, np.array(movable), *fit, *variates, CENTRE)]
    outputs = ParameterMoves(log_density)(*given)
    path, outcome = pytensor.function([], outputs, mode="FAST_COMPILE")()
    expected = in_python(move_parameters)(of, (CENTRE,), START, movable, fit, variates)
    np.testing.assert_allclose(path, expected[0])
    np.testing.assert_allclose(outcome, expected[1])
    assert np.all(path == START) == (not movable)
