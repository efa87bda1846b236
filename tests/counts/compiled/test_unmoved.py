"""Cells that never moved are told of where they could have, and only there."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.counts.compiled.unmoved import find_held
from pymc_dapper.counts.reading import invariant, read_counts
from pymc_dapper.counts.reading.description import name_cells
from pymc_dapper.counts.reading.self_check import WrittenFactors


def released(x, sd=2.0):
    pm.Normal("released", x, sd, observed=np.ones(x.type.shape))


def total_above_table():
    n = pm.Poisson("n", 5.0)
    t = pm.Multinomial("t", n=n, p=np.ones(3) / 3)
    released(t)
    return [n, t], [6, 2, 2, 2]


def sum_known_by_its_distance():
    x = pm.Poisson("x", 2.0, shape=4)
    pm.Potential("known", pt.switch(pt.lt(pt.abs(x.sum() - 8), 0.5), 0.0, -np.inf))
    released(x)
    return [x], [2, 2, 2, 2]


def two_counts_that_are_the_same():
    x, y = pm.Poisson("x", 2.0), pm.Poisson("y", 2.0)
    pm.Potential("same", pt.log(pt.eq(x, y)))
    released(pt.stack([x, y]))
    return [x, y], [2, 2]


def swaps_that_were_not_made():
    x = pm.Poisson("x", 2.0, shape=(3, 3))
    invariant("rows", x.sum(axis=1), [6, 6, 6])
    invariant("columns", x.sum(axis=0), [6, 6, 6])
    released(x)
    return [x], [2] * 9


def nobody_to_hold():
    x = pm.Multinomial("x", n=10, p=np.array([1.0, 0.0, 0.0]))
    released(x)
    return [x], [10, 0, 0]


def no_one_at_all():
    x = pm.Poisson("x", 2.0, shape=3)
    invariant("known", x.sum(), 0)
    released(x)
    return [x], [0, 0, 0]


def rates_near_zero():
    x = pm.Poisson("x", 1e-6, shape=3)
    released(x)
    return [x], [0, 0, 0]


def noise_less_than_one_person():
    x = pm.Multinomial("x", n=3, p=np.ones(3) / 3)
    released(x, 0.05)
    return [x], [1, 1, 1]


def margins_that_leave_nothing_open():
    x = pm.Poisson("x", 2.0, shape=(2, 2))
    invariant("rows", x.sum(axis=1), [4, 4])
    invariant("columns", x.sum(axis=0), [4, 4])
    invariant("corner", x[0, 0], 2)
    released(x)
    return [x], [2] * 4


def fixed_by_the_others():
    x = pm.Multinomial("x", n=6, p=np.ones(3) / 3)
    released(x[:2] - 1, 0.05)
    return [x], [2, 2, 2]


COULD = {
    total_above_table: "'n', 't'",
    sum_known_by_its_distance: "'x'",
    two_counts_that_are_the_same: "'x', 'y'",
    swaps_that_were_not_made: "'x'",
}
COULD_NOT = [
    nobody_to_hold,
    no_one_at_all,
    rates_near_zero,
    noise_less_than_one_person,
    margins_that_leave_nothing_open,
    fixed_by_the_others,
]


def held(build, *, moved=(), n_sweeps=1_000):
    with pm.Model() as model:
        counts, table = build()
    values = [model.rvs_to_values[count] for count in counts]
    reading, table = read_counts(model, values, model.initial_point()), np.array(table)
    has_moved = np.zeros(len(table), dtype=bool)
    has_moved[list(moved)] = True
    written = WrittenFactors(reading, [])
    assert np.isfinite(written(table).sum())
    found = find_held(reading, lambda new: written(new).sum(), table, has_moved, n_sweeps)
    assert not np.any(found & has_moved)
    return name_cells(reading, found)


@pytest.mark.parametrize("build", COULD)
def test_cells_that_could_have_moved_are_found(build):
    assert held(build) == COULD[build]


@pytest.mark.parametrize("build", COULD_NOT)
def test_cells_that_cannot_move_are_not(build):
    assert held(build) == ""


def test_only_cells_that_never_moved_are_named():
    assert held(total_above_table, moved=[1, 2, 3]) == "'n'"
    assert held(sum_known_by_its_distance, moved=[0, 2]) == "'x' at [1], [3]"
    assert held(sum_known_by_its_distance, moved=range(4)) == ""


def test_a_short_chain_tells_nothing():
    assert held(total_above_table, n_sweeps=10) == ""


def test_of_many_cells_some_are_named():
    def many():
        x = pm.Poisson("x", 2.0, shape=(4, 5))
        released(x)
        return [x], [2] * 20

    assert held(many, moved=[3]) == "'x' at [0, 0], [0, 1], [0, 2], [0, 4], [1, 0], [1, 1], 13 more"
