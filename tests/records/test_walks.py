"""What tuning finds out about walks, of what sweeps did; without a chain.

Whether, how far and how often records walk.
"""

import numpy as np
import pytest

from pymc_dapper.records.walks import (
    FEWEST_SWEEPS,
    MOST_SWEEPS,
    TARGET,
    Walks,
    best_number_of_sweeps,
    few_are_accepted,
    had_better_walk,
    memory,
    memory_of_sweeps,
    next_reach,
)


def walk(memory, n=500):
    rng, x = np.random.default_rng(0), np.zeros((n, 40))
    correlation = (memory - 1) / (memory + 1)
    for k in range(1, n):
        x[k] = correlation * x[k - 1] + np.sqrt(1 - correlation**2) * rng.normal(size=40)
    return x


def test_few_are_accepted_where_few_are_of_late():
    assert few_are_accepted([1.0] * 50 + [TARGET / 2] * 50)
    assert not few_are_accepted([0.0] * 50 + [2 * TARGET] * 50)
    assert not few_are_accepted([])


def sweeps_of(memory, elsewhere=0.0, n=500):
    """Sums before each sweep and after it, and what other steps leave in between."""
    rng, now, seen = np.random.default_rng(0), np.zeros(3), ([], [])
    for _ in range(n):
        for k, left in enumerate((elsewhere, (memory - 1) / (memory + 1))):
            now = left * now + np.sqrt(1 - left**2) * rng.normal(size=3)
            seen[k].append(now)
    return map(np.array, seen)


def test_records_walk_where_few_are_accepted_and_their_sums_forget_slowly():
    few, many = [TARGET / 2] * 100, [2 * TARGET] * 100
    assert had_better_walk(few, *sweeps_of(100))
    assert not had_better_walk(many, *sweeps_of(100))
    assert not had_better_walk(few, *sweeps_of(1))
    assert had_better_walk(few, np.zeros((100, 3)), np.zeros((100, 3)))  # nothing has moved


@pytest.mark.parametrize("elsewhere", [0.0, 0.5, 0.95])
def test_other_steps_have_no_say_in_whether_they_walk(elsewhere):
    """Moves of parameters may make sums forget in tuning, and not be made after it."""
    assert memory_of_sweeps(*sweeps_of(5, elsewhere, 20_000)) == pytest.approx(5, rel=0.1)
    assert had_better_walk([TARGET / 2] * 100, *sweeps_of(5, elsewhere))
    assert not had_better_walk([TARGET / 2] * 100, *sweeps_of(1.5, elsewhere))


def test_quantities_that_are_known_exactly_have_no_say_either():
    before, after = sweeps_of(5)
    constant = np.ones((500, 1))
    both = [np.hstack([x, constant]) for x in (before, after)]
    assert memory_of_sweeps(*both) == memory_of_sweeps(before, after)


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


def sweeps(seen, n_records):
    """How many are best beside one parameter."""
    return best_number_of_sweeps(seen, n_records, 1)


def test_what_forgets_at_once_takes_one_sweep_and_what_hardly_forgets_many():
    numbers = [sweeps(walk(memory), 50) for memory in (1, 10, 100)]
    assert numbers == sorted(numbers)
    assert numbers[0] <= 2
    assert 16 <= numbers[-1] <= MOST_SWEEPS
    # Where a sweep is all that an iteration costs, more of them gain nothing.
    assert sweeps(walk(1), 10**6) == 1
    assert sweeps(np.zeros((50, 3)), 50) == 1


TUNE, N = 400, 50


def watched(walks, *, accepted, left, can=True, tune=TUNE, until=None):
    """Hand a stretch of tuning to walks: records whose mean is an AR(1) with a correlation."""
    rng, asked, mean = np.random.default_rng(1), [], 0.0

    def may():
        asked.append(True)
        return can

    for done in range(1, 1 + (until or tune)):
        before = mean + rng.normal(size=N)
        mean = left * mean + np.sqrt(1 - left**2) * rng.normal()
        records = [mean + before - before.mean()]
        share = accepted(walks.reach) if walks.number else accepted(np.inf)
        walks.watch(done, share, [before], records, sees=sums, can=may)
    return walks, asked


def sums(records):
    return records[0].mean(keepdims=True)


def few(reach):
    """The farther, the fewer are accepted: the target at a reach of 0.1."""
    return TARGET * min(0.1 / reach, 3.0)


def test_records_walk_if_few_are_accepted_and_sums_have_a_long_memory():
    walks, asked = watched(Walks(TUNE, N, 1), accepted=few, left=0.95)
    assert asked == [True]
    assert walks.number > 1
    assert 0.05 < walks.reach < 0.2


@pytest.mark.parametrize(
    ("accepted", "left", "can"),
    [(lambda reach: 0.5, 0.95, True), (few, 0.0, True), (few, 0.95, False)],
    ids=["many are accepted", "sums forget", "they can't"],
)
def test_otherwise_they_do_not(accepted, left, can):
    walks, asked = watched(Walks(TUNE, N, 1), accepted=accepted, left=left, can=can)
    assert walks.number == 0
    assert walks.reach == 1.0
    assert asked == ([] if can else [True])


def test_with_little_tuning_nothing_is_tuned():
    assert Walks(FEWEST_SWEEPS - 1, N, 1).tune == 0
    assert Walks(FEWEST_SWEEPS - 1, N, 1).are_tuned(1)


def test_nothing_more_is_found_out_after_a_quarter_of_tuning_without_walks():
    walks, _ = watched(Walks(TUNE, N, 1), accepted=few, left=0.0, until=TUNE // 4)
    assert walks.are_tuned(TUNE // 4)
    assert not walks.are_tuned(TUNE // 4 - 1)


def test_what_was_seen_is_forgotten_at_the_end():
    walks, _ = watched(Walks(TUNE, N, 1), accepted=few, left=0.95, until=TUNE - 1)
    assert walks.seen
    walks, _ = watched(Walks(TUNE, N, 1), accepted=few, left=0.95)
    assert [*walks.seen, *walks.before, *walks.accepted] == []
