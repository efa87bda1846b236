"""Report noisy max: probabilities against quadrature, releases, guarantees, what is refused."""

from itertools import combinations, permutations

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from mpmath import exp as mp_exp
from mpmath import log as mp_log
from mpmath import mp, mpf, quad

from pymc_dapper import NoisyMaxMechanism, PureDP, statistics
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.plan import BySums
from tests.long_cases import one_in_three

SCORES = np.array([3.0, 5.5, 5.0, -2.0])


def log_probabilities(mechanism, scores=SCORES, chosen=None):
    chosen = np.arange(len(scores))[:, None] if chosen is None else np.array(chosen)
    return mechanism.logp(chosen, scores).eval(mode="FAST_COMPILE")


def law(noise):
    """Distribution function, its complement and density of noise, in many digits."""
    if noise == "gumbel":
        return (
            lambda z: mp_exp(-mp_exp(-z)),
            lambda z: -mp.expm1(-mp_exp(-z)),
            lambda z: mp_exp(-z - mp_exp(-z)),
        )
    if noise == "exponential":
        return (
            lambda z: -mp.expm1(-z) if z > 0 else mpf(0),
            lambda z: mp_exp(-z) if z > 0 else mpf(1),
            lambda z: mp_exp(-z) if z > 0 else mpf(0),
        )
    return (
        lambda z: mp_exp(z) / 2 if z < 0 else 1 - mp_exp(-z) / 2,
        lambda z: mp_exp(-z) / 2 if z > 0 else 1 - mp_exp(z) / 2,
        lambda z: mp_exp(-abs(z)) / 2,
    )


def by_quadrature(noise, scores, scale, chosen):
    """Log of the probability that the lowest of some noisy scores is above all others."""
    below, above, density = law(noise)
    at = [mpf(float(s)) / mpf(scale) for s in scores]

    def integrand(t):
        lowest = sum(
            density(t - at[i]) * mp.fprod(above(t - at[j]) for j in chosen if j != i)
            for i in chosen
        )
        return lowest * mp.fprod(below(t - s) for j, s in enumerate(at) if j not in chosen)

    first, last = min(at), max(at)
    steps = [first - 100, first - 40, first - 15, first - 5, first - 2]
    steps += [*sorted(set(at)), last + 2, last + 5, last + 15, last + 40, last + 100]
    return float(mp_log(quad(integrand, steps)))


NOISE = ["gumbel", "exponential", "laplace"]
# In every run, each noise and each scale once.
SCALES = [
    pytest.param(noise, scale, marks=[pytest.mark.long] if i != k else [])
    for i, noise in enumerate(NOISE)
    for k, scale in enumerate([0.5, 2.0, 1e5])
]


@pytest.mark.parametrize(("noise", "scale"), SCALES)
def test_probabilities_are_those_of_the_largest_noisy_score(noise, scale):
    values = log_probabilities(NoisyMaxMechanism(scale, 4, noise=noise))
    assert np.exp(values).sum() == pytest.approx(1, abs=1e-13)
    with mp.workdps(25):
        exact = [by_quadrature(noise, SCORES, scale, [i]) for i in range(4)]
    np.testing.assert_allclose(values, exact, rtol=1e-12)
    others = {"gumbel": "exponential", "exponential": "laplace", "laplace": "gumbel"}
    twin = NoisyMaxMechanism(scale, 4, noise=others[noise])
    if scale < 10:
        assert np.abs(log_probabilities(twin) - exact).max() > 0.01


@pytest.mark.parametrize("noise", one_in_three(NOISE))
@pytest.mark.parametrize("k", [2, pytest.param(3, marks=pytest.mark.long)])
def test_probabilities_of_the_k_largest_in_any_order(noise, k):
    mechanism = NoisyMaxMechanism(2.0, 4, k, noise, ordered=False)
    sets = list(combinations(range(4), k))
    values = log_probabilities(mechanism, chosen=sets)
    assert np.exp(values).sum() == pytest.approx(1, abs=1e-13)
    with mp.workdps(25):
        exact = [by_quadrature(noise, SCORES, 2.0, chosen) for chosen in sets]
    np.testing.assert_allclose(values, exact, rtol=1e-10)
    np.testing.assert_array_equal(log_probabilities(mechanism, chosen=[sets[1][::-1]]), values[1:2])
    assert log_probabilities(mechanism, chosen=[[1] * k]) == -np.inf
    if noise == "gumbel":  # as the sum over all orders; the twin takes one order
        in_order = NoisyMaxMechanism(2.0, 4, k)
        for chosen, value in zip(sets, values, strict=True):
            orders = log_probabilities(in_order, chosen=list(permutations(chosen)))
            assert np.logaddexp.reduce(orders) == pytest.approx(value, rel=1e-10)
            assert abs(orders[0] - value) > 0.01


def test_permute_and_flip_is_exponential_noise():
    """Candidates in a random order, each taken with probability exp((score - largest) / scale)."""
    heads = np.exp((SCORES - SCORES.max()) / 2.0)
    p = np.zeros(4)
    for order in permutations(range(4)):
        left = 1 / 24
        for i in order:  # the largest is taken for sure
            p[i] += left * heads[i]
            left *= 1 - heads[i]
    values = log_probabilities(NoisyMaxMechanism(2.0, 4, noise="exponential"))
    np.testing.assert_allclose(np.exp(values), p, rtol=1e-12)
    assert np.abs(np.exp(log_probabilities(NoisyMaxMechanism(2.0, 4))) - p).max() > 0.01


def test_many_candidates_and_far_scores_lose_nothing():
    scores = np.linspace(0, 900, 120)
    for noise in ("gumbel", "exponential", "laplace"):
        n = 30 if noise == "laplace" else 120
        values = log_probabilities(NoisyMaxMechanism(1.0, n, noise=noise), scores[:: 120 // n])
        assert np.exp(values).sum() == pytest.approx(1, abs=1e-12)
        assert values[0] == pytest.approx(-900, rel=0.03)


def test_the_k_largest_come_one_after_the_other():
    mechanism = NoisyMaxMechanism(2.0, 4, k=3)
    chosen = list(permutations(range(4), 3))
    p = np.exp(log_probabilities(mechanism, chosen=chosen))
    assert p.sum() == pytest.approx(1, abs=1e-13)
    weights = np.exp(SCORES / 2)
    a, b, c = chosen[7]
    rest = weights.sum()
    expected = weights[a] / rest * weights[b] / (rest - weights[a])
    expected *= weights[c] / (rest - weights[a] - weights[b])
    assert p[7] == pytest.approx(expected, rel=1e-12)
    assert log_probabilities(mechanism, chosen=[1, 1, 2]) == -np.inf
    assert log_probabilities(mechanism, chosen=[1, 4, 2]) == -np.inf


@pytest.mark.parametrize(
    ("noise", "k", "ordered"),
    [
        ("gumbel", 1, True),
        ("gumbel", 2, True),
        ("exponential", 1, True),
        ("laplace", 1, True),
        ("laplace", 2, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("how", ["release", "predicted"])
def test_releases_follow_the_probabilities(noise, k, ordered, how):
    mechanism, n = NoisyMaxMechanism(2.0, 4, k, noise, ordered), 20_000
    scores = np.broadcast_to(SCORES, (n, 4))
    if how == "release":
        drawn = mechanism.release(scores, random_seed=2)
    else:
        graph = mechanism._random(pt.as_tensor(scores), None)
        drawn = pm.draw(graph, random_seed=2, mode="FAST_COMPILE")
    chosen = list((permutations if ordered else combinations)(range(4), k))

    def z(mechanism):
        p = np.exp(log_probabilities(mechanism, chosen=chosen))
        share = np.array([np.mean((drawn == c).all(axis=1)) for c in chosen])
        return np.max(np.abs(share - p)[p > 0.005] / np.sqrt(p * (1 - p) / n)[p > 0.005])

    assert z(mechanism) < 4
    assert z(NoisyMaxMechanism(2.6, 4, k, noise, ordered)) > 6


@pytest.mark.parametrize(
    ("noise", "k"),
    [("gumbel", 1), ("exponential", 1), ("laplace", 1), ("exponential", 2), ("laplace", 2)],
)
@pytest.mark.parametrize("one_way", [True, False])
def test_the_budget_bounds_the_ratio_of_probabilities(noise, k, one_way):
    budget, ordered = PureDP(0.8), k == 1
    mechanism = NoisyMaxMechanism.calibrate(
        budget, sensitivity=1, candidates=3, k=k, noise=noise, ordered=ordered, one_way=one_way
    )
    assert mechanism.privacy_loss(sensitivity=1, one_way=one_way).epsilon == pytest.approx(0.8)

    def largest(mechanism):
        chosen = np.array(list(combinations(range(3), k)))
        base = np.array([0.0, 0.0, -30.0])
        moves = [0, 1] if one_way else [-1, 0, 1]
        near = [base + np.array([a, b, c]) for a in moves for b in moves for c in moves]
        here = log_probabilities(mechanism, base, chosen)
        every = np.broadcast_to(chosen[:, None], (3, len(near), k))
        return np.abs(log_probabilities(mechanism, np.array(near), every) - here[:, None]).max()

    assert largest(mechanism) <= 0.8 + 1e-9
    assert largest(NoisyMaxMechanism(mechanism.scale / (2.5 * k), 3, k, noise, ordered)) > 0.8


def test_the_largest_of_a_table_takes_its_sensitivity_in_the_right_norm():
    table = statistics.counts(np.array([0, 1, 1]), 3)
    mechanism = NoisyMaxMechanism.calibrate(PureDP(1), sensitivity=table.sensitivity, candidates=3)
    assert mechanism.scale == 2
    assert NoisyMaxMechanism.calibrate(PureDP(1), sensitivity=1, candidates=3, k=3).scale == 6
    with pytest.raises(ValueError, match="needs the L-infinity"):
        NoisyMaxMechanism.calibrate(PureDP(1), sensitivity=table.sensitivity.l1, candidates=3)


def test_posteriors_are_calibrated_and_those_of_other_noise_are_not():
    # Two cells of a table of six, of which the larger one was published.
    statistic = np.array([[n, 6 - n] for n in range(7)], dtype=float)
    prior = np.full(7, 1 / 7)
    law = {
        noise: np.exp(
            log_probabilities(
                NoisyMaxMechanism(1.5, 2, noise=noise), statistic, [[[i]] * 7 for i in range(2)]
            )
        )
        for noise in ("gumbel", "exponential")
    }

    def off(analysed):
        joint = law[analysed] * prior
        posterior = joint / joint.sum(axis=1, keepdims=True)
        by_release = (law["gumbel"] * prior).sum(axis=1)
        return np.abs(law["gumbel"] * prior / by_release[:, None] - posterior).max()

    assert off("gumbel") < 1e-14
    assert off("exponential") > 1e-3


def test_a_choice_in_a_model():
    mechanism = NoisyMaxMechanism(2.0, 3, k=2)
    with pm.Model() as model:
        record = pm.Categorical("record", p=pm.Dirichlet("p", np.ones(3)), shape=12)
        mechanism.observe("largest", statistics.counts(record, 3), released=[2, 0])
        quickly = {"mode": "FAST_COMPILE"}
        prior = pm.sample_prior_predictive(50, random_seed=1, compile_kwargs=quickly)
    assert prior.prior_predictive["largest"].shape == (1, 50, 2)
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    assert isinstance(reading.plan, BySums)
    scores = pt.dvector("scores")
    for mechanism, chosen in [
        (NoisyMaxMechanism(2.0, 4), [1]),
        (NoisyMaxMechanism(2.0, 4, noise="exponential"), [1]),
        (NoisyMaxMechanism(2.0, 4, noise="laplace"), [1]),
        (NoisyMaxMechanism(2.0, 4, 2, ordered=False), [1, 2]),
        (NoisyMaxMechanism(2.0, 4, 2, "exponential", ordered=False), [1, 2]),
    ]:
        logp = mechanism.logp(np.array(chosen), scores)
        for point in (SCORES, np.zeros(4), np.array([0, -1e4, 1.0, 1e4])):
            gradient = pt.grad(logp, scores).eval({scores: point}, mode="FAST_COMPILE")
            assert np.isfinite(gradient).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NoisyMaxMechanism(0.0, 3), "scale must be positive"),
        (lambda: NoisyMaxMechanism([1.0, 2.0], 3), "scale must be a single number"),
        (lambda: NoisyMaxMechanism(1.0, 1), "candidates must be"),
        (lambda: NoisyMaxMechanism(1.0, 3, k=4), "k must be at most"),
        (lambda: NoisyMaxMechanism(1.0, 3, noise="normal"), "noise must be"),
        (lambda: NoisyMaxMechanism(1.0, 3, k=2, noise="laplace"), "say ordered=False"),
        (lambda: NoisyMaxMechanism(1.0, 3, ordered="no"), "ordered must be"),
        (
            lambda: NoisyMaxMechanism(1.0, 3).release(np.zeros(4)),
            "3 entries .* a score for each candidate",
        ),
        (
            lambda: NoisyMaxMechanism(1.0, 3).logp([1, 2], np.zeros(3)),
            "1 entries .* k chosen candidates",
        ),
        (lambda: NoisyMaxMechanism(1.0, 3).rounded(), "which candidates are largest"),
        (lambda: NoisyMaxMechanism.calibrate(0.5, sensitivity=1, candidates=3), "PureDP"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        make()


@pytest.mark.parametrize(
    ("released", "message"),
    [
        ([0, 3], "'largest': candidates are 0, ..., 2, but 3 was released: 1 of 2"),
        ([1, 1], "'largest': candidate 1 was chosen twice"),
        ([0.5, 1], "releases integers"),
        ([0], r"shape \(1,\), where the mechanism releases shape \(2,\)"),
    ],
)
def test_choices_that_do_not_exist_are_refused(released, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        NoisyMaxMechanism(1.0, 3, k=2).potential("largest", np.zeros(3), released=released)


def test_a_replaced_record_changes_scores_in_both_directions():
    tables = {n: statistics.counts([0, 1], 2, neighbours=n) for n in ("replace", "add_remove")}
    moved = PureDP(1, neighbours="add_remove")
    mechanism = NoisyMaxMechanism.calibrate(
        moved, sensitivity=tables["add_remove"].sensitivity, candidates=2, one_way=True
    )
    assert mechanism.scale == 1
    with pytest.raises(ValueError, match=r"one_way.*a person who changes"):
        NoisyMaxMechanism.calibrate(
            PureDP(1), sensitivity=tables["replace"].sensitivity, candidates=2, one_way=True
        )
    with pytest.raises(ValueError, match=r"one_way.*a person who changes"):
        mechanism.privacy_loss(sensitivity=tables["replace"].sensitivity, one_way=True)
