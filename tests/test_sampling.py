"""assign_steps and sample: which step takes which variable, and what is kept."""

import logging
import sys
from collections import Counter

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Variable

import pymc_dapper as pmd
from pymc_dapper import ConjugateStep, DapperStep, InterweaveStep, ReadingError
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.counts.reading import read_counts
from pymc_dapper.interweaving.reading import read_non_centred
from pymc_dapper.records.reading.model import read_model
from tests.models import admissions_model

QUICK = {"draws": 20, "tune": 20, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3}
QUICK |= {"compute_convergence_checks": False}


@pytest.fixture(scope="module")
def admissions():
    return admissions_model()


def assigned(model, *args, **kwargs):
    steps = pmd.assign_steps(*args, model=model, **kwargs)
    return [(type(step).__name__, sorted(x.name for x in step.vars)) for step in steps]


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


def test_a_discrete_parameter_is_left_to_pymc():
    with pm.Model():
        k = pm.DiscreteUniform("k", 1, 3)
        x = pm.Normal("x", k, 1, shape=5)
        pm.Potential("privacy", -(x.sum() ** 2))
        idata = pmd.sample(**QUICK)
    assert set(idata.posterior["k"].values.ravel()) <= {1, 2, 3}


@pytest.mark.usefixtures("uncompiled")
def test_records_without_a_map_get_no_interweaving():
    with pm.Model() as model:
        weight = pm.Beta("weight", 1, 1)
        parts = [pm.Normal.dist(0, 1), pm.Normal.dist(5, 1)]
        x = pm.Mixture("x", [weight, 1 - weight], parts, shape=6)
        pm.Potential("privacy", -(x.sum() ** 2))
    assert [name for name, _ in assigned(model)] == ["DapperStep", "NUTS"]


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


@pytest.fixture
def passed_on(monkeypatch, uncompiled):
    """What `pmd.sample` would have PyMC do."""
    options = {}
    monkeypatch.setattr(pm, "sample", lambda draws, **given: options.update(given, draws=draws))
    return options


def test_counts_are_kept_since_they_are_few_and_of_interest(table_and_records, passed_on):
    pmd.sample(model=table_and_records)
    assert passed_on["var_names"] == ["p", "table", "total"]


def test_a_table_of_counts_is_sampled(table_and_records):
    """From the call to the result: records are left out, and the table keeps its total."""
    result = pmd.sample(model=table_and_records, **QUICK)
    assert set(result.posterior.data_vars) == {"p", "table", "total"}
    assert np.all(result.posterior["table"].sum("table_dim_0") == 60)


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
    with pytest.raises(ValueError, match="the model has counts only"):
        pmd.assign_steps(model=model, dapper={"track_records": True})


@pytest.fixture
def group_model():
    with pm.Model() as model:
        group = pm.Normal("group", 0, 1, shape=3)
        x = pm.Normal("x", 0, 1, shape=9)
        pm.Potential("privacy", -((x.sum() - group.sum()) ** 2))
    return model


@pytest.mark.usefixtures("uncompiled")
def test_records_are_not_guessed_where_there_is_doubt(group_model):
    with pytest.raises(ReadingError, match=r"isn't clear.*'group' \(3 along.*'x' \(9 along"):
        pmd.assign_steps(model=group_model)
    assert assigned(group_model, [group_model["x"]])[0] == ("DapperStep", ["x"])


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


def test_a_model_without_a_mechanism_has_no_records():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, 1, observed=[1.0, 2.0])
    with pytest.raises(ReadingError, match=r"no latent records were found.*Pass the records"):
        pmd.sample(model=model)


@pytest.mark.usefixtures("uncompiled")
def test_records_are_found_through_an_observed_release():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=6)
        pmd.LaplaceMechanism(1.0).observe("release", x.sum(), released=2.5)
    assert assigned(model)[0] == ("DapperStep", ["x"])


@pytest.fixture(scope="module")
def sampled(admissions):
    """What is sampled without further options, and what is said of it."""
    said, logger = [], logging.getLogger("pymc")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with admissions:
            return pmd.sample(**QUICK), "\n".join(said)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def test_sample_leaves_the_records_out_and_says_who_took_what(sampled):
    idata, said = sampled
    assert set(idata.posterior.data_vars) == {"p", "log_odds_ratio"}
    assert idata.posterior["p"].shape == (2, 20, 4)
    assert {"dapper_accept", "dapper_mechanism_logp"} <= set(idata.sample_stats.data_vars)
    assert ">DapperStep: [record]" in said
    assert ">ConjugateStep: [p]" in said


def test_records_are_kept_on_request(admissions, sampled):
    with admissions:
        idata = pmd.sample(keep_records=True, **QUICK)
    assert idata.posterior["record"].shape == (2, 20, 400)
    # What is kept doesn't change what is drawn.
    np.testing.assert_array_equal(idata.posterior["p"], sampled[0].posterior["p"])


def test_what_is_kept_can_be_named(admissions, passed_on):
    pmd.sample(model=admissions, var_names=["p"])
    assert passed_on["var_names"] == ["p"]


@pytest.mark.parametrize("given", [{"target_accept": 0.95}, {"nuts": {"target_accept": 0.95}}])
def test_options_reach_the_steps(admissions, passed_on, given):
    options = {"conjugate": False, "interweave": False, "dapper": {"track_records": True}}
    pmd.sample(model=admissions, tune=7, **options, **given)
    dapper, nuts = passed_on["step"]
    assert dapper.track_records
    assert nuts.target_accept == 0.95
    assert passed_on["tune"] == 7
    assert "target_accept" not in passed_on


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"step": []}, TypeError, "pmd.sample chooses the steps itself"),
        ({"keep_records": True, "var_names": ["p"]}, TypeError, "either var_names or keep_records"),
        ({"target_accept": 0.9}, ValueError, "NUTS has no variable to move"),
        ({"chains": 0}, ValueError, "chains must be a whole number of at least 1, got 0"),
        ({"cores": True}, TypeError, "cores must be a whole number of at least 1, got True"),
        ({"tune": -1}, ValueError, "tune must be a whole number of at least 0, got -1"),
        ({"draws": 0}, ValueError, "draws must be a whole number of at least 1, got 0"),
        ({"draws": "10"}, TypeError, "draws must be a whole number of at least 1, got '10'"),
        ({"random_seed": -1}, ValueError, "random_seed must be"),
        ({"var_names": "p"}, TypeError, r"var_names must be a list of names: write \['p'\]"),
        ({"var_names": ["q"]}, ValueError, "no variable 'q' to keep, but 'p'"),
        ({"chain": 2}, TypeError, "pmd.sample has no argument 'chain', and neither has pm.sample"),
        ({"keep_records": 1}, TypeError, "keep_records must be True or False, got 1"),
        ({"conjugate": "no"}, TypeError, "conjugate must be True or False, got 'no'"),
        ({"interweave": 0}, TypeError, "interweave must be True or False, got 0"),
        ({"nuts": 0.9}, TypeError, "nuts must be a dict of options by name, got 0.9"),
        ({"dapper": [1]}, TypeError, "dapper must be a dict of options by name, got a list"),
        ({"model": "admissions"}, TypeError, r"model must be a pm\.Model, got 'admissions'"),
    ],
)
def test_options_that_cannot_be_used_are_refused_at_once(
    monkeypatch, admissions, options, error, message
):
    def too_late(*_, **__):
        raise AssertionError("compiled before it was refused")

    monkeypatch.setattr(DapperStep, "_check_compiled", too_late)
    if "target_accept" in options:
        monkeypatch.undo()
    with admissions, pytest.raises(error, match=message):
        pmd.sample(**options)


def test_the_model_may_come_first(admissions, passed_on):
    pmd.sample(admissions, interweave=False)
    assert passed_on["model"] is admissions
    assert passed_on["draws"] == 1000
    with pytest.raises(TypeError, match=r"passed twice, by position and as model="):
        pmd.sample(admissions, model=admissions)
    steps = pmd.assign_steps(admissions, interweave=False)
    assert [type(step) for step in steps] == [DapperStep, ConjugateStep]


@pytest.mark.usefixtures("uncompiled")
def test_steps_and_their_order_can_be_combined_with_others(admissions):
    steps = pmd.assign_steps([admissions["record"]], admissions)
    assert [type(step) for step in steps] == [DapperStep, ConjugateStep, InterweaveStep]


# What is kept ------------------------------------------------------------------------------------


@pytest.fixture
def names_kept(uncompiled, monkeypatch):
    """Call pmd.sample without sampling: the variables that pm.sample is told to keep."""
    told = {}
    monkeypatch.setattr(pm, "sample", lambda *_, var_names, **__: told.update(names=var_names))

    def names(model, **options):
        pmd.sample(model, **options)
        return told["names"]

    return names


def noisy_cells(x):
    pmd.LaplaceMechanism(2.0).potential("privacy", x, released=np.full(4, 3.0))


def noisy_total(x):
    pmd.LaplaceMechanism(2.0).potential("privacy", x.sum(), released=12.0)


COUNTS = {
    "Poisson": lambda: pm.Poisson("x", pm.Gamma("rate", 2, 1), shape=4),
    "ZeroInflatedPoisson": lambda: pm.ZeroInflatedPoisson(
        "x", 0.6, pm.Gamma("rate", 2, 1), shape=4
    ),
}


@pytest.mark.parametrize("family", COUNTS)
def test_counts_are_kept_whatever_their_distribution_and_records_are_not(
    family, names_kept, caplog
):
    for release, expected in ((noisy_cells, {"x", "rate"}), (noisy_total, {"rate"})):
        with pm.Model() as model:
            release(COUNTS[family]())
        caplog.clear()
        with caplog.at_level("INFO", logger="pymc.dapper"):
            kept = names_kept(model)
        # All but the records is what pm.sample keeps by itself, too.
        assert set(kept or {"x", "rate"}) == expected
        left_out = "Left out of the result: 'x'. keep_records=True keeps them" in caplog.text
        assert left_out == ("x" not in expected)


def test_categories_seen_one_by_one_are_records(names_kept):
    with pm.Model() as model:
        x = pm.Bernoulli("x", pm.Beta("p", 1, 1), shape=4)
        pm.Bernoulli("answer", 0.2 + 0.6 * x, observed=[0, 1, 1, 0])
    assert names_kept(model, records=[x]) == ["p"]


@pytest.mark.parametrize("asked", ["log_likelihood", "log_prior"])
def test_log_densities_of_what_is_left_out_are_refused(asked, names_kept):
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu"), 1, shape=4)
        noisy_total(x)
    with pytest.raises(ValueError, match=f"asks for the {asked}, .* 'x', .* keep_records=True"):
        names_kept(model, idata_kwargs={asked: True})
    with pytest.raises(ValueError, match="keep_records=True"):
        names_kept(model, idata_kwargs={asked: True}, var_names=["mu"])
    assert names_kept(model, idata_kwargs={asked: True}, keep_records=True) is None


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
    monkeypatch.setattr(pm, "sample", lambda *_, **__: None)
    assign(model=build())
    assert len(readings_made) == len(set(readings_made))
    of_latent = Counter(read for read, *_ in readings_made)
    assert of_latent.pop("read_conditionals", 0) <= 3
    assert of_latent == expected


def test_what_is_integrated_out_is_read_once_more(table_and_records, readings_made):
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
