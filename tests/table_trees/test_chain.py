"""A chain's state in a file, and which moves a chain needs."""

import numpy as np

from pymc_dapper.table_trees.chain import misfits, open_totals, read_state, write_state
from tests.table_trees.small import example


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


def test_people_come_and_go_unless_a_total_is_known():
    for is_exact in (True, False):
        tree, _ = example(is_exact)
        assert open_totals(tree._fixed).tolist() == [True] * 3 + [not is_exact]


def test_residuals_like_noise_fit():
    """The sum of squares of n normal numbers has mean n and variance 2 n."""
    tree, _ = example(True)
    fixed = tree._fixed._replace(weight=np.full(tree._fixed.weight.shape, 0.5))
    residual = np.where(np.isnan(tree._released), np.nan, 3.0)
    found = misfits(fixed, residual)
    # By age, the state has two counts, its halves four, and the blocks eight but one.
    np.testing.assert_allclose(found[:, 1], [8 * np.sqrt(n / 2) for n in (2, 4, 7)])
    assert found[0, 0] == 0  # known exactly
