"""What a worker does for a cell.

The fraction of missing information of a cell.
"""

import re
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.studies import cell as cells
from pymc_dapper.studies.grid import read_grid
from tests.studies import functions
from tests.studies.runs import DEFAULTS, runner

pytestmark = pytest.mark.long


@pytest.mark.parametrize(
    ("simulate", "build", "options", "message"),
    [
        (lambda rng, share: 1 / 0, functions.build, {}, "simulate: ZeroDivisionError: line "),
        (lambda rng, share: ({}, 1), functions.build, {}, "simulate must return two dicts"),
        (functions.simulate, lambda released, share: None, {}, "build must return a pm.Model"),
        (functions.simulate, lambda released, share: exit(1), {}, "build: SystemExit: line "),
        (lambda rng, share: ({"count": 3}, {"q": 1}), functions.build, {}, "pass var_names="),
        (functions.simulate, functions.build, {"var_names": ("q",)}, "no variables \\['q'\\]"),
        (
            lambda rng, share: ({"count": 3}, {"p": [1]}),
            functions.build_light,
            {},
            "shape \\(1,\\)",
        ),
        (lambda rng, share: ({"count": 0.5}, {"p": 1}), functions.build, {}, "Error: line "),
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
    assert "Rename" in result.message


def test_a_parameter_cannot_have_the_name_of_a_dim():
    def build(released, share):
        with pm.Model() as model:
            pm.Binomial("answers", functions.N, pm.Beta("replicate", 1, 1), observed=3)
        return model

    [cell] = read_grid({"share": [0.3]}, 1).cells
    assert "Rename" in runner(build=build, var_names=("replicate",))(cell).message


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


pytestmark = pytest.mark.long


def test_missing_information_is_that_of_the_diagnostics():
    """Two estimates from chains of their own, within their Monte Carlo errors."""
    one = replace(runner(), sample_kwargs={**DEFAULTS, "draws": 1000, "tune": 100})
    [cell] = read_grid({"share": [0.3]}, 1).cells
    released, _ = functions.simulate(
        np.random.default_rng(cell.seeds(1).spawn(3)[0]), **cell.settings
    )
    model = functions.build(released, **cell.settings)
    idata = pmd.sample(
        2000,
        model=model,
        keep_records=True,
        chains=2,
        cores=1,
        progressbar=False,
        random_seed=2,
        compute_convergence_checks=False,
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


@pytest.mark.parametrize("marginalised", [True, False])
def test_missing_information_of_parameters_above_counts(marginalised):
    """Catches parameters that a CountStep draws, and that are taken for latent: 1 exactly."""
    run = runner(
        lambda rng, share: (functions.simulate(rng, share)[0], {}),
        with_table,
        var_names=("p",),
        sample_kwargs={
            **functions.FAST,
            **DEFAULTS,
            "conjugate": marginalised,
            "marginalise": False,
        },
    )
    [cell] = read_grid({"share": [0.3]}, 1).cells
    result = run(cell)
    assert result.status == "done", result.message
    fractions = [entry["missing_information"] for entry in result.parameters]
    if marginalised:
        assert np.isnan(fractions).all()
    else:
        assert all(0 < fraction < 1 for fraction in fractions)
