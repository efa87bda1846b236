"""Parameters moved with the records' frame, against quadrature, and by ranks of the truth."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.interweaving import step as interweave
from pymc_dapper.interweaving.reading.frame import read_frame
from pymc_dapper.interweaving.step import InterweaveStep
from tests.monte_carlo import z_score_of_mean
from tests.statistical.two_sums import (
    SENSITIVITY,
    expected_summaries,
    fitting_records,
    summaries,
    two_sums,
)

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:InterweaveStep is the only step"),
]


def without_volume(reading):
    """Broken: an affine map of all records taken to keep their volume."""
    spread = reading.proposed[-1]
    n, p = reading.noise[0].type.shape
    own = [p + k * (k + 3) // 2 for k in range(p)]
    volume = sum((n - 1 - j) * spread[k] for j, k in enumerate(own))
    return replace(reading, log_density=reading.log_density - volume)


def break_frames(monkeypatch):
    """Make moves without the volume element, and don't notice."""
    monkeypatch.setattr(interweave, "read_frame", lambda *given: without_volume(read_frame(*given)))
    monkeypatch.setattr(interweave, "check_noise", lambda reading, point: None)
    monkeypatch.setattr(InterweaveStep, "_check_compiled", lambda self, kind, checked: None)


def by_frames_alone(model, epsilon, iterations=20_000, tune=600):
    """Scores of a chain in which nothing else moves the parameters."""
    scale = SENSITIVITY / epsilon
    model.set_data("scale", scale)
    with model:
        walks = pmd.DapperStep([model["x"]])
        frames = InterweaveStep([model["mu"], model["variance"]], records=[model["x"]])
    rng = np.random.default_rng(5)
    frames.setup_chain(rng.spawn(1)[0], tune=tune, draws=iterations)
    walks.setup_chain(rng.spawn(1)[0], tune=0, draws=10)
    walks.reach, walks.n_walks = 0.3, 1
    point = {"mu": np.array(0.3), "variance_log__": np.array(0.0), "x": fitting_records(rng)}
    seen = []
    for k in range(tune + iterations):
        point, _ = walks.step(point)
        point, _ = frames.step(point)
        if k >= tune + iterations // 20:
            x, mu, variance = point["x"], point["mu"], np.exp(point["variance_log__"])
            fourth = ((x - x.mean()) ** 4).mean()
            seen.append(summaries(mu, variance, x.sum(), (x**2).sum(), fourth))
    assert frames.n_moves == [0, 4]
    late = np.array(seen).T
    return np.abs(
        [z_score_of_mean(*each) for each in zip(late, expected_summaries(scale), strict=True)]
    )


@pytest.fixture
def frames_only(monkeypatch):
    """Four moves of frames, and none with the noise held fixed."""
    monkeypatch.setattr(interweave, "forgets_slowly", lambda seen: True)
    monkeypatch.setattr(interweave, "best_numbers_of_moves", lambda *_: [0, 4])
    return monkeypatch


@pytest.mark.parametrize("epsilon", [30, 300])
@pytest.mark.usefixtures("frames_only")
def test_mean_and_variance_agree_with_quadrature(epsilon):
    assert by_frames_alone(two_sums(), epsilon).max() < 4.5


def test_quadrature_shows_a_wrong_volume_element(frames_only):
    break_frames(frames_only)
    assert by_frames_alone(two_sums(), 30).max() > 8


# A regression: ranks of the truth among the draws, with all steps that there are.

ROWS, CHAINS, THIN, KEPT = 8, 120, 60, 31
NOISE = 0.1


def small_regression():
    with pm.Model() as model:
        released = pm.Data("released", np.zeros(5))
        b = pm.Normal("b", 0, 2, shape=2)
        x = pm.Normal("x", 0.9, 1, shape=ROWS)
        y = pm.Normal("y", b[0] + b[1] * x, np.sqrt(2), shape=ROWS)
        sums = five_sums(pt.clip(x / 10, -1, 1), pt.clip(y / 10, -1, 1), pt)
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, NOISE), released))
        return model, pmd.assign_steps([x, y])


def five_sums(x, y, library):
    return library.stack([part.sum() for part in (x, x**2, y, y**2, x * y)])


def from_prior(rng):
    b, x = rng.normal(0, 2, 2), rng.normal(0.9, 1, ROWS)
    return {"b": b, "x": x, "y": rng.normal(b[0] + b[1] * x, np.sqrt(2))}


def quantities(point):
    b, x, y = point["b"], point["x"], point["y"]
    return np.array([*b, x[0], y[0], x.var(), ((y - b[0] - b[1] * x) ** 2).sum()])


def ranks(model, steps, chains, tune=240):
    rng, found = np.random.default_rng(1), []
    for _ in range(chains):
        truth, point = from_prior(rng), from_prior(rng)
        sums = five_sums(np.clip(truth["x"] / 10, -1, 1), np.clip(truth["y"] / 10, -1, 1), np)
        model.set_data("released", rng.laplace(sums, NOISE))
        for step in steps:
            step.setup_chain(rng, tune=tune, draws=THIN * KEPT)
        draws = []
        for k in range(tune + THIN * KEPT):
            for step in steps:
                point, _ = step.step(point)
            if k >= tune and (k - tune + 1) % THIN == 0:
                draws.append(quantities(point))
        found.append((np.array(draws) < quantities(truth)).sum(axis=0))
    return np.array(found)


def p_values(found):
    """Of even ranks, four bins of them."""
    bins = found // ((KEPT + 1) // 4)
    return np.array([stats.chisquare(np.bincount(x, minlength=4)).pvalue for x in bins.T])


@pytest.fixture
def frames_too(monkeypatch):
    """Two moves of frames, wherever these might be of use."""
    monkeypatch.setattr(interweave, "forgets_slowly", lambda seen: True)
    monkeypatch.setattr(interweave, "best_numbers_of_moves", lambda *_: [1, 2])
    return monkeypatch


@pytest.mark.usefixtures("frames_too")
def test_ranks_of_the_truth_are_even_in_a_regression_whose_frame_moves():
    assert p_values(ranks(*small_regression(), CHAINS)).min() > 1e-3


def test_ranks_show_a_wrong_volume_element(frames_too):
    break_frames(frames_too)
    assert p_values(ranks(*small_regression(), CHAINS // 3)).min() < 1e-6
