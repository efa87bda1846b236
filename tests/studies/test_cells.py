"""What a worker does for a cell."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import arviz as az
import numpy as np
import pymc as pm
import pytest
import xarray as xr

import pymc_dapper as pmd
from pymc_dapper.studies import cell as cells
from pymc_dapper.studies import models, study
from pymc_dapper.studies.cell import CellRunner
from pymc_dapper.studies.fields import NUMBER_FIELDS, STATISTICS, TIMINGS
from pymc_dapper.studies.grid import read_grid
from pymc_dapper.studies.summaries import summarise
from tests.studies import functions

pytestmark = pytest.mark.long

GAUSSIAN = pmd.GaussianMechanism(2.0)
DEFAULTS = {"chains": 2, "compute_convergence_checks": False}


def runner(simulate=functions.simulate, build=functions.build, **changes):
    """What does cells, without models from before."""
    cells._models.prepared.clear()
    options = {
        "seed": 1,
        "var_names": None,
        "prob": 0.9,
        "timeout": None,
        "missing_information": True,
        "sample_kwargs": {**functions.FAST, **DEFAULTS},
        **changes,
    }
    return CellRunner(simulate=simulate, build=build, **options)


def numbers(result):
    """All numbers of a result but timings."""
    kept = [name for name in NUMBER_FIELDS if name not in TIMINGS]
    statistics = [name for name in STATISTICS if name not in TIMINGS]
    found = [result.numbers[name] for name in kept]
    return found + [entry[name] for entry in result.parameters for name in statistics]


def with_nuts(released, share):
    with pm.Model() as model:
        noisy = pm.Data("noisy", released["count"] - functions.N / 2.0)
        p = pm.Normal("p", 0, 1)
        scale = pm.HalfNormal("scale", 1)
        record = pm.Normal("record", p, scale, shape=functions.N)
        GAUSSIAN.observe("privacy", pm.math.clip(record, -2, 2).sum(), released=noisy)
    return model


def with_answers(released, share):
    """Separable: each answer is about one record."""
    with pm.Model() as model:
        answers = pm.Data("answers", np.arange(functions.N) < released["count"])
        p = pm.Beta("p", 1, 1)
        record = pm.Bernoulli("record", p, shape=functions.N)
        pmd.RandomizedResponse(0.75, 2).observe("answer", record, released=answers)
    return model


@pytest.mark.parametrize(
    ("build", "options"),
    [
        (functions.build, {}),
        (with_nuts, {"conjugate": False}),
        (with_answers, {}),
        (functions.build_light, {}),
    ],
)
def test_a_cell_knows_nothing_of_those_before_it(build, options):
    """To the bit. Catches steps that carry over data, adaptation, or random numbers."""
    one, other = read_grid({"share": [0.3, 0.9]}, 1).cells
    options = {"sample_kwargs": {**functions.FAST, **DEFAULTS, **options}}
    expected = runner(build=build, **options)(other)
    run = runner(build=build, **options)
    with_new_steps = run(one)
    assert with_new_steps.status == "done", with_new_steps.message
    assert numbers(with_new_steps) != numbers(expected)
    np.testing.assert_array_equal(numbers(run(other)), numbers(expected))
    np.testing.assert_array_equal(numbers(run(one)), numbers(with_new_steps))
    assert len(cells._models.prepared) == 1


def test_a_model_whose_steps_look_at_data_is_not_kept(monkeypatch):
    """As a CountStep does; here any step is taken for one."""
    monkeypatch.setattr(models, "CountStep", object)
    [cell] = read_grid({"share": [0.3]}, 1).cells
    assert runner(build=functions.build_light)(cell).status == "done"
    assert cells._models.prepared == []


def test_a_model_that_did_not_take_over_data_is_found_out(monkeypatch):
    """A twin of the first test, with a fault: steps begin anew, but see the old data."""

    def without_data(self, structure):
        for step, state in zip(self.steps, self._fresh, strict=True):
            step.sampling_state = state

    monkeypatch.setattr(models.PreparedModel, "take_over", without_data)
    first, second = read_grid({"share": [0.3, 0.9]}, 1).cells
    after = runner()
    after(first)
    assert numbers(after(second)) != numbers(runner()(second))


def variant(change, released, share):
    """The model with something else about it than data."""
    coords = {"who": range(functions.N) if change != "coords" else range(1, functions.N + 1)}
    n = functions.N + (change == "shape")
    with pm.Model(coords=coords) as model:
        count = pm.Data("count", released["count"])
        p = pm.Beta("p", 1, 2 if change == "constant" else 1)
        initval = np.ones(n, dtype=int) if change == "initial value" else None
        record = pm.Bernoulli("record", p, shape=n, initval=initval)
        if change == "factor":
            pm.Potential("more", -p)
        if change == "deterministic":
            pm.Deterministic("more", 2 * p)
        functions.MECHANISM.potential("privacy", record.sum(), released=count)
    return model


@pytest.mark.parametrize(
    "change", ["coords", "shape", "constant", "initial value", "factor", "deterministic"]
)
def test_a_model_that_differs_in_more_than_data_is_another_one(change):
    plain = models.Structure.of(variant("", {"count": 3}, 0.3))
    assert plain.equals(models.Structure.of(variant("", {"count": 7}, 0.3)))
    assert not plain.equals(models.Structure.of(variant(change, {"count": 3}, 0.3)))


def test_a_model_with_other_steps_is_another_one():
    cache, kept = models.ModelCache(), []
    for target in (0.8, 0.8, 0.9):
        with pm.Model() as model:
            pm.Normal("p", 0, pm.HalfNormal("scale", 1))
        options = {"conjugate": False, "nuts": {"target_accept": target}}
        kept.append(cache.prepare(models.Structure.of(model), options))
    assert kept[0] is kept[1]
    assert kept[0] is not kept[2]


def test_only_some_models_are_kept(monkeypatch):
    monkeypatch.setattr(models, "MODELS_KEPT", 2)
    cache = models.ModelCache()
    for k in range(3):
        with pm.Model() as model:
            pm.Beta("p", 1 + k, 1)
        cache.prepare(models.Structure.of(model), {})
    assert len(cache.prepared) == 2


def test_statistics_are_those_of_the_draws():
    """Against ArviZ, and by hand."""
    x = np.random.default_rng(1).normal(size=(2, 200, 3)).cumsum(axis=1)
    draws = xr.DataArray(x, dims=("chain", "draw", "k"), coords={"k": ["a", "b", "c"]}, name="x")
    nothing = np.full(3, np.nan)
    information = {"missing_information": nothing, "missing_information_mcse": nothing}
    truth = np.array([0.0, 1.0, 1e9])
    entries = list(summarise(draws, truth=truth, prob=0.8, seconds=2.0, information=information))
    ess, r_hat = (f(draws.to_dataset())["x"] for f in (az.ess, az.rhat))
    for k, entry in enumerate(entries):
        mine = x[..., k]
        assert (entry["parameter"], entry["entry"]) == ("x", f'{{"k": "{"abc"[k]}"}}')
        assert entry["mean"] == pytest.approx(mine.mean())
        assert entry["median"] == pytest.approx(np.median(mine))
        assert entry["sd"] == pytest.approx(mine.std(ddof=1))
        assert entry["lower"] == pytest.approx(np.quantile(mine, 0.1))
        assert entry["upper"] == pytest.approx(np.quantile(mine, 0.9))
        assert entry["width"] == entry["upper"] - entry["lower"]
        assert entry["error"] == entry["mean"] - truth[k]
        assert entry["covered"] == (entry["lower"] <= truth[k] <= entry["upper"])
        assert entry["ess_bulk"] == pytest.approx(float(ess[k]))
        assert entry["ess_per_second"] == pytest.approx(float(ess[k]) / 2)
        assert entry["r_hat"] == pytest.approx(float(r_hat[k]))
    assert entries[2]["covered"] == 0


def test_draws_that_are_nan_cover_nothing_and_miss_nothing():
    draws = xr.DataArray(np.full((2, 20), np.nan), dims=("chain", "draw"), name="x")
    information = dict.fromkeys(("missing_information", "missing_information_mcse"), np.array(0.5))
    [entry] = summarise(draws, truth=0.0, prob=0.8, seconds=1.0, information=information)
    assert np.isnan(entry["covered"])


def test_missing_information_is_that_of_the_diagnostics():
    """Two estimates from chains of their own, within their Monte Carlo errors."""
    one = replace(runner(), sample_kwargs={**DEFAULTS, "draws": 1000, "tune": 100})
    [cell] = read_grid({"share": [0.3]}, 1).cells
    released, _ = functions.simulate(
        np.random.default_rng(cell.seeds(1).spawn(3)[0]), **cell.settings
    )
    model = functions.build(released, **cell.settings)
    idata = pmd.sample(
        2000, model=model, keep_records=True, chains=2, cores=1, progressbar=False, random_seed=2
    )
    expected, error = pmd.diagnostics.missing_information(idata, model, random_seed=3)["p"].values
    entry = one(cell).parameters[0]
    difference = entry["missing_information"] - expected
    assert abs(difference) < 4 * np.hypot(entry["missing_information_mcse"], error)
    assert 0 < entry["missing_information_mcse"] < 0.1


def with_table(released, share):
    with pm.Model() as model:
        table = pm.Binomial("table", functions.N, pm.Beta("p", 1, 1))
        pm.Normal("moved by another step", 0, 1)
        functions.MECHANISM.potential("privacy", table, released=released["count"])
    return model


@pytest.mark.parametrize("integrated_out", [True, False])
def test_missing_information_of_parameters_above_counts(integrated_out):
    """Catches parameters that a CountStep draws, and that are taken for latent: 1 exactly."""
    run = runner(
        lambda rng, share: (functions.simulate(rng, share)[0], {}),
        with_table,
        var_names=("p",),
        sample_kwargs={**functions.FAST, **DEFAULTS, "conjugate": integrated_out},
    )
    [cell] = read_grid({"share": [0.3]}, 1).cells
    result = run(cell)
    assert result.status == "done", result.message
    fractions = [entry["missing_information"] for entry in result.parameters]
    if integrated_out:
        assert np.isnan(fractions).all()
    else:
        assert all(0 < fraction < 1 for fraction in fractions)


def vector(released, share):
    with pm.Model(coords={"answer": ["no", "yes"]}) as model:
        count = int(np.clip(released["count"], 0, functions.N))
        p = pm.Dirichlet("p", np.ones(2), dims="answer")
        pm.Multinomial("answers", functions.N, p, observed=[functions.N - count, count])
        pm.Deterministic("odds", p[1] / p[0])
        pm.Deterministic("pair", pm.math.stack([p, p]))
    return model


def simulate_vector(rng, share):
    released, _ = functions.simulate(rng, share)
    p = np.array([1 - share, share])
    return released, {"p": p, "pair": np.stack([p, p]), "unknown to the model": 1}


def in_this_process(simulate, build, grid, **options):
    with ThreadPoolExecutor(1) as executor:
        return study(
            simulate,
            build,
            grid,
            seed=1,
            executor=executor,
            sample_kwargs=functions.FAST,
            progressbar=False,
            **options,
        )


def test_parameters_keep_their_dims():
    result = in_this_process(simulate_vector, vector, functions.GRID, replicates=2)
    assert set(result.children) == {"p", "pair"}
    mean = result["p/mean"]
    assert mean.dims == ("share", "replicate", "answer")
    np.testing.assert_allclose(mean.sum("answer"), 1)
    truth = result["p/truth"].isel(replicate=0)
    assert truth.sel(answer="yes", share=0.7) == 0.7
    assert result["pair/coverage"].dims == ("share", "pair_dim_0", "pair_dim_1")
    np.testing.assert_array_equal(result["pair/mean"].isel(pair_dim_0=1), mean)
    bias = (mean - result["p/truth"]).mean("replicate")
    np.testing.assert_allclose(result["p/bias"], bias, rtol=1e-12)


def test_var_names_without_a_truth():
    result = in_this_process(
        simulate_vector, vector, {"share": [0.3]}, var_names=["odds"], missing_information=False
    )
    odds = result["odds"]
    assert odds["sd"] > 0
    assert odds["truth"].isnull().all()
    assert odds["covered"].isnull().all()
    assert odds["missing_information"].isnull().all()


def test_a_table_of_cells_and_dims_of_the_same_name():
    def build(released, cells, share):
        with pm.Model(coords={"cell": ["no", "yes"]}) as model:
            pm.Dirichlet("p", np.ones(cells), dims="cell")
        return model

    def simulate(rng, cells, share):
        return {}, {"p": np.array([1 - share, share])}

    table = [{"cells": 2, "share": 0.3}, {"cells": 2, "share": 0.7}, {"cells": 2, "share": 0.1}]
    table[0]["share"], table[2]["cells"] = 0.3, 3
    with pytest.warns(UserWarning, match="of 3 cells, 1 failed"):
        result = in_this_process(simulate, build, table)
    assert list(result["status"].isel(replicate=0)) == ["done", "done", "failed"]
    assert result["p/mean"].dims == ("cell", "replicate", "p_cell")
    assert list(result["share"].values) == [0.3, 0.7, 0.1]


@pytest.mark.parametrize("dim", ["mean", "coverage"])
def test_a_dim_with_the_name_of_a_statistic_gets_another_one(dim):
    """Else a study would end with an error when all its cells are done."""

    def build(released, share):
        with pm.Model(coords={dim: ["no", "yes"]}) as model:
            pm.Dirichlet("p", np.ones(2), dims=dim)
        return model

    result = in_this_process(simulate_vector, build, {"share": [0.3]})
    assert result["p/mean"].dims == ("share", "replicate", f"p_{dim}")
    assert result["p/coverage"].dims == ("share", f"p_{dim}")


def test_monte_carlo_errors_of_bias_and_coverage():
    result = in_this_process(simulate_vector, vector, {"share": [0.3]}, replicates=4)
    p = result["p"].dataset.isel(share=0, answer=0)
    np.testing.assert_allclose(p["bias_mcse"], p["error"].std(ddof=1) / 2)
    share = (p["covered"].sum() + 1) / 6
    np.testing.assert_allclose(p["coverage_mcse"], np.sqrt(share * (1 - share) / 4))


@pytest.mark.parametrize(
    ("simulate", "build", "options", "message"),
    [
        (lambda rng, share: 1 / 0, functions.build, {}, "simulate: ZeroDivisionError: division"),
        (lambda rng, share: ({}, 1), functions.build, {}, "simulate must return two dicts"),
        (functions.simulate, lambda released, share: None, {}, "build must return a pm.Model"),
        (functions.simulate, lambda released, share: exit(1), {}, "build: SystemExit: 1"),
        (lambda rng, share: ({"count": 3}, {"q": 1}), functions.build, {}, "pass var_names="),
        (functions.simulate, functions.build, {"var_names": ("q",)}, "no variables \\['q'\\]"),
        (
            lambda rng, share: ({"count": 3}, {"p": [1]}),
            functions.build_light,
            {},
            "shape \\(1,\\)",
        ),
        (lambda rng, share: ({"count": 0.5}, {"p": 1}), functions.build, {}, "count|whole|integer"),
    ],
)
def test_what_goes_wrong_becomes_part_of_the_result(simulate, build, options, message):
    [cell] = read_grid({"share": [0.3]}, 1).cells
    result = runner(simulate, build, **options)(cell)
    assert result.status == "failed"
    assert re.search(message, result.message), result.message
    assert result.parameters == []


def test_a_name_that_means_something_else_is_refused():
    [cell] = read_grid({"p": [0.3]}, 1).cells
    result = runner(
        lambda rng, p: functions.simulate(rng, p), lambda released, p: functions.build(released, p)
    )(cell)
    assert "rename" in result.message


def test_a_parameter_cannot_have_the_name_of_a_dim():
    def build(released, share):
        with pm.Model() as model:
            pm.Binomial("answers", functions.N, pm.Beta("replicate", 1, 1), observed=3)
        return model

    [cell] = read_grid({"share": [0.3]}, 1).cells
    assert "rename" in runner(build=build, var_names=("replicate",))(cell).message


def test_sampling_stops_when_time_is_up():
    """A million draws would take minutes."""
    settings = {**functions.FAST, **DEFAULTS, "draws": 1_000_000}
    [cell] = read_grid({"share": [0.3]}, 1).cells
    result = runner(build=functions.build_light, timeout=0.2, sample_kwargs=settings)(cell)
    assert result.status == "timed out"
    assert "0.2 s" in result.message
    assert result.parameters == []


def test_a_chain_that_was_interrupted_is_no_result(monkeypatch):
    """PyMC takes an interrupt as a wish to stop, and returns the draws that it has."""

    def interrupt(self, trace, draw):
        if not draw.tuning:
            raise KeyboardInterrupt

    monkeypatch.setattr(cells._Watch, "__call__", interrupt)
    [cell] = read_grid({"share": [0.3]}, 1).cells
    result = runner(build=functions.build_light)(cell)
    assert (result.status, result.parameters) == ("failed", [])
