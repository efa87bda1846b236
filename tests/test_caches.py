"""Compiled code on disk: never another model's, never compiled twice, and found by workers.

Models of the same shapes and dtypes share one cache directory, in processes of their own. They
differ in a constant of the mechanism's density, or in its formula.
"""

import json
import os
import re
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numba.core import event
from pytensor.link.numba import cache as numba_cache

import pymc_dapper as pmd
from pymc_dapper.backend.accelerate.switch import is_on
from pymc_dapper.records.compiled.sweep import NEVER
from tests.preloaded import preloaded

DENSITIES = {
    "laplace": lambda error: -pt.abs(error),
    "wide laplace": lambda error: -pt.abs(error) / 4,
    "gaussian": lambda error: -(error**2) / 2,
}
RECORDS = np.array([1.0, 2.0, 3.0, 4.0])
ERROR = 9.0
EXPECTED = {"laplace": -ERROR, "wide laplace": -ERROR / 4, "gaussian": -(ERROR**2) / 2}


def build_step(density):
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=4)
        pm.Potential("privacy", DENSITIES[density](record.sum() - 1.0))
    return pmd.DapperStep([record], model=model)


def log_density(step):
    """The compiled sweep's log-density of given records, with all proposals rejected."""
    _, (_, logp) = step.sweep.update(np.random.default_rng(0), [RECORDS], [], by=NEVER)
    return float(logp)


class Compilations(event.Listener):
    """Names of the functions that numba compiles."""

    def __init__(self):
        self.names = []

    def on_start(self, event):
        self.names.append(getattr(event.data["dispatcher"], "__name__", "in Python"))

    def on_end(self, event):
        pass


def compiled_in(work):
    """Names of the functions that a task compiles, and its result."""
    compilations = Compilations()
    with event.install_listener("numba:compile", compilations):
        result = work()
    return compilations.names, result


def in_worker(density, pickled):
    """What a worker compiles for a step that it builds, and for one that it is sent; what both say.

    It is a process of its own, so nothing is in its memory.
    """
    return {
        "built": compiled_in(lambda: log_density(build_step(density))),
        "sent": compiled_in(lambda: log_density(cloudpickle.loads(pickled))),
    }


def report(densities):
    """What one process computes and compiles, and a step for others."""
    found = [report_of(density) for density in densities]
    # By now the cache holds what is needed, and code of other models that came later.
    return found, cloudpickle.dumps(build_step(densities[0]))


def report_of(density):
    """What a process computes and compiles for one model."""
    names, step = compiled_in(lambda: build_step(density))
    names_again, step_again = compiled_in(lambda: build_step(density))
    return {
        "log_density": log_density(step),
        "log_density_again": log_density(step_again),
        "compiled": names,
        "compiled_again": names_again,
    }


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def reports(cache):
    """What a process and its worker report, which use one cache directory after each other."""
    found, step = in_new_process(cache, report, [*DENSITIES])
    return found, in_new_process(cache, in_worker, next(iter(DENSITIES)), step)


def in_new_process(cache, work, *arguments):
    """Libraries are loaded in it, and nothing is compiled."""
    with ProcessPoolExecutor(1, preloaded(), initializer=begin, initargs=(cache,)) as pool:
        return pool.submit(work, *arguments).result()


def begin(cache):
    warnings.simplefilter("error")
    numba_cache.NUMBA_CACHE_PATH = cache / "numba"
    numba_cache.NUMBA_CACHE_PATH.mkdir(exist_ok=True)


def environment(cache):
    flags = f"base_compiledir={cache},cxx={pytensor.config.cxx}"
    return os.environ | {"PYTENSOR_FLAGS": flags, "PYTHONPATH": "."}


def test_each_model_runs_its_own_code(reports):
    """Fails if the key of a cached kernel leaves out the density, or constants of it."""
    for density, found in zip(DENSITIES, reports[0], strict=True):
        assert found["log_density"] == pytest.approx(EXPECTED[density])
        assert found["log_density_again"] == pytest.approx(EXPECTED[density])


def test_nothing_is_compiled_twice_in_a_process(reports):
    """Fails if a kernel has no key, so that each step compiles it anew."""
    for found in reports[0]:
        assert found["compiled_again"] == []
    # The count does count.
    assert len(reports[0][0]["compiled"]) > 10


@pytest.mark.parametrize("step", ["built", "sent"])
def test_another_process_finds_what_was_compiled(reports, step):
    """Fails if a key changes when a graph is pickled, as that of an empty constant does."""
    names, value = reports[1][step]
    assert names == []
    assert value == pytest.approx(EXPECTED[next(iter(DENSITIES))])


WHOLE = "one_function" if is_on("one_function") else "numba_funcified_fgraph"
"""The name of a compiled function, in which the sweep is a part."""

DAMAGE = {
    "emptied": lambda content: b"",
    "cut off": lambda content: content[: len(content) // 2],
    "cut off at the end": lambda content: content[:-1],
    "overwritten": lambda content: bytes(len(content)),
}


@pytest.fixture
def damaged(cache, reports, tmp_path, monkeypatch):
    """A copy of other processes' compiled code, used as this process's cache."""
    for file in (cache / "numba").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    monkeypatch.setattr(numba_cache, "NUMBA_CACHE_PATH", tmp_path)
    names, step = compiled_in(lambda: build_step("laplace"))
    assert names == []
    assert log_density(step) == EXPECTED["laplace"]
    return tmp_path


@pytest.mark.parametrize("kind", DAMAGE)
@pytest.mark.parametrize("files", ["*.nbi", "*.nbc"])
def test_a_damaged_cache_is_told(kind, files, damaged):
    """By an error that says what to delete; and that is enough."""
    for file in damaged.glob(files):
        file.write_bytes(DAMAGE[kind](file.read_bytes()))
    named = re.escape(f"Compiled code in '{damaged}' can't be used in DapperStep for ")
    with pytest.raises(Exception, match=named + ".*Delete that folder"):
        build_step("laplace")


def test_one_damaged_file_is_enough(damaged):
    """Whichever it is: what isn't needed does no harm, and nothing gives a wrong function."""
    told = 0
    for file in {*damaged.glob(f"string.{WHOLE}*.nbc"), *sorted(damaged.glob("*.nbc"))[::4]}:
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 3])
        try:
            assert log_density(build_step("laplace")) == EXPECTED["laplace"]
        except Exception as error:
            told += any(str(damaged) in note for note in error.__notes__)
        file.write_bytes(content)
    assert told > 0


@pytest.mark.long
def test_missing_code_is_compiled_anew(damaged):
    for file in list(damaged.glob(f"string.{WHOLE}*")):
        file.unlink()
    names, step = compiled_in(lambda: build_step("laplace"))
    assert WHOLE in names
    assert log_density(step) == EXPECTED["laplace"]


def test_code_of_another_model_is_detected(damaged):
    """The compiled sweep is compared with the model, so a file in another's place is noticed."""
    sweeps = sorted(damaged.glob(f"string.{WHOLE}*.nbc"))
    contents = [file.read_bytes() for file in sweeps]
    assert len(sweeps) == len(DENSITIES)
    said = []
    for file, content in zip(sweeps, contents[1:] + contents[:1], strict=True):
        file.write_bytes(content)
    for density in DENSITIES:
        with pytest.raises(pmd.ReadingError, match="PyTensor's cache") as caught:
            build_step(density)
        said.append(str(caught.value))
    assert len(set(said)) == len(DENSITIES)


def draw_counts():
    """Run by a new process: print draws of records and counts, and the compiled functions."""

    def draws():
        with pm.Model() as model:
            table = pm.Poisson("table", [30.0, 20.0, 10.0])
            pmd.LaplaceMechanism(2.0).potential("privacy", table, released=[33.0, 18.0, 7.0])
        step = pmd.CountStep([table], model=model)
        step.setup_chain(np.random.default_rng(1), tune=5, draws=15)
        point, found = model.initial_point(), []
        for _ in range(20):
            point, _ = step.step(point)
            found.append(point["table"].tolist())
        return [found, log_density(build_step("laplace"))]

    print(json.dumps(compiled_in(draws)))


@pytest.mark.long
def test_two_processes_may_compile_the_same_model_at_once(tmp_path):
    """Both are right; a third finds all that it needs, whoever wrote it."""

    def start():
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-c", "from tests.test_caches import *; draw_counts()"],
            env=environment(tmp_path),
            stdout=subprocess.PIPE,
            text=True,
        )

    at_once = [start(), start()]
    outputs = [process.communicate()[0] for process in at_once] + [start().communicate()[0]]
    (first, draws), (second, same), (third, again) = map(json.loads, outputs)
    assert draws == same == again
    assert draws[1] == EXPECTED["laplace"]
    # Each made machine code of its own, of kernels that all models share, too.
    assert {"swept", "kept"} <= {*first} & {*second}
    assert third == []
