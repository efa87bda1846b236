"""Sums over counts, evaluated in Python, against sums over all counts."""

from collections import namedtuple

import numpy as np
import pytest
from scipy import special, stats

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.marginalised.kernels import count_tables

tabulate, sum_counts = in_python(count_tables.tabulate), in_python(count_tables.sum_counts)

Tables = namedtuple("Tables", "runs logs ratios largest")
INFINITY = np.inf
NOISES = {
    "gaussian": lambda k: -0.5 * ((k - 11) / 2.5) ** 2,
    "laplace": lambda k: -abs(k - 4) / 0.7,
    "beyond what is possible": lambda k: -0.5 * ((k + 20) / 6) ** 2,
    "clamped": lambda k: stats.norm.logcdf((3 - k) / 2),
    "bounded": lambda k: 0.0 if abs(k - 6) <= 3 else -INFINITY,
    "flat": lambda k: 0.0,
}
NATURALS = (-700.0, -9.0, -2.0, 0.0, 0.5, 3.0, 12.0, 700.0)


def one_count(log_density):
    """The form in which the kernel asks for a single count's noise."""

    return lambda context, cell, k: log_density(k), ()


def tables(log_density, largest, start=5):
    """The tables of a single count, and its fault."""
    largest = np.array([float(largest)])
    found = Tables(*tabulate(*one_count(log_density), np.array([start]), largest), largest)
    return found, found.runs[0, count_tables.FAULT]


def anchor_of(weights):
    return weights.runs[0, count_tables.ANCHOR]


def summed(log_density, weights, natural, uniform=None):
    uniforms = np.zeros(0) if uniform is None else np.array([uniform])
    *given, largest = weights
    of_one = one_count(log_density)
    found = sum_counts(*of_one, np.array([natural]), uniforms, tuple(given), largest)
    return [x[0] if x.size else None for x in found]


def every_count(log_density, largest, natural, anchor):
    """The same by a sum over all counts."""
    k = np.arange((400 if largest == INFINITY else largest) + 1)
    log_h = -special.gammaln(k + 1)
    if largest < INFINITY:
        log_h -= special.gammaln(largest - k + 1)
    logs = log_h - log_h[anchor] + (k - anchor) * natural + np.array([log_density(x) for x in k])
    log_sum = special.logsumexp(logs)
    return k, logs - log_sum, log_sum


CASES = [(name, n) for name in NOISES for n in (0, 1, 25, INFINITY)]


@pytest.mark.parametrize(("name", "largest"), CASES)
def test_sums_means_and_draws_are_those_over_all_counts(name, largest):
    log_density = NOISES[name]
    start = int(min(5, largest))
    if name == "bounded" and largest < 3:
        assert tables(log_density, largest, start)[1] == count_tables.IMPOSSIBLE
        return
    if name == "flat" and largest == INFINITY:
        assert tables(log_density, largest, start)[1] == count_tables.TOO_WIDE
        return
    weights, faults = tables(log_density, largest, start)
    assert faults == 0
    anchor = anchor_of(weights)
    naturals = [x for x in NATURALS if largest < INFINITY or x < 4]
    for natural in naturals:
        k, logs, log_sum = every_count(log_density, largest, natural, anchor)
        uniforms = np.linspace(0.001, 0.999, 12)
        log_sums = []
        for uniform in uniforms:
            found, mean, drawn, log_probability = summed(log_density, weights, natural, uniform)
            log_sums.append(found)
            assert mean == pytest.approx(np.exp(logs) @ k - anchor, rel=1e-11, abs=1e-11)
            assert drawn == np.searchsorted(np.cumsum(np.exp(logs)), uniform, side="right")
            assert log_probability == pytest.approx(logs[drawn], abs=1e-11)
        assert log_sums == pytest.approx([log_sum] * len(uniforms), rel=1e-13, abs=1e-11)


@pytest.mark.parametrize("natural", [-9.0, -0.4, 1.0, 12.0])
def test_means_are_the_derivatives_of_log_sums(natural):
    log_density = NOISES["gaussian"]
    weights, _ = tables(log_density, 25)
    step = 1e-4
    up, down = (summed(log_density, weights, natural + x)[0] for x in (step, -step))
    # What is cut off in a Taylor series: the third cumulant is 10 at most.
    assert (up - down) / (2 * step) == pytest.approx(
        summed(log_density, weights, natural)[1], abs=10 * step**2
    )


PEOPLE, RELEASED, SIGMA = 330_000_000, 99_000_321, 40.0


def released_of_many(k):
    return -0.5 * ((k - RELEASED) / SIGMA) ** 2


@pytest.mark.parametrize("shift", [0.0, 3.0, -40.0])
def test_of_many_people_sums_are_those_of_normal_distributions(shift):
    weights, faults = tables(released_of_many, PEOPLE, start=PEOPLE // 2)
    assert faults == 0
    assert weights.logs.size < 25 * SIGMA
    sd = np.sqrt(0.3 * 0.7 * PEOPLE)
    p = 0.3 + shift * sd / PEOPLE
    natural = np.log(p / (1 - p))
    log_sum, mean, *_ = summed(released_of_many, weights, natural)
    anchor, variance = anchor_of(weights), PEOPLE * p * (1 - p)
    log_prior = stats.norm.logpdf(anchor, PEOPLE * p, np.sqrt(variance))
    released = stats.norm.logpdf(RELEASED, PEOPLE * p, np.sqrt(variance + SIGMA**2))
    expected = released + np.log(SIGMA * np.sqrt(2 * np.pi)) - log_prior
    # The first Edgeworth term of a binomial, within a few sigma, is of this size.
    skewed = abs(1 - 2 * p) / np.sqrt(variance) * (1 + abs(shift) ** 2)
    assert log_sum == pytest.approx(expected, abs=skewed)
    towards = (RELEASED * variance + PEOPLE * p * SIGMA**2) / (variance + SIGMA**2)
    assert mean + anchor == pytest.approx(towards, abs=SIGMA * skewed)


def test_what_a_sum_leaves_out_is_negligible():
    def cut_at(drop):
        cut = {"DROP": drop}
        table = in_python(count_tables.sum_table)
        table.__globals__.update(cut)
        weights, _ = tables(released_of_many, PEOPLE, start=RELEASED)
        run = np.array([*weights.runs[0, :4], True, True, 0])
        return table(run, weights.logs, weights.ratios, -0.847, -1.0)[1]

    whole = cut_at(np.inf)
    assert abs(cut_at(count_tables.DROP) - whole) < 1e-12
    # The twin, cut at two standard deviations: 4.6 % are missing.
    assert abs(cut_at(2.0) - whole) > 0.03


def test_noise_without_a_peak_of_its_own_kind_is_found_out():
    def two_peaks(k):
        return np.logaddexp(-0.5 * ((k - 5) / 2) ** 2, -0.5 * ((k - 25) / 2) ** 2)

    assert tables(two_peaks, 40)[1] == count_tables.NOT_CONCAVE
    assert tables(lambda k: stats.t.logpdf(k - 12, 3), 400)[1] == count_tables.NOT_CONCAVE
    assert tables(lambda k: -abs(k - 5) if k % 2 else -INFINITY, 40)[1] == count_tables.NOT_CONCAVE


def test_a_second_peak_beyond_the_table_is_found_out():
    def two_peaks(k):
        return np.logaddexp(-0.5 * (k - 5.0) ** 2, -0.5 * (k - 45.0) ** 2)

    found, fault = tables(two_peaks, 100)
    assert found.logs.size < 20  # of what is near the first peak
    assert fault == count_tables.NOT_CONCAVE
    # Up to 22, there is one peak.
    assert tables(two_peaks, 22)[1] == 0


def test_a_natural_parameter_that_is_no_number_has_no_sum():
    weights, _ = tables(NOISES["gaussian"], 25)
    for natural in (np.nan, INFINITY, -INFINITY):
        assert np.isnan(summed(NOISES["gaussian"], weights, natural)[0])


@pytest.mark.parametrize(("largest", "natural"), [(INFINITY, 36.0), (INFINITY, 300.0), (1e15, 0.0)])
def test_no_parameter_asks_for_more_memory_than_there_is(largest, natural):
    """A table of 1e9 counts and more would be needed: the released value is that far away."""
    weights, faults = tables(NOISES["laplace"], largest)
    assert faults == 0
    assert summed(NOISES["laplace"], weights, natural)[:2] == [-INFINITY, 0.0]


def test_far_from_what_was_released_sums_are_right_as_long_as_they_are_made():
    """All that is likely lies above 4: the generating function of a Poisson count has the sum."""
    natural, slope = np.log(1e6), 1 / 0.7
    weights, _ = tables(NOISES["laplace"], INFINITY)
    log_sum, mean, *_ = summed(NOISES["laplace"], weights, natural)
    anchor, rate = anchor_of(weights), 1e6 * np.exp(-slope)
    log_h = anchor * natural - special.gammaln(anchor + 1)
    assert log_sum == pytest.approx(rate + 4 * slope - log_h, rel=1e-12)
    assert mean + anchor == pytest.approx(rate, rel=1e-9)
