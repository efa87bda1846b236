"""What tuning finds out about moves, of what they did; without a chain."""

import numpy as np
import pytest

from pymc_dapper.interweaving.kernels.tuning import (
    DEFAULT_MOVES,
    MIN_MEASURED,
    MOVES_IN_TUNING,
    Costs,
)
from pymc_dapper.interweaving.tuner import Tuner

TUNE, DIM = 400, 2
COSTS = Costs(evaluation=150.0, set_up=8_000.0, rest=300_000.0)


class Trajectory:
    """Parameters that other steps and each kind of moves leave so much of; how often it is asked.

    An affine move has one coordinate more.
    """

    def __init__(self, elsewhere, *kinds, tune=TUNE, n_affine=0, **options):
        self.left, self.n_affine, self.compiled = (elsewhere, *kinds), n_affine, []
        self.rng = np.random.default_rng(1)
        self.now, self.told = self.rng.standard_normal(DIM), []
        self.costs = [COSTS] * 3  # of all kinds: a chain before may have compiled them
        self.tuner = Tuner(tune, DIM, **options)

    def step(self, left):
        self.now = left * self.now + np.sqrt(1 - left**2) * self.rng.standard_normal(DIM)
        return self.now

    def more(self):
        self.compiled.append(len(self.told))
        return [np.zeros(DIM + 1)] * (self.n_affine if self.tuner.numbers else 0)

    def run(self, n):
        """Iterations of tuning; what each made, and when moves began."""
        made = []
        for _ in range(n):
            self.step(self.left[0])
            made.append(self.tuner.to_make(self.costs.__getitem__))
            paths = []
            for k, number in enumerate(made[-1]):
                path = np.array([self.now, *(self.step(self.left[k + 1]) for _ in range(number))])
                more = self.rng.standard_normal((len(path), min(k, 1)))
                paths.append(np.hstack([path, more]))
            evaluations = [np.full(number, 2.0) for number in made[-1]]
            begins = self.tuner.watch(
                self.now, paths, evaluations, self.costs, self.more, n_rows=25
            )
            self.told.append(begins)
        return made


def test_what_mixes_by_itself_is_never_moved_and_nothing_is_compiled():
    seen = Trajectory(0.1, waits=True)
    assert seen.run(TUNE) == [[]] * TUNE
    assert seen.compiled == []
    assert not any(seen.told)
    assert seen.tuner.numbers == []
    assert seen.tuner.seen == []


def test_what_crawls_is_moved_from_the_first_look_on():
    seen = Trajectory(0.97, 0.3, waits=True)
    made = seen.run(TUNE)
    assert made == [[]] * MIN_MEASURED + [[MOVES_IN_TUNING]] * (TUNE - MIN_MEASURED)
    assert seen.compiled == [MIN_MEASURED - 1]
    assert np.flatnonzero(seen.told).tolist() == [MIN_MEASURED - 1]
    assert seen.tuner.done == seen.tuner.tune == TUNE - MIN_MEASURED
    [number] = seen.tuner.numbers
    assert 1 <= number <= 5


@pytest.mark.parametrize("n_affine", [0, 1, 2])
def test_affine_moves_are_made_where_the_first_kind_is_not_enough(n_affine):
    seen = Trajectory(0.97, 0.99, 0.5, 0.99, n_affine=n_affine)
    made = seen.run(TUNE)
    kinds = 1 + n_affine
    assert made == [[MOVES_IN_TUNING]] * (TUNE // 4) + [[MOVES_IN_TUNING] * kinds] * (3 * TUNE // 4)
    assert seen.compiled == [TUNE // 4 - 1]
    assert len(seen.tuner.numbers) == len(seen.tuner.fits) == kinds
    assert [len(fit.location) for fit in seen.tuner.fits] == [DIM, DIM + 1, DIM + 1][:kinds]
    if n_affine:
        assert seen.tuner.numbers[1] > 0
        assert [*seen.tuner.numbers[:1], *seen.tuner.numbers[2:]] == [0] * n_affine


def test_where_the_first_kind_is_enough_no_affine_move_is_compiled():
    seen = Trajectory(0.97, 0.3, n_affine=2)
    seen.run(TUNE)
    assert seen.compiled == []
    assert len(seen.tuner.numbers) == 1


def test_with_little_tuning_nothing_is_chosen():
    few = Trajectory(0.97, 0.99, n_affine=2, tune=MIN_MEASURED)
    few.run(MIN_MEASURED)
    assert few.tuner.numbers == [DEFAULT_MOVES]
    few = Trajectory(0.97, tune=MIN_MEASURED, waits=True)
    few.run(MIN_MEASURED)
    assert few.compiled == []
    assert few.tuner.numbers == []


def test_a_given_number_is_kept_and_makes_no_affine_moves():
    seen = Trajectory(0.97, 0.99, n_affine=2, moves=3)
    assert seen.run(TUNE) == [[MOVES_IN_TUNING]] * TUNE
    assert seen.tuner.numbers == seen.tuner.to_make(seen.costs.__getitem__) == [3]
    assert seen.compiled == []


def test_moves_that_take_very_long_are_few_in_tuning():
    """Not even those that nothing else makes are more after it."""
    dear = Trajectory(1.0, 1.0)
    dear.costs = [COSTS._replace(evaluation=1e9)] * 3
    assert dear.run(TUNE) == [[DEFAULT_MOVES]] * TUNE
    assert dear.tuner.numbers == [DEFAULT_MOVES]


def test_the_ellipse_is_fitted_and_then_frozen():
    seen = Trajectory(0.5, 0.3)
    seen.run(TUNE)
    np.testing.assert_allclose(seen.tuner.fits[0].factor, np.eye(DIM), atol=0.2)
    np.testing.assert_allclose(seen.tuner.fits[0].location, 0, atol=0.3)
    assert seen.tuner.paths == [[]]
    assert seen.tuner.evaluations == [[]]


def test_what_nothing_else_moves_is_told_and_not_left_alone():
    """Even if no move succeeded."""
    seen = Trajectory(1.0, 0.5)
    seen.run(TUNE)
    assert seen.tuner.unmoved.all()
    stuck = Trajectory(1.0, 1.0)
    stuck.run(TUNE)
    assert stuck.tuner.numbers == [MOVES_IN_TUNING]
    other = Trajectory(0.5, 0.5)
    other.run(TUNE)
    assert not other.tuner.unmoved.any()
    given = Trajectory(1.0, 1.0, moves=0)
    given.run(TUNE)
    assert given.tuner.numbers == [0]
