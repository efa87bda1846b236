"""What a sweep takes that depends on data alone."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from tests.evaluated_in_python import evaluated_in_python


def test_what_depends_on_data_alone_is_worked_out_when_they_change(monkeypatch):
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Categorical("x", p, shape=30)
        table = pt.eye(3)[x].sum(axis=0)
        pmd.LaplaceMechanism(2.0).potential("privacy", table, released=[12.5, 7.0, 9.0])
    with evaluated_in_python():
        step = pmd.DapperStep([x], model=model)
    sweep, worked_out = step.sweep, []
    assert sweep.takes == [0]  # p, and not the released values
    work_out = sweep.data_arrays._work_out
    monkeypatch.setattr(
        sweep.data_arrays, "_work_out", lambda *data: worked_out.append(data) or work_out(*data)
    )
    density = model.compile_logp([model["privacy"]], sum=True, mode="FAST_COMPILE")
    point = model.initial_point(random_seed=1)
    for times, released in enumerate(([12.5, 7.0, 9.0], [3.0, 20.5, 8.0], [30.0, 0.0, 0.0]), 1):
        with model:
            pm.set_data({"privacy_released": released})
        step.setup_chain(np.random.default_rng(1), 0, 3)
        for _ in range(3):
            point, [stats] = step.step(point)
            assert stats["dapper_mechanism_logp"] == pytest.approx(float(density(point)))
        assert len(worked_out) == times
