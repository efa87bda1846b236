"""Chains that were interrupted or killed go on as if nothing had been, to the bit.

PyMC's ZarrTrace keeps, beside the draws, each step's ``sampling_state`` at the last draw written.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numcodecs
import numpy as np
import pymc as pm
import pytest
import zarr
from pymc.backends.zarr import ZarrTrace
from pymc.step_methods.compound import CompoundStep

import pymc_dapper as pmd
from pymc_dapper.backend.iterations import Iterations
from pymc_dapper.steps import gibbs
from pymc_dapper.steps.conditional_nuts import conditional_nuts
from tests.evaluated_in_python import evaluated_in_python
from tests.states import same_states

# A ZarrTrace keeps states as pickles, which numcodecs reads if one says that one trusts them.
numcodecs.pickles.ALLOW_UNSAFE_PICKLE_DECODE = True

# For a DataTree, xarray would need a newer zarr than ZarrTrace can do with.
pytestmark = pytest.mark.filterwarnings("ignore:.return_inferencedata=False.:FutureWarning")

TUNE, DRAWS = 24, 12
ROOT = Path(__file__).parents[1]


def build_model():
    """Something for each step to move."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        record = pm.Normal("record", mu, 1, shape=4)
        rate = pm.Gamma("rate", 2, 1)
        count = pm.Poisson("count", rate, shape=2)
        scale = pm.HalfNormal("scale", 1)
        pm.Normal("noisy_sum", record.sum(), 1.5, observed=2.0)
        pm.Normal("noisy_counts", count, 2.0, observed=[1.0, 4.0])
        pm.Normal("y", 0, scale, observed=0.7)
    return model


def draw_rate(rng, point):
    return {"rate": rng.gamma(2 + point["count"].sum(), 1 / 3)}


@evaluated_in_python()
def build_steps(model):
    with model:
        return [
            pmd.DapperStep([model["record"]]),
            pmd.InterweaveStep([model["mu"]], records=[model["record"]]),
            pmd.ConjugateStep([model["mu"]]),
            pmd.CountStep([model["count"]]),
            pmd.FunctionStep([model["rate"]], draw=draw_rate),
            conditional_nuts([model.rvs_to_values[model["scale"]]], model),
        ]


@pytest.fixture(scope="module")
def model():
    return build_model()


@pytest.fixture(scope="module")
def steps(model):
    return build_steps(model)


@evaluated_in_python()
def sample(model, steps, folder, callback=None, *, draws_per_chunk=1):
    trace = ZarrTrace(
        store=zarr.DirectoryStore(folder),
        draws_per_chunk=draws_per_chunk,
        include_transformed=True,
    )
    pm.sample(
        DRAWS,
        tune=TUNE,
        chains=1,
        cores=1,
        model=model,
        step=steps,
        trace=trace,
        random_seed=1,
        callback=callback,
        progressbar=False,
        compute_convergence_checks=False,
        return_inferencedata=False,
    )


def written(folder, names):
    """Draws that a store has of value variables, one point for each, tuning among them."""
    root = zarr.open(str(folder), mode="r")
    done = int(root["_sampling_state/draw_idx"][0])
    values = {}
    for name in names:
        group = "unconstrained_posterior" if name.endswith("__") else "posterior"
        parts = [
            root[f"{part}/{name}"][0]
            for part in (f"warmup_{group}", group)
            if f"{part}/{name}" in root
        ]
        values[name] = np.concatenate(parts)[:done]
    return [{name: values[name][k] for name in names} for k in range(done)]


def go_on(folder, step, points):
    """Take up a chain from a store, and add its further draws to those that were written."""
    step.sampling_state = zarr.open(str(folder), mode="r")["_sampling_state/sampling_state"][0]
    points, point = list(points), points[-1]
    for k in range(len(points), TUNE + DRAWS):
        if k == TUNE:
            step.stop_tuning()
        point, _ = step.step(point)
        points.append(point)
    return points


def same(one, other):
    return len(one) == len(other) and all(
        np.array_equal(a[name], b[name]) for a, b in zip(one, other, strict=True) for name in a
    )


STOPS = (3, TUNE - 1, TUNE, TUNE + 9)


@pytest.fixture(scope="module")
def whole(model, steps, tmp_path_factory):
    """A chain that wasn't interrupted, and what it would have left if it had been killed."""
    folder = tmp_path_factory.mktemp("whole")

    def copy(trace, draw):
        if draw.draw_idx in STOPS:
            shutil.copytree(folder / "store", folder / f"killed-{draw.draw_idx}")

    sample(model, steps, folder / "store", copy)
    return folder


def names_of(model):
    return [x.name for x in model.value_vars]


@pytest.fixture
def step(steps):
    """The steps, in another state than any that a store has."""
    step = CompoundStep(steps)
    step.setup_chain(np.random.default_rng(99), 7, 5)
    return step


def final_state(folder):
    return zarr.open(str(folder), mode="r")["_sampling_state/sampling_state"][0]


@pytest.mark.parametrize("stop", STOPS)
def test_a_killed_chain_goes_on_to_the_bit(model, whole, step, stop):
    expected = written(whole / "store", names_of(model))
    assert len(expected) == TUNE + DRAWS
    before = written(whole / f"killed-{stop}", names_of(model))
    assert same(before, expected[: stop + 1])
    assert same(go_on(whole / f"killed-{stop}", step, before), expected)
    assert same_states(step.sampling_state, final_state(whole / "store"))


def test_all_variables_move(model, whole):
    """Else equal chains would show nothing."""
    points = written(whole / "store", names_of(model))[TUNE:]
    for name in names_of(model):
        assert len({point[name].tobytes() for point in points}) > 3


def test_a_step_whose_state_is_not_restored_is_found_out(model, whole, step, steps):
    """A twin of the first test: one step at a time begins with a generator of its own."""
    expected = written(whole / "store", names_of(model))
    folder = whole / f"killed-{TUNE}"
    before = written(folder, names_of(model))
    for k, each in enumerate(steps):
        go_on(folder, step, before)
        state = final_state(folder)
        fresh = each.sampling_state
        state.methods[k] = fresh
        step.sampling_state = state
        points = [*before, step.step(before[-1])[0]]
        moved = [x.name for x in each.vars]
        assert any(
            not np.array_equal(points[-1][name], expected[len(before)][name]) for name in moved
        ), each


@pytest.mark.parametrize(("stop", "draws_per_chunk"), [(TUNE + 5, 1), (TUNE + 9, 8)])
def test_an_interrupted_chain_goes_on_to_the_bit(
    model, whole, steps, step, tmp_path, stop, draws_per_chunk
):
    """If draws are written in chunks, an interruption keeps those up to the last chunk."""

    def interrupt(trace, draw):
        if draw.draw_idx == stop:
            if draws_per_chunk > 1:  # PyMC writes the present state beside the last chunk's draws
                shutil.copytree(tmp_path / "store", tmp_path / "killed")
            raise KeyboardInterrupt

    sample(model, steps, tmp_path / "store", interrupt, draws_per_chunk=draws_per_chunk)
    step.setup_chain(np.random.default_rng(99), 7, 5)
    folder = tmp_path / ("store" if draws_per_chunk == 1 else "killed")
    before = written(folder, names_of(model))
    assert len(before) == (stop + 1) // draws_per_chunk * draws_per_chunk
    expected = written(whole / "store", names_of(model))
    assert same(go_on(folder, step, before), expected)


@pytest.mark.parametrize("draws_per_chunk", [1, 4])
def test_a_chain_whose_iterations_were_computed_at_once_goes_on_to_the_bit(
    tmp_path, monkeypatch, draws_per_chunk
):
    """It is killed within a block: a state is that of the last draw that was written."""
    monkeypatch.setattr(gibbs, "FEWEST", 0)
    monkeypatch.setattr(gibbs, "SECONDS", 1e6)
    stop, lengths, call = TUNE + 8, [], Iterations.__call__

    def counting(self, n, *arguments):
        lengths.append(n)
        return call(self, n, *arguments)

    monkeypatch.setattr(Iterations, "__call__", counting)
    with pm.Model() as small:
        mu = pm.Normal("mu", 0, 1)
        record = pm.Normal("record", mu, 1, shape=4)
        pm.Normal("noisy_sum", record.sum(), 1.5, observed=2.0)
        with evaluated_in_python():
            step = pmd.GibbsStep([pmd.DapperStep([record]), pmd.ConjugateStep([mu])])

    def copy(trace, draw):
        if draw.draw_idx == stop:
            shutil.copytree(tmp_path / "store", tmp_path / "killed")

    sample(small, step, tmp_path / "store", copy, draws_per_chunk=draws_per_chunk)
    assert max(lengths) > 2
    step.setup_chain(np.random.default_rng(99), 7, 5)
    before = written(tmp_path / "killed", names_of(small))
    assert len(before) == (stop + 1) // draws_per_chunk * draws_per_chunk
    expected = written(tmp_path / "store", names_of(small))
    assert same(go_on(tmp_path / "killed", step, before), expected)


SCRIPT = """
import sys, time
from tests import surroundings  # graphs are evaluated as here: rewritten, they round otherwise
from tests import test_resumption as tests

def wait(trace, draw):
    if draw.draw_idx == tests.TUNE // 2:
        time.sleep(600)

if __name__ == "__main__":
    model = tests.build_model()
    tests.sample(model, tests.build_steps(model), sys.argv[1], wait)
"""


@pytest.mark.long
def test_a_process_that_is_killed_leaves_a_chain_to_go_on_with(model, whole, step, tmp_path):
    """In this process, whose steps were made anew."""
    script, folder = tmp_path / "script.py", tmp_path / "store"
    script.write_text(SCRIPT)
    process = subprocess.Popen(
        [sys.executable, str(script), str(folder)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )

    def n_written():
        try:
            return len(written(folder, names_of(model)))
        except (KeyError, ValueError, zarr.errors.GroupNotFoundError):  # not begun
            return 0

    try:
        while n_written() <= TUNE // 2 and process.poll() is None:
            time.sleep(0.1)
    finally:
        process.kill()
        process.wait()
    before = written(folder, names_of(model))
    assert len(before) == TUNE // 2 + 1
    assert same(go_on(folder, step, before), written(whole / "store", names_of(model)))
