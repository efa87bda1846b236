"""A chain's state in a file, and which moves a chain needs."""

import numpy as np

import pymc_dapper as pmd
from pymc_dapper.table_trees.chain import misfits, read_state, write_state
from tests.table_trees.small_table_trees import example


def test_a_state_is_read_as_it_was_written(tmp_path):
    rng = np.random.Generator(np.random.PCG64(7))
    rng.random(3)
    made = np.arange(8).reshape(4, 2)
    now = (np.array([0, 1]), np.array([2, 3]), np.array([5, 6]))
    write_state(tmp_path / "state.npz", 4, made, rng, now)
    done, counted, same, entries = read_state(tmp_path / "state.npz")
    assert done == 4
    np.testing.assert_array_equal(counted, made)
    np.testing.assert_array_equal(entries, now)
    np.testing.assert_array_equal(same.random(5), rng.random(5))


def test_which_moves_are_made():
    """People come and go unless a total is known, and change places across those of halves."""
    for known, swaps in (("halves", True), ("state", False), (False, False)):
        moves = example(known)[0]._moves
        assert moves.on.tolist() == [True, swaps, True, not known]
        assert moves.lid.tolist() == ([1, 1, 2, 2] if known == "halves" else [0] * 4)


def test_a_total_is_known_to_within_a_person():
    """Of a block, by noise of sigma 1; its area's is known exactly, and its neighbour's to 2."""
    total = pmd.TableQuery([0, 0], [[np.nan], [9], [4], [5], [np.nan]], [2.0, 0, 1, 2, 1])
    tree = pmd.TableTree([-1, 0, 1, 1, 0], {"total": total}, prior=np.log(np.full(20, 0.05)))
    assert tree._areas.leaf.tolist() == [2, 3, 4]
    assert tree._moves.lid.tolist() == [2, 1, 0]


def test_nobody_moves_to_another_block_if_totals_of_all_are_known():
    total = pmd.TableQuery([0, 0], [[9], [4], [5]], 0)
    assert pmd.TableTree([-1, 0, 0], {"total": total})._moves.on.tolist() == [1, 1, 0, 0]


def test_residuals_like_noise_fit():
    """The sum of squares of n normal numbers has mean n and variance 2 n."""
    tree, _ = example(True)
    fixed = tree._fixed._replace(weight=np.full(tree._fixed.weight.shape, 0.5))
    residual = np.where(np.isnan(tree._released), np.nan, 3.0)
    found = misfits(fixed, residual)
    # By age, the state has two counts, its halves four, and the blocks eight but one.
    np.testing.assert_allclose(found[:, 1], [8 * np.sqrt(n / 2) for n in (2, 4, 7)])
    assert found[0, 0] == 0  # known exactly
