"""Warnings of variables that PyMC's own steps would move."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests.assignment.models import (
    assigned,
    class_that_ties_columns,
    of_each_person,
    with_public_data,
)


@pytest.mark.usefixtures("uncompiled")
def test_a_variable_with_an_entry_per_record_that_pymc_moves_warns(caplog):
    model = of_each_person(class_that_ties_columns)
    assigned(model)
    assert caplog.text == ""
    assigned(model, [model["c0"], model["c1"]])
    assert (
        "'z' has as many entries as there are records, 6, and isn't one of their variables: PyMC "
        "moves them one by one, which may be slow. Where each belongs to a record, pass it with "
        "the others: records=[z, c0, c1]"
    ) in caplog.text
    caplog.clear()
    assigned(of_each_person(with_public_data))
    assert "NUTS moves them, which may be slow" in caplog.text


@pytest.mark.usefixtures("uncompiled")
def test_conjugate_variables_of_each_record_are_not_told_to_be_with_nuts(caplog):
    with pm.Model() as model:
        effect = pm.Normal("effect", 0, 1, shape=6)
        pm.Normal("public", effect, 1, observed=np.arange(6.0))
        x = pm.Normal("x", effect, 1, shape=6)
        pmd.LaplaceMechanism(2.0).potential("s", x.sum(), released=9.0)
    assert assigned(model) == [
        ("DapperStep", ["x"]),
        ("ConjugateStep", ["effect"]),
        ("InterweaveStep", ["effect"]),
    ]
    assert caplog.text == ""


@pytest.mark.usefixtures("uncompiled")
def test_people_along_a_later_axis_are_warned_of(caplog):
    def of_shape(people_first):
        with pm.Model() as model:
            ability = pm.Normal("ability", 0, 1, shape=8)
            given = ability[:, None] if people_first else ability
            difficulty = pm.Normal("difficulty", 0, 1, shape=3)
            logit = given - (difficulty if people_first else difficulty[:, None])
            x = pm.Bernoulli("x", logit_p=logit, shape=(8, 3) if people_first else (3, 8))
            totals = x.sum(axis=int(not people_first))
            pmd.GaussianMechanism(2).potential("t", totals, released=np.full(3, 4.0))
        return model

    assigned(of_shape(people_first=True))
    assert caplog.text == ""
    assigned(of_shape(people_first=False))
    assert (
        "'x' has 3 entries along its first axis, and is taken for 3 records. 'ability' has an "
        "entry for each of 8 along a later axis. If these are the records, put their axis first, "
        "as in shape=(8, 3)"
    ) in caplog.text
