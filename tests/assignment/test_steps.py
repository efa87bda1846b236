"""assign_steps: which step takes which variable.

Warnings of variables that PyMC's own steps would move.
"""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from tests.assignment.models_of_people import (
    assigned,
    class_that_ties_columns,
    of_each_person,
    with_public_data,
)
from tests.sizes.unknown_numbers import groups


@pytest.mark.usefixtures("uncompiled")
def test_records_conjugate_and_other_parameters_get_their_steps():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        slope = pm.Normal("slope", 0, 1)
        log_sd = pm.Normal("log_sd", 0, 1)
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=8)
        y = pm.Normal("y", mu + slope * x, pt.exp(log_sd), shape=8)
        pm.Potential("privacy", -((x * y).sum() ** 2))
    assert assigned(model) == [
        ("DapperStep", ["x", "y"]),
        ("ConjugateStep", ["p_logodds__"]),
        ("ConjugateStep", ["mu", "slope"]),
        ("NUTS", ["log_sd"]),
        ("InterweaveStep", ["log_sd", "mu", "p_logodds__", "slope"]),
    ]
    assert assigned(model, conjugate=False, interweave=False)[1:] == [
        ("NUTS", ["log_sd", "mu", "p_logodds__", "slope"])
    ]


@pytest.mark.usefixtures("uncompiled")
def test_tables_of_counts_get_a_step_of_their_own(table_and_records):
    # The table's probabilities are marginalised, and drawn by the same step.
    assert assigned(table_and_records) == [
        ("DapperStep", ["x"]),
        ("CountStep", ["p_simplex__", "table", "total"]),
    ]
    assert assigned(table_and_records, conjugate=False)[:2] == [
        ("DapperStep", ["x"]),
        ("CountStep", ["table", "total"]),
    ]


@pytest.mark.usefixtures("uncompiled")
def test_latent_totals_go_with_their_tables():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1, shape=2)
        p = pm.Dirichlet("p", np.ones(3))
        n = pm.Poisson("n", rate)
        t = pm.Multinomial("t", n=n, p=p)
        s = pm.Binomial("s", n=t, p=0.5)
        pmd.LaplaceMechanism(2.0).potential("cells", t, released=np.ones((2, 3)))
        pmd.LaplaceMechanism(2.0).potential("parts", s, released=np.ones((2, 3)))
    expected = [("CountStep", ["n", "p_simplex__", "rate_log__", "s", "t"])]
    assert assigned(model) == expected
    assert assigned(model, counts=[t, s, n]) == expected
    with pytest.raises(pmd.ReadingError, match=r"depends on 'n'.* pass it to the same CountStep"):
        pmd.assign_steps(model=model, counts=[t, s])


@pytest.mark.usefixtures("uncompiled")
def test_an_unknown_number_of_records_gets_a_step():
    found = assigned(groups())
    # Given present records alone; then all others are drawn anew; and then what looks at all.
    assert [name for name, _ in found] == [
        *("ConjugateStep", "DapperStep", "DapperStep", "SizeStep", "InterweaveStep"),
    ]
    # Of the people that 'm' counts, no parameter moves any.
    assert [names for _, names in found[1:]] == [["x"], ["z_log__"], ["m", "n"], ["mu", "n"]]


@pytest.mark.usefixtures("in_python")
def test_records_that_may_be_absent_never_walk():
    """A walk would leave absent records near old values, at odds with new parameters."""
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 19, 20)
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=20)
        total = (pmd.present(n, 20) * x).sum()
        pmd.GaussianMechanism(1e-3).potential("total", total, released=3.0)
    _, step, _ = pmd.assign_steps(model=model, interweave=False, progressbar=False)
    assert "Only the first 'n' records are decided on" in step.describe()
    walks = []
    anyway = replace(step._reading, draws_anew=False)
    for each in (step, pmd.DapperStep.of_reading(anyway, [x], model=model)):
        each.compile()
        each.setup_chain(np.random.default_rng(1), tune=100, draws=10)
        point = model.initial_point() | {"n": np.array(20)}
        for _ in range(100):
            point, _ = each.step(point)
        walks.append(each.walks.number)
    assert walks[0] == 0 < walks[1]
    apart = pmd.assign_steps(model=model, interweave=False, dapper={"blocked": False})
    assert not any(x._reading.draws_anew for x in apart if isinstance(x, pmd.DapperStep))


@pytest.mark.usefixtures("uncompiled")
def test_a_class_of_each_person_follows_what_draws_absent_people_anew():
    """Its step looks at absent people, whose parameters were drawn without them."""
    with pm.Model() as model:
        n, p = pm.Poisson("n", 3), pm.Beta("p", 1, 1, shape=2)
        latent = pm.Bernoulli("latent", 0.5, shape=6)
        trait = pm.Normal("trait", 0, 1, shape=6)
        x = pm.Bernoulli("x", p[latent] * pm.math.sigmoid(trait), shape=6)
        pmd.LaplaceMechanism(1.0).potential("total", (pmd.present(n, 6) * x).sum(), released=3)
    for records in (None, [latent, x]):
        found = assigned(model, records, interweave=False)
        assert found[1:] == [("DapperStep", ["x"]), ("DapperStep", ["latent"]), ("SizeStep", ["n"])]


@pytest.mark.usefixtures("in_python")
def test_records_without_a_sum_are_decided_on_at_once_also_those_that_are_absent():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, 3)
        x = pm.Normal("x", 0, 1, shape=3)
        pm.Potential("each", pt.switch(pmd.present(n, 3), -10 * (x - 0.2) ** 2, 0))
    step, _ = pmd.assign_steps(model=model, progressbar=False)
    step.setup_chain(np.random.default_rng(1), tune=0, draws=100)
    point, seen = model.initial_point() | {"n": np.array(2)}, []
    for _ in range(100):
        point, _ = step.step(point)
        seen.append(point["x"])
    present, absent = np.array(seen)[:, :2], np.array(seen)[:, 2]
    assert len(np.unique(present)) < 150
    assert len(np.unique(absent)) == 100


@pytest.mark.usefixtures("uncompiled")
def test_records_that_may_not_be_drawn_anew_count_for_parameters():
    with pm.Model() as model:
        n = pm.Poisson("n", 3)
        mu = pm.Normal("mu", 0, 1)
        # A draw below zero has no value in the space that it is sampled in, and is refused.
        x = pm.Normal("x", mu, 1, shape=6, default_transform=pm.distributions.transforms.log)
        pmd.LaplaceMechanism(1.0).potential("total", (pmd.present(n, 6) * x).sum(), released=3)
    chosen = pmd.assign_steps(model=model, interweave=False)
    assert [type(x).__name__ for x in chosen] == ["DapperStep", "SizeStep", "ConjugateStep"]
    assert chosen[-1].describe() == "mu ~ Normal, given x"


@pytest.mark.usefixtures("uncompiled")
def test_rows_that_hold_more_than_the_records_passed_count_for_parameters():
    with pm.Model() as model:
        n = pm.Poisson("n", 3)
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=6)
        y = pm.Normal("y", x, 1, shape=6)
        total = (pmd.present(n, 6) * x * y).sum()
        pmd.LaplaceMechanism(1.0).potential("total", total, released=3)
    orders = [
        [type(x).__name__ for x in pmd.assign_steps(records, model=model, interweave=False)]
        for records in ([x, y], [x])
    ]
    assert orders[0] == ["ConjugateStep", "DapperStep", "SizeStep"]
    # An absent y looks at an absent x.
    assert orders[1] == ["DapperStep", "SizeStep", "ConjugateStep", "NUTS"]


@pytest.mark.usefixtures("uncompiled")
def test_a_variable_with_an_entry_per_record_that_pymc_moves_warns(caplog):
    model = of_each_person(class_that_ties_columns)
    assigned(model)
    assert caplog.text == ""
    assigned(model, [model["c0"], model["c1"]])
    assert (
        "'z' has as many entries as there are records, 6, but isn't among the record variables: "
        "PyMC moves them one by one, which may be slow. If each entry belongs to a record, pass "
        "the variable with the records: records=[z, c0, c1]"
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
        "entry for each of 8 along a later axis. If that axis runs over the records, put it first, "
        "as in shape=(8, 3)"
    ) in caplog.text
