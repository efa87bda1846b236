"""The model that a call is about; single precision is refused wherever something is made of it."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.context import the_model
from pymc_dapper.reference.rejection_abc import rejection_abc_model

SINGLE = r'float32.*single precision.*pytensor\.config\.floatX = "float64"'


def small_model(**options):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        record = pm.Bernoulli("record", p, shape=5)
        income = pm.Normal("income", 0, 1, shape=5, **options)
        pm.Potential("privacy", -pt.abs(record.sum() + pt.clip(income, -1, 1).sum() - 3))
    return model


CALLS = {
    "DapperStep": lambda m: pmd.DapperStep([m["record"], m["income"]], model=m),
    "CountStep": lambda m: pmd.CountStep([m["record"]], model=m),
    "ConjugateStep": lambda m: pmd.ConjugateStep([m["p"]], model=m),
    "MarginalisedStep": lambda m: pmd.MarginalisedStep([m["p"]], counts=[m["record"]], model=m),
    "InterweaveStep": lambda m: pmd.InterweaveStep([m["p"]], records=[m["record"]], model=m),
    "FunctionStep": lambda m: pmd.FunctionStep([m["p"]], lambda rng, _: {"p": 0.5}, model=m),
    "assign_steps": lambda m: pmd.assign_steps([m["record"]], m),
    "sample": lambda m: pmd.sample(model=m),
    "missing_information": lambda m: pmd.diagnostics.missing_information({"posterior": m}, m),
    "rejection": lambda m: rejection_abc_model(m, {"privacy": 0.0}, draws=1),
}
"""What takes a model."""

GRAPHS = {
    "potential": lambda: pmd.LaplaceMechanism(1.0).potential("a", pt.vector(), released=[1]),
    "observe": lambda: pmd.LaplaceMechanism(1.0).observe("a", pt.vector(), released=[1]),
    "logp": lambda: pmd.LaplaceMechanism(1.0).logp(1, 2),
    "statistic": lambda: pmd.statistics.counts(pt.lvector(), 2),
    "DiscreteGaussian": lambda: pmd.DiscreteGaussian.dist(0, 1.0),
    "DiscreteLaplace": lambda: pmd.DiscreteLaplace.dist(0, 1.0),
    "Tulap": lambda: pmd.Tulap.dist(0, 0.5),
    "invariant": lambda: pmd.invariant("total", pt.lscalar(), 3),
}
"""What makes a graph."""


@pytest.mark.parametrize("call", CALLS)
def test_single_precision_is_refused_at_once_by_what_takes_a_model(call):
    with pytensor.config.change_flags(floatX="float32"):
        model = small_model()
        with pytest.raises(ValueError, match=SINGLE):
            CALLS[call](model)
    # So is a model that was built in it, or of which a variable is.
    for built in (model, small_model(dtype="float32")):
        with pytest.raises(ValueError, match=f"'(p|income)' is of type {SINGLE}"):
            CALLS[call](built)


@pytest.mark.parametrize("make", GRAPHS)
def test_single_precision_is_refused_at_once_where_a_graph_is_made(make):
    with (
        pytensor.config.change_flags(floatX="float32"),
        pm.Model(),
        pytest.raises(ValueError, match=SINGLE),
    ):
        GRAPHS[make]()


def test_the_model_is_that_given_or_that_in_context():
    model, other = small_model(), small_model()
    with model:
        assert the_model() is model
        assert the_model(other) is other
    with pytest.raises(TypeError, match=r"there is no model: pass it, .*or call this inside `with"):
        the_model()
    with pytest.raises(TypeError, match=r"model must be a pm\.Model, got ndarray of shape"):
        the_model(np.ones(3))
