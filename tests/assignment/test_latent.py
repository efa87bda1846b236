"""Latent records and counts are found, or refused where there is doubt."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper import ConjugateStep, ReadingError
from pymc_dapper.assignment.latent import find_records
from tests.assignment.models_of_people import (
    abilities,
    assigned,
    class_that_ties_columns,
    column_that_nothing_sees,
    counts_with_a_column_below,
    of_each_person,
    parameters_of_one_length,
    with_public_data,
)


@pytest.mark.usefixtures("uncompiled")
def test_a_count_for_each_record_is_a_record_if_only_sums_are_seen():
    def model_with(mechanism):
        with pm.Model() as model:
            rate = pm.Gamma("rate", 2, 1)
            visits = pm.Poisson("visits", rate, shape=6)
            mechanism(visits)
        return model

    def sum_seen(visits):
        pmd.LaplaceMechanism(2.0).potential("s", visits.sum(), released=9.0)

    def each_seen(visits):
        pmd.LaplaceMechanism(2.0).potential("s", visits, released=np.arange(6.0))

    assert assigned(model_with(sum_seen))[0] == ("DapperStep", ["visits"])
    assert assigned(model_with(each_seen)) == [("CountStep", ["rate_log__", "visits"])]
    model = model_with(each_seen)
    assert assigned(model, [model["visits"]])[0] == ("DapperStep", ["visits"])
    with pytest.raises(ValueError, match="the model has no records"):
        pmd.assign_steps(model=model, dapper={"track_records": True})


@pytest.mark.usefixtures("uncompiled")
def test_flat_counts_are_counts_unless_they_have_few_values():
    def model_of(*args, shape=None):
        with pm.Model() as model:
            x = pm.DiscreteUniform("x", *args, shape=shape)
            pmd.LaplaceMechanism(2.0).potential("s", x, released=np.full(shape or (), 3.0))
        return model

    assert assigned(model_of(0, 10_000, shape=4)) == [("CountStep", ["x"])]
    assert assigned(model_of(0, 10_000)) == [("CountStep", ["x"])]
    assert assigned(model_of(0, 15, shape=4)) == [("DapperStep", ["x"])]
    assert assigned(model_of(-30, 30, shape=4)) == [("DapperStep", ["x"])]


@pytest.mark.usefixtures("uncompiled")
def test_scalars_that_a_mechanism_sees_alone_are_parameters():
    with pm.Model() as model:
        a, b = pm.Uniform("a", 0, 500), pm.Uniform("b", 0, 500)
        pmd.LaplaceMechanism(5.0).potential("s", pt.stack([a, b]), released=[110.0, 131.0])
    assert [names for _, names in assigned(model)] == [["a_interval__", "b_interval__"]]


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(
    ("write", "records"),
    [
        (class_that_ties_columns, ["c0", "c1", "z"]),
        (abilities, ["theta", "x"]),
        (column_that_nothing_sees, ["x", "y"]),
        (counts_with_a_column_below, ["bills", "visits"]),
        (with_public_data, ["x"]),
        (parameters_of_one_length, ["x"]),
    ],
)
def test_other_latent_variables_of_a_person_belong_to_the_record(write, records):
    assert assigned(of_each_person(write))[0] == ("DapperStep", records)


@pytest.mark.usefixtures("uncompiled")
def test_a_table_stays_one_beside_records_that_depend_on_it():
    with pm.Model() as model:
        rooms = pm.Multinomial("rooms", n=np.full(4, 50), p=np.ones(3) / 3, shape=(4, 3))
        heated = pm.Binomial("heated", n=rooms[:, 0], p=0.3, shape=4)
        pmd.LaplaceMechanism(2.0).potential("all", rooms.sum(axis=0), released=[60, 70, 70])
        pmd.LaplaceMechanism(2.0).potential("s", heated.sum(), released=17)
    assert assigned(model) == [("DapperStep", ["heated"]), ("CountStep", ["rooms"])]


@pytest.fixture
def group_model():
    with pm.Model() as model:
        group = pm.Normal("group", 0, 1, shape=3)
        x = pm.Normal("x", 0, 1, shape=9)
        pm.Potential("privacy", -((x.sum() - group.sum()) ** 2))
    return model


@pytest.mark.usefixtures("uncompiled")
def test_records_are_not_guessed_where_there_is_doubt(group_model):
    with pytest.raises(
        ReadingError, match=r"'group' \(3 along.*'x' \(9.*sample\(records=\[group, x\]\)"
    ):
        pmd.assign_steps(model=group_model)
    assert assigned(group_model, [group_model["x"]])[0] == ("DapperStep", ["x"])


def two_groups(total):
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=9)
        ability = pm.Normal("ability", mu, 1, shape=5)
        y = pm.Normal("y", ability, 1, shape=5)
        for k, seen in enumerate(total(x, y)):
            pmd.LaplaceMechanism(2.0).potential(f"s{k}", seen, released=3.0)
    return model


@pytest.mark.usefixtures("uncompiled")
def test_groups_of_people_have_steps_of_their_own():
    model = two_groups(lambda x, y: [x.sum(), y.sum()])
    steps = [("DapperStep", ["x"]), ("DapperStep", ["ability", "y"])]
    assert sorted(assigned(model)[:2]) == sorted(steps)
    together = two_groups(lambda x, y: [x.sum() + y.sum()])
    with pytest.raises(ReadingError, match=r"sample\(records=\[x, y\]\)"):
        pmd.assign_steps(model=together)
    records = [together[name] for name in ("x", "ability", "y")]
    assert sorted(assigned(together, records)[:2]) == sorted(steps)


@pytest.mark.usefixtures("uncompiled")
def test_people_are_not_told_from_their_households():
    with pm.Model() as model:
        household = pm.Normal("household", 0, 1, shape=4)
        x = pm.Normal("x", household[np.arange(9) % 4], 1, shape=9)
        for rv in (household, x):
            pmd.LaplaceMechanism(2.0).potential(f"of_{rv.name}", rv.sum(), released=3.0)
    with pytest.raises(ReadingError, match=r"'household' \(4 along.*'x' \(9 along"):
        pmd.assign_steps(model=model)


def test_an_entry_of_a_vector_is_no_number_of_records():
    with pm.Model() as model:
        n = pm.Poisson("n", 3, shape=2)
        x = pm.Normal("x", 0, 1, shape=4)
        pm.Potential("privacy", -((pt.switch(pt.arange(4) < n[0], x, 0).sum() - 1) ** 2))
    with pytest.raises(ReadingError, match=r"entry of 'n', .* a number of its own"):
        pmd.assign_steps(model=model, progressbar=False)


def test_a_scalar_that_the_mechanism_sees_leaves_doubt():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        u = pm.Normal("u", 0, 1, shape=9)
        pm.Potential("privacy", -((scale * u.sum()) ** 2))
    with pytest.raises(ReadingError, match=r"'scale' \(a scalar\), 'u' \(9 along its first axis\)"):
        pmd.assign_steps(model=model)


def test_a_constrained_parameter_is_not_taken_for_a_record():
    with pm.Model() as model:
        effect = pm.Normal("effect", 0, 1, shape=4)
        pm.Potential("sum_to_zero", -(effect.sum() ** 2))
        x = pm.Normal("x", effect[np.arange(20) % 4], 1, shape=20)
        pm.Normal("release", x.sum(), 2, observed=9.0)
    with pytest.raises(
        ReadingError, match=r"depends on 'effect', and so does .* 'x', which is free"
    ):
        pmd.assign_steps(model=model)


@pytest.mark.usefixtures("uncompiled")
def test_noise_of_a_scale_that_depends_on_the_statistic_is_of_records():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        x = pm.Bernoulli("x", p, shape=30)
        total = x.sum()
        pmd.LaplaceMechanism(p * pm.HalfNormal("scale") * (1.0 + total)).observe(
            "release", total, released=10.0
        )
    assert find_records(model) == [x]
    with pytest.raises(pmd.TabulationError, match="the noise scale of 'release' depends on 'x'"):
        pmd.tabulate(model)


@pytest.mark.usefixtures("uncompiled")
def test_discrete_parameters_used_as_an_index_are_left_alone():
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 1, shape=3)
        group = pm.Categorical("group", np.ones(3) / 3)
        x = pm.Normal("x", mean[group], 1, shape=5)
        pm.Potential("privacy", -((8 - x.sum()) ** 2))
    assert assigned(model, [x], interweave=False) == [
        ("DapperStep", ["x"]),
        ("ConjugateStep", ["mean"]),
    ]
    with pytest.raises(pmd.NotConjugateError, match=r"its prior .Categorical. belongs to no"):
        ConjugateStep([group], model=model)


@pytest.mark.usefixtures("uncompiled")
def test_records_are_found_through_an_observed_release():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=6)
        pmd.LaplaceMechanism(1.0).observe("release", x.sum(), released=2.5)
    assert assigned(model)[0] == ("DapperStep", ["x"])
