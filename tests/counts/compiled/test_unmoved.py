"""A warning about cells that never moved but could have, and about no others."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.counts.compiled.unmoved import (
    EXPECTED,
    LOOKS,
    find_changes,
    held_by,
    held_cells,
    look_again,
    looks,
)
from pymc_dapper.counts.reading.description import name_cells
from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.reading.model import read_counts
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


def read(build):
    with pm.Model() as model:
        counts, table = build()
    values = [model.rvs_to_values[count] for count in counts]
    reading, table = read_counts(model, values), np.array(table)
    written = WrittenFactors(reading, [])
    assert np.isfinite(written(table).sum())
    return reading, lambda new: written(new).sum(), table


def changes_along(reading, log_density, tables, moved, n_sweeps):
    """What a chain keeps of changes that it looked at at these tables."""
    changes = find_changes(reading, log_density, tables[0], moved, n_sweeps)
    for table in tables[1:]:
        changes = look_again(changes, log_density, table, n_sweeps)
    return changes


def held(build, *, moved=(), n_sweeps=1_000):
    reading, log_density, table = read(build)
    has_moved = np.zeros(len(table), dtype=bool)
    has_moved[list(moved)] = True
    tables = [table] * (LOOKS + 1)
    changes = changes_along(reading, log_density, tables, has_moved, n_sweeps)
    found = held_cells(changes, reading, has_moved)
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


@pytest.mark.parametrize("n_sweeps", [80, 99, 300, 2_001])
def test_a_chain_is_looked_at_from_its_middle_to_its_end(n_sweeps):
    due = looks(n_sweeps)
    assert len(due) == LOOKS + 1
    assert due == sorted(set(due))
    assert due[0] == (n_sweeps + 1) // 2
    assert due[-1] == n_sweeps


def test_a_short_chain_tells_nothing():
    assert looks(79) == []
    assert looks(0) == []  # a step by itself


N_SWEEPS = 200
RATES = np.geomspace(1e-3, 0.3, 10)


def thirty_tracts():
    """Ten cells each, most of them empty, all uncertain under the noise."""
    x = pm.Poisson("x", RATES, shape=(30, 10))
    released(x.sum(axis=1), 100.0)
    return [x], [0] * 300


def test_rare_cells_that_the_chain_did_not_happen_to_meet_are_not_told():
    reading, log_density, _ = read(thirty_tracts)
    told_at_once = []
    for seed in range(3):
        # No chain is better: independent draws. The noise says next to nothing.
        draws = np.random.default_rng(seed).poisson(np.tile(RATES, 30), (N_SWEEPS, 300))
        moved = np.any(draws != draws[0], axis=0)
        assert 50 < np.sum(~moved) < 250
        tables = [draws[i - 1] for i in looks(N_SWEEPS)]
        changes = changes_along(reading, log_density, tables, moved, N_SWEEPS)
        assert not held_cells(changes, reading, moved).any()
        at_once = find_changes(reading, log_density, draws[-1], moved, N_SWEEPS)
        told_at_once.append(held_by(at_once, reading, moved).sum())
    # The last table alone would have accused some.
    assert max(told_at_once) > 0


def test_of_rare_cells_those_that_are_held_are_told():
    reading, log_density, _ = read(thirty_tracts)
    draws = np.random.default_rng(1).poisson(np.tile(RATES, 30), (N_SWEEPS, 300))
    draws[:, [8, 9, 19]] = 0
    moved = np.any(draws != draws[0], axis=0)
    tables = [draws[i - 1] for i in looks(N_SWEEPS)]
    changes = changes_along(reading, log_density, tables, moved, N_SWEEPS)
    likely = np.tile(RATES > 2 * EXPECTED / N_SWEEPS, 30)
    expected = np.isin(np.arange(300), [8, 9, 19]) & likely
    assert expected.any()
    assert np.array_equal(held_cells(changes, reading, moved), expected)


def test_of_many_cells_some_are_named():
    def many():
        x = pm.Poisson("x", 2.0, shape=(4, 5))
        released(x)
        return [x], [2] * 20

    assert held(many, moved=[3]) == "'x' at [0, 0], [0, 1], [0, 2], [0, 4], [1, 0], [1, 1], 13 more"
