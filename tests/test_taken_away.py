"""Each internal of numba's and PyTensor's that accelerations rely on, taken away by itself.

In a process of its own, in which only the package doesn't find it. Models are sampled all the same,
and draws are those with it: but for rounding, where sums are formed in another order. So it is with
all accelerations off.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

from pymc_dapper.backend.accelerate.switch import SWITCH
from tests.backend.test_internals import ACCELERATIONS, FILES, PACKAGE, imports, is_internal, used
from tests.small_models import MODELS
from tests.test_caches import environment

LLVM = {"llvmlite.ir", "llvmlite.binding."}
ONE_FUNCTION = [file for file in FILES if PACKAGE / "one_function" in file.parents]
ELSEWHERE = used([file for file in FILES if file not in (*ACCELERATIONS, *ONE_FUNCTION)])
"""What the plain way needs, too: PyTensor's dispatch, which it documents."""
ELSEWHERE |= {name.rpartition(".")[0] for name in ELSEWHERE}
TAKEN = sorted((used([*ACCELERATIONS, *ONE_FUNCTION]) | LLVM) - ELSEWHERE)

QUICK = {"numba.core.event": "optimised_once"}
"""Those of every run."""

CODE = """
import builtins, json, logging, sys
taken, *names = sys.argv[1:]
module, _, attribute = taken.rstrip(".").rpartition(".")
imported = builtins.__import__


def without(name, globals=None, locals=None, fromlist=(), level=0):
    asks = (globals or {}).get("__name__", "").startswith("pymc_dapper")
    named = name == module and attribute in (fromlist or ()) or name == taken.rstrip(".")
    if taken and asks and named:
        raise ImportError(f"cannot import name {attribute!r} from {module!r}")
    return imported(name, globals, locals, fromlist, level)


builtins.__import__ = without
said = []
logging.getLogger("pymc").addHandler(logging.Handler())
logging.getLogger("pymc").handlers[-1].emit = lambda record: said.append(record.getMessage())
import numpy as np
import pymc as pm
import pymc_dapper as pmd
from tests.small_models import MODELS

pmd.LaplaceMechanism(2.0)
options = dict(tune=10, chains=1, random_seed=1, progressbar=False)
options["compute_convergence_checks"] = False
found = {}
for name in names:
    model, own = MODELS[name]()
    drawn = pmd.sample(10, model=model, **own, **options).posterior
    found[name] = {x: drawn[x].values.ravel().tolist() for x in drawn.data_vars}
print(json.dumps([found, [line for line in said if "more slowly" in line]]))
"""


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    """Draws without an internal, and what the log says, in processes that share a cache."""
    cache = tmp_path_factory.mktemp("cache")

    def sample(taken, names, **variables):
        done = subprocess.run(
            [sys.executable, "-c", CODE, taken, *names],
            env=environment(cache) | variables,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    known = {}

    def compare(taken, names, **variables):
        """What the log says, where draws are those that there are with all accelerations."""
        if names not in known:
            known[names], said = sample("", names)
            assert said == []
        draws, said = sample(taken, names, **variables)
        for name, expected in known[names].items():
            for x, of in expected.items():
                message = f"{x} of {name}"
                np.testing.assert_allclose(draws[name][x], of, rtol=1e-9, err_msg=message)
        return said

    return compare


def marked(name):
    return name if name in QUICK else pytest.param(name, marks=pytest.mark.long)


def test_those_of_every_run_are_internals_of_accelerations():
    assert QUICK.keys() <= {*TAKEN}
    assert all(is_internal(name) for name in TAKEN if name not in LLVM)
    assert {x for file in ACCELERATIONS for x in imports(file)} >= LLVM


@pytest.mark.parametrize("taken", [marked(name) for name in TAKEN])
def test_models_are_sampled_without_it(taken, sampled):
    [line] = sampled(taken, ("records",) if taken in QUICK else ("table", "regression"))
    assert QUICK.get(taken, "") in line
    assert "Draws are right either way" in line


@pytest.mark.parametrize(
    "names", [("records",), pytest.param(tuple(MODELS), marks=pytest.mark.long)]
)
def test_draws_are_the_same_with_all_accelerations_off(names, sampled):
    """Of one model for each step and plan."""
    assert sampled("", names, **{SWITCH: "1"}) == []
