"""Acceptance by record: kept without an array per draw, read from what sampling returns."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import DapperStep
from pymc_dapper.diagnostics import record_acceptance
from pymc_dapper.steps.stats import RECORD_STAT

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
    return DapperStep([model["record"]], model=model, track_records=True)


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


def test_nothing_is_kept_per_draw(model, step):
    stat = sample(model, [step])["sample_stats"][RECORD_STAT].values
    assert all(value is None for value in stat[:, :-1].ravel())


def test_several_steps_are_told_apart():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        first = pm.Normal("first", mu, 1, shape=3)
        second = pm.Normal("second", mu, 1, shape=5)
        pm.Normal("s_dp", first.sum() + second.sum(), 1.0, observed=2.0)
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
    idata = sample(model, [DapperStep([model["record"]], model=model)])
    with pytest.raises(ValueError, match="track_records=True"):
        record_acceptance(idata)


def test_an_interrupted_chain_has_none_and_it_says_so(model, step):
    def interrupt(trace, draw):
        if draw.chain == 1 and draw.draw_idx == TUNE + 20:
            raise KeyboardInterrupt

    idata = sample(model, [step], callback=interrupt)
    with pytest.raises(ValueError, match=r"no acceptance by record for chain 0, 1.*interrupted"):
        record_acceptance(idata)


def test_tracking_survives_saving_and_restoring_the_state(model, step):
    step.setup_chain(np.random.default_rng(3), tune=1, draws=4)
    point = model.initial_point()
    for _ in range(3):
        point, _ = step.step(point)
    saved = step.sampling_state

    def finish():
        now = point
        for _ in range(2):
            now, [stats] = step.step(now)
        return stats[RECORD_STAT]

    first = finish()
    step.sampling_state = saved
    np.testing.assert_array_equal(finish(), first)
    assert first.shape == (N,)
