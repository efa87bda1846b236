"""Several directions taken at once are as probable as they are said to be."""

from itertools import product

import numpy as np

from pymc_dapper.counts.kernels.joint import nearest_plane
from tests.counts_enumeration import some_draws


def test_numbers_of_steps_are_as_probable_as_they_are_said_to_be():
    metric = np.array([[3.0, 1.0], [1.0, 2.0]])
    factor, slope, rng = np.linalg.cholesky(metric), np.array([1.5, -4.0]), np.random.default_rng(6)
    all_steps = [np.array(each) for each in product(range(-6, 7), repeat=2)]
    none = some_draws(rng, 0)
    said = np.exp([nearest_plane(factor, slope, steps, True, none) for steps in all_steps])
    assert abs(said.sum() - 1) < 1e-9
    drawn = np.empty((20_000, 2), dtype=int)
    for numbers in drawn:
        nearest_plane(factor, slope, numbers, False, some_draws(rng, 2))
    for steps, chance in zip(all_steps, said, strict=True):
        share = (drawn == steps).all(axis=1).mean()
        assert abs(share - chance) < 4.5 * np.sqrt(chance / 20_000) + 1e-4
