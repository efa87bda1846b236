"""Sums over counts as operations, evaluated in Python."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor import scalar as ps
from pytensor.gradient import NullTypeGradError, verify_grad
from pytensor.scalar.basic import Composite

from pymc_dapper.backend.accelerate import switch
from pymc_dapper.counts.compiled.op import TermFunction
from pymc_dapper.graphs.asked_once import asked_once
from pymc_dapper.marginalised.compiled.op import RETURNED, TAKEN, SumCounts
from pymc_dapper.marginalised.kernels.count_tables import tabulate_or_sum

N_COUNTS = 3
RELEASED = np.array([3.0, 9.0, -2.0])


def noise():
    """Normal noise on each of three counts, and the arrays that say so."""
    k, released = ps.float64(), ps.float64()
    function = Composite([k, released], [ps.neg(ps.sqr((k - released) / ps.constant(1.8)))])
    each, zeros = np.arange(N_COUNTS), np.zeros(N_COUNTS, dtype=np.int64)
    ones = np.ones(N_COUNTS)
    of_terms = (np.arange(N_COUNTS + 1), each, ones, 0 * ones, zeros, each, each)
    arrays = (RELEASED, *of_terms)
    return (TermFunction(function, 1, 1),), [*map(pt.constant, arrays)]


def sums_at(naturals, uniforms=()):
    functions, given = noise()
    counts, none, largest = map(
        pt.constant,
        (np.array([0, 1, 2]), np.array([], dtype=np.int64), np.array([12.0, np.inf, 5.0])),
    )
    op, nothing = SumCounts(functions), pt.constant(np.zeros(0))
    empty = pt.constant(np.zeros((0, 7), dtype=np.int64)), nothing, nothing
    tables = op(naturals, nothing, counts, *empty, largest, *given)[:3]
    uniforms = pt.constant(np.array(uniforms, dtype=float))
    return op(naturals, uniforms, none, *tables, largest, *given)[3:]


def test_a_models_noise_is_compiled_once(monkeypatch):
    """But again once accelerations have failed: what was compiled with them may be what fails."""

    def kernel():
        return SumCounts(noise()[0]).given_to(tabulate_or_sum, RETURNED, *TAKEN)

    with asked_once():
        first = kernel()
        assert kernel() is first
        monkeypatch.setattr(switch, "failed", True)
        assert kernel() is not first


def test_log_sums_have_a_gradient():
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        verify_grad(
            lambda x: sums_at(x)[0],
            [np.array([-0.4, 0.9, 7.0])],
            rng=np.random.default_rng(1),
            rel_tol=1e-4,
            abs_tol=1e-6,
        )


def test_nothing_else_has_one():
    naturals = pt.dvector()
    *_, log_probabilities = sums_at(naturals, [0.1, 0.5, 0.9])
    with pytest.raises((NullTypeGradError, ValueError, pytensor.gradient.DisconnectedInputError)):
        pytensor.grad(log_probabilities.sum(), naturals)


def test_counts_are_drawn_if_there_are_numbers_to_draw_them_by():
    naturals = pt.constant(np.array([-0.4, 0.9, 7.0]))
    shapes = [
        [x.eval(mode="FAST_COMPILE").shape for x in sums_at(naturals, uniforms)]
        for uniforms in ([], [0.1, 0.5, 0.9])
    ]
    assert shapes == [[(3,), (3,), (0,), (0,)], [(3,)] * 4]
