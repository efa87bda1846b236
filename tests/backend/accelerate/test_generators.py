"""Normal noise drawn by addresses: NumPy's draws, and its generator after them."""

import numpy as np

from pymc_dapper.backend.accelerate.generators import fill_with_normals, is_known


def test_draws_of_many_generators_are_those_of_numpy():
    """Each advances its own state, also where draws of 32 bits have left half of one behind."""
    ours = np.random.default_rng(1).spawn(3)
    numpys = np.random.default_rng(1).spawn(3)
    for turn in range(4):
        for mine, theirs in zip(ours, numpys, strict=True):
            for rng in (mine, theirs):
                rng.random(turn, dtype="float32")
            noise = np.empty(300)
            fill_with_normals(mine, noise)
            np.testing.assert_allclose(noise, theirs.standard_normal(300), rtol=1e-14, atol=0)
            assert mine.bit_generator.state == theirs.bit_generator.state


def test_generators_of_another_kind_are_not_known():
    assert is_known(np.random.default_rng(1))
    for kind in (np.random.PCG64DXSM, np.random.MT19937, np.random.Philox, np.random.SFC64):
        assert not is_known(np.random.Generator(kind(1)))
