"""What OpenDP says of quantiles, by the library itself."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import choices, opendp_mechanism, read_opendp

CANDIDATES, N_NOISES = [10.0, 20.0, 30.0, 50.0], 2000
RECORDS = np.array([3.0, 10.0, 10.0, 17.0, 24.0, 30.0, 41.0, 55.0])


@functools.cache
def library():
    import opendp.prelude

    opendp.prelude.enable_features("contrib")
    return opendp.prelude


def space(size=None, kind=float):
    dp = library()
    domain = dp.atom_domain(T=kind, nan=False) if kind is float else dp.atom_domain(T=kind)
    return dp.vector_domain(domain, size=size), dp.symmetric_distance()


@pytest.mark.parametrize("size", [None, 8])
@pytest.mark.parametrize("alpha", [0.5, 0.9, 2 / 3, 0.99995, 0.0, 1.0])
def test_scores_are_those_of_the_library(alpha, size):
    scores = library().t.make_quantile_score_candidates(*space(size), CANDIDATES, alpha)
    numerator, denominator = choices.fraction_of(alpha, size)
    ours = pmd.QuantileMechanism(CANDIDATES, numerator / denominator, 1.0)
    found = ours.scores(ours.statistic(RECORDS)).eval(mode="FAST_COMPILE") * denominator
    np.testing.assert_allclose(found, scores(RECORDS.tolist()), rtol=1e-14, atol=1e-12)
    # The twin rounds to the nearest multiple, as one would expect.
    if alpha == 2 / 3 and size is None:
        assert round(alpha * denominator) != numerator


@functools.cache
def released_by_library(alpha, pure):
    """Releases of the eight records, and the mechanism that is read."""
    dp = library()
    measure = dp.max_divergence() if pure else dp.zero_concentrated_divergence()
    made = dp.m.make_private_quantile(*space(), measure, CANDIDATES[::-1], alpha, 1.5)
    records = RECORDS.tolist()
    return opendp_mechanism(made), np.array([made(records) for _ in range(N_NOISES)])


def p_value(mechanism, released):
    counts = [np.sum(released == c) for c in CANDIDATES]
    logp = mechanism.logp(np.array(CANDIDATES), mechanism.statistic(RECORDS))
    return stats.chisquare(counts, np.exp(logp.eval(mode="FAST_COMPILE")) * len(released)).pvalue


@pytest.mark.parametrize(("alpha", "pure"), [(0.5, True), (0.5, False), (0.9, True)])
def test_releases_have_the_law_that_is_read(alpha, pure):
    mechanism, released = released_by_library(alpha, pure)
    assert p_value(mechanism, released) > 1e-4
    other = {"gumbel": "exponential", "exponential": "gumbel"}[mechanism.noise]
    for twin in (
        pmd.QuantileMechanism(CANDIDATES, mechanism.alpha, 3.0, mechanism.noise),
        pmd.QuantileMechanism(CANDIDATES, mechanism.alpha, 1.5, other),
        pmd.QuantileMechanism(CANDIDATES, 0.75, 1.5, mechanism.noise),
    ):
        assert p_value(twin, released) < 1e-4


def test_the_largest_scores():
    dp = library()
    domain = dp.vector_domain(dp.atom_domain(T=int), size=3), dp.linf_distance(T=int)
    pure, zcdp = dp.max_divergence(), dp.zero_concentrated_divergence()
    for made, expected in (
        (dp.m.make_noisy_max(*domain, pure, 2.0), pmd.NoisyMaxMechanism(2, 3, noise="exponential")),
        (dp.m.make_noisy_max(*domain, zcdp, 2.0), pmd.NoisyMaxMechanism(2, 3)),
        (dp.m.make_noisy_top_k(*domain, zcdp, 2, 2.0), pmd.NoisyMaxMechanism(2, 3, 2)),
    ):
        mechanism = opendp_mechanism(made)
        assert repr(mechanism) == repr(expected)
        scores, k = np.array([4, 5, 2]), mechanism.k
        released = np.array([made(scores.tolist()) for _ in range(N_NOISES)]).reshape(-1, k)
        sets, found = np.unique(released, axis=0, return_counts=True)
        logp = mechanism.logp(sets, np.tile(scores, (len(sets), 1)))
        assert (
            stats.chisquare(found, np.exp(logp.eval(mode="FAST_COMPILE")) * N_NOISES).pvalue > 1e-4
        )
        of_others = mechanism.logp(sets, np.tile([4, 6, 2], (len(sets), 1)))
        p = np.exp(of_others.eval(mode="FAST_COMPILE"))
        assert stats.chisquare(found, p / p.sum() * N_NOISES).pvalue < 1e-4


def test_choices_that_are_refused():
    dp = library()
    unknown = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)
    known = dp.vector_domain(dp.atom_domain(T=int), size=3), dp.linf_distance(T=int)
    pure = dp.max_divergence()
    scores = space() >> dp.t.then_quantile_score_candidates(CANDIDATES, 0.9)
    for made, message in (
        (dp.m.make_noisy_max(*unknown, pure, 2.0), "doesn't tell the number of candidates"),
        (dp.m.make_noisy_max(*known, pure, 2.0, negate=True), "the scores times -1"),
        (dp.m.make_noisy_top_k(*known, pure, 2, 2.0), "new noise for each of the 2"),
        (scores >> dp.m.then_noisy_max(pure, 3e4, negate=True), r"candidates, 0.9, 3, noise="),
    ):
        with pytest.raises(ValueError, match=message):
            opendp_mechanism(made)


def test_other_versions_are_refused(monkeypatch):
    given = {"candidates": CANDIDATES, "alpha": 0.5, "scale": 1.0, "input_domain": None}
    with pytest.raises(ValueError, match=r"OpenDP 0\.13 .* 2 \* scale"):
        choices.of_private_quantile(given)
    with pytest.raises(ValueError, match="output measure RenyiDivergence isn't known"):
        choices.of_private_quantile({**given, "output_measure": "RenyiDivergence"})
    made = library().m.make_private_quantile(
        *space(), library().max_divergence(), CANDIDATES, 0.5, 1.0
    )
    monkeypatch.setattr(choices, "version", lambda name: "0.17.1")
    with pytest.raises(ValueError, match=r"OpenDP 0\.17\.1 scores candidates isn't known"):
        opendp_mechanism(made)


SUMMARY = {
    "column": ["age"],
    "aggregate": ["0.9-Quantile"],
    "distribution": ["ExponentialMin"],
    "scale": [2.0**53 * 3],
}


def test_quantiles_by_group():
    released = pd.DataFrame({"sex": ["m", "f"], "age": [30, 50]}).astype({"age": "uint32"})
    release = read_opendp(SUMMARY, released, quantiles={"age": (0.9, CANDIDATES)}, max_length=100)
    assert release.coords == {"sex": ("m", "f")}
    expected = pmd.QuantileMechanism(CANDIDATES, 0.9, 3.0, "exponential")
    assert repr(release["age"].mechanism) == repr(expected)
    assert release["age"].values.tolist() == [30, 50]


@pytest.mark.parametrize(
    ("told", "quantiles", "max_length", "message"),
    [
        ({}, None, 100, "'age': a quantile was chosen .* Give the arguments"),
        ({}, {"age": (0.9, CANDIDATES)}, None, "'age': a quantile .* max_length"),
        ({}, {"age": (0.5, CANDIDATES)}, 100, "'age': the summary has a 0.9-Quantile, where"),
        ({}, {"age": (0.9, CANDIDATES)}, 10**6, "'age': the summary has a 0.9-Quantile, where"),
        ({}, {"age": (0.9, [30.0, 20.0])}, 100, "'age': candidates must increase"),
        (
            {},
            {"age": (0.9, [10.0, 30.0])},
            100,
            "'age': values are among .*but 50 was released",
        ),
        ({}, {"age": (0.9, [30.0, 50.5])}, 100, "'age': some candidates have decimals"),
        ({}, {"sex": (0.9, CANDIDATES)}, 100, "quantiles: .* no quantile in a column 'sex'"),
        ({"scale": [0.0]}, {"age": (0.9, CANDIDATES)}, 100, "'age': scale must be positive"),
    ],
)
def test_quantiles_that_are_not_those_of_the_summary(told, quantiles, max_length, message):
    released = pd.DataFrame({"sex": ["m", "f"], "age": [30, 50]})
    with pytest.raises((TypeError, ValueError), match=message):
        read_opendp({**SUMMARY, **told}, released, quantiles=quantiles, max_length=max_length)
