"""Each internal of numba's and PyTensor's that accelerations rely on, taken away by itself.

In a process of its own, which imports the package anew and doesn't find it. Models are sampled all
the same, and draws are those of the same models evaluated in Python, but for rounding. So it is
with all accelerations off.
"""

import ast
import builtins
import logging
import os
import sys
from importlib import import_module
from multiprocessing import get_all_start_methods, get_context

import numpy as np
import pytest
from pytensor.link.numba import cache

import pymc_dapper as pmd
from pymc_dapper.backend.accelerate.switch import MODULES, SWITCH
from tests.backend.test_internals import ACCELERATIONS, BACKEND, PACKAGE, imports, is_internal, used
from tests.evaluated_in_python import evaluated_in_python
from tests.small_models import MODELS

LLVM = {"llvmlite.ir", "llvmlite.binding."}
ONE_FUNCTION = [file for file in BACKEND if PACKAGE / "one_function" in file.parents]
ELSEWHERE = used([file for file in BACKEND if file not in (*ACCELERATIONS, *ONE_FUNCTION)])
"""What the plain way needs, too: PyTensor's dispatch, which it documents."""
ELSEWHERE |= {name.rpartition(".")[0] for name in ELSEWHERE}
TAKEN = sorted((used([*ACCELERATIONS, *ONE_FUNCTION]) | LLVM) - ELSEWHERE)

OFF = {
    "numba.core.event": {"deferred_libraries", "addresses"},
    "llvmlite.binding.": {"deferred_libraries", "addresses", "generators"},
    "numba.core.cgutils": {"addresses", "generators"},
    "numba.core.imputils.lower_constant": {"addresses"},
    "numba.np.arrayobj.make_array": {"addresses", "generators"},
    "pytensor.link.numba.dispatch.basic.numba_funcify_ensure_cache": {"one_function"},
}
"""What is off without each of these, and without any other the same as without one of these."""
QUICK = "numba.core.event"
"""The one of every run."""

OPTIONS = {"draws": 10, "tune": 10, "chains": 1, "random_seed": 1, "progressbar": False}
OPTIONS |= {"compute_convergence_checks": False}
METHOD = "fork" if "fork" in get_all_start_methods() else "spawn"


def drawn(package, names, models):
    found = {}
    for name in names:
        model, own = models[name]()
        with pytest.MonkeyPatch.context() as patch:
            if name == "regression":  # so little tuning never needs InterweaveStep
                patch.setattr(package.InterweaveStep, "of_reading", at_once(package))
            posterior = package.sample(model=model, **own, **OPTIONS).posterior
        found[name] = {x: posterior[x].values for x in posterior.data_vars}
    return found


def at_once(package):
    """Make a step that doesn't wait for tuning to need it."""
    made = package.InterweaveStep.of_reading
    return lambda *args, **options: made(*args, **{**options, "when_needed": False})


def sampled_without(taken, names, plain, folder):
    """Draws without an internal, what is off, and what the log says: the process's body."""
    for name in [name for name in sys.modules if name.startswith(("pymc_dapper", "tests.small"))]:
        del sys.modules[name]
    module, _, attribute = taken.rstrip(".").rpartition(".")
    imported, said = builtins.__import__, []

    def without(name, globals=None, locals=None, fromlist=(), level=0):
        asks = (globals or {}).get("__name__", "").startswith("pymc_dapper")
        named = (name == module and attribute in (fromlist or ())) or name == taken.rstrip(".")
        if taken and asks and named:
            raise ImportError(f"cannot import name {attribute!r} from {module!r}")
        return imported(name, globals, locals, fromlist, level)

    builtins.__import__ = without
    os.environ[SWITCH] = "1" if plain else ""
    cache.NUMBA_CACHE_PATH = folder
    log = logging.getLogger("pymc")
    log.addHandler(logging.Handler())
    log.handlers[-1].emit = lambda record: said.append(record.getMessage())
    anew = import_module("pymc_dapper")
    anew.LaplaceMechanism(2.0)
    found = drawn(anew, names, import_module("tests.small_models").MODELS)
    is_on = import_module("pymc_dapper.backend.accelerate.switch").is_on
    off = {name for name in MODULES if not is_on(name)}
    return found, off, [line for line in said if "more slowly" in line]


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """What is off, and what the log says, where draws are those of the models in Python.

    In processes that share a folder of compiled code.
    """
    folder, known = tmp_path_factory.mktemp("cache"), {}

    def compare(taken, *names, plain=False):
        with get_context(METHOD).Pool(1) as pool:
            draws, off, said = pool.apply(sampled_without, (taken, names, plain, folder))
        with evaluated_in_python():
            known.update(drawn(pmd, [x for x in names if x not in known], MODELS))
        for name in names:
            for x, of in known[name].items():
                message = f"{x} of {name}"
                np.testing.assert_allclose(draws[name][x], of, rtol=1e-9, err_msg=message)
        return off, said

    return compare


def test_those_of_every_run_are_internals_of_accelerations():
    assert OFF.keys() <= {*TAKEN}
    assert all(is_internal(name) for name in TAKEN if name not in LLVM)
    assert {x for file in ACCELERATIONS for x in imports(file)} >= LLVM


def test_accelerations_import_what_they_rely_on_before_anything_is_compiled():
    """So what is off without an internal is known from importing, and decides on all else."""
    for file in (*ACCELERATIONS, *ONE_FUNCTION):
        nodes = ast.walk(ast.parse(file.read_text("utf-8")))
        within = [x for node in nodes if isinstance(node, ast.FunctionDef) for x in ast.walk(node)]
        assert not [x for x in within if isinstance(x, ast.Import | ast.ImportFrom)], file


def marked(name):
    return name if name == QUICK else pytest.param(name, marks=pytest.mark.long)


@pytest.mark.parametrize("taken", [marked(name) for name in TAKEN])
def test_models_are_sampled_without_it(taken, sampled):
    """Nothing is sampled if what is off is the same as without one of `OFF`.

    In long runs, what is sampled draws and decides by block, and moves parameters with records.
    """
    models = ("answers",) if taken == QUICK else ("regression",) if taken in OFF else ()
    off, [line] = sampled(taken, *models)
    assert off == OFF.get(taken, off)
    assert off in OFF.values()
    assert all(name in line for name in off)
    assert "Draws are right either way" in line


@pytest.mark.long
def test_a_larger_model_is_sampled_without_that_of_every_run(sampled):
    sampled(QUICK, "regression")


@pytest.mark.long
@pytest.mark.parametrize("names", [("records",), tuple(MODELS)])
def test_draws_are_the_same_with_all_accelerations_off(names, sampled):
    """Of one model for each step, and for each way in which sweeps over records go."""
    assert sampled("", *names, plain=True) == ({*MODULES}, [])
