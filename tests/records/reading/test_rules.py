"""The public dispatch: an operation of one's own, taught to the reader, rightly or not."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_default_op_cache_key

import pymc_dapper as pmd
from pymc_dapper import UnknownOperationError
from pymc_dapper.reading import Fixed, Rows
from tests.records.refusals import refuse


class Winsorise(Op):
    """An operation that PyTensor doesn't have: it acts on each record by itself."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.clip(inputs[0], -1.0, 1.0)


class Reverse(Winsorise):
    """An operation that moves records to other places."""

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0][::-1].copy()


@register_funcify_default_op_cache_key(Winsorise)
def _winsorise(op, **kwargs):
    @numba_njit
    def winsorise(x):
        return np.minimum(np.maximum(x, -1.0), 1.0)

    return winsorise


def model_with(op):
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=9)
        pm.Potential("privacy", -pt.abs((op(record) * np.arange(9)).sum() - 3.0))
    return model, record


@pytest.mark.usefixtures("in_python")
def test_an_unknown_operation_is_named_and_can_be_taught():
    model, record = model_with(Winsorise())
    with pytest.raises(pmd.UnknownOperationError, match=r"Winsorise.*register\(Winsorise\)"):
        pmd.DapperStep([record], model=model)

    @pmd.follow_records.register(Winsorise)
    def _(op, node, roles):
        return roles

    step = pmd.DapperStep([record], model=model)
    assert "function of sums" in repr(step)


def test_a_rule_that_is_wrong_is_found_out_before_sampling():
    @pmd.follow_records.register(Reverse)
    def _(op, node, roles):
        return [Rows(0)]

    model, record = model_with(Reverse())
    with pytest.raises(pmd.ReadingError, match="what it computes for one record depends on others"):
        pmd.DapperStep([record], model=model)


def test_a_wrong_rule_is_found_out_where_the_sums_are_right():
    """Rows of several numbers, at the places of others: each record's own are compared, too."""

    @pmd.follow_records.register(Reverse)
    def _(op, node, roles):
        return [Rows(0)]

    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=(9, 2))
        sums = Reverse()(record).sum(axis=0)
        pm.Potential("privacy", -((sums - 3.0) ** 2).sum())
    with pytest.raises(pmd.ReadingError, match="what it computes for one record depends on others"):
        pmd.DapperStep([record], model=model)


class Cubed(Winsorise):
    """An operation whose numba implementation is another one than its `perform`."""

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = inputs[0] ** 3


def test_a_numba_implementation_that_is_another_one_is_found_out_before_sampling():
    @pmd.follow_records.register(Cubed)
    def _(op, node, roles):
        return roles

    model, record = model_with(Cubed())  # in numba, it does what Winsorise does
    with pytest.raises(pmd.ReadingError, match="the compiled sweep gives the log-density"):
        pmd.DapperStep([record], model=model)


class Mean(Winsorise):
    """An operation that mixes all records."""

    def make_node(self, x):
        return Apply(self, [x], [pt.dscalar()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = np.asarray(inputs[0].mean())


def test_a_rule_that_denies_a_dependence_on_records_is_found_out():
    pmd.follow_records.register(Mean)(lambda op, node, roles: [Fixed()])
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=9)
        pm.Potential("privacy", -pt.abs(pt.clip(record, -1, 1).sum() + Mean()(record)))
    with pytest.raises(
        pmd.ReadingError, match=r"'privacy' exactly: it is .*, but record by record"
    ):
        pmd.DapperStep([record], model=model)


class ReverseFarOut(Winsorise):
    """An operation that moves records to other places, if they lie far from zero."""

    def perform(self, node, inputs, output_storage):
        [x] = inputs
        output_storage[0][0] = x[::-1].copy() if abs(x.mean()) > 5 else x.copy()


def test_the_reading_is_checked_at_parameters_from_the_prior_too():
    pmd.follow_records.register(ReverseFarOut)(lambda op, node, roles: roles)
    with pm.Model() as model:
        record = pm.Normal("record", pm.Normal("mu", 0, 1e4), 1, shape=9)
        pm.Potential("privacy", -pt.abs((ReverseFarOut()(record) * np.arange(9)).sum()))
    with pytest.raises(pmd.ReadingError, match="'privacy' exactly"):
        pmd.DapperStep([record], model=model)


def test_an_operation_without_a_rule():
    def build():
        x = pm.Normal("x", shape=5)
        total = pytensor.scan(
            lambda each, so_far: so_far * each,
            sequences=x,
            outputs_info=pt.zeros(()),
            return_updates=False,
        )
        pm.Potential("privacy", -(total[-1] ** 2))
        return x

    refuse(
        build,
        r"the records 'x' enter 'privacy': no rule .*Scan.*follow_records.register\(Scan\)",
        UnknownOperationError,
    )
