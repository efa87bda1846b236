"""Counts and their noise: as by summing up, and at a cost that doesn't grow with the count."""

import numpy as np
import pytest
from scipy import special, stats

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.interweaving.compiled.counts import functions
from pymc_dapper.interweaving.kernels import cdf_of_counts as counts
from pymc_dapper.interweaving.kernels.cdf_of_counts import BINOMIAL, NEGATIVE_BINOMIAL, POISSON

cdf, count_noise, count_quantile = functions()
LAWS = {
    POISSON: lambda mu, _: stats.poisson(mu),
    BINOMIAL: stats.binom,
    NEGATIVE_BINOMIAL: stats.nbinom,
}
LARGE = [
    (POISSON, 3e3, 0.0),
    (POISSON, 1e8, 0.0),
    (POISSON, 1e12, 0.0),
    (BINOMIAL, 1e5, 0.3),
    (BINOMIAL, 1e13, 0.1),
    (NEGATIVE_BINOMIAL, 1e4, 1e-8),
    (NEGATIVE_BINOMIAL, 0.5, 1e-5),
    (NEGATIVE_BINOMIAL, 0.5, 1e-10),
    (NEGATIVE_BINOMIAL, 0.01, 1e-9),
]
SMALL = [(POISSON, 7.0, 0.0), (BINOMIAL, 40.0, 0.9), (NEGATIVE_BINOMIAL, 2.5, 0.1)]
UNIFORMS = np.concatenate(
    [np.random.default_rng(0).random(40), [1e-12, 1e-6, 1e-3, 1 - 1e-3, 1 - 1e-6]]
)


def within_reach(law):
    """Where SciPy's cdf is right: its Poisson of a large mean isn't beyond 4.5 deviations."""
    return UNIFORMS[:-1] if law[0] == POISSON and law[1] > 1e6 else UNIFORMS


@pytest.mark.parametrize("mean", [1e10, 1e12])
@pytest.mark.parametrize("u", [1e-15, 1e-6, 0.3, 1 - 1e-5])
def test_far_quantiles_are_those_of_cornish_and_fisher(mean, u):
    z = stats.norm.ppf(u)
    expected = mean + np.sqrt(mean) * z + (z**2 - 1) / 6
    assert abs(count_quantile(u, POISSON, mean, 0.0) - expected) < 1.5


@pytest.mark.parametrize("mean", [1.1e6, 1e12])
def test_beyond_where_scipys_poisson_is_right_there_are_no_steps(mean):
    most = np.floor(mean + 4.4 * np.sqrt(mean))
    end = cdf(most, POISSON, mean, 0.0)
    assert count_quantile(np.nextafter(end, 0), POISSON, mean, 0.0) == most
    assert count_noise(most, 0.5, POISSON, mean, 0.0) < end
    assert np.isnan(count_quantile(end, POISSON, mean, 0.0))
    assert np.isnan(count_noise(most + 1, 0.5, POISSON, mean, 0.0))


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_the_cdf_is_that_of_scipy(law):
    family, first, second = law
    reference = LAWS[family](first, second)
    at = np.unique([count_quantile(u, *law) for u in within_reach(law)])
    found = [cdf(k, *law) for k in at]
    # What either mean loses when it is rounded, at the largest of these means.
    np.testing.assert_allclose(found, reference.cdf(at), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("law", [*LARGE, *SMALL], ids=str)
def test_a_count_is_where_its_step_of_the_cdf_is(law):
    family, first, second = law
    reference = LAWS[family](first, second)
    for u in within_reach(law):
        k = count_quantile(u, *law)
        assert reference.cdf(k - 1) <= u * (1 + 1e-9)
        assert reference.cdf(k) >= u * (1 - 1e-9)


@pytest.mark.parametrize(("family", "first", "second"), [*SMALL, (POISSON, 3e3, 0.0)], ids=str)
def test_quantiles_are_those_of_scipy(family, first, second):
    expected = LAWS[family](first, second).ppf(UNIFORMS)
    found = [count_quantile(u, family, first, second) for u in UNIFORMS]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("law", [law for law in LARGE if law[:2] != (POISSON, 1e12)], ids=str)
def test_at_the_end_of_a_step_the_next_one_begins(law):
    for u in UNIFORMS[:40]:
        k = count_quantile(u, *law)
        end = cdf(k, *law)
        assert count_quantile(np.nextafter(end, 0), *law) == k
        assert count_quantile(end, *law) == k + 1


@pytest.mark.parametrize("law", [*LARGE, *SMALL], ids=str)
def test_a_count_comes_back_from_its_noise(law):
    family, first, second = law
    rng = np.random.default_rng(1)
    drawn = LAWS[family](first, second).rvs(200, random_state=rng).astype(float)
    noise = [count_noise(k, v, *law) for k, v in zip(drawn, rng.random(200), strict=True)]
    np.testing.assert_array_equal([count_quantile(u, *law) for u in noise], drawn)


@pytest.mark.parametrize(
    "law", [(POISSON, 2e3, 0.0), (BINOMIAL, 5e3, 0.4), (NEGATIVE_BINOMIAL, 30.0, 0.02)], ids=str
)
def test_searching_finds_what_summing_up_finds(law):
    """Where both can be done: counts of some thousands."""
    assert not counts.is_small(*law, counts.FEW)
    summed = [counts.quantile_by_sums(u, *counts.recurrence(*law)) for u in UNIFORMS]
    assert summed == [count_quantile(u, *law) for u in UNIFORMS]


@pytest.mark.parametrize("law", LARGE, ids=str)
def test_the_cost_hardly_grows_with_the_count(law):
    """Evaluations of SciPy's functions."""
    evaluations = 0

    def counted(function):
        def evaluate(*arguments):
            nonlocal evaluations
            evaluations += 1
            return function(*arguments)

        return evaluate

    made = counts.functions_of_counts.__code__.co_varnames[:3]
    search = in_python(count_quantile)
    cells = dict(zip(search.__code__.co_freevars, search.__closure__, strict=True))
    within = cells["cdf"].cell_contents
    for name, cell in zip(within.__code__.co_freevars, within.__closure__, strict=True):
        if name in made:
            cell.cell_contents = counted(getattr(special, name))
    needed = []
    for u in UNIFORMS:
        evaluations = 0
        search(u, *law)
        needed.append(evaluations)
    assert np.median(needed) <= 45
    assert max(needed) <= 60


@pytest.mark.parametrize(
    "law", [(POISSON, np.nan, 0.0), (POISSON, -1.0, 0.0), (BINOMIAL, 9.0, 1.5)]
)
def test_impossible_parameters_give_nan(law):
    assert np.isnan(count_noise(3.0, 0.5, *law))
    assert np.isnan(count_quantile(0.5, *law))


def test_counts_far_beyond_the_distribution_take_no_longer():
    assert count_noise(1e15, 0.5, POISSON, 3.0, 0.0) == pytest.approx(1)
    assert np.isnan(count_noise(-1.0, 0.5, POISSON, 1e9, 0.0))


@pytest.mark.parametrize("n", [10.0, 300.0, 1000.0, 1999.0])
def test_trials_that_hardly_ever_fail_are_summed_up_without_overflow(n):
    """From 0 trials on, each count is up to 10^19 times as probable as the one before."""
    law = BINOMIAL, n, np.nextafter(1.0, 0.0)
    assert [count_quantile(u, *law) for u in (1e-5, 0.3, 0.99)] == [n] * 3
    assert count_quantile(count_noise(n, 0.5, *law), *law) == n
    np.testing.assert_allclose(count_noise(n, 0.5, *law), 0.5, rtol=1e-9)


@pytest.mark.parametrize("k", [0.0, 1.0, 2.0, 7.0])
@pytest.mark.parametrize("successes", [0.5, 1.0, 3.0])
def test_counts_far_below_their_mean_are_as_probable_as_scipy_says(successes, k):
    law = successes, 1e-12
    expected = stats.nbinom(*law).cdf(k)
    np.testing.assert_allclose(cdf(k, NEGATIVE_BINOMIAL, *law), expected, rtol=1e-9)
