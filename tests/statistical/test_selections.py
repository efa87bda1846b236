"""Choices that other releases depend on, as `docs/selections.md` writes them.

The algorithms are simulated, noise by noise, for a few tables of counts. Their frequencies must be
the probabilities of the model, and not those of a slightly different algorithm.
"""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dapper as pmd

TABLES = [np.array([3, 5, 4]), np.array([9, 2, 8]), np.array([4, 4, 4])]
N, SCALE = 20_000, 2.0


def peeled(scores, rng, again=True):
    """Two of three by permute-and-flip, with new noise for the second; the twin keeps the noise."""
    noise = rng.exponential(SCALE, (N, 3))
    first = np.argmax(scores + noise, axis=1)
    noisy = scores + (rng.exponential(SCALE, (N, 3)) if again else noise)
    noisy[np.arange(N), first] = -np.inf
    return 3 * first + np.argmax(noisy, axis=1)


def of_two_mechanisms(scores):
    """Probabilities of the first and the second, by a mechanism of three and one of two."""
    three, two = (pmd.NoisyMaxMechanism(SCALE, k, noise="exponential") for k in (3, 2))
    found = np.zeros(9)
    for first in range(3):
        left = [k for k in range(3) if k != first]
        for place, second in enumerate(left):
            logp = three.logp([first], scores) + two.logp([place], scores[left])
            found[3 * first + second] = np.exp(logp.eval(mode="FAST_COMPILE"))
    return found


THRESHOLD, OF_BAR, OF_QUERY = 5.0, 1.5, 2.0


def above_threshold(counts, rng, once=True):
    """The first query above the noisy threshold, or 3; the twin draws its noise for each query."""
    bar = THRESHOLD + rng.laplace(0, OF_BAR, (N, 1 if once else 3))
    is_above = counts + rng.laplace(0, OF_QUERY, (N, 3)) >= bar
    return np.where(is_above.any(axis=1), np.argmax(is_above, axis=1), 3)


def of_latent_threshold(counts):
    """Probabilities of the first above, with the threshold as a variable that is marginalised."""
    bars = np.linspace(-40, 50, 20_001)
    weights = stats.laplace(THRESHOLD, OF_BAR).pdf(bars) * (bars[1] - bars[0])
    below = pm.logcdf(pm.Laplace.dist(counts[:, None], OF_QUERY), bars).eval(mode="FAST_COMPILE")
    above = pm.logcdf(pm.Laplace.dist(bars, OF_QUERY), counts[:, None]).eval(mode="FAST_COMPILE")
    found = [np.exp(below[:k].sum(axis=0) + above[k]) @ weights for k in range(3)]
    return np.append(found, np.exp(below.sum(axis=0)) @ weights)


@pytest.mark.parametrize(
    ("algorithm", "law", "twin"),
    [
        (peeled, of_two_mechanisms, {"again": False}),
        (above_threshold, of_latent_threshold, {"once": False}),
    ],
)
def test_a_model_has_the_probabilities_of_the_algorithm(algorithm, law, twin):
    rng, wrong = np.random.default_rng(1), []
    for counts in TABLES:
        expected = law(counts)
        assert abs(expected.sum() - 1) < 1e-6
        possible = expected > 0
        found = np.bincount(algorithm(counts, rng), minlength=len(expected))
        assert found[~possible].sum() == 0
        scaled = expected[possible] / expected.sum() * N
        assert stats.chisquare(found[possible], scaled).pvalue > 1e-4
        of_twin = np.bincount(algorithm(counts, rng, **twin), minlength=len(expected))
        wrong.append(stats.chisquare(of_twin[possible], scaled).pvalue)
    assert min(wrong) < 1e-6
