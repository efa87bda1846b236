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


def logp_after_nothing(sweep):
    """Log-density that the sweep reports where every proposal is rejected."""
    records = np.array([1.0, 2.0, 3.0, 4.0])
    return float(sweep.decide(records, records + 1, np.full(4, np.inf))[2])


def test_models_of_the_same_shapes_do_not_share_code():
    for scale in (1.0, 2.0, 1.0, 300.0):
        model = model_with_scale(scale)
        sweep = compile_sweep(read_model(model, model.value_vars, model.initial_point()))
        assert logp_after_nothing(sweep) == pytest.approx(-9.0 * scale)


def test_another_kernel_does_not_share_code():
    model = model_with_scale(1.0)
    reading = read_model(model, model.value_vars, model.initial_point())
    op = broken.broken_step(broken.accept_all)._sweep_op
    exact = compile_sweep(reading, sweep_op=RecordSweep)
    accepts_all = compile_sweep(reading, sweep_op=op)
    records, never = np.array([1.0, 2.0, 3.0, 4.0]), np.full(4, np.inf)
    assert not exact.decide(records, records + 1, never)[1].any()
    assert accepts_all.decide(records, records + 1, never)[1].all()


@pytest.mark.parametrize("sweep_op", [EntrySweep, RecordSweep])
def test_the_sweep_runs_with_numba_only(sweep_op):
    model = model_with_scale(1.0)
    reading = read_model(model, model.value_vars, model.initial_point())
    sweep = compile_sweep(reading, sweep_op=sweep_op)
    nodes = sweep.decide._function.maker.fgraph.apply_nodes
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
    records, never = np.zeros(4), np.full(4, np.inf)
    for value, possible in ((1.0, True), (-1.0, False)):
        logp = sweep.decide(records, records, never, np.asarray(value))[-1]
        assert np.isfinite(logp) == possible
