"""Generators by their addresses; their draws are in `tests/backend/test_draws.py`."""

import ctypes

import numpy as np

from pymc_dapper.backend.accelerate import generators


def test_generators_of_all_kinds_are_where_numpy_tells():
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.Philox):
        rng, other = (np.random.Generator(kind(seed)) for seed in (1, 2))
        at, of_other = (int(generators.address_of(x)) for x in (rng, other))
        assert at != of_other
        assert at == int(generators.address_of(rng))
        # Its first word is where the state lies.
        state = ctypes.c_void_p.from_address(at).value
        assert state == rng.bit_generator.ctypes.state_address
