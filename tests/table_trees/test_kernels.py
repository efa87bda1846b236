"""The moves: together they have the listed posterior, and each fault in one of them shows."""

import inspect

import numpy as np
import pytest
from numba import njit

import pymc_dapper as pmd
from pymc_dapper.table_trees import compiled, kernels
from pymc_dapper.table_trees.chain import Margin
from pymc_dapper.table_trees.start import state_of
from tests.monte_carlo import z_score_of_mean
from tests.table_trees.small_table_trees import CELLS, example, largest_z

RECAST, SWAP, GIVE, RESIZE = range(4)
ALL = tuple(range(4))
KNOWN = ["halves", "state", False]


def chain(tree, sweep, draws, moves=ALL):
    """Draw tables of all areas, starting from a possible one."""
    fixed = tree._fixed
    rng = np.random.default_rng(5)
    start = (np.array([0, 2]), np.array([0, 3]), np.array([1, 1]))
    if not tree._moves.on[RESIZE]:
        start = (np.array([0, 2]), np.array([0, 3]), np.array([2, 1]))
    state = state_of(fixed, tree._released, start)
    made_of = tree._moves._replace(on=np.isin(np.arange(4), moves) & tree._moves.on)
    margin = Margin(np.arange(7), np.array(CELLS), np.arange(7))
    out, made = np.zeros((draws, 7, 4), dtype=np.int64), np.zeros((4, 2), dtype=np.int64)
    for one in out:
        sweep(rng, fixed, state, 2, made_of, made)
        compiled.tally(fixed, state.people, margin.rows, margin.classes, one)
    return out, made, state


@pytest.mark.parametrize("known", [pytest.param("halves", marks=pytest.mark.long), *KNOWN[1:]])
def test_all_tables_listed(known):
    tree, posterior = example(known)
    draws, made, state = chain(tree, compiled.sweep, 20_000)
    assert largest_z(draws, posterior) < 4.5
    assert ((made[:, 1] > 0) == tree._moves.on).all()
    # What is kept up to date is what is counted anew.
    blocks, cells = np.nonzero(state.people.counts)
    anew = state_of(
        tree._fixed, tree._released, (blocks, cells, state.people.counts[blocks, cells].astype(int))
    )
    np.testing.assert_array_equal(anew.residual, state.residual)
    for mine, other in zip(anew[1:], state[1:], strict=True):
        np.testing.assert_array_equal(mine.counts, other.counts)
        np.testing.assert_array_equal(mine.total, other.total)


@pytest.mark.long
@pytest.mark.parametrize("moves", [(RECAST, GIVE), ALL])
@pytest.mark.parametrize("known", KNOWN)
def test_some_of_the_moves(moves, known):
    """Where totals of halves and the state's cells are known, only swaps go from half to half."""
    tree, posterior = example(known)
    moves = moves if known else (*moves, RESIZE)
    draws, _, _ = chain(tree, compiled.sweep, 60_000, moves)
    stands_still = known == "halves" and SWAP not in moves
    assert (largest_z(draws, posterior) < 4.5) != stands_still


FAULTS = {
    "people change places, whatever the groups": (
        "gain += log_urn(fixed, groups, g, come, ONE) - log_urn(fixed, groups, g, gone, ONE)",
        "gain += 0.0",
    ),
    "people change places, whatever noise a block has": (
        "gain += between(fixed, state, b2, c2, c1, ONE, top)",
        "between(fixed, state, b2, c2, c1, ONE, top)",
    ),
    "people move, whatever the totals' prior": (
        "logs[n - low] = log_total(fixed, b1, n1 - n) + log_total(fixed, b2, n2 + n)",
        "logs[n - low] = 0.0",
    ),
    "the noise of totals is counted twice": (
        "gain = noise_of_total(fixed, b1, n1) - noise_of_total(fixed, b1, n1 - n)",
        "gain = 0.0",
    ),
    "blocks give people in a window that lies ahead": (
        "-int(rng.random() * REACH)",
        "-int(rng.random() < 0.3)",
    ),
    "people move, whatever the groups": (
        "gain += log_urn(fixed, groups, g2, c, m) - log_urn(fixed, groups, g1, c, m)",
        "gain += 0.0",
    ),
    "a residual is forgotten": ("residual[at + other] -= n", "pass"),
    "people come, whatever the total's prior": (
        "gain -= log_total(fixed, b, before)",
        "gain = 0.0",
    ),
    "cells exchange people, whatever the prior": (
        "now += math.log((n1 - n) * (n2 + n + fixed.alpha[g, c2]))",
        "now += math.log((n1 - n) * (n2 + n + 1))",
    ),
    "cells exchange people in a window that lies ahead": (
        "first = -int(rng.random() * WINDOW)",
        "first = -int(rng.random() < 0.3)",
    ),
    "cells exchange people, whatever noise blocks have": (
        "gain += between(fixed, state, b, c1, c2, ONE, top)",
        "between(fixed, state, b, c1, c2, ONE, top)",
    ),
    "cells exchange people, whatever noise larger areas have": (
        "above = fixed.parent[above]",
        "above = -1",
    ),
    "people come from the prior": (
        "return pick(groups, g, u) if u < n else",
        "return pick(groups, g, u) if u < -1 else",
    ),
}


def broken_sweep(*lines):
    """The sweep of kernels with a fault: a line, and another in its place; or several."""
    source = inspect.getsource(kernels)
    for line, new in zip(lines[::2], lines[1::2], strict=True):
        assert line in source
        source = source.replace(line, new)
    names = {"__name__": "broken", "njit": njit}
    exec(compile(source, "<broken kernels>", "exec"), names)
    return names["sweep"]


@pytest.mark.long
@pytest.mark.parametrize("window", ["WINDOW = 32", "REACH = 64"])
def test_a_window_narrower_than_counts(window):
    tree, posterior = example(True)
    narrow = broken_sweep(window, f"{window.split()[0]} = 2")
    draws, made, _ = chain(tree, narrow, 60_000, (RECAST, GIVE))
    assert (made[[RECAST, GIVE], 1] > 0).all()
    assert largest_z(draws, posterior) < 4.5


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_show(fault):
    swapped, come = (fault.startswith(f"people {what}") for what in ("change", "come"))
    tree, posterior = example("halves" if swapped else "state" if not come else False)
    draws, _, _ = chain(tree, broken_sweep(*FAULTS[fault]), 60_000)
    assert largest_z(draws, posterior) > 6


BY_SIZE = ("logs[n - low] += math.log((n1 - n) * (n2 + n))", "pass")


@pytest.mark.long
@pytest.mark.parametrize("is_broken", [False, True])
def test_blocks_drawn_by_size(is_broken):
    """Twenty people of two blocks, of which each has some: any number is as likely but for noise.

    Without the moves between blocks drawn evenly, which would hide the fault.
    """
    released, prior = np.array([20.0, 8.0, 14.0]), np.full(21, -np.log(21))
    query = pmd.TableQuery([0, 0], released[:, None], [0, 9.0, 9.0])
    tree = pmd.TableTree([-1, 0, 0], {"total": query}, prior=prior)
    fixed, n = tree._fixed, np.arange(1, 20)
    logs = -0.5 * ((8 - n) / 9) ** 2 - 0.5 * ((n - 6) / 9) ** 2
    p = np.exp(logs) / np.exp(logs).sum()
    people = (np.array([0, 1]), np.array([1, 1]), np.array([15, 5]))
    state = state_of(fixed, tree._released, people)
    only = ("range(0 if fixed.exact[fixed.leaf[b]] else visits)", "range(0)")
    sweep = broken_sweep(*only, *(BY_SIZE if is_broken else ()))
    rng, made = np.random.default_rng(5), np.zeros((4, 2), dtype=np.int64)
    drawn = np.empty(40_000)
    for k in range(drawn.size):
        sweep(rng, fixed, state, 2, tree._moves, made)
        drawn[k] = state.people.total[0]
    z = abs(z_score_of_mean(drawn * (20 - drawn), p @ (n * (20 - n))))
    assert z > 6 if is_broken else z < 4.5
