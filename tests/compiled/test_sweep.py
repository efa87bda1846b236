"""The compiled sweep: what it computes, and that PyTensor's cache never mixes models up."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.compiled.sweep import compile_sweep
from pymc_dapper.compiled.sweep_op import EntrySweep, RecordSweep
from pymc_dapper.reading import read_model
from tests import broken


def model_with_scale(scale):
    """Models of the same shapes and dtypes, that differ in a constant of the mechanism only."""
    with pm.Model() as m:
        record = pm.Normal("record", 0, 1, shape=4)
        pm.Potential("privacy", -scale * pt.abs(record.sum() - 1.0))
    return m


RECORDS = np.array([1.0, 2.0, 3.0, 4.0])


def after_nothing(sweep, *given, records=RECORDS):
    """Records and log-density after a sweep in which every proposal ought to be rejected."""
    never = np.full(4, -np.inf)  # exponential variates, if there were such ones
    new, (_, logp) = sweep.function(np.zeros(4), never, records, *given)
    return new, logp


def test_models_of_the_same_shapes_do_not_share_code():
    for scale in (1.0, 2.0, 1.0, 300.0):
        model = model_with_scale(scale)
        sweep = compile_sweep(read_model(model, model.value_vars, model.initial_point()))
        assert after_nothing(sweep)[1] == pytest.approx(-9.0 * scale)


def test_another_kernel_does_not_share_code():
    model = model_with_scale(1.0)
    reading = read_model(model, model.value_vars, model.initial_point())
    op = broken.broken_step(broken.accept_all)._sweep_op
    exact = compile_sweep(reading, sweep_op=RecordSweep)
    accepts_all = compile_sweep(reading, sweep_op=op)
    assert np.all(after_nothing(exact)[0] == RECORDS)
    assert np.all(after_nothing(accepts_all)[0] != RECORDS)


@pytest.mark.parametrize("sweep_op", [EntrySweep, RecordSweep])
def test_the_sweep_runs_with_numba_only(sweep_op):
    model = model_with_scale(1.0)
    reading = read_model(model, model.value_vars, model.initial_point())
    sweep = compile_sweep(reading, sweep_op=sweep_op)
    nodes = sweep.function._function.maker.fgraph.apply_nodes
    [node] = {node for node in nodes if isinstance(node.op, sweep_op)}
    with pytest.raises(NotImplementedError, match="numba"):
        node.op.perform(node, [], [])


def test_an_invalid_parameter_of_the_mechanism_makes_the_state_impossible():
    # PyMC's own compiled log-density gives -inf here; without care, the inner graph would raise.
    with pm.Model() as model:
        scale = pm.Normal("scale", 1, 1)
        record = pm.Normal("record", 0, 1, shape=4)
        pm.Laplace("s_dp", record.sum(), b=scale, observed=1.0)
    point = model.initial_point()
    sweep = compile_sweep(read_model(model, [model.rvs_to_values[record]], point))
    for value, possible in ((1.0, True), (-1.0, False)):
        _, logp = after_nothing(sweep, np.asarray(value), records=np.zeros(4))
        assert np.isfinite(logp) == possible
