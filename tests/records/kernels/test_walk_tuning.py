"""Whether, how far and how often records walk."""

import numpy as np
import pytest

from pymc_dapper.records.kernels.walk_tuning import (
    HELD,
    MOST_SWEEPS,
    TARGET,
    best_number_of_sweeps,
    few_are_accepted,
    had_better_walk,
    memory,
    next_reach,
)


def walk(memory, n=500):
    rng, x = np.random.default_rng(0), np.zeros((n, 40))
    correlation = (memory - 1) / (memory + 1)
    for k in range(1, n):
        x[k] = correlation * x[k - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=40)
    return x


def test_few_are_accepted_where_few_are_of_late():
    assert few_are_accepted([1.0] * 50 + [HELD / 2] * 50)
    assert not few_are_accepted([0.0] * 50 + [2 * HELD] * 50)
    assert not few_are_accepted([])


def test_records_walk_where_few_are_accepted_and_their_sums_forget_slowly():
    few, many = [HELD / 2] * 100, [2 * HELD] * 100
    assert had_better_walk(few, walk(100))
    assert not had_better_walk(many, walk(100))
    assert not had_better_walk(few, walk(1.5))
    assert had_better_walk(few, np.zeros((100, 3)))  # nothing has moved


def test_memory_is_counted_in_sweeps():
    x = walk(20, 5_000)
    each = [memory(x[:, [k]]) for k in range(40)]
    assert np.mean(each) == pytest.approx(20, rel=0.2)
    assert memory(x) == pytest.approx(max(each))


@pytest.mark.parametrize("width", [0.003, 0.1])
def test_the_reach_settles_where_the_target_is_accepted(width):
    reach, rng = 1.0, np.random.default_rng(0)
    for n in range(2_000):
        accepted = rng.binomial(50, np.exp(-reach / width)) / 50
        reach = next_reach(reach, accepted, n)
    assert np.exp(-reach / width) == pytest.approx(TARGET, abs=0.05)


def test_the_reach_is_never_beyond_an_independent_draw():
    assert next_reach(1.0, 0.9, 0) == 1.0
    assert 0 < next_reach(1e-12, 0.0, 0) < 1e-8


def test_what_forgets_at_once_takes_one_sweep_and_what_hardly_forgets_many():
    numbers = [best_number_of_sweeps(walk(memory), 1, 50) for memory in (1, 10, 100)]
    assert numbers == sorted(numbers)
    assert numbers[0] <= 2
    assert 16 <= numbers[-1] <= MOST_SWEEPS
    # Where a sweep is all that an iteration costs, more of them gain nothing.
    assert best_number_of_sweeps(walk(1), 1, 10**6) == 1
    assert best_number_of_sweeps(np.zeros((50, 3)), 1, 50) == 1


def test_sweeps_are_counted_between_looks():
    assert best_number_of_sweeps(walk(5), 10, 50) > best_number_of_sweeps(walk(5), 1, 50)
