"""Importing the package and sampling with it leave other libraries, and the process, as they were.

A picture of them is taken before and after, in a process of its own.
"""

import json
import subprocess
import sys

import pytest

from pymc_dapper.backend.accelerate.switch import is_on
from tests.test_caches import environment

CODE = '''
import gc, json, os, signal, sys, threading, types
import numba, numpy as np, pymc as pm, pytensor
import llvmlite.binding as llvm
from numba import njit, types as numba_types
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from pytensor.graph.basic import Constant

LIBRARIES = ("numba", "llvmlite", "pytensor", "pymc")
PLAIN = (int, float, str, bytes, bool, type(None), tuple, frozenset)
# Counters and caches, which any use of a library changes.
COUNTED = ("_unique_ids", "_unique_var_count", "_dispatcher", "_cache", "__warningregistry__")

# What PyMC and numba do by themselves, before the picture is taken.
with pm.Model() as theirs:
    pm.Normal("z", 0, 1, shape=3)
quiet = dict(progressbar=False, chains=1, random_seed=1, compute_convergence_checks=False)


def sampled_by_pymc():
    with theirs:
        step = pm.Metropolis()
    return pm.sample(5, tune=5, model=theirs, step=step, **quiet).posterior["z"].values


before_of_theirs = sampled_by_pymc()
kept = njit(lambda x: np.sqrt(x) + 1)
assert kept(4.0) == 3


def is_theirs(of):
    return str(getattr(of, "__module__", "")).partition(".")[0] in LIBRARIES


def registered(registry):
    """What a dispatch knows of classes that aren't ours."""
    return {str(k): id(v) for k, v in registry.items() if is_theirs(k) or k is object}


def seen(value):
    if isinstance(value, PLAIN):
        return repr(value)
    return id(value)


def picture(modules):
    found = {}
    for name in modules:
        for key, value in vars(sys.modules[name]).items():
            if key in COUNTED or key.startswith("total_") or isinstance(value, types.ModuleType):
                continue
            found[f"{name}.{key}"] = seen(value)
            if isinstance(value, type) and value.__module__ == name:
                for attribute, of in vars(value).items():
                    if attribute not in COUNTED and not attribute.startswith("_abc"):
                        found[f"{name}.{key}.{attribute}"] = seen(of)
            if hasattr(value, "registry") and hasattr(value, "dispatch"):
                for k, v in registered(value.registry).items():
                    found[f"{name}.{key} of {k}"] = v
    for name, option in pytensor.config._config_var_dict.items():
        found[f"config.{name}"] = repr(getattr(pytensor.config, name))
    for name in dir(numba.config):
        if name.isupper():
            found[f"numba.config.{name}"] = repr(getattr(numba.config, name))
    found |= {f"signal {k}": repr(signal.getsignal(k)) for k in signal.valid_signals()}
    found |= {f"environment {k}": v for k, v in os.environ.items()}
    codegen = cpu_target.target_context.codegen()
    found["library class"] = repr(codegen._library_class)
    found["gc"] = repr((gc.get_threshold(), gc.isenabled(), gc.get_freeze_count()))
    found["gc callbacks"] = len(gc.callbacks)
    found["recursion"] = sys.getrecursionlimit()
    found["modes"] = repr({k: id(v) for k, v in pytensor.compile.mode.predefined_modes.items()})
    found["listeners"] = repr({k: len(v) for k, v in numba.core.event._registered.items()})
    found["switches"] = repr((np.geterr(), sys.stdout is None, threading.excepthook))
    return found


modules = [name for name in sys.modules if name.partition(".")[0] in LIBRARIES]
before = picture(modules)

import pymc_dapper as pmd
from pymc_dapper.backend import accelerate
from pymc_dapper.backend.accelerate import switch
from tests.small_models import MODELS

threads = sys.argv[1:] == ["threads"]
model, own = MODELS["table" if threads else "answers"]()


def sample():
    return pmd.sample(5, tune=5, model=model, **own, **quiet)


def fails():
    """What can't be compiled, in the midst of compiling."""
    try:
        accelerate.outermost(njit(lambda x: x.no_such_attribute))(1.0)
    except Exception:
        pass


def others():
    """What larger models use."""
    kernel = njit(lambda function, context, x: 4 * function(context, x))
    function = njit(lambda context, x: context[0] * x)
    takes = numba_types.float64(numba_types.float64)
    given = accelerate.given_function(kernel, function, takes, takes, "a kernel")
    assert accelerate.outermost(njit(lambda x, a: given((a,), x)))(2.0, 1.5) == 12
    switch.accelerated("generators")


if threads:
    started = [threading.Thread(target=work) for work in (sample, fails)]
    for each in started:
        each.start()
    for each in started:
        each.join()
else:
    sample(), fails(), others()
gc.collect()
after = picture(modules)
changed = [name for name, value in before.items() if name in after and after[name] != value]
gone = [name for name in before if name not in after]
again = sampled_by_pymc()
on = all(map(switch.is_on, switch.MODULES))

# As it was done here once, to have what is on disk loaded otherwise.
CompileResult._rebuild = classmethod(lambda cls, *parts: None)
broken = picture(modules)
seen = [name for name, value in after.items() if broken[name] != value]
print(json.dumps([changed, gone, bool((again == before_of_theirs).all()), kept(9.0), on, seen]))
'''


@pytest.mark.parametrize("how", [(), pytest.param(("threads",), marks=pytest.mark.long)])
def test_other_libraries_and_the_process_are_as_they_were(how, tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", CODE, *how],
        env=environment(tmp_path_factory.mktemp("cache")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    changed, gone, same_draws, result, on, seen = json.loads(done.stdout.splitlines()[-1])
    assert changed == []
    assert gone == []
    assert same_draws
    assert result == 4
    assert on == is_on("deferred_libraries")
    # The picture shows what is changed.
    assert seen == ["numba.core.compiler.CompileResult._rebuild"]
