"""Moves, in Python and compiled once for all models; none where records don't come back."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numba import njit
from numba.core import event

import pymc_dapper as pmd
from pymc_dapper.backend.accelerate.addresses import load
from pymc_dapper.backend.accelerate.switch import is_on
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.backend.rewrites import rewritten
from pymc_dapper.interweaving.compiled.moves import (
    ParameterMoves,
    _come_back,
    _unravel,
    moves_compiled_once,
)
from pymc_dapper.interweaving.kernels.moves import draw_variates, move_parameters
from pymc_dapper.interweaving.kernels.tuning import unfitted
from tests.evaluated_in_python import evaluated_in_python
from tests.interweaving.linked import read
from tests.sizes.reading.test_model import log_joint
from tests.sizes.unknown_numbers import MODELS

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


@pytest.mark.parametrize(("x", "comes_back"), [(2.0, True), (1e4, False)])
def test_records_come_back_unless_they_lie_too_far_out(x, comes_back):
    """By quantiles, which lose digits far out in a tail."""
    with pm.Model() as model:
        shape = pm.Gamma("shape", 2, 2)
        pm.Gamma("x", shape, 1.0, shape=2, default_transform=None)
        pm.Potential("release", -model["x"].sum())
    reading = read(model, ["shape"], ["x"])
    f = pytensor.function(
        [*reading.parameters, *reading.records], _come_back(reading), mode="FAST_COMPILE"
    )
    assert f(0.3, np.array([1.0, x])) == comes_back


def test_far_proposals_of_impossible_parameters_are_rejected():
    """The sigmoid of 40 is 1, and leaves a Beta variable no value. PyMC's quantiles raise then."""
    with pm.Model() as model:
        e = pm.Normal("e", 0, 1)
        x = pm.Beta("x", mu=pm.math.sigmoid(e), nu=5.0, shape=3)
        pm.Potential("release", -((x.sum() - 1.0) ** 2))
    with evaluated_in_python():
        step = pmd.InterweaveStep([e], records=[x], model=model)
        [kind] = step._compiled
        fit = unfitted(np.zeros(1))._replace(scale=np.full(1, 1e3))
        rng, point = np.random.default_rng(0), model.initial_point(random_seed=1)
        moved, *_ = kind.call(point, [], fit, 30, rng)
    assert moved != point["e"]
    assert abs(moved) < 10


def test_a_flat_vector_is_taken_apart():
    with pm.Model() as model:
        mu = pm.Normal("mu", shape=(2, 2))
        sigma = pm.HalfNormal("sigma")
        x = pm.Normal("x", mu[0, 1], sigma, shape=3)
        pm.Potential("release", -x.sum())
    reading = read(model, ["mu", "sigma"], ["x"])
    pieces = _unravel(pt.constant(np.arange(5.0)), reading)
    found = [piece.eval(mode="FAST_COMPILE").tolist() for piece in pieces]
    assert found == [[[0, 1], [2, 3]], 4]


def test_a_number_of_records_moves_by_its_logarithm():
    """Its density there is that of the number times n + u, and it is the whole part again."""
    model = MODELS["normal"]()
    parameters, records = ("rate", "slope", "n"), [model["x"], model["y"]]
    with evaluated_in_python():
        step = pmd.InterweaveStep([model[x] for x in parameters], records=records, model=model)
        [kind] = step._compiled
        assert kind.dim == 2  # no record follows the rate
        names = [x.name for x in (*kind.reading.parameters, *kind.reading.numbers)]
        start = model.initial_point(random_seed=2)
        joint, rng, found, expected = log_joint(model), np.random.default_rng(0), [], []
        for n in range(8):
            point = start | {"n": np.array(n)}
            fit = unfitted(np.zeros(2))
            for u in (1e-6, 0.3, 1 - 1e-6):
                *values, path, [log_density] = kind.call(point, [np.array([u])], fit, 0, rng)
                new = dict(zip(names, values, strict=False))
                assert new["n"] == n
                assert new["n"].dtype == start["n"].dtype
                assert path[0, -1] == pytest.approx(np.log(n + u))
                found.append(log_density - np.log(n + u))
                expected.append(joint(point))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), atol=1e-9)
