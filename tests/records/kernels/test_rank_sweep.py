"""Decisions by few candidates and running counts are those by the definition, from all records."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels import rank_sweep
from pymc_dapper.records.kernels.rank_sweep import Releases
from tests.broken import in_place

N, PRESENT = 300, 250
CANDIDATES = [np.linspace(-2.0, 2.0, 25), np.linspace(-1.5, 1.5, 7)]
ALPHA, SCALE, CHOSEN = np.array([0.5, 0.3]), np.array([0.05, 3.0]), np.array([13, 2])
NOISE = ["exponential", "gumbel"]


def plain(x, y, log_uniforms):
    """Each decision by the probabilities of the releases, given all records."""

    def log_probability(x):
        total = 0.0
        for q, candidates in enumerate(CANDIDATES):
            below, above = (x[:, None] < candidates).sum(axis=0), (x[:, None] > candidates).sum(0)
            scores = -np.abs((1 - ALPHA[q]) * below - ALPHA[q] * above) / SCALE[q]
            scores -= scores.max()
            if NOISE[q] == "gumbel":
                total += scores[CHOSEN[q]] - np.log(np.exp(scores).sum())
                continue
            others = np.exp(np.delete(scores, CHOSEN[q]))
            u, weights = np.polynomial.legendre.leggauss(len(candidates))
            integral = weights / 2 @ np.prod(1 - others[:, None] * (u + 1) / 2, axis=0)
            total += scores[CHOSEN[q]] + np.log(integral)
        return total

    x, accepted = x.copy(), []
    now = log_probability(x)
    for i, log_uniform in enumerate(log_uniforms):
        old, x[i] = x[i], y[i]
        new = log_probability(x)
        accepted.append(log_uniform < new - now)
        x[i] = y[i] if accepted[i] else old
        now = new if accepted[i] else now
    return np.array(accepted), now


def releases():
    cuts = [np.stack([c, np.nextafter(c, 9)], axis=1).reshape(-1) for c in CANDIDATES]
    every = np.unique(np.concatenate(cuts))
    starts = np.append(-np.inf, every)
    passed = [(starts[:, None] > c).sum(axis=1) for c in CANDIDATES]
    reached = [(starts[:, None] >= c).sum(axis=1) for c in CANDIDATES]
    rules = [np.polynomial.legendre.leggauss(n) for n in (1, 2, 4, 8, 16)]
    nodes, weights = (np.concatenate(x) for x in zip(*rules, strict=True))
    known = Releases(
        passed=np.array(passed),
        reached=np.array(reached),
        n_candidates=np.array([25, 7]),
        chosen=CHOSEN,
        alpha=ALPHA,
        scale=SCALE,
        flips=np.array([x == "exponential" for x in NOISE]),
        nodes=0.5 * (nodes + 1),
        weights=0.5 * weights,
    )
    return known, every


def both(run=3):
    """Sweep over most of the records; runs are short, so that few candidates matter in each."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, N))
    log_uniforms = np.log(rng.random(PRESENT))
    known, cuts = releases()
    places = tuple(np.searchsorted(cuts, each, side="right").astype("uint8") for each in (x, y))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rank_sweep, "RUN", run)
        sweep = in_python(rank_sweep.sweep_by_rank)
        found = sweep(None, known, places, log_uniforms)
    return found, plain(x[:PRESENT], y[:PRESENT], log_uniforms)


@pytest.mark.parametrize("run", [1, 3, 64])
def test_decisions_are_those_by_the_definition(run):
    (accepted, log_density), (expected, log_expected) = both(run)
    assert 10 < (~expected).sum() < PRESENT - 10
    np.testing.assert_array_equal(accepted[:PRESENT], expected)
    assert accepted[PRESENT:].all()
    np.testing.assert_allclose(log_density, log_expected, rtol=1e-10)


@pytest.mark.parametrize(
    "fault",
    [
        {"counts[b] += 1": "pass"},
        {"log_now = log_new": "pass"},
        {"move(releases, b, a, distances, first, stop)": "pass"},
        {"far = best + FAR * releases.scale[q] + 2 * RUN": "far = best"},
        {"while 2 * size <= n_near:": "while size < 1:"},
        {"n_near += j != chosen": "n_near += 1"},
    ],
    ids=["counts", "log-density", "refused", "in question", "too few nodes", "itself"],
)
def test_a_broken_sweep_is_detected(fault):
    with in_place(fault):
        (accepted, log_density), (expected, log_expected) = both()
    assert not np.array_equal(accepted[:PRESENT], expected) or abs(log_density - log_expected) > 0.1
