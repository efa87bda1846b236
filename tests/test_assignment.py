"""assign_steps: which step takes which variable, and how often the model is read for that."""

import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.model.transform.basic import prune_vars_detached_from_observed
from pytensor.graph.basic import Variable

import pymc_dapper as pmd
from pymc_dapper import ConjugateStep, ReadingError
from pymc_dapper.assignment import Readings, find_latent, find_records
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.counts.reading import read_counts
from pymc_dapper.interweaving.reading import read_non_centred
from pymc_dapper.records.reading.model import read_model
from tests.sizes.models import groups


def assigned(model, *args, **kwargs):
    steps = pmd.assign_steps(*args, model=model, **kwargs)
    return [(type(step).__name__, sorted(x.name for x in step.vars)) for step in steps]


@pytest.fixture(scope="module")
def table_and_records():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        table = pm.Multinomial("table", 60, p)
        total = pm.Poisson("total", 5)
        x = pm.Bernoulli("x", 0.3, shape=7)
        pmd.LaplaceMechanism(2.0).potential("cells", table, released=[20.0, 25.0, 13.0])
        pmd.LaplaceMechanism(2.0).potential("sum", total + x.sum(), released=7.0)
    return model


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
        weight = pm.Beta("weight", 1, 1)
        parts = [pm.Normal.dist(0, 1), pm.Normal.dist(5, 1)]
        x = pm.Mixture("x", [weight, 1 - weight], parts, shape=6)
        pm.Potential("privacy", -(x.sum() ** 2))
    assert [name for name, _ in assigned(model)] == ["DapperStep", "NUTS"]


@pytest.mark.usefixtures("uncompiled")
def test_tables_of_counts_get_a_step_of_their_own(table_and_records):
    # The table's probabilities are integrated out, and drawn by the same step.
    assert assigned(table_and_records) == [
        ("DapperStep", ["x"]),
        ("CountStep", ["p_simplex__", "table", "total"]),
    ]
    assert assigned(table_and_records, conjugate=False)[:2] == [
        ("DapperStep", ["x"]),
        ("CountStep", ["table", "total"]),
    ]


def test_what_can_be_counted_is_said(table_and_records):
    with pm.Model() as alone:
        pm.Poisson("count", 3.0)
    for model, counts in ((table_and_records, ["table", "total"]), (alone, [])):
        readings = Readings(model)
        assert [x.name for x in model.free_RVs if readings.can_be_counted(x)] == counts


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
        ("CollapsedStep", ["effect", "tau_log__", "x"]),
        ("ConjugateStep", ["mu"]),
        ("InterweaveStep", ["mu", "tau_log__"]),
    ]
    assert assigned(areas(), conjugate=False) == [
        ("CollapsedStep", ["effect", "mu", "tau_log__", "x"]),
        ("InterweaveStep", ["mu", "tau_log__"]),
    ]
    apart = [name for name, _ in assigned(areas(), collapse=False, interweave=False)]
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


def of_each_person(write, n=6):
    """A model in which ``write`` says what mechanisms see of persons, and what they don't."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pmd.LaplaceMechanism(2.0).potential("s", write(mu, n).sum(), released=9.0)
    return model


def class_that_ties_columns(mu, n):
    share = pm.Dirichlet("share", np.ones((2, 3)))
    z = pm.Bernoulli("z", pm.math.sigmoid(mu), shape=n)
    columns = [pm.Categorical(f"c{k}", share[z], shape=n) for k in range(2)]
    return pt.eq(columns[0], columns[1])


def abilities(mu, n):
    theta = pm.Normal("theta", mu, 1, shape=n)
    return pm.Bernoulli("x", logit_p=theta[:, None] - np.arange(3), shape=(n, 3))


def column_that_nothing_sees(mu, n):
    x = pm.Normal("x", mu, 1, shape=n)
    pm.Poisson("y", pt.exp(x), shape=n)
    return x


def counts_with_a_column_below(mu, n):
    visits = pm.Poisson("visits", pt.exp(mu), shape=n)
    pm.Poisson("bills", 1.0 + visits, shape=n)
    return visits


def with_public_data(mu, n):
    """Of which most values from the prior would be refused."""
    theta = pm.Normal("theta", mu, 1, shape=n)
    pm.Normal("seen", theta, 0.1, observed=np.zeros(n))
    return pm.Bernoulli("x", logit_p=theta, shape=n)


def parameters_of_one_length(mu, n):
    effect = pm.Normal("effect", mu, 1, shape=n)
    return pm.Normal("x", effect[np.arange(n)[::-1]], 1, shape=n)


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


@pytest.fixture
def group_model():
    with pm.Model() as model:
        group = pm.Normal("group", 0, 1, shape=3)
        x = pm.Normal("x", 0, 1, shape=9)
        pm.Potential("privacy", -((x.sum() - group.sum()) ** 2))
    return model


@pytest.mark.usefixtures("uncompiled")
def test_records_are_not_guessed_where_there_is_doubt(group_model):
    with pytest.raises(ReadingError, match=r"'group' \(3 along.*'x' \(9 along.*needs a step: "):
        pmd.assign_steps(model=group_model)
    assert assigned(group_model, [group_model["x"]])[0] == ("DapperStep", ["x"])


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


def test_of_several_releases_those_that_are_not_known_are_left_out():
    with pm.Model() as model:
        count = pm.Poisson("count", 12, shape=3)
        for name in ("a", "b"):
            pmd.LaplaceMechanism(2.0).generate(name, count)
    model = pm.observe(model, {"a": [9.0, 12.0, 15.0]})
    with pytest.raises(ReadingError, match=r"'b' .*prune_vars_detached_from_observed\(model\)"):
        pmd.assign_steps(model=model)
    assert find_latent(prune_vars_detached_from_observed(model), None, None).counts


def test_a_noisy_value_that_is_not_published_may_be_generated_but_without_rules():
    def ratio(mechanism):
        with pm.Model() as model:
            count = pm.Poisson("count", 12, shape=3)
            below = mechanism.generate("below", count[0])
            share = pmd.LaplaceMechanism(2.0 / pt.abs(below))
            share.observe("share", count[1] / below, released=0.3)
        return find_latent(model, None, model["count"]).counts

    assert [x.name for x in ratio(pmd.LaplaceMechanism(2.0))] == ["count"]
    with pytest.raises(ReadingError, match=r"'below' isn't known.*by rounded\(5\). Generate"):
        ratio(pmd.LaplaceMechanism(2.0).rounded(5))


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


# How often the model is read ---------------------------------------------------------------------


@pytest.fixture
def readings_made(monkeypatch, uncompiled):
    """What is read of a model, in whichever module: the reader, and what it is asked about."""
    made = []

    def noted(read):
        def reading(model, *asked, **options):
            found = read(model, *asked, **options)
            about = [x for each in asked if isinstance(each, list | tuple) for x in each]
            names = (x.name if isinstance(x, Variable) else x.family for x in about)
            made.append((read.__name__, *names))
            return found

        return reading

    all_readers = (read_model, read_counts, read_conditionals, read_non_centred)
    readers = {read.__name__: read for read in all_readers}
    for module in [x for name, x in sys.modules.items() if name.startswith("pymc_dapper")]:
        for name, read in readers.items():
            if getattr(module, name, None) is read:
                monkeypatch.setattr(module, name, noted(read))
    return made


def of_records():
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        x = pm.Normal("x", mu, tau, shape=5)
        pmd.GaussianMechanism(1.0).potential("release", x.sum(), released=0.5)
    return model


def of_answers():
    """Records with few values, which interweaving integrates out."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=5)
        pm.Bernoulli("answer", 0.2 + 0.6 * x, observed=[0, 1, 1, 0, 1])
        pmd.LaplaceMechanism(1.0).potential("sum", x.sum(), released=2.5)
    return model


def of_a_count_each():
    """Counts, which are read as a table first."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        visits = pm.Poisson("visits", rate, shape=6)
        pmd.LaplaceMechanism(2.0).potential("s", visits.sum(), released=9.0)
    return model


def of_a_table():
    with pm.Model() as model:
        table = pm.Multinomial("table", 60, np.ones(3) / 3)
        pmd.LaplaceMechanism(2.0).potential("cells", table, released=[20.0, 25.0, 13.0])
    return model


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (of_records, {"read_model": 1, "read_non_centred": 1}),
        (of_answers, {"read_model": 1, "read_non_centred": 1}),
        (of_a_count_each, {"read_model": 1, "read_counts": 1, "read_non_centred": 1}),
        (of_a_table, {"read_counts": 1}),
    ],
)
@pytest.mark.parametrize("assign", [pmd.assign_steps, pmd.sample])
def test_the_model_is_read_once(build, expected, assign, readings_made, monkeypatch):
    monkeypatch.setattr("pymc_dapper.sampling.pm.sample", lambda *_, **__: None)
    assign(model=build())
    assert len(readings_made) == len(set(readings_made))
    of_latent = Counter(read for read, *_ in readings_made)
    assert of_latent.pop("read_conditionals", 0) <= 3
    assert of_latent == expected


def test_counts_with_parameters_integrated_out_are_read_again(table_and_records, readings_made):
    """To find the tables, and then with their probabilities integrated out."""
    pmd.assign_steps(model=table_and_records)
    assert sorted(readings_made) == [
        ("read_conditionals", "p"),
        ("read_counts", "table"),
        ("read_counts", "table", "total"),
        ("read_counts", "table", "total", "Dirichlet"),
        ("read_counts", "total"),
        ("read_model", "x"),
    ]


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
def test_few_parameters_are_all_that_is_moved_where_records_are_integrated_out():
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
