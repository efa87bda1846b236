"""Releases that OpenDP makes itself, read and sampled."""

from dataclasses import replace

import numpy as np
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import opendp_mechanism, read_opendp
from tests.libraries.compared import places_of_truths, released_quantiles

# What is imported takes seconds, and a release of data frames some more.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def dp():
    import opendp.prelude

    opendp.prelude.enable_features("contrib")
    return opendp.prelude


def context(dp, records, margin, n_queries=1, **loss):
    import polars as pl

    return dp.Context.compositor(
        data=pl.LazyFrame(records),
        privacy_unit=dp.unit_of(contributions=1),
        privacy_loss=dp.loss_of(**loss),
        split_evenly_over=n_queries,
        margins=[dp.polars.Margin(**margin)],
    )


RECORDS = {"sex": ["m"] * 30 + ["f"] * 20, "age": [*range(20, 50), *range(30, 50)]}
KNOWN = {"by": ["sex"], "invariant": "keys", "max_length": 50, "max_groups": 2}


@pytest.mark.parametrize(
    ("loss", "noise"),
    [
        ({"epsilon": 1.0}, pmd.DiscreteLaplaceMechanism),
        ({"rho": 0.1}, pmd.DiscreteGaussianMechanism),
    ],
)
def test_a_query_is_read(dp, loss, noise):
    import polars as pl

    query = (
        context(dp, RECORDS, KNOWN, **loss)
        .query()
        .group_by("sex")
        .agg(dp.len(signed=True), pl.col("age").fill_null(0).dp.sum((0, 100)))
    )
    summary, released = query.summarize(), query.release().collect()
    for told, frame in (
        (query, released),
        (summary, released),
        (summary, released.to_arrow()),
        (summary.to_pandas(), released.to_pandas()),
    ):
        release = read_opendp(told, frame)
        assert release.names == ("len", "age")
        for row, sex in enumerate(released["sex"].to_list()):
            k = release.coords["sex"].index(sex)
            assert [q.values[k] for q in release] == [released[n][row] for n in release.names]
        for query_read, scale in zip(release, summary["scale"].to_list(), strict=True):
            assert repr(query_read.mechanism) == repr(noise(scale))


def test_counts_are_unsigned_if_it_is_not_asked_otherwise(dp):
    with pytest.warns(FutureWarning, match="signed"):
        query = context(dp, RECORDS, KNOWN, epsilon=0.2).query().group_by("sex").agg(dp.len())
    release = read_opendp(query, query.release())
    assert repr(release["len"].mechanism).endswith(".clamped(0, None)")


def test_sums_beside_counts_with_a_threshold_are_read_of_frames_of_pandas(dp):
    """A group of one is never above the threshold; of the sum OpenDP tells none."""
    import polars as pl

    records = {"g": ["a"] * 60 + ["b"] + ["c"] * 60, "age": [*range(20, 50)] * 4 + [3]}
    query = (
        context(dp, records, {"max_length": 200}, epsilon=2.0, delta=1e-6)
        .query()
        .group_by("g")
        .agg(dp.len(signed=True), pl.col("age").fill_null(0).dp.sum((0, 100)))
    )
    summary, released = query.summarize(), query.release().collect()
    of_polars, of_pandas = (
        read_opendp(*told, coords={"g": ["a", "b", "c"]})
        for told in ((summary, released), (summary.to_pandas(), released.to_pandas()))
    )
    assert repr(of_pandas) == repr(of_polars)
    assert of_pandas["len"].values.mask.tolist() == [False, True, False]
    assert repr(of_pandas["age"].mechanism) == "DiscreteLaplaceMechanism(scale=100)"
    assert sorted(of_pandas["age"].coords["g_published"]) == ["a", "c"]


def test_a_threshold_is_passed_by_what_is_above_it(dp):
    """Groups of four, at a threshold of four: a count of four itself is never published."""
    groups = [f"{k:03}" for k in range(600)]
    query = (
        context(dp, {"g": 4 * groups}, {"max_length": 3000}, epsilon=2.0, delta=1e-3)
        .query()
        .group_by("g")
        .agg(dp.len(signed=True))
    )
    release = read_opendp(query, query.release(), coords={"g": groups})
    mechanism = release["len"].mechanism
    assert repr(mechanism).endswith(".nonempty().published_if('>', 4)")
    counts = np.ma.compressed(release["len"].values)
    # If four were enough, it would be there in three of four groups that are published at five.
    assert np.sum(counts == 5) > 2
    assert 4 not in counts


def test_noise_of_constructors_has_the_law_that_is_read(dp):
    """Noise on whole numbers, by its distribution function."""
    for make in (dp.m.make_laplace, dp.m.make_gaussian):
        space = (
            dp.atom_domain(T=int),
            dp.absolute_distance(T=int if make is dp.m.make_laplace else float),
        )
        measurement = make(*space, scale=1.5)
        mechanism = opendp_mechanism(measurement)
        noise = np.array([measurement(0) for _ in range(4000)])
        support = np.arange(-6, 7)
        logp = mechanism.noise_logp(pt.as_tensor(support)).eval(mode="FAST_COMPILE")
        expected = np.append(np.exp(logp), 1 - np.exp(logp).sum()) * noise.size
        found = np.array([*(np.sum(noise == k) for k in support), np.sum(np.abs(noise) > 6)])
        assert stats.chisquare(found, expected).pvalue > 1e-4


def test_answers_of_randomised_response(dp):
    mechanism = opendp_mechanism(dp.m.make_randomized_response(["a", "b", "c"], prob=0.8))
    assert repr(mechanism) == repr(pmd.RandomizedResponse(0.8, 3))
    assert repr(opendp_mechanism(dp.m.make_randomized_response_bool(0.75))) == repr(
        pmd.RandomizedResponse(0.75, 2)
    )
    chained = (
        dp.space_of(list[int])
        >> dp.t.then_clamp((0, 10))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(3.0)
    )
    assert repr(opendp_mechanism(chained)) == repr(pmd.DiscreteLaplaceMechanism(3.0))


N_BINS = 10
AGES, N_GROUPS = [17.0, 24.0, 30.0, 30.0, 41.0], 400


@pytest.mark.parametrize(
    ("loss", "candidates"),
    [({"epsilon": 1.0}, [10, 20, 30, 50]), ({"rho": 0.125}, [10.5, 20.5, 30.5, 50.5])],
)
def test_quantiles_of_a_query_have_the_law_that_is_read(dp, loss, candidates):
    """Of 400 groups with the same records. The broken twin has half the scale."""
    import polars as pl

    records = {"g": np.repeat(range(N_GROUPS), len(AGES)), "age": AGES * N_GROUPS}
    known = {"by": ["g"], "invariant": "keys", "max_length": 5000, "max_groups": N_GROUPS}
    asked = pl.col("age").dp.quantile(0.9, candidates)
    query = context(dp, records, known, **loss).query().group_by("g").agg(asked)
    told, released = {"age": (0.9, candidates, float)}, query.release().collect()
    [age] = read_opendp(query, released, quantiles=told)
    [again] = read_opendp(query.summarize(), released, quantiles=told, max_length=5000)
    assert repr(again.mechanism) == repr(age.mechanism)
    found = [np.sum(age.values == c) for c in candidates]
    for times, same in ((1, True), (0.5, False)):
        law = pmd.QuantileMechanism(
            candidates, age.mechanism.alpha, age.mechanism.scale * times, age.mechanism.noise
        )
        logp = law.logp(np.array(candidates), law.statistic(np.array(AGES))).eval(
            mode="FAST_COMPILE"
        )
        assert (stats.chisquare(found, np.exp(logp) * N_GROUPS).pvalue > 1e-4) == same
    with pytest.raises(ValueError, match="max_length is 500, but the query's margin has 5000"):
        read_opendp(query, released, quantiles=told, max_length=500)


@pytest.mark.parametrize(("alpha", "wrong"), [(0.5, {"scale": 0.25}), (0.9, {"alpha": 0.5})])
def test_truths_lie_anywhere_in_posteriors_of_quantiles(dp, alpha, wrong):
    """Of 200 releases each. The broken twin takes an eighth of the scale, or another quantile."""
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.symmetric_distance()
    made = dp.m.make_private_quantile(*space, dp.max_divergence(), [*range(0, 41, 2)], alpha, 2.0)
    mechanism = opendp_mechanism(made)
    truths, released = released_quantiles(lambda x: float(made(x.tolist())))
    for each, is_broken in ((mechanism, False), (replace(mechanism, **wrong), True)):
        places = places_of_truths(each, truths, released, cells=released)
        counts, _ = np.histogram(places, bins=np.linspace(0, 1, N_BINS + 1))
        assert (stats.chisquare(counts).pvalue < 1e-4) == is_broken


def test_candidates_with_decimals_are_cut_off_where_records_are_whole_numbers(dp):
    """Of records that are all 10, both 9.4 and 10.6 are as far from the median. Then 10 was it."""
    import polars as pl

    records = {"g": np.repeat(range(20), 100), "age": [10] * 2000}
    known = {"by": ["g"], "invariant": "keys", "max_length": 200, "max_groups": 20}
    median = pl.col("age").cast(int).dp.median([9.4, 10.6, 12.2])
    query = context(dp, records, known, epsilon=5.0).query().group_by("g").agg(median)
    assert set(query.release().collect()["age"]) == {10.6}


N_RELEASES, N_PEOPLE = 200, 60


def places(dp, of_mechanism):
    """Where true shares lie in their posteriors, given counts that OpenDP released.

    The posterior of a share is a mixture of those given each count.
    """
    measurement = (
        dp.space_of(list[int])
        >> dp.t.then_clamp((0, 1))
        >> dp.t.then_sum()
        >> dp.m.then_laplace(10.0)
    )
    rng, counts = np.random.default_rng(1), np.arange(N_PEOPLE + 1)
    truths = rng.beta(2, 2, N_RELEASES)
    values = [measurement(rng.binomial(1, truth, N_PEOPLE).tolist()) for truth in truths]
    mechanism = of_mechanism(opendp_mechanism(measurement))
    logp = mechanism.logp(np.array(values)[:, None], counts).eval(mode="FAST_COMPILE")
    weights = stats.betabinom(N_PEOPLE, 2, 2).pmf(counts) * np.exp(logp)
    weights /= weights.sum(axis=1, keepdims=True)
    below = stats.beta(2 + counts, 2 + N_PEOPLE - counts).cdf(truths[:, None])
    return (weights * below).sum(axis=1)


@pytest.mark.parametrize("broken", [False, True])
def test_truths_lie_anywhere_in_posteriors_of_counts(dp, broken):
    """The broken twin takes a quarter of the scale that OpenDP tells."""
    found = places(
        dp, lambda told: pmd.DiscreteLaplaceMechanism(told.scale / 4) if broken else told
    )
    counts, _ = np.histogram(found, bins=np.linspace(0, 1, N_BINS + 1))
    assert (stats.chisquare(counts).pvalue < 1e-4) == broken
