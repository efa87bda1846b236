"""sample: its arguments, and the variables that it keeps."""

import gc
import logging

import numpy as np
import pymc as pm
import pytensor
import pytest
from pytensor.compile.mode import get_mode
from xarray import Dataset, DataTree

import pymc_dapper as pmd
from pymc_dapper import ConjugateStep, DapperStep, InterweaveStep, ReadingError
from pymc_dapper.backend.accelerate import switch
from pymc_dapper.backend.accelerate.switch import SWITCH
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.backend.plain_models import parts_of, same_parts
from pymc_dapper.sampling import _check_chains, _stand_still_apart, _tell_of_hierarchies
from pymc_dapper.steps.thinning import ThinnedStep
from tests.admissions_and_tiny import admissions_model
from tests.assignment.models_of_people import with_table_and_records
from tests.evaluated_in_python import evaluated_in_python

DIMS = ("chain", "draw")
QUICK = {"draws": 20, "tune": 20, "chains": 2, "cores": 1, "progressbar": False, "random_seed": 3}
QUICK |= {"compute_convergence_checks": False}


N, FEW = 20, np.array([5.5, 6.6, 2.4, 5.5])


@pytest.fixture(scope="module")
def admissions():
    return admissions_model(FEW, n=N)


def test_a_discrete_parameter_is_left_to_pymc():
    with pm.Model() as model:
        k = pm.DiscreteUniform("k", 1, 3)
        x = pm.Normal("x", k, 1, shape=5)
        pm.Potential("privacy", -(x.sum() ** 2))
    with evaluated_in_python():
        idata = pmd.sample(model=model, **QUICK)
    assert set(idata.posterior["k"].values.ravel()) <= {1, 2, 3}


def test_what_pymc_compiles_is_compiled_once_more_without_accelerations(monkeypatch, caplog):
    """As what records draws, which it compiles with the first of them."""
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=3)
        twice = pm.Deterministic("twice", 2 * x)
        pm.Potential("privacy", -((twice.sum() - 1.0) ** 2))
    sample = pm.sample

    def fails(*_, **__):
        raise AttributeError("gone")

    def sample_where_they_fail(*given, **options):
        with monkeypatch.context() as patch:
            patch.setattr("pymc_dapper.one_function.writer.write", fails)
            return sample(*given, **options)

    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr(switch, "failed", False)
    monkeypatch.setattr("pymc_dapper.sampling.pm.sample", sample_where_they_fail)
    with evaluated_in_python(), pytensor.config.change_flags(mode="Mode"):
        drawn = pmd.sample(model=model, tabulate=False, keep_records=True, **QUICK).posterior
    assert "one of them failed (AttributeError: gone)" in caplog.text
    np.testing.assert_array_equal(drawn["twice"], 2 * drawn["x"])


@pytest.fixture(scope="module")
def table_and_records():
    return with_table_and_records()


@pytest.fixture
def passed_on(monkeypatch, uncompiled):
    """What `pmd.sample` would have PyMC do."""
    options = {}

    def sample(draws, **given):
        options.update(given, draws=draws, compiled_by=get_mode(None), cxx=pytensor.config.cxx)

    monkeypatch.setattr("pymc_dapper.sampling.pm.sample", sample)
    return options


@pytest.fixture(scope="module")
def records_of_a_beta():
    with pm.Model() as model:
        x = pm.Bernoulli("x", pm.Beta("p", 1, 1), shape=3)
        pmd.LaplaceMechanism(2.0).potential("sum", x.sum(), released=2.0)
    return model


@pytest.mark.parametrize("options", [{}, {"conjugate": False}])
def test_chains_are_judged_by_all_variables_but_the_records(records_of_a_beta, options, passed_on):
    with evaluated_in_python():
        pmd.sample(model=records_of_a_beta, tabulate=False, thin=3, **options)
    step = passed_on["step"]
    assert isinstance(step, ThinnedStep)
    assert (step.names, step.thin) == (["p_logodds__"], 3)


def test_what_pymc_moves_by_itself_is_not_judged(passed_on):
    """Its steps move once for each draw."""
    with evaluated_in_python(), pm.Model():
        k = pm.DiscreteUniform("k", 1, 4)
        x = pm.Normal("x", pm.Normal("mu", k, 1), 1, shape=3)
        pmd.LaplaceMechanism(2.0).potential("sum", x.clip(-9, 9).sum(), released=2.0)
        pmd.sample(interweave=False)
    assert passed_on["step"].names == ["mu"]


def test_records_are_judged_if_there_is_nothing_else(passed_on):
    with evaluated_in_python(), pm.Model():
        x = pm.Bernoulli("x", 0.4, shape=3)
        pmd.LaplaceMechanism(2.0).potential("sum", x.sum(), released=2.0)
        pmd.sample(tabulate=False)
    assert passed_on["step"].names == ["x"]


@pytest.mark.usefixtures("uncompiled", "searches_as_users_have_them")
def test_no_search_for_garbage_goes_through_all_libraries_while_chains_run(
    table_and_records, monkeypatch
):
    searched = [None]

    def sample(draws, **given):
        searched.remove(None)
        searched.extend(gc.get_objects(generation=2))  # to count what isn't takes a second

    monkeypatch.setattr("pymc_dapper.sampling.pm.sample", sample)
    pmd.sample(model=table_and_records)
    assert searched == []
    assert gc.get_freeze_count() == 0


def test_counts_are_kept_since_they_are_few_and_of_interest(table_and_records, passed_on):
    pmd.sample(model=table_and_records)
    assert passed_on["var_names"] == ["p", "table", "total"]


def test_a_table_of_counts_is_sampled(table_and_records):
    """From the call to the result: records are left out, and the table keeps its total."""
    with evaluated_in_python():
        result = pmd.sample(model=table_and_records, **QUICK)
    assert set(result.posterior.data_vars) == {"p", "table", "total"}
    assert np.all(result.posterior["table"].sum("table_dim_0") == 60)


def test_a_model_without_a_mechanism_has_no_records():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        pm.Normal("y", mu, 1, observed=[1.0, 2.0])
    with pytest.raises(
        ReadingError, match="no latent records were found: the model has no release"
    ):
        pmd.sample(model=model)


@pytest.fixture(scope="module")
def sampled(admissions):
    """Sampled variables and log messages without further options."""
    said, logger = [], logging.getLogger("pymc")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with admissions, evaluated_in_python():
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
    with admissions, evaluated_in_python():
        idata = pmd.sample(keep_records=True, **QUICK)
    assert idata.posterior["record"].shape == (2, 20, N)
    # What is kept doesn't change what is drawn.
    np.testing.assert_array_equal(idata.posterior["p"], sampled[0].posterior["p"])


def test_what_is_kept_can_be_named(admissions, passed_on):
    pmd.sample(model=admissions, var_names=["p"])
    assert passed_on["var_names"] == ["p"]


@pytest.mark.parametrize("own_mode", [None, "NUMBA"])
def test_what_pymc_records_is_compiled_as_the_steps_are(own_mode, admissions, passed_on):
    options = {} if own_mode is None else {"compile_kwargs": {"mode": own_mode}}
    with pytensor.config.change_flags(mode="Mode"):
        default = get_mode(None)
        pmd.sample(model=admissions, **options)
    assert passed_on["compiled_by"] is (default if own_mode else numba_mode(None))


@pytest.mark.parametrize(("mode", "compiler"), [("Mode", ""), ("FAST_RUN", "some compiler")])
def test_what_pymc_evaluates_once_needs_no_c_compiler(mode, compiler, admissions, passed_on):
    """Loops in the graph of an initial point, above all; who has chosen a mode may need one."""
    with pytensor.config.change_flags(mode=mode, cxx="some compiler"):
        pmd.sample(model=admissions)
    assert passed_on["cxx"] == compiler


@pytest.mark.parametrize("given", [{"target_accept": 0.95}, {"nuts": {"target_accept": 0.95}}])
def test_options_reach_the_steps(admissions, passed_on, given):
    options = {"conjugate": False, "interweave": False, "dapper": {"track_records": True}}
    pmd.sample(model=admissions, tune=7, **options, **given)
    dapper, nuts = passed_on["step"].methods
    assert dapper.track_records
    assert nuts.target_accept == 0.95
    assert passed_on["tune"] == 7
    assert "target_accept" not in passed_on


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"step": []}, TypeError, "pmd.sample chooses the steps itself"),
        ({"init": "adapt_diag"}, ValueError, "init='adapt_diag' would be without effect"),
        ({"keep_records": True, "var_names": ["p"]}, TypeError, "either var_names or keep_records"),
        (
            {"target_accept": 0.9},
            ValueError,
            "NUTS moves no variable here",
        ),
        ({"chains": 0}, ValueError, "chains must be a whole number of at least 1, got 0"),
        ({"cores": True}, TypeError, "cores must be a whole number of at least 1, got True"),
        ({"thin": 0}, ValueError, "thin must be a whole number of at least 1, got 0"),
        ({"tune": -1}, ValueError, "tune must be a whole number of at least 0, got -1"),
        ({"draws": 0}, ValueError, "draws must be a whole number of at least 1, got 0"),
        ({"draws": "10"}, TypeError, "draws must be a whole number of at least 1, got '10'"),
        ({"random_seed": -1}, ValueError, "random_seed must be"),
        ({"var_names": "p"}, TypeError, r"var_names must be a list of names: write \['p'\]"),
        ({"var_names": ["q"]}, ValueError, "there is no variable 'q', but p"),
        ({"initvals": {"q": 1.0}}, ValueError, "initvals: there is no variable 'q', but p"),
        ({"initvals": [{"p": [0.5]}]}, ValueError, r"'p' has the shape \(\d+,\), its start \(1,\)"),
        (
            {"initvals": {"p_simplex__": [np.nan]}},
            ValueError,
            "initvals of .* be finite: 1 of 1 is wrong",
        ),
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
    with admissions, evaluated_in_python(), pytest.raises(error, match=message):
        pmd.sample(**options)


def test_records_of_truth_values_may_start_at_them(passed_on):
    start = {"z": np.array([True, False])}
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=2)
        pmd.LaplaceMechanism(1.0).potential("privacy", z.sum(), released=1.2)
    pmd.sample(model, initvals=start, interweave=False)
    assert passed_on["initvals"] is start


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
    monkeypatch.setattr(
        "pymc_dapper.sampling.pm.sample", lambda *_, var_names, **__: told.update(names=var_names)
    )

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
        left_out = "Left out of the result: 'x'. var_names= keeps" in caplog.text
        assert left_out == ("x" not in expected)


def test_categories_seen_one_by_one_are_records(names_kept):
    with pm.Model() as model:
        x = pm.Bernoulli("x", pm.Beta("p", 1, 1), shape=4)
        pm.Bernoulli("answer", 0.2 + 0.6 * x, observed=[0, 1, 1, 0])
    assert names_kept(model, records=[x]) == ["p"]


@pytest.mark.parametrize("asked", ["log_likelihood", "log_prior"])
def test_log_densities_of_variables_left_out_are_refused(asked, names_kept):
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu"), 1, shape=4)
        noisy_total(x)
    with pytest.raises(ValueError, match=f"asks for the {asked}, .* 'x', .* keep_records=True"):
        names_kept(model, idata_kwargs={asked: True})
    with pytest.raises(ValueError, match="keep_records=True"):
        names_kept(model, idata_kwargs={asked: True}, var_names=["mu"])
    assert names_kept(model, idata_kwargs={asked: True}, keep_records=True) is None


@pytest.mark.parametrize("draws", [20, 120])
def test_a_result_of_computed_variables_only_has_its_chains_checked(draws, caplog):
    """PyMC's own check fails if no free variable is kept."""
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=5)
        total = pm.Deterministic("total", x.sum())
        pmd.LaplaceMechanism(1.0).potential("privacy", total, released=3.0)
    options = QUICK | {"draws": draws, "compute_convergence_checks": True}
    with evaluated_in_python(), caplog.at_level("INFO"):
        result = pmd.sample(model=model, **options)
    assert list(result.posterior.data_vars) == ["total"]
    said = [each for each in caplog.messages if "R-hat is above" in each and "'total'" in each]
    assert len(said) == (draws >= 100)


def test_what_is_computed_from_slow_records_has_its_chains_checked(caplog):
    """PyMC's own check is of free variables only."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=3)
        pm.Deterministic("first", x[0])
        pm.Deterministic("total", x.sum())
        pm.Deterministic("positive", mu**2 >= 0)
        pmd.LaplaceMechanism(0.01).potential("sum", x.sum(), released=2.5)
        pmd.LaplaceMechanism(0.01).potential("squares", (x**2).sum(), released=4.0)
    options = QUICK | {"draws": 100, "tune": 50, "compute_convergence_checks": True}
    with evaluated_in_python(), caplog.at_level("WARNING"):
        pmd.sample(model=model, **options)
    [said] = [each for each in caplog.messages if "R-hat is above" in each]
    assert "'first'" in said
    assert not any(name in said for name in ("'mu'", "'positive'"))


def test_chains_with_components_in_different_orders_are_told(caplog):
    draws = np.random.default_rng(1).normal([[[-2.0, 1.0]]] * 4, 0.3, (4, 200, 2))
    switched, other = draws.copy(), draws.copy()
    switched[0] = draws[0, :, ::-1]
    other[0, :, 1] += 2.0  # sorting doesn't help
    values = {"same": draws, "switched": switched, "other": other, "one": switched[..., :1]}
    posterior = Dataset({x: (("chain", "draw", f"{x}_dim"), y) for x, y in values.items()})
    with caplog.at_level("WARNING"):
        _check_chains(DataTree.from_dict({"posterior": posterior}), pm.Model(), True)
    [said] = [each for each in caplog.messages if "in different orders" in each]
    assert [name for name in values if f"'{name}'" in said] == ["switched"]
    assert "ordered" in said


@pytest.mark.parametrize("scale", [0.2, 2.0])
def test_chains_that_stand_still_at_different_records_are_told(scale, caplog):
    """1, 6 and 7 explain sum and squares: from 5, 5 and 6 no change of one record leads there."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 3)
        x = pm.Geometric("x", p, shape=3)
        noise = pmd.DiscreteLaplaceMechanism(scale)
        noise.potential("sums", pm.math.stack([x.sum(), (x**2).sum()]), released=[14, 86])
    starts = [{"x": np.array(each)} for each in ([1, 6, 7], [5, 5, 6])]
    options = QUICK | {"draws": 100, "tune": 100, "chains": 2, "initvals": starts}
    options |= {"compute_convergence_checks": True}
    with evaluated_in_python(), caplog.at_level("WARNING"):
        pmd.sample(model=model, **options)
    assert any("stand still at different" in each for each in caplog.messages) == (scale < 1)


def test_chains_stand_still_apart_if_another_never_comes_there():
    moving, there, away = (np.array([[x]]) for x in (-3.0, -1.0, -9.0))
    pairs = {
        "one moves and comes there": ([moving, there], [0 * there, there], False),
        "one moves elsewhere": ([moving, away], [there, away], True),
        "both stay at the same": ([there, there], [there, there + 1e-12], False),
        "both stay apart": ([there, away], [there, away], True),
        "both move apart": ([moving, away], [there, away + 1], False),
    }
    for name, (low, high, apart) in pairs.items():
        assert _stand_still_apart(np.vstack(low), np.vstack(high)) == apart, name


def test_the_model_stays_as_it_was_where_its_own_start_is_impossible():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        x = pm.Binomial("x", n=20, p=p, shape=3)
        pmd.invariant("total", x.sum(), 7)
        pmd.DiscreteGaussianMechanism(2.0).potential("cells", x, released=[1, 2, 5])
    before, start = parts_of(model), model.initial_point()
    assert start["x"].sum() != 7
    with evaluated_in_python():
        result = pmd.sample(3, tune=2, chains=1, cores=1, random_seed=1, model=model, quiet=True)
    assert np.all(result["posterior"]["x"].sum("x_dim_0") == 7)
    assert same_parts(parts_of(model), before)
    assert str(model.initial_point()) == str(start)


@pytest.mark.parametrize("diverged", [0, 3])
@pytest.mark.parametrize("slow", [False, True])
def test_hierarchies_are_told_how_to_be_written_if_nuts_diverges_or_mixes_slowly(
    diverged, slow, caplog
):
    with pm.Model() as model:
        tau, spread = pm.HalfNormal("tau"), pm.HalfNormal("spread")
        pm.Normal("of_group", 0, tau, shape=3)
        pm.GaussianRandomWalk("walk", sigma=spread, init_dist=pm.Normal.dist(), shape=5)
        pm.AR("series", rho=[0.5], sigma=spread, init_dist=pm.Normal.dist(), shape=5)
    draws = np.random.default_rng(1).normal(size=(2, 400))
    of_spread = draws + 3 * slow * np.array([[0], [1]])  # chains at different places
    found = {
        "posterior": Dataset({"tau": (DIMS, draws), "spread": (DIMS, of_spread)}),
        "sample_stats": Dataset({"diverging": (DIMS, np.arange(800).reshape(2, 400) < diverged)}),
    }
    with caplog.at_level("WARNING", logger="pymc.dapper"):
        _tell_of_hierarchies(DataTree.from_dict(found), model, checked=True, records=[])
    how = "NUTS diverged in 3 draws." if diverged else "Chains mix slowly."
    of_series = f"{how} The law of 'walk', 'series' depends on 'spread'"
    assert (of_series in caplog.text) == bool(slow or diverged)
    assert (f"{how} The law of 'of_group' depends on 'tau'" in caplog.text) == bool(diverged)
    assert ("pt.cumsum(scale * z)" in caplog.text) == bool(slow or diverged)
    caplog.clear()  # another way to write records would be no help, and the model be refused
    of_records = DataTree.from_dict(found), model, True, [model["of_group"]]
    _tell_of_hierarchies(*of_records)
    assert "'of_group'" not in caplog.text
    assert (of_series in caplog.text) == bool(slow or diverged)


def test_records_that_cannot_follow_slow_parameters_are_named_in_the_place_of_hierarchies(caplog):
    with pm.Model() as model:
        tau, kappa, mu = pm.HalfNormal("tau"), pm.HalfNormal("kappa"), pm.Normal("mu")
        of_group = pm.Normal("of_group", 0, tau, shape=3)
        x = pm.VonMises("x", of_group[0], kappa, shape=4)
        y = pm.VonMises("y", 0, 1, shape=4)
        z = pm.MvStudentT("z", nu=5, mu=mu * np.ones(2), scale=np.eye(2), shape=(4, 2))
    still = np.random.default_rng(1).normal(size=(2, 400))
    moving = still + np.array([[0], [3]])  # chains at different places

    def told(slow):
        values = {
            name: (DIMS, moving if name in slow else still) for name in ("kappa", "tau", "mu")
        }
        found = {"posterior": Dataset(values)}
        found["sample_stats"] = Dataset({"diverging": (DIMS, np.zeros((2, 400), dtype=bool))})
        caplog.clear()
        with caplog.at_level("WARNING", logger="pymc.dapper"):
            _tell_of_hierarchies(DataTree.from_dict(found), model, True, [x, y, z])
        return caplog.text

    of_x = "can't move 'kappa' with the records 'x': PyMC knows no quantiles of VonMises"
    assert of_x in told(["kappa", "tau", "mu"])
    assert "of_group" not in caplog.text
    assert "'y'" not in caplog.text
    assert "'z'" not in caplog.text
    assert "The law of 'of_group' depends on 'tau'" in told(["tau"])
    assert not told(["mu"])


def test_without_nuts_nothing_is_said_of_hierarchies(caplog):
    with pm.Model() as model:
        pm.Normal("of_group", 0, pm.HalfNormal("tau"), shape=3)
    empty = DataTree.from_dict({"sample_stats": Dataset()})
    _tell_of_hierarchies(empty, model, checked=True, records=[])
    assert not caplog.text
