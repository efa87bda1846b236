"""Parameters and records in affine group moves, against quadrature and their joint law."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.polynomial.laguerre import laggauss
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.graphs import local_draws
from pymc_dapper.interweaving import step as interweave
from pymc_dapper.interweaving import tuner
from pymc_dapper.interweaving.reading.affine import read_affine
from pymc_dapper.interweaving.step import InterweaveStep
from tests.monte_carlo import z_score_of_mean
from tests.moving_at_once import moving_at_once
from tests.statistical.test_walks_with_parameters import shrinking
from tests.statistical.two_sums import (
    SENSITIVITY,
    expected_summaries,
    fitting_records,
    summaries,
    two_sums,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:InterweaveStep alone has moved"),
]


def without_volume(reading):
    """Broken: an affine map of all records taken to keep their volume."""
    spread = reading.proposed[-1]
    n, p = reading.noise[0].type.shape
    own = [p + k * (k + 3) // 2 for k in range(p)]
    volume = sum((n - 1 - j) * spread[k] for j, k in enumerate(own))
    return replace(reading, log_density=reading.log_density - volume)


def break_affine_moves(monkeypatch):
    """Make moves without the volume element, and don't notice."""
    broken = lambda *given: without_volume(read_affine(*given))  # noqa: E731
    monkeypatch.setattr(interweave, "read_affine", broken)
    monkeypatch.setattr(interweave, "check_noise", lambda reading, point: None)
    monkeypatch.setattr(InterweaveStep, "_check_compiled", lambda self, kind, checked: None)


def by_affine_moves_alone(model, epsilon, n_moves, iterations=8_000, tune=600):
    """Scores of a chain in which nothing else moves the parameters."""
    scale = SENSITIVITY / epsilon
    model.set_data("scale", scale)
    with model:
        walks = pmd.DapperStep([model["x"]])
        affine = InterweaveStep([model["mu"], model["variance"]], records=[model["x"]])
    rng = np.random.default_rng(5)
    affine.setup_chain(rng.spawn(1)[0], tune=tune, draws=iterations)
    walks.setup_chain(rng.spawn(1)[0], tune=0, draws=10)
    walks.walks.reach, walks.walks.number = (0.3, 1) if epsilon < 100 else (0.06, 8)
    point = {"mu": np.array(0.3), "variance_log__": np.array(0.0), "x": fitting_records(rng)}
    seen = []
    for k in range(tune + iterations):
        point, _ = walks.step(point)
        point, _ = affine.step(point)
        if k >= tune + iterations // 20:
            x, mu, variance = point["x"], point["mu"], np.exp(point["variance_log__"])
            fourth = ((x - x.mean()) ** 4).mean()
            seen.append(summaries(mu, variance, x.sum(), (x**2).sum(), fourth))
    assert affine.tuner.numbers == n_moves
    late = np.array(seen).T
    return np.abs(
        [z_score_of_mean(*each) for each in zip(late, expected_summaries(scale), strict=True)]
    )


@pytest.fixture(params=[[0, 4, 0], [0, 0, 4]], ids=["records", "noise"])
def affine_only(monkeypatch, request):
    """Four affine moves, of records or of noise, and none with the noise held fixed."""
    monkeypatch.setattr(tuner, "forgets_slowly", lambda parameters: True)
    monkeypatch.setattr(tuner, "best_numbers_of_moves", lambda *_: (list(request.param), 1.0))
    return request.param


@pytest.fixture
def affine_too(monkeypatch):
    """Two affine moves of records and of noise, wherever these might be of use."""
    monkeypatch.setattr(tuner, "forgets_slowly", lambda parameters: True)
    monkeypatch.setattr(tuner, "best_numbers_of_moves", lambda *_: ([1, 2, 2], 1.0))
    return monkeypatch


@pytest.mark.parametrize("epsilon", [30, 300])
def test_mean_and_variance_agree_with_quadrature(epsilon, affine_only):
    assert by_affine_moves_alone(two_sums(), epsilon, affine_only).max() < 4.5


def test_quadrature_shows_a_wrong_volume_element(affine_only, monkeypatch):
    break_affine_moves(monkeypatch)
    assert by_affine_moves_alone(two_sums(), 30, affine_only).max() > 8


# Released values, parameter and records drawn by turns, each given the others (Geweke, 2004): the
# parameter by affine moves alone, which also move the records.

PEOPLE, SLOPE, SPREAD, WIDTH = 6, 0.5, 0.7, 0.5


def joint_model():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=PEOPLE)
        y = pm.Normal("y", SLOPE * x, SPREAD, shape=PEOPLE)
        pm.Normal("noisy", pt.stack([x.sum(), y.sum(), (x * y).sum()]), WIDTH)
        return [pmd.DapperStep([x, y]), InterweaveStep([mu], records=[x, y])], model


def joint_scores(steps, model, n_moves, draws=10_000, tune=600):
    rng, point = np.random.default_rng(3), model.initial_point()
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], tune=tune, draws=draws)
    seen = []
    for k in range(tune + draws):
        for step in steps:
            point, _ = step.step(point)
        mu, x, y = point["mu"], point["x"], point["y"]
        sums = np.array([x.sum(), y.sum(), (x * y).sum()])
        noisy = rng.normal(sums, WIDTH)
        point = {**point, "noisy": noisy}
        if k >= tune:
            around = np.cov(x, y)
            seen.append([mu, mu**2, x[0] ** 2, x[0] * y[0], y[0] ** 2, x[0] * x[1], mu * x[0]])
            seen[-1] += [around[0, 0], around[0, 1], around[1, 1], noisy[0] ** 2, noisy[0] * mu]
            seen[-1] += [
                noisy[0] * x[0],
                noisy[2],
                noisy[2] * around[0, 0],
                noisy[0] * around[0, 0],
            ]
    n, squared = PEOPLE, SLOPE**2 + SPREAD**2
    # What each is in the model, in closed form; x is normal of variance 2, around mu of variance 1.
    expected = [
        0,
        1,
        2,
        2 * SLOPE,
        SLOPE**2 + squared,
        1,
        1,
        1,
        SLOPE,
        squared,
        n + n**2 + WIDTH**2,
    ]
    expected += [n, n + 1, 2 * n * SLOPE, 2 * SLOPE * (n + 1), 0]
    assert steps[-1].tuner.numbers == n_moves
    pairs = zip(np.array(seen).T, expected, strict=True)
    return np.abs([z_score_of_mean(*each) for each in pairs])


def test_all_variables_drawn_by_turns_have_their_joint_law(affine_only):
    assert joint_scores(*joint_model(), affine_only).max() < 4.5


def test_the_joint_law_shows_a_wrong_volume_element(affine_only, monkeypatch):
    break_affine_moves(monkeypatch)
    assert joint_scores(*joint_model(), affine_only).max() > 8


# A regression whose sums are all released, at large budgets, with all steps that there are. Its
# records walk.

N, PRIOR_SD = 12, 2.0
PUBLISHED = np.array([13.0, 6.0, 12.0])


def regression_with_all_sums():
    with pm.Model() as model:
        scale = pm.Data("scale", 1.0)
        b = pm.Normal("b", 0, PRIOR_SD)
        x = pm.Normal("x", 0, 1, shape=N)
        y = pm.Normal("y", b * x, 1, shape=N)
        sums = pt.stack([(x**2).sum(), (x * y).sum(), (y**2).sum()])
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), PUBLISHED))
        return model, moving_at_once(pmd.assign_steps([x, y]))


def of_regression(b, squares, products, others):
    """What is compared: the coefficient, the sums, and both together."""
    return [b, b**2, squares, products, others, b * squares, b * products, squares * products]


def expected_of_regression(scale):
    """By quadrature over the noise of the three sums, in whose halves all is smooth."""
    nodes, weights = laggauss(24)
    noise, weights = np.concatenate([-nodes, nodes]), np.tile(weights / 2, 2)
    axes = [(-1, 1, 1), (1, -1, 1), (1, 1, -1)]
    sums = [s - scale * noise.reshape(axis) for s, axis in zip(PUBLISHED, axes, strict=True)]
    squares, products, others = sums
    weights = np.prod(np.broadcast_arrays(*(weights.reshape(axis) for axis in axes)), axis=0)
    rest = others - products**2 / squares
    possible = (squares > 0) & (rest > 0)
    squares, rest = np.where(squares > 0, squares, 1.0), np.where(rest > 0, rest, 1.0)
    # Bartlett: the coefficient marginalised.
    spread = np.sqrt(squares + PRIOR_SD**2 * squares**2)
    logp = stats.chi2.logpdf(squares, N) + stats.norm.logpdf(products, 0, spread)
    law = weights * possible * np.exp(logp + stats.chi2.logpdf(rest, N - 1))
    law /= law.sum()
    precision = squares + PRIOR_SD**-2
    b = products / precision
    found = of_regression(b, squares, products, others)
    found[1] = b**2 + 1 / precision
    return [float((law * x).sum()) for x in found]


def regression_scores(epsilon, n_moves=(1, 2, 2), iterations=20_000, tune=600):
    model, steps = regression_with_all_sums()
    scale = 10 / epsilon
    model.set_data("scale", scale)
    rng, point = np.random.default_rng(6), model.initial_point()
    x = rng.normal(size=N)
    x *= np.sqrt(PUBLISHED[0]) / np.linalg.norm(x)
    z = rng.normal(size=N)
    z -= x * (x @ z) / PUBLISHED[0]
    slope = PUBLISHED[1] / PUBLISHED[0]
    z *= np.sqrt(PUBLISHED[2] - slope * PUBLISHED[1]) / np.linalg.norm(z)
    point |= {"x": x, "y": slope * x + z, "b": np.array(slope)}
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], tune=tune, draws=iterations)
    seen = []
    for k in range(tune + iterations):
        for step in steps:
            point, _ = step.step(point)
        if k >= tune:
            x, y = point["x"], point["y"]
            seen.append(of_regression(point["b"], x @ x, x @ y, y @ y))
    [affine] = (step for step in steps if isinstance(step, InterweaveStep))
    assert affine.tuner.numbers == [*n_moves]
    [walks] = (step for step in steps if isinstance(step, pmd.DapperStep))
    assert walks.walks.number > 0
    pairs = zip(np.array(seen).T, expected_of_regression(scale), strict=True)
    return np.abs([z_score_of_mean(*each) for each in pairs])


@pytest.mark.parametrize("epsilon", [100, 1_000])
@pytest.mark.usefixtures("affine_too")
def test_a_regression_agrees_with_quadrature(epsilon):
    assert regression_scores(epsilon).max() < 4.5


def test_a_regression_shows_a_wrong_volume_element(affine_too):
    """By affine moves enough that the other steps don't make up for them."""
    affine_too.setattr(tuner, "best_numbers_of_moves", lambda *_: ([0, 16, 16], 1.0))
    break_affine_moves(affine_too)
    assert regression_scores(100, (0, 16, 16), 40_000).max() > 8


def test_a_regression_shows_records_whose_walk_is_not_reversible(affine_too):
    affine_too.setattr(local_draws, "_keep", shrinking)
    assert regression_scores(100).max() > 8
