"""What is compiled does what its source says, in any way that it is compiled."""

import numpy as np
import pytensor
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.table_trees import compiled, kernels
from pymc_dapper.table_trees.start import state_of
from tests.table_trees.small_table_trees import example


def after(sweep, tree, n_sweeps):
    """Where a chain is after some sweeps, and what it drew next."""
    start = (np.array([0, 2]), np.array([0, 3]), np.array([2, 1]))
    state, rng = state_of(tree._fixed, tree._released, start), np.random.default_rng(3)
    made = np.zeros((4, 2), dtype=np.int64)
    for _ in range(n_sweeps):
        sweep(rng, tree._fixed, state, 4, tree._moves, made)
    return state.people.counts, state.residual, made, rng.random(3)


@pytest.mark.parametrize("known", ["halves", "state", False])
def test_sweeps_in_python(known):
    tree, _ = example(known)
    expected = after(compiled.sweep, tree, 60)
    assert ((expected[2][:, 1] > 0) == tree._moves.on).all()
    for x, y in zip(after(in_python(kernels.sweep), tree, 60), expected, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.long
def test_sweeps_compiled_without_accelerations(monkeypatch):
    monkeypatch.setenv("PYMC_DAPPER_PLAIN", "1")
    with pytensor.config.change_flags(numba__cache=False):
        plain = kept_on_disk.__wrapped__(kernels.sweep)
    for known in ("halves", False):
        tree, _ = example(known)
        for x, y in zip(after(plain, tree, 60), after(compiled.sweep, tree, 60), strict=True):
            np.testing.assert_array_equal(x, y)
