"""What a cell reports of a parameter's draws."""

import arviz as az
import numpy as np
import pytest
import xarray as xr

from pymc_dapper.studies.summaries import summarise

pytestmark = pytest.mark.long


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
