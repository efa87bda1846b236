"""Which step takes which parameter."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests.assignment.models_of_people import (
    assigned,
)


@pytest.mark.usefixtures("uncompiled")
def test_normals_that_share_no_child_or_are_many_are_drawn_apart():
    with pm.Model() as model:
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 0, 1)
        group = pm.Normal("group", 0, 1, shape=150)
        x = pm.Normal("x", a, 1, shape=5)
        y = pm.Normal("y", b + group[:5], 1, shape=5)
        pm.Potential("privacy", -(((x + y).sum()) ** 2))
    steps = assigned(model, interweave=False)
    assert sorted(names for _, names in steps[1:]) == [["a"], ["b"], ["group"]]


@pytest.mark.usefixtures("uncompiled")
def test_records_without_a_map_get_no_interweaving():
    with pm.Model() as model:
        x = pm.VonMises("x", 0, pm.HalfNormal("kappa"), shape=6)
        pm.Potential("privacy", -(x.sum() ** 2))
    assert [name for name, _ in assigned(model)] == ["DapperStep", "NUTS"]


def areas(noise=lambda x: pmd.DiscreteGaussianMechanism(3.0).potential("s", x, released=[4, 9])):
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        effect = pm.Normal("effect", mu, tau, shape=2)
        noise(pm.Binomial("x", n=20, p=pm.math.sigmoid(effect), shape=2))
    return model


@pytest.mark.usefixtures("uncompiled")
def test_counts_are_summed_out_of_the_log_density_that_nuts_sees():
    # What is drawn from its conditional isn't above the counts.
    assert assigned(areas()) == [
        ("MarginalisedStep", ["effect", "tau_log__", "x"]),
        ("ConjugateStep", ["mu"]),
        ("InterweaveStep", ["mu", "tau_log__"]),
    ]
    assert assigned(areas(), conjugate=False) == [
        ("MarginalisedStep", ["effect", "mu", "tau_log__", "x"]),
        ("InterweaveStep", ["mu", "tau_log__"]),
    ]
    apart = [name for name, _ in assigned(areas(), marginalise=False, interweave=False)]
    assert apart == ["CountStep", "ConjugateStep", "NUTS"]
    step, *_ = pmd.assign_steps(model=areas(), nuts={"target_accept": 0.93})
    assert step.nuts.target_accept == 0.93


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    "noise",
    [
        lambda x: pmd.LaplaceMechanism(2.0).potential("s", x.sum(), released=9.0),
        lambda x: pm.StudentT("s", nu=3, mu=x, sigma=2.0, observed=[4.0, 9.0]),
    ],
    ids=["of sums", "not log-concave"],
)
def test_counts_that_cannot_be_summed_out_are_moved_in_turn(noise):
    model = areas(noise)
    found = [name for name, _ in assigned(model, counts=[model["x"]], interweave=False)]
    assert found == ["CountStep", "ConjugateStep", "NUTS"]


@pytest.mark.usefixtures("uncompiled")
def test_few_parameters_are_all_that_is_moved_where_records_are_marginalised():
    def answered(n_groups):
        group = np.arange(60) % n_groups
        with pm.Model() as model:
            b = pm.Normal("b", 0, pm.HalfNormal("spread"), shape=n_groups)
            x = pm.Bernoulli("x", logit_p=b[group])
            pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=group % 2)
        return pmd.tabulate(model)

    few, many = answered(15), answered(16)
    assert assigned(few) == [("InterweaveStep", ["b", "spread_log__"])]
    assert [name for name, _ in assigned(many)] == ["NUTS", "InterweaveStep"]
    assert assigned(many)[1] == ("InterweaveStep", ["spread_log__"])  # groups follow their spread
    assert [name for name, _ in assigned(few, interweave=False)] == ["NUTS"]
    assert assigned(few, nuts={"target_accept": 0.9})[0][0] == "NUTS"
    with pytest.raises(ValueError, match="the model has no records"):
        pmd.assign_steps(model=few, dapper={"track_records": True})
    with few:  # other records, which a mechanism sees
        y = pm.Bernoulli("y", 0.3, shape=9)
        pmd.LaplaceMechanism(2.0).potential("of_others", y.sum(), released=4.0)
    assert [name for name, _ in assigned(few)] == ["DapperStep", "NUTS", "InterweaveStep"]
