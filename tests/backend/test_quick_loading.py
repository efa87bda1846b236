import json
import subprocess
import sys
from inspect import signature

import pytest
from numba.core.caching import Cache

from pymc_dapper.backend.quick_loading import load_overload

FUNCTIONS = """
import json, sys
import numpy as np
from numba import njit
from pymc_dapper.backend.optimised_once import outermost

@njit(cache=True)
def allocates(x):
    found = np.empty((x.size, x.size))
    for i in range(x.size):
        found[i] = x + i
    return found

@njit(cache=True)
def hashes(x):
    number = {"one": 1.0, "two": 2.0}
    return number["one" if x.size == 1 else "two"] + hash("three") % 2 - hash("three") % 2

@njit(cache=True)
def multiplies(x):
    return allocates(x) @ x

@njit(cache=True)
def draws(x, rng):
    return rng.normal() + rng.poisson(2.0) + x.sum()

@njit(cache=True)
def refuses(x):
    if x.size > 1:
        raise ValueError("too many", x.size)
    return x

@njit
def another(x):
    numbers = set(x)
    return allocates(x)[1].sum() + len(numbers)

def of(function, *more):
    try:
        return np.asarray(outermost(function)(X, *more)).tolist()
    except ValueError as error:
        return error.args

X = np.array([1.0, 2.0, 4.0])
found = [of(each) for each in (allocates, hashes, multiplies, refuses)]
found.append(of(draws, np.random.default_rng(1)))
kept = (allocates, hashes, multiplies, refuses, draws)
hits = sum(sum(each.stats.cache_hits.values()) for each in kept)
registered = "numba.core.typing.setdecl" in sys.modules
print(json.dumps([found, another(X) if hits else None, hits, registered]))
"""


@pytest.fixture
def run(tmp_path):
    file = tmp_path / "functions.py"
    file.write_text(FUNCTIONS)

    def in_a_new_process():
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    return in_a_new_process


def test_functions_are_loaded_without_what_numba_compiles_with(run):
    """Those that allocate, hash, multiply, draw and raise; and others are compiled after that."""
    compiled, _, hits, registered = run()
    assert (hits, registered) == (0, True)
    loaded, of_another, hits, registered = run()
    assert (hits, registered) == (5, False)
    assert loaded == compiled
    matrix, number, product, message, _ = loaded
    assert matrix == [[1, 2, 4], [2, 3, 5], [3, 4, 6]]
    assert (number, product, message) == (2, [21, 28, 35], ["too many", 3])
    assert of_another == 2 + 3 + 5 + 3


def test_it_takes_what_numba_takes():
    assert len(signature(load_overload).parameters) == len(
        signature(Cache.load_overload).parameters
    )
