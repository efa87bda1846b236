"""Records that walk, with parameters: their joint law, and quadrature.

With all other steps: a regression in `test_affine_moves.py`.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import Interval
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.graphs import local_draws
from tests.monte_carlo import z_score_of_mean
from tests.statistical.two_sums import (
    PEOPLE,
    SENSITIVITY,
    expected_summaries,
    fitting_records,
    summaries,
    two_sums,
)

pytestmark = pytest.mark.long


def shrinking(reach):
    """Broken: noise that walks so loses its spread."""
    return 1 - reach


RULE = local_draws._back


def of_the_same_spread(present, draw, walk):
    """Broken: the new spread taken for the present one."""
    present_parameters = [walk.present_parameters[0], walk.parameters[1]]
    return RULE(present, draw, walk._replace(present_parameters=present_parameters))


# Exact draws of all variables, then one walk: each function of them keeps its mean.

N, REPLICATES = 3, 40_000
WIDTHS = np.array([0.5, 1.0, 2.0])
COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])
WITHIN = (-1.0, 2.0)
NOISE = 1.0


def many_kinds():
    """Step for records of all families that walk, one that doesn't, and others that see them."""
    with pm.Model():
        mu = pm.Normal("mu", 0, 1)
        group = pm.Bernoulli("group", 0.4, shape=N)
        a = pm.Normal("a", mu, WIDTHS, shape=N)
        b = pm.Normal("b", a / 2, pt.exp(a / 4), shape=N)
        wage = pm.LogNormal("wage", group + a / 4, 0.3 + group, shape=N)
        share = pm.Normal("share", 0.5, 1, shape=N, default_transform=Interval(*WITHIN))
        pair = pm.MvNormal("pair", a[:, None] * np.array([1.0, -1.0]), COVARIANCE, shape=(N, 2))
        pm.Normal("reply", b, 1, shape=N)
        sums = [pt.clip(a, -2, 2), a * b, pt.log(wage), share, pair[:, 0] * pair[:, 1], 1.0 * group]
        pm.Laplace("noisy", pt.stack([x.sum() for x in sums]), NOISE, shape=len(sums))
        return pmd.DapperStep([group, a, b, wage, share, pair])


def joint_draws(rng):
    """Draws of all value variables and of the release from their joint law."""
    shape = (REPLICATES, N)
    mu = rng.normal(size=REPLICATES)
    group = (rng.random(shape) < 0.4).astype(int)
    a = rng.normal(mu[:, None], WIDTHS)
    b = rng.normal(a / 2, np.exp(a / 4))
    log_wage = rng.normal(group + a / 4, 0.3 + group)
    low, high = (stats.norm.cdf(x - 0.5) for x in WITHIN)
    share = 0.5 + stats.norm.ppf(rng.uniform(low, high, shape))
    noise = rng.normal(size=(*shape, 2)) @ np.linalg.cholesky(COVARIANCE).T
    pair = a[..., None] * np.array([1.0, -1.0]) + noise
    products = pair[..., 0] * pair[..., 1]
    sums = [np.clip(a, -2, 2), a * b, log_wage, share, products, group]
    noisy = rng.laplace(np.stack([x.sum(axis=1) for x in sums], axis=1), NOISE)
    values = {"mu": mu, "group": group, "a": a, "b": b, "wage_log__": log_wage}
    values["share_interval__"] = np.log(share - WITHIN[0]) - np.log(WITHIN[1] - share)
    return {**values, "pair": pair, "reply": rng.normal(b, 1), "noisy": noisy}


def walked_once(step, points, reach):
    """All replicates after one sweep in which the records walk."""
    step.setup_chain(np.random.default_rng(3), tune=0, draws=10)
    after = {x.name: points[x.name].copy() for x in step.vars}
    step.walks.reach, step.walks.number = reach, 1
    for k in range(REPLICATES):
        step.sweeps_done = 5  # neither a draw anew nor one at which digits are looked at
        point, _ = step.step({name: x[k] for name, x in points.items()})
        for name, x in after.items():
            x[k] = point[name]
    return {**points, **after}


def functions(p):
    """Of records one by one, of pairs of their variables, and of these with all others."""
    share = 1 / (1 + np.exp(-p["share_interval__"]))
    group, a, b, log_wage = (p[name] for name in ("group", "a", "b", "wage_log__"))
    first, second = np.moveaxis(p["pair"], -1, 0)
    # Bounded, so that their means have standard errors.
    each = [group, a, b, log_wage, share, first, second]
    each = [np.tanh(x) for x in each] + [np.tanh(x**2) for x in each]
    each += [np.tanh(x * y) for k, x in enumerate(each[:7]) for y in each[:k]]
    each += [np.tanh(x - p["noisy"][:, [k]]) for k in range(6) for x in (a, b, first, second)]
    each += [np.tanh(x * p["mu"][:, None]) for x in (a, b, first)]
    each += [np.tanh(b - p["reply"]), np.tanh((b - p["reply"]) ** 2)]
    each += [np.tanh((b - a / 2) ** 2 / np.exp(a / 2)), np.tanh((log_wage - group - a / 4) ** 2)]
    return np.concatenate([np.array(each).mean(axis=2), np.array(each)[:, :, 0]])


def changes(step, reach):
    points = joint_draws(np.random.default_rng(1))
    change = functions(walked_once(step, points, reach)) - functions(points)
    spread = change.std(axis=1)
    assert (spread > 0).all()
    return np.abs(change.mean(axis=1) / spread * REPLICATES**0.5)


def test_one_walk_leaves_the_joint_law_of_everything_as_it_is():
    step = many_kinds()
    assert changes(step, 0.3).max() < 4.5
    assert changes(step, 0.8).max() < 4.5


@pytest.mark.parametrize(("rule", "broken"), [("_keep", shrinking), ("_back", of_the_same_spread)])
def test_one_walk_that_is_not_reversible_changes_the_joint_law(rule, broken, monkeypatch):
    monkeypatch.setattr(local_draws, rule, broken)
    assert changes(many_kinds(), 0.8).max() > 8


# Mean and variance of normal records, by quadrature.


def walking():
    model = two_sums()
    return model, pmd.DapperStep([model["x"]], model=model)


def two_sums_scores(model, step, epsilon, reach, n_walks, iterations=30_000):
    """Parameters given the records, in closed form, and walks by turns."""
    scale = SENSITIVITY / epsilon
    model.set_data("scale", scale)
    rng = np.random.default_rng(4)
    step.setup_chain(rng, tune=0, draws=10)
    step.walks.reach, step.walks.number = reach, n_walks
    x = fitting_records(rng)
    variance, seen = 1.0, []
    for _ in range(iterations):
        precision = 1 + PEOPLE / variance
        mu = rng.normal(x.sum() / variance / precision, precision**-0.5)
        variance = (2 + ((x - mu) ** 2).sum() / 2) / rng.gamma(3 + PEOPLE / 2)
        point = {"mu": np.array(mu), "variance_log__": np.log(variance), "x": x}
        x = step.step(point)[0]["x"]
        fourth = ((x - x.mean()) ** 4).sum() / PEOPLE
        seen.append(summaries(mu, variance, x.sum(), (x**2).sum(), fourth))
    late = np.array(seen[iterations // 20 :]).T
    return np.abs(
        [z_score_of_mean(*each) for each in zip(late, expected_summaries(scale), strict=True)]
    )


AT_BUDGETS = [(100, 0.4, 2), (1_000, 0.15, 8)]


def test_mean_and_variance_agree_with_quadrature():
    model, step = walking()
    for budget in AT_BUDGETS:
        assert two_sums_scores(model, step, *budget).max() < 4.5


def test_quadrature_shows_a_walk_that_is_not_reversible(monkeypatch):
    monkeypatch.setattr(local_draws, "_keep", shrinking)
    model, step = walking()
    for budget in AT_BUDGETS:
        assert two_sums_scores(model, step, *budget).max() > 8
