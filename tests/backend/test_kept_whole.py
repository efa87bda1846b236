"""PyTensor's numba backend, with each function kept on disk as a whole."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.link.numba import cache
from pytensor.link.numba.linker import NumbaLinker

from pymc_dapper.backend.kept_whole import KEPT_WHOLE

X = pt.dvector("x")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where functions are kept on disk."""
    monkeypatch.setattr(cache, "NUMBA_CACHE_PATH", tmp_path)
    return tmp_path


def made(*outputs):
    return pytensor.function([X], outputs, mode=KEPT_WHOLE)


def graphs(number):
    return pt.exp(X[::-1]), (number * X).sum()


def test_a_function_is_one_on_disk_and_is_found_there(folder):
    """As in a process that comes later; another constant makes another function."""
    first, second, other = (made(*graphs(number)) for number in (2.5, 2.5, 3.5))
    for function, number in ((first, 2.5), (second, 2.5), (other, 3.5)):
        turned, total = function([0.0, 1.0])
        np.testing.assert_allclose(turned, [np.e, 1], rtol=1e-15)
        assert total == number
    assert sum(second.vm.jit_fn.stats.cache_hits.values()) == 1
    assert len([*folder.glob("*.nbc")]) == 2


def test_what_pytensor_cannot_keep_is_compiled_all_the_same(folder, monkeypatch):
    with pytensor.config.change_flags(numba__cache=False):
        assert made(*graphs(2.5))([0.0, 1.0])[1] == 2.5
    assert not [*folder.glob("*.nbc")]


def test_where_a_graphs_source_is_not_told_it_is_pytensors_own_linker(folder, monkeypatch):
    convert = "pymc_dapper.backend.kept_whole.numba_funcify_and_cache_key"
    funcify = pytensor.link.numba.dispatch.basic.numba_funcify_and_cache_key

    def without_source(*arguments, **options):
        function, key = funcify(*arguments, **options)
        del function.py_func.__source__
        return function, key

    monkeypatch.setattr(convert, without_source)
    assert made(*graphs(2.5))([0.0, 1.0])[1] == 2.5
    assert len([*folder.glob("*.nbc")]) > 2  # operations by themselves, too


def test_the_mode_goes_to_other_processes():
    mode = pickle.loads(pickle.dumps(KEPT_WHOLE))
    assert isinstance(mode.linker, NumbaLinker)
