"""Records that walk agree with independent answers, where releases nearly fix their sums."""

from copy import deepcopy

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper import DapperStep, invariant
from pymc_dapper.graphs import local_draws
from tests.evaluated_in_python import evaluated_in_python
from tests.monte_carlo import z_score_of_mean
from tests.states import same_states

N = 3
SLOPE, SPREAD = 0.8, 0.7
RELEASED = np.array([2.0, 0.5])


@pytest.fixture(scope="module")
def linear():
    with evaluated_in_python():
        return linear_model()


def linear_model():
    """Normal records y that depend on normal records x, each with a noisy sum."""
    with pm.Model() as model:
        scale = pm.Data("scale", 1.0)
        x = pm.Normal("x", 0.5, 1.0, shape=N)
        y = pm.Normal("y", SLOPE * x, SPREAD, shape=N)
        pm.Normal("noisy", pt.stack([x.sum(), y.sum()]), scale, observed=RELEASED)
        step = DapperStep([x, y])
    return model, step


def linear_answer(scale):
    """Mean and covariance of (x, y), in closed form."""
    from_noise = np.block([[np.eye(N), np.zeros((N, N))], [SLOPE * np.eye(N), SPREAD * np.eye(N)]])
    prior = from_noise @ from_noise.T
    mean = np.repeat([0.5, 0.5 * SLOPE], N)
    sums = np.kron(np.eye(2), np.ones(N))
    gain = prior @ sums.T @ np.linalg.inv(sums @ prior @ sums.T + scale**2 * np.eye(2))
    return mean + gain @ (RELEASED - sums @ mean), prior - gain @ sums @ prior


def walked(model, step, scale, reach, draws, n_walks=1, seed=1):
    """Draws of all records by walks, after some to get there."""
    model.set_data("scale", scale)
    point = model.initial_point()
    step.setup_chain(np.random.default_rng(seed), tune=0, draws=10)
    step.walks.reach, step.walks.number = reach, n_walks
    seen = []
    for _ in range(draws):
        point, _ = step.step(point)
        seen.append(np.concatenate([np.ravel(point[x.name]) for x in step.vars]))
    return np.array(seen[draws // 10 :])


def linear_scores(model, step, scale, reach, draws=6_000, n_walks=1):
    mean, covariance = linear_answer(scale)
    centred = walked(model, step, scale, reach, draws, n_walks) - mean
    products = centred[:, :, None] * centred[:, None, :] - covariance
    sums = centred @ np.kron(np.eye(2), np.ones((N, 1)))
    values = [*centred.T, *products.reshape(len(centred), -1).T, *sums.T]
    return np.abs([z_score_of_mean(x) for x in values])


# In every run, two records and what flows between their states: test_walk_kernel.py.
@pytest.mark.long
@pytest.mark.parametrize(
    ("scale", "reach", "n_walks"), [(0.3, 0.5, 1), (0.1, 0.2, 5), (0.03, 0.08, 50)]
)
def test_records_that_walk_have_the_posterior_in_closed_form(scale, reach, n_walks):
    assert linear_scores(*linear_model(), scale, reach, n_walks=n_walks).max() < 4.5


@pytest.mark.long
def test_a_walk_that_is_not_reversible_shows(monkeypatch):
    monkeypatch.setattr(local_draws, "_keep", lambda reach: 1 - reach)
    assert linear_scores(*linear_model(), 0.3, 0.5).max() > 8


def test_a_chain_that_walks_goes_on_where_it_stopped(linear):
    model, step = linear
    walked(model, step, 0.1, 0.2, 5, n_walks=3)
    point, saved = model.initial_point(), step.sampling_state
    first, _ = step.step(point)
    elsewhere, _ = step.step(first)
    assert not np.array_equal(first["x"], elsewhere["x"])
    step.setup_chain(np.random.default_rng(2), tune=0, draws=10)
    step.sampling_state = saved
    assert same_states(step.sampling_state, saved)
    again, _ = step.step(point)
    np.testing.assert_array_equal(again["x"], first["x"])


@pytest.mark.parametrize("stop", [20, 40, 80])
def test_a_chain_goes_on_in_tuning_and_learns_nothing_after_it(linear, stop):
    model, step = linear
    model.set_data("scale", 1e-3)
    step.setup_chain(np.random.default_rng(1), tune=120, draws=10)
    point = model.initial_point()
    for k in range(130):
        if k == stop:
            saved, there = deepcopy(step.sampling_state), point
        point, _ = step.step(point)
        if k == 119:
            learnt = step.walks.reach, step.walks.number
    assert learnt == (step.walks.reach, step.walks.number)
    assert step.walks.number > 0
    step.setup_chain(np.random.default_rng(2), tune=120, draws=10)
    step.sampling_state = saved
    for _ in range(stop, 130):
        there, _ = step.step(there)
    assert learnt == (step.walks.reach, step.walks.number)
    np.testing.assert_array_equal(there["x"], point["x"])


def test_a_chain_begins_to_walk_where_it_is_held_and_nowhere_else(linear):
    model, step = linear
    reaches = []
    for scale in (1e-3, 3.0):
        model.set_data("scale", scale)
        step.setup_chain(np.random.default_rng(1), tune=300, draws=10)
        point = model.initial_point()
        for _ in range(300):
            point, _ = step.step(point)
        reaches.append((step.walks.reach, step.walks.number))
    (held, sweeps), free = reaches
    assert held < 0.1
    assert sweeps > 1
    assert free == (1.0, 0)


def test_records_walk_and_exchange_what_is_known_exactly():
    with evaluated_in_python(), pm.Model() as model:
        group = pm.Bernoulli("group", 0.5, shape=4)
        income = pm.Normal("income", 2.0 * group, 1.0, shape=4)
        invariant("known", group.sum(), 2)
        pm.Normal("noisy", income.sum(), 0.5, observed=4.0)
        step = DapperStep([group, income])
        step.setup_chain(np.random.default_rng(1), tune=0, draws=10)
        point = model.initial_point()
        step.walks.reach, step.walks.number = 0.01, 3
        groups = [point["group"]]
        for _ in range(12):
            point, _ = step.step(point)
            groups.append(point["group"])
            assert groups[-1].sum() == 2
    assert np.ptp(groups, axis=0).any()


def joint_scores(step, model, reach, draws=40_000):
    """Released values, parameter and records drawn by turns, each given the others (Geweke)."""
    rng, point = np.random.default_rng(3), model.initial_point()
    step.setup_chain(rng, tune=0, draws=10)
    seen = []
    for _ in range(draws):
        step.walks.reach, step.walks.number = reach, 1
        point, _ = step.step(point)
        mu = rng.normal(point["x"].sum() / (N + 1), (N + 1) ** -0.5)
        noisy = rng.normal(point["x"].sum(), 0.3)
        point = {**point, "mu": np.array(mu), "noisy": np.array(noisy)}
        x = point["x"]
        # Less what each is in the model, in closed form.
        seen.append([mu, mu**2 - 1, x[0], x[0] ** 2 - 2, x[0] * x[1] - 1, mu * x[0] - 1])
        seen[-1] += [noisy, noisy**2 - N - N**2 - 0.09, noisy * x[0] - 1 - N, noisy * mu - N]
    return np.abs([z_score_of_mean(x) for x in np.array(seen).T])


@pytest.mark.long
def test_all_variables_drawn_by_turns_have_their_joint_law(monkeypatch):
    def build():
        with pm.Model() as model:
            mu = pm.Normal("mu", 0, 1)
            x = pm.Normal("x", mu, 1, shape=N)
            pm.Normal("noisy", x.sum(), 0.3)
            return DapperStep([x]), model

    assert joint_scores(*build(), 0.4).max() < 4.5
    monkeypatch.setattr(local_draws, "_keep", lambda reach: 1 - reach)
    assert joint_scores(*build(), 0.4).max() > 8


@pytest.mark.long
@pytest.mark.parametrize(("scale", "reach"), [(0.1, 0.3), (0.02, 0.1)])
def test_two_records_with_a_known_spread_agree_with_quadrature(scale, reach):
    """Sums of values and of squares, with Laplace noise: twice two points, nearly."""
    released = np.array([0.7, 1.9])
    with pm.Model() as model:
        width = pm.Data("scale", 1.0)
        x = pm.Normal("x", 0, 1, shape=2)
        sums = pt.stack([x.sum(), (x**2).sum()])
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, width), released))
        step = DapperStep([x])
    draws = walked(model, step, scale, reach, 150_000)
    grid = np.arange(-3, 3, scale / 40 if scale > 0.05 else scale / 12)
    a, b = grid[:, None], grid[None, :]
    logp = stats.norm.logpdf(a) + stats.norm.logpdf(b)
    logp = logp - (abs(a + b - released[0]) + abs(a**2 + b**2 - released[1])) / scale
    weights = np.exp(logp - logp.max())
    weights /= weights.sum()
    for of in (lambda a, b: a + b, lambda a, b: a * b, lambda a, b: (a - b) ** 2):
        expected = (weights * of(a, b)).sum()
        assert abs(z_score_of_mean(of(*draws.T), expected)) < 4.5
