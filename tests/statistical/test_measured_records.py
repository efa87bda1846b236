"""Records measured with an error of unknown size, against quadrature.

No other step moves the parameters, so that a fault of the move isn't diluted.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.special import logsumexp

from pymc_dapper import DapperStep
from pymc_dapper.interweaving import tuner
from pymc_dapper.interweaving.reading import model as reading_of_model
from pymc_dapper.interweaving.reading.conditional_noise import log_law_of
from pymc_dapper.interweaving.step import InterweaveStep
from tests import interweave_twins as twins
from tests.quadrature import Tabulated, marginals
from tests.statistical.agreement import assert_agrees, assert_disagrees, compare

pytestmark = [
    # In every run, their laws and a wrong one: interweaving/reading/test_conditional_noise.py.
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore:InterweaveStep alone has moved"),
]

NOISE, RELEASED = 0.8, 3.1
NORMAL_ERRORS = np.array([0.9, -1.4, 2.2, 0.3])
HEAVY_ERRORS = np.array([4.0, -0.3])


def run(case, step_type=InterweaveStep, moves=3, draws=8_000):
    model, parameters, exact = case
    with model:
        sweep = DapperStep([model["x"]])
        step = step_type([model[name] for name in parameters], records=[model["x"]], moves=moves)
    return compare(model, [sweep, step], exact, draws=draws, tune=1_000)


@pytest.fixture(scope="module")
def normal():
    """Given the parameters, measurements and the noisy total are normal."""
    w = NORMAL_ERRORS
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        error = pm.Gamma("error", 4, 4)
        x = pm.Normal("x", mu, 1, shape=len(w))
        pm.Normal("w", x, error, observed=w)
        pm.Normal("release", x.sum(), NOISE, observed=RELEASED)
    grids = np.linspace(-4, 5, 181), np.linspace(1e-9, 5, 201)
    mu, error = np.meshgrid(*grids, indexing="ij")
    variance = 1 / (1 + error**-2)
    total = variance * (len(w) * mu + w.sum() * error**-2)
    logp = stats.norm.logpdf(mu) + stats.gamma.logpdf(error, 4, scale=1 / 4)
    logp += stats.norm.logpdf(w[:, None, None], mu, np.hypot(1, error)).sum(axis=0)
    logp += stats.norm.logpdf(RELEASED, total, np.sqrt(len(w) * variance + NOISE**2))
    exact = dict(zip(("mu", "error"), marginals(grids, logp), strict=True))
    return model, ["mu", "error"], exact


@pytest.fixture(scope="module")
def heavy():
    """A law with tails so heavy that the one whose noise is held fixed is far from the records'."""
    with pm.Model() as model:
        error = pm.Gamma("error", 3, 3)
        x = pm.Normal("x", 0, 1, shape=2)
        pm.StudentT("w", nu=2.5, mu=x, sigma=error, observed=HEAVY_ERRORS)
        pm.Normal("release", x.sum(), NOISE, observed=1.5)
    grid, x = np.linspace(1e-3, 8, 201), np.linspace(-6, 6, 241)
    first, second = np.meshgrid(x, x, indexing="ij")
    both = stats.norm.logpdf(first) + stats.norm.logpdf(second)
    both += stats.norm.logpdf(1.5, first + second, NOISE)

    def log_likelihood(error):
        one, other = (stats.t.logpdf(w, 2.5, x, error) for w in HEAVY_ERRORS)
        return logsumexp(both + one[:, None] + other)

    logp = stats.gamma.logpdf(grid, 3, scale=1 / 3) + [log_likelihood(s) for s in grid]
    return model, ["error"], {"error": Tabulated(grid, logp)}


@pytest.mark.parametrize("case", ["normal", "heavy"])
def test_an_unknown_size_of_errors(case, request):
    assert_agrees(run(request.getfixturevalue(case)))


def without_volume_of_one(view, laws, records):
    """Broken: the first record is taken to keep its volume as it shrinks with its error."""
    [(_, sd)] = laws.values()
    return log_law_of(view, laws, records) + pt.log(sd[0])


def as_if_normal(view, laws, records):
    """Broken: all but the volume is taken to cancel, as if the law were that of the records."""
    [(rv, (_, sd))] = laws.items()
    factors = view.log_densities([rv, view.model["w"]])
    return pt.add(*(x.sum() for x in factors)) - pt.log(sd).sum()


@pytest.mark.parametrize(
    ("case", "broken"),
    [
        ("normal", without_volume_of_one),
        ("heavy", without_volume_of_one),
        ("heavy", as_if_normal),
    ],
)
def test_a_wrong_law_is_detected(case, broken, request, monkeypatch):
    monkeypatch.setattr(reading_of_model, "log_law_of", broken)
    assert_disagrees(run(request.getfixturevalue(case)))


def test_measurements_left_out_are_detected(normal, monkeypatch):
    assert_disagrees(run(normal, twins.with_fault(twins.without_factor("w"), monkeypatch)))


@pytest.fixture
def affine_of_noise(monkeypatch):
    """Four affine moves of the noise, and none with the noise held fixed."""
    monkeypatch.setattr(tuner, "forgets_slowly", lambda parameters: True)
    monkeypatch.setattr(tuner, "best_numbers_of_moves", lambda *_: ([0, 0, 4], 1.0))
    return monkeypatch


def test_affine_moves_of_the_noise_of_these_laws(normal, affine_of_noise):
    assert_agrees(run(normal, moves=None, draws=12_000))


def test_a_wrong_law_is_detected_by_affine_moves(normal, affine_of_noise):
    affine_of_noise.setattr(reading_of_model, "log_law_of", without_volume_of_one)
    assert_disagrees(run(normal, moves=None, draws=12_000))
