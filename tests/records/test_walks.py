"""What tuning finds out about walks, of what sweeps did; without a chain."""

import numpy as np
import pytest

from pymc_dapper.records.kernels.walk_tuning import FEWEST_SWEEPS, TARGET
from pymc_dapper.records.walks import Walks

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
