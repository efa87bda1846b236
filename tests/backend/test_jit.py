"""Compiled functions, called without PyTensor's overhead."""

import pickle

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba import __version__ as numba_version
from numba import njit, types
from numba.core import caching
from numba.core.caching import IndexDataCacheFile
from pytensor import config
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.variable import shared_rng

from pymc_dapper.backend.accelerate import given_function, switch
from pymc_dapper.backend.generators import drawn_noise
from pymc_dapper.backend.jit import (
    JitFunction,
    cache_folder,
    kept_on_disk,
    numba_mode,
    with_parameter_checks,
)

X = pt.dvector("x")


def compiled(inputs, outputs):
    return JitFunction(inputs, outputs, model=pm.Model(), compile_kwargs={})


def test_arrays_go_in_and_come_out():
    function = compiled([X], [2 * X, X.sum()])
    x = np.array([1.0, 2.5])
    for each in (function, pickle.loads(pickle.dumps(function))):
        twice, total = each(x)
        np.testing.assert_array_equal(twice, [2, 5])
        assert total == 3.5
    np.testing.assert_array_equal(x, [1, 2.5])


def test_another_process_is_told_that_accelerations_failed(monkeypatch):
    """As one that is spawned: it compiles what it is sent."""
    monkeypatch.setattr(switch, "failed", True)
    pickled = pickle.dumps(compiled([X], [2 * X]))
    monkeypatch.setattr(switch, "failed", False)
    pickle.loads(pickled)
    assert switch.failed


def test_what_is_handed_an_address_still_is_after_accelerations_failed(monkeypatch):
    """As a step that was compiled before the failure."""
    rng = shared_rng(np.random.default_rng(0)).type("rng")
    _, draw = drawn_noise("random", (3,), rng)
    function, ours, numpys = compiled([rng], [draw]), *map(np.random.default_rng, (1, 1))
    assert isinstance(function.handed(np.random.default_rng(0)), int)
    monkeypatch.setattr(switch, "failed", True)
    [drawn] = function(ours)
    np.testing.assert_array_equal(drawn, numpys.random(3))


def test_a_generator_is_advanced_in_place():
    rng = shared_rng(np.random.default_rng(0)).type("rng")
    _, draw = pt.random.uniform(0, 1, size=3, rng=rng, return_next_rng=True)
    function, ours, numpys = compiled([rng], [draw]), *map(np.random.default_rng, (1, 1))
    for _ in range(2):
        [drawn] = function(ours)
        np.testing.assert_array_equal(drawn, numpys.random(3))


def test_an_interrupt_while_arrays_are_made_is_an_interrupt():
    """numba raises a SystemError then, of which it is the cause."""
    x = pt.vector("x")
    function = JitFunction([x], [x + 1], pm.Model(), {})

    def interrupted(*arguments):
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    function.jitted = interrupted
    with pytest.raises(KeyboardInterrupt):
        function(np.zeros(3))


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "PYTORCH"])
def test_other_modes_than_numbas_are_refused(mode):
    with pytest.raises(ValueError, match="doesn't compile with numba"):
        numba_mode(mode)


@pytest.mark.parametrize("check_bounds", [True, False])
def test_invalid_parameters_are_impossible_or_not_looked_at(check_bounds):
    sigma = pt.dscalar("sigma")
    graph = FunctionGraph([sigma], [pm.logp(pm.Normal.dist(0, sigma), 0.5)])
    model = pm.Model(check_bounds=check_bounds)
    with_parameter_checks(numba_mode(None), model).optimizer.rewrite(graph)
    kinds = [str(node.op) for node in graph.toposort()]
    assert not any("Check" in kind for kind in kinds)
    assert any("Switch" in kind or "switch" in kind for kind in kinds) == check_bounds


def test_an_error_of_another_kind_is_no_damaged_cache():
    with pytest.raises(IndexError) as caught:
        np.zeros(2)[3]
    assert cache_folder(caught.value) is None


@pytest.mark.parametrize("ask", ["load", "save"])
def test_an_index_of_another_version_is_a_damaged_cache(ask, tmp_path):
    """It may name types that this one doesn't have."""
    types_of_arguments = pickle.dumps((None, {Of: "x.1.nbc"})).replace(b"Of", b"No")
    (tmp_path / "x.nbi").write_bytes(pickle.dumps(numba_version) + types_of_arguments)
    index = IndexDataCacheFile(str(tmp_path), "x", None)
    with pytest.raises(AttributeError) as caught:
        index.load("key") if ask == "load" else index.save("key", b"")
    assert cache_folder(caught.value) == tmp_path


def test_a_folder_that_cannot_be_written_to_is_found(monkeypatch, tmp_path):
    def full(file, mode):
        raise OSError(28, "No space left on device", file)

    monkeypatch.setattr(caching, "open", full, raising=False)
    with pytest.raises(OSError, match="No space") as caught:
        IndexDataCacheFile(str(tmp_path), "x", None).save("key", b"")
    assert cache_folder(caught.value) == tmp_path
    with pytest.raises(OSError, match="No space") as caught:
        full(tmp_path, "wb")
    assert cache_folder(caught.value) is None


class Of:
    """A type that an index names."""


def times(number):
    @njit
    def scaled(x):
        return number * x

    return scaled


def test_a_kernel_kept_on_disk_is_loaded_and_never_anothers_code():
    """As in a process that comes later: the function is made anew, and finds its code on disk."""
    first, second, other = (kept_on_disk(times(number)) for number in (2.5, 2.5, 3.5))
    assert first is not second
    assert (first(2.0), second(2.0), other(2.0)) == (5.0, 5.0, 7.0)
    assert sum(second.stats.cache_hits.values()) == 1
    assert sum(second.stats.cache_misses.values()) == 0


def test_nothing_is_kept_on_disk_where_pytensor_is_told_so():
    """And all compiles: a sweep's kernel is called by its address."""
    takes = types.float64(types.float64)
    with config.change_flags(numba__cache=False):
        doubled = compiled([X], [2 * X])
        tripled = kept_on_disk.__wrapped__(njit(lambda x: 3 * x))
        kernel = njit(lambda function, context, x: 4 * function(context, x))
        function = njit(lambda context, x: context[0] * x)
        given = given_function(kernel, function, takes, takes, "not on disk")
        found = [doubled(np.ones(2))[0][0], tripled(1.0), njit(lambda x: given((1.0,), x))(1.0)]
    assert found == [2, 3, 4]
    assert [doubled.jitted.stats.cache_path, tripled.stats.cache_path] == [None, None]
