"""The operations of a draw: compiled, they do what their kernels do in Python."""

import numpy as np
import pytensor
import pytensor.tensor as pt

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.sizes.compiled.op import DrawIndex, Shuffle


def test_compiled_operations_agree_with_python():
    rows = pt.tensor("rows", dtype="float64", shape=(9, 2))
    of_one, uniforms = pt.vector("of_one", shape=(9,)), pt.vector("uniforms")
    outputs = [
        Shuffle()(rows, uniforms[:-1]),
        Shuffle()(of_one.astype("int8"), uniforms[:-1]),
        DrawIndex(7)(of_one, uniforms[-1]),
    ]
    rng = np.random.default_rng(1)
    values = rng.normal(size=(9, 2)), 9 * rng.random(9), rng.random(7)
    compiled, in_python = (
        pytensor.function([rows, of_one, uniforms], outputs, mode=mode)(*values)
        for mode in (numba_mode(None), "FAST_COMPILE")
    )
    for ours, expected in zip(compiled, in_python, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-13)
        assert ours.dtype == expected.dtype
