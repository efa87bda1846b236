"""The fraction of missing information of a cell."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.studies.grid import read_grid
from tests.studies import functions
from tests.studies.runs import DEFAULTS, runner

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


@pytest.mark.parametrize("integrated_out", [True, False])
def test_missing_information_of_parameters_above_counts(integrated_out):
    """Catches parameters that a CountStep draws, and that are taken for latent: 1 exactly."""
    run = runner(
        lambda rng, share: (functions.simulate(rng, share)[0], {}),
        with_table,
        var_names=("p",),
        sample_kwargs={
            **functions.FAST,
            **DEFAULTS,
            "conjugate": integrated_out,
            "marginalise": False,
        },
    )
    [cell] = read_grid({"share": [0.3]}, 1).cells
    result = run(cell)
    assert result.status == "done", result.message
    fractions = [entry["missing_information"] for entry in result.parameters]
    if integrated_out:
        assert np.isnan(fractions).all()
    else:
        assert all(0 < fraction < 1 for fraction in fractions)
