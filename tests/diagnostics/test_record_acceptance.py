"""Acceptance by record: kept without an array per draw, read from what sampling returns."""

import numcodecs
import numpy as np
import pymc as pm
import pytensor
import pytest
import xarray as xr
import zarr
from pymc.backends.zarr import ZarrTrace

from pymc_dapper import DapperStep
from pymc_dapper.diagnostics import record_acceptance
from pymc_dapper.steps.stats import RECORD_STAT
from tests.evaluated_in_python import evaluated_in_python

N, DRAWS, TUNE = 6, 40, 15
WEIGHTS = np.array([0.0, 1.0, 1.0, 1.0, 1.0, 50.0])


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        mu = pm.Normal("mu")
        record = pm.Normal("record", mu, 1, shape=N)
        pm.Normal("s_dp", (WEIGHTS * record).sum(), 1.0, observed=20.0)
    return m


@pytest.fixture(scope="module")
def step(model):
    with evaluated_in_python():
        return DapperStep([model["record"]], model=model, track_records=True)


@pytensor.config.change_flags(mode="FAST_COMPILE")
def sample(model, steps, **kwargs):
    options = {"draws": DRAWS, "tune": TUNE, "chains": 2, "cores": 1, "random_seed": 1} | kwargs
    with model:
        return pm.sample(
            step=[*steps, pm.Metropolis([model["mu"]])],
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        )


@pytest.mark.parametrize("cores", [1, 2])
def test_it_is_the_share_of_draws_in_which_the_record_moved(model, step, cores):
    idata = sample(model, [step], cores=cores, discard_tuned_samples=False)
    rates = record_acceptance(idata)
    assert rates.dims == ("chain", "record")
    # A continuous record moves when, and only when, its proposal is accepted.
    before = idata["warmup_posterior"]["record"].isel(draw=[-1]).values
    path = np.concatenate([before, idata["posterior"]["record"].values], axis=1)
    moved = (np.diff(path, axis=1) != 0).mean(axis=1)
    np.testing.assert_allclose(rates.values, moved)
    assert np.all(rates.values[:, 0] == 1.0)
    assert np.all(rates.values[:, -1] < 0.5)


def tracked(idata):
    [stat] = [x for name, x in idata["sample_stats"].items() if name.startswith(RECORD_STAT)]
    return stat


def test_every_backend_can_store_it(model, step, tmp_path, monkeypatch):
    """As numbers of a fixed shape: in a store that is written while sampling, and afterwards."""
    idata = sample(model, [step])
    stat = tracked(idata)
    assert stat.dtype == bool
    assert stat.shape == (2, DRAWS, N)
    stat.to_dataset().to_netcdf(tmp_path / "after.nc", engine="scipy")
    with xr.open_dataset(tmp_path / "after.nc", engine="scipy") as stored:
        np.testing.assert_array_equal(stored[stat.name], stat)
    # A ZarrTrace keeps the steps' states as pickles.
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)
    trace = ZarrTrace(store=zarr.DirectoryStore(str(tmp_path / "while.zarr")), draws_per_chunk=7)
    with pytest.warns(FutureWarning, match="return_inferencedata"):
        sample(model, [step], trace=trace, return_inferencedata=False)
    stats = trace.root["sample_stats"].items()
    [meanwhile] = [x for name, x in stats if RECORD_STAT in name and x.ndim == 3]
    np.testing.assert_array_equal(meanwhile, stat)


def test_several_steps_are_told_apart():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        first = pm.Normal("first", mu, 1, shape=3)
        second = pm.Normal("second", mu, 1, shape=5)
        pm.Normal("s_dp", first.sum() + second.sum(), 1.0, observed=2.0)
    with evaluated_in_python():
        steps = [DapperStep([x], model=model, track_records=True) for x in (first, second)]
        idata = sample(model, steps)
    with pytest.raises(ValueError, match="2 steps tracked their records"):
        record_acceptance(idata)
    assert record_acceptance(idata, step=0).shape == (2, 3)
    assert record_acceptance(idata, step=1).shape == (2, 5)
    with pytest.raises(ValueError, match=r"step must be a whole number .* at most 1, got 5"):
        record_acceptance(idata, step=5)
    with pytest.raises(TypeError, match=r"step must be a whole number .*, got '0'"):
        record_acceptance(idata, step="0")


def test_without_tracking_it_says_so(model):
    with evaluated_in_python():
        idata = sample(model, [DapperStep([model["record"]], model=model)])
    with pytest.raises(ValueError, match="track_records=True"):
        record_acceptance(idata)


def test_an_interrupted_chain_has_the_rates_of_its_draws(model, step):
    def interrupt(trace, draw):
        if draw.chain == 1 and draw.draw_idx == TUNE + 20:
            raise KeyboardInterrupt

    idata = sample(model, [step], callback=interrupt)
    assert 0 < idata["posterior"].sizes["draw"] < DRAWS
    np.testing.assert_allclose(record_acceptance(idata), tracked(idata).values.mean(axis=1))
    moved = np.diff(idata["posterior"]["record"].values, axis=1) != 0
    np.testing.assert_array_equal(moved, tracked(idata).values[:, 1:])
