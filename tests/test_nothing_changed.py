"""Importing the package and sampling with it leave other libraries, and the process, as they were.

A picture of them is taken before and after, in a process of its own.
"""

import json
import subprocess
import sys

import pytest

from tests.test_caches import environment

CODE = '''
import gc, json, os, signal, sys, threading, types
import numba, numpy as np, pymc as pm, pytensor, pytensor.tensor as pt
import llvmlite.binding as llvm
from numba import njit
from numba.core.registry import cpu_target
from pytensor.graph.basic import Constant

LIBRARIES = ("numba", "llvmlite", "pytensor", "pymc")
PLAIN = (int, float, str, bytes, bool, type(None), tuple, frozenset)
# Counters and caches, which any use of a library changes.
COUNTED = ("_unique_ids", "_dispatcher", "_cache", "__warningregistry__")

# What PyMC and numba do by themselves, before the picture is taken.
with pm.Model() as theirs:
    pm.Normal("z", 0, 1, shape=3)
quiet = dict(progressbar=False, chains=1, random_seed=1, compute_convergence_checks=False)
before_of_theirs = pm.sample(5, tune=5, model=theirs, **quiet).posterior["z"].values
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

with pm.Model() as model:
    mu = pm.Normal("mu", 0, 1)
    x = pm.Normal("x", mu, 1, shape=20)
    pmd.LaplaceMechanism(2.0).potential("privacy", pt.clip(x, -3, 3).sum(), released=5.0)


def sample():
    return pmd.sample(5, tune=5, model=model, **quiet)


def fails():
    """What can't be compiled, in the midst of compiling."""
    from pymc_dapper.backend.accelerate import outermost
    try:
        outermost(njit(lambda x: x.no_such_attribute))(1.0)
    except Exception:
        pass


if {threads}:
    threads = [threading.Thread(target=work) for work in (sample, fails)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
else:
    sample(), fails()
gc.collect()
after = picture(modules)
changed = [name for name, value in before.items() if name in after and after[name] != value]
gone = [name for name in before if name not in after]
again = pm.sample(5, tune=5, model=theirs, **quiet).posterior["z"].values
print(json.dumps([changed, gone, bool((again == before_of_theirs).all()), kept(9.0)]))
'''


@pytest.mark.parametrize("threads", [False, pytest.param(True, marks=pytest.mark.long)])
def test_other_libraries_and_the_process_are_as_they_were(threads, tmp_path_factory):
    done = subprocess.run(
        [sys.executable, "-c", CODE.replace("{threads}", repr(threads))],
        env=environment(tmp_path_factory.mktemp("cache")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    changed, gone, same_draws, result = json.loads(done.stdout.splitlines()[-1])
    assert changed == []
    assert gone == []
    assert same_draws
    assert result == 4


def test_a_change_is_seen(tmp_path_factory):
    """Such as a change once made here to how numba loads files from disk."""
    twin = CODE.replace(
        "import pymc_dapper as pmd\n",
        "import pymc_dapper as pmd\n"
        "from numba.core.compiler import CompileResult\n"
        "CompileResult._rebuild = classmethod(lambda cls, *parts: None)\n"
        "print(json.dumps([k for k, v in picture(modules).items() if before.get(k, v) != v]))\n"
        "raise SystemExit\n",
    )
    done = subprocess.run(
        [sys.executable, "-c", twin],
        env=environment(tmp_path_factory.mktemp("cache")),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["numba.core.compiler.CompileResult._rebuild"]
