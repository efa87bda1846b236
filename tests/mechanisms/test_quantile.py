"""Quantiles chosen among candidates: scores, probabilities, budgets, and what is refused."""

from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import opendp.prelude as dp
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import ZCDP, NoisyMaxMechanism, PureDP, QuantileMechanism
from pymc_dapper.releases.choices import fraction_of

dp.enable_features("contrib")

CANDIDATES = np.array([0.0, 2.0, 3.0, 5.5])
RECORDS = np.array([-1.0, 2.0, 2.0, 2.5, 3.5, 5.5, 7.0])
N_DRAWS = 10_000


def log_probabilities(mechanism, counts):
    released = mechanism.candidates.reshape(-1, *(1,) * (np.ndim(counts) - 1))
    return mechanism.logp(released, counts).eval(mode="FAST_COMPILE")


def scores(mechanism, x):
    return mechanism.scores(mechanism.statistic(x)).eval(mode="FAST_COMPILE")


def by_definition(x, candidates, alpha):
    below = np.array([np.sum(x < c) for c in candidates])
    above = np.array([np.sum(x > c) for c in candidates])
    return np.abs((1 - alpha) * below - alpha * above)


def scores_of_opendp(x, alpha, n=None):
    """The library's own scores, whole numbers, and what one record changes them by."""
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n)
    score = dp.t.make_quantile_score_candidates(
        domain, dp.symmetric_distance(), CANDIDATES.tolist(), alpha
    )
    return np.array(score(x.tolist()), dtype=object), score.map(1 if n is None else 2)


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.5, 0.9, 1 / 3, 0.30001, 1.0])
@pytest.mark.parametrize("n", [None, len(RECORDS)])
def test_scores_and_their_sensitivity_are_those_of_opendp(alpha, n):
    as_used = Fraction(*fraction_of(alpha, n))
    mechanism = QuantileMechanism(CANDIDATES, float(as_used), 1.0)
    of_library, most = scores_of_opendp(RECORDS, alpha, n)
    own = scores(mechanism, RECORDS)
    np.testing.assert_allclose(own, by_definition(RECORDS, CANDIDATES, float(as_used)), rtol=1e-14)
    # In exact arithmetic, as the library's: the same fraction, digit by digit.
    counts = mechanism.statistic(RECORDS).tolist()
    exact = [
        abs((1 - as_used) * sum(counts[: 2 * j + 1]) - as_used * sum(counts[2 * j + 2 :]))
        for j in range(len(CANDIDATES))
    ]
    assert [as_used.denominator * x for x in exact] == [
        Fraction(int(x) * as_used.denominator, _denominator(alpha, n)) for x in of_library
    ]
    neighbours = "add_remove" if n is None else "replace"
    spent = mechanism.privacy_loss(neighbours=neighbours).epsilon
    assert spent == pytest.approx(2 * most / _denominator(alpha, n), rel=1e-12)


def _denominator(alpha, n):
    """The library's denominator, read off its scores of one record below all candidates."""
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=n)
    score = dp.t.make_quantile_score_candidates(domain, dp.symmetric_distance(), [0.0], alpha)
    return int(score([-1.0])[0]) + int(score([1.0])[0])


@pytest.mark.parametrize(
    ("measure", "noise", "other"),
    [
        (dp.max_divergence(), "exponential", "gumbel"),
        pytest.param(
            *(dp.zero_concentrated_divergence(), "gumbel", "exponential"), marks=pytest.mark.long
        ),
    ],
    ids=["pure", "zcdp"],
)
def test_releases_of_opendp_follow_the_probabilities(measure, noise, other):
    release = dp.m.make_private_quantile(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        dp.symmetric_distance(),
        measure,
        CANDIDATES.tolist(),
        0.4,
        1.5,
    )
    records = np.repeat(RECORDS, 2)
    drawn = np.array([release(records.tolist()) for _ in range(N_DRAWS)])
    counts = QuantileMechanism(CANDIDATES, 0.4, 1.5).statistic(records)

    def z(mechanism):
        p = np.exp(log_probabilities(mechanism, counts))
        share = (drawn[:, None] == CANDIDATES).mean(axis=0)
        return np.max(np.abs(share - p) / np.sqrt(p * (1 - p) / N_DRAWS))

    assert z(QuantileMechanism(CANDIDATES, 0.4, 1.5, noise)) < 4
    assert z(QuantileMechanism(CANDIDATES, 0.4, 1.5, other)) > 6
    assert z(QuantileMechanism(CANDIDATES, 0.5, 1.5, noise)) > 6


@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace"])
def test_probabilities_are_those_of_report_noisy_max(noise):
    mechanism = QuantileMechanism(CANDIDATES, 0.4, 0.8, noise)
    counts = mechanism.statistic(RECORDS)
    expected = NoisyMaxMechanism(0.8, 4, noise=noise).logp(
        np.arange(4)[:, None], -by_definition(RECORDS, CANDIDATES, 0.4)
    )
    values = log_probabilities(mechanism, counts)
    np.testing.assert_allclose(values, expected.eval(mode="FAST_COMPILE"), rtol=1e-13)
    if noise == "gumbel":
        weights = np.exp(-by_definition(RECORDS, CANDIDATES, 0.4) / 0.8)
        np.testing.assert_allclose(np.exp(values), weights / weights.sum(), rtol=1e-13)
    assert mechanism.logp(1.0, counts).eval(mode="FAST_COMPILE") == -np.inf


@pytest.mark.parametrize("how", ["release", "predicted"])
@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_releases_follow_the_probabilities(noise, how):
    mechanism, n = QuantileMechanism(CANDIDATES, 0.4, 1.5, noise), 10_000
    counts = mechanism.statistic(RECORDS)
    if how == "release":
        drawn = mechanism.release(np.broadcast_to(counts, (n, len(counts))), random_seed=1)
    else:
        size = pt.as_tensor([n])
        graph = mechanism._random(pt.as_tensor(counts), size)
        drawn = pm.draw(graph, random_seed=1, mode="FAST_COMPILE")
    p = np.exp(log_probabilities(mechanism, counts))
    share = (drawn[:, None] == CANDIDATES).mean(axis=0)
    assert drawn.shape == (n,)
    assert np.max(np.abs(share - p) / np.sqrt(p * (1 - p) / n)) < 4


def test_records_are_counted_at_candidates_and_between_them():
    mechanism = QuantileMechanism(CANDIDATES, 0.5, 1.0)
    expected = [1, 0, 0, 2, 1, 0, 1, 1, 1]
    assert mechanism.statistic(RECORDS).tolist() == expected
    assert mechanism.statistic(np.array([-1, 0, 2, 3, 6])).tolist() == [1, 1, 0, 1, 0, 1, 0, 0, 1]
    for x in (pt.dvector("x"), pt.fvector("x")):
        graph = mechanism.statistic(x)
        given = RECORDS.astype(x.dtype)
        assert graph.eval({x: given}, mode="FAST_COMPILE").tolist() == expected
    near = np.array([np.nextafter(2.0, 0), 2.0, np.nextafter(2.0, 3)])
    assert mechanism.statistic(near).tolist() == [0, 0, 1, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("noise", ["gumbel", "exponential"])
def test_the_budget_bounds_the_ratio_of_probabilities(neighbours, noise):
    budget = PureDP(0.7, neighbours=neighbours)
    options = {"candidates": [1.0, 2.0], "alpha": 0.3, "noise": noise}
    mechanism = QuantileMechanism.calibrate(budget, **options)
    assert mechanism.budget == budget
    assert mechanism.privacy_loss(neighbours=neighbours).epsilon == pytest.approx(0.7)
    values, sizes = [0.0, 1.0, 1.5, 2.0, 3.0], [3] if neighbours == "replace" else [3, 4]
    data = [x for n in sizes for x in combinations_with_replacement(values, n)]
    counts = np.array([mechanism.statistic(np.array(x)) for x in data])

    def largest(mechanism):
        logp = log_probabilities(mechanism, counts)
        one = 2 if neighbours == "replace" else 1
        far = np.abs(counts[:, None] - counts[None]).sum(axis=-1) == one
        return np.abs(logp[:, :, None] - logp[:, None])[:, far].max()

    assert largest(mechanism) <= 0.7 + 1e-9
    assert largest(QuantileMechanism([1.0, 2.0], 0.3, mechanism.scale / 3, noise)) > 0.7


def test_the_bounded_range_of_gumbel_noise_is_as_the_notes_say():
    """The zCDP of the exponential mechanism is epsilon squared over 8, OpenDP's."""
    mechanism = QuantileMechanism(CANDIDATES, 0.5, 1.5)
    release = dp.m.make_private_quantile(
        dp.vector_domain(dp.atom_domain(T=float, nan=False)),
        dp.symmetric_distance(),
        dp.zero_concentrated_divergence(),
        CANDIDATES.tolist(),
        0.5,
        1.5,
    )
    epsilon = mechanism.privacy_loss(neighbours="add_remove").epsilon
    assert release.map(1) == pytest.approx(epsilon**2 / 8, rel=1e-12)


@pytest.mark.parametrize("noise", ["gumbel", "exponential", "laplace"])
def test_a_score_is_beyond_its_bound_as_seldom_as_it_says(noise):
    """All other candidates are worse by the bound, and in the broken twin by half of it."""
    mechanism = QuantileMechanism(CANDIDATES, 0.0, 3.0, noise)
    bound = mechanism.error_bound(0.1)
    probabilities = {}
    for times in (1.0, 0.5):
        n = np.ceil(times * bound).astype(int)
        counts = np.array([0, 0, n, 0, 0, 0, 0, 0, 0])  # all records are above the first candidate
        probabilities[times] = 1 - np.exp(log_probabilities(mechanism, counts)[0])
    assert probabilities[1.0] <= 0.1 < probabilities[0.5]


def test_a_quantile_of_each_group():
    mechanism = QuantileMechanism([1.0, 2.0], 0.5, 1.0)
    counts = np.array([[1, 0, 2, 0, 0], [0, 0, 0, 1, 3], [2, 0, 0, 0, 0]])
    with pm.Model() as model:
        x = pm.Multinomial("x", [3, 4, 2], np.full(5, 0.2), shape=(3, 5))
        mechanism.observe("medians", x, released=[1.0, 2.0, 1.0])
        prior = pm.sample_prior_predictive(
            7, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    assert prior.prior_predictive["medians"].shape == (1, 7, 3)
    assert np.isin(prior.prior_predictive["medians"], [1.0, 2.0]).all()
    logp = model.compile_logp(vars=[model["medians"]], mode="FAST_COMPILE")({"x": counts})
    chosen = [1.0, 2.0, 1.0]
    each = [
        mechanism.logp(r, c).eval(mode="FAST_COMPILE") for r, c in zip(chosen, counts, strict=True)
    ]
    assert logp == pytest.approx(sum(each), rel=1e-12)
    assert mechanism.release(counts, random_seed=1).shape == (3,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: QuantileMechanism([1.0, 3.0, 2.0], 0.5, 1.0), "must increase.*1 of 3 is wrong"),
        (lambda: QuantileMechanism([1.0, 1.0], 0.5, 1.0), "must increase"),
        (lambda: QuantileMechanism([1.0], 0.5, 1.0), "2 numbers or more"),
        (lambda: QuantileMechanism([1.0, np.nan], 0.5, 1.0), "candidates must be"),
        (lambda: QuantileMechanism([[1.0, 2.0]], 0.5, 1.0), "candidates must be a vector"),
        (lambda: QuantileMechanism(CANDIDATES, 1.5, 1.0), "alpha must be a finite number"),
        (lambda: QuantileMechanism(CANDIDATES, 50, 1.0), "alpha must be a finite number"),
        (lambda: QuantileMechanism(CANDIDATES, 0.5, 0.0), "scale must be"),
        (lambda: QuantileMechanism(CANDIDATES, 0.5, 1.0, "normal"), "noise must be"),
        (lambda: QuantileMechanism(CANDIDATES, 0.5, epsilon=1.0), "no argument 'epsilon'"),
        (lambda: QuantileMechanism(CANDIDATES, 0.5, 1.0).rounded(), "one of the candidates"),
        (
            lambda: QuantileMechanism(CANDIDATES, 0.5, 1.0).statistic([1.0, np.nan]),
            "must have no nan",
        ),
        (lambda: QuantileMechanism(CANDIDATES, 0.5, 1.0).release(RECORDS), "pass|Pass"),
        (lambda: QuantileMechanism(CANDIDATES, 0.5, 1.0).release(np.full(9, 0.5)), "whole numbers"),
        (
            lambda: QuantileMechanism.calibrate(ZCDP(0.1), candidates=CANDIDATES, alpha=0.5),
            "needs a PureDP",
        ),
        (
            lambda: QuantileMechanism.calibrate(PureDP(0.1), candidates=CANDIDATES, alpha=0.5),
            "doesn't say which",
        ),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        make()


@pytest.mark.parametrize(
    ("statistic", "released", "message"),
    [
        (np.zeros(9, dtype=int), 2.5, "'median': values are among the candidates"),
        (np.zeros(9, dtype=int), [2.0], r"shape \(1,\), where the mechanism releases shape \(\)"),
        (np.zeros(8, dtype=int), 2.0, "'median': the statistic must hold 9 entries .*counts for 4"),
        (np.zeros(9), 2.0, "'median': the statistic must hold counts, of an integer type"),
    ],
)
def test_a_release_that_cannot_be_is_refused(statistic, released, message):
    mechanism = QuantileMechanism(CANDIDATES, 0.5, 1.0)
    with pm.Model(), pytest.raises((TypeError, ValueError), match=message):
        mechanism.observe("median", pt.as_tensor(statistic), released=released)
