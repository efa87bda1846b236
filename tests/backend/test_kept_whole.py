"""PyTensor's numba backend, with each function kept on disk as a whole."""

import pickle

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba.core import event
from pytensor.link.numba import cache
from pytensor.link.numba.linker import NumbaLinker

from pymc_dapper.backend import kept_whole
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


def test_where_a_graphs_source_is_not_told_nothing_is_kept(folder, monkeypatch):
    to_python = kept_whole.fgraph_to_python

    def without_source(*arguments, **options):
        function = to_python(*arguments, **options)
        del function.__source__
        return function

    monkeypatch.setattr(kept_whole, "fgraph_to_python", without_source)
    assert made(*graphs(2.5))([0.0, 1.0])[1] == 2.5
    assert not [*folder.glob("*.nbc")]


def test_without_pytensors_function_for_it_a_graph_is_compiled_all_the_same(folder, monkeypatch):
    monkeypatch.setattr(kept_whole, "fgraph_to_python", None)
    assert made(*graphs(2.5))([0.0, 1.0])[1] == 2.5
    assert [*folder.glob("*.nbc")]


def test_operations_that_are_alike_are_compiled_once(folder):
    """In whichever graph, and of whatever length; others aren't taken for them."""
    y, z = pt.dvector("y"), pt.dmatrix("z")
    first = pytensor.function([X, y], [pt.cumsum(X), pt.cumsum(y)], mode=KEPT_WHOLE)
    second = pytensor.function([X, z], [pt.cumsum(2 * X), pt.cumsum(z, axis=0)], mode=KEPT_WHOLE)
    ones = np.ones(2)
    with event.install_recorder("numba:compile") as compiled:
        found = [*first(ones, ones + 1), *second(ones, np.ones((2, 1)))]
    names = [each.data["dispatcher"].py_func.__name__ for kind, each in compiled.buffer]
    assert names.count("cumop") == 2 * 2  # of a vector and of a matrix, begun and ended
    expected = [1, 2], [2, 4], [2, 4], [[1], [2]]
    for mine, known in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, known)


def test_shapes_are_checked():
    z = pt.dmatrix("z")
    function = pytensor.function([z], pt.specify_shape(z, (None, 3)) * 2, mode=KEPT_WHOLE)
    np.testing.assert_array_equal(function(np.ones((2, 3))), 2)
    with pytest.raises(AssertionError, match="another length"):
        function(np.ones((3, 2)))


def test_the_mode_goes_to_other_processes():
    mode = pickle.loads(pickle.dumps(KEPT_WHOLE))
    assert isinstance(mode.linker, NumbaLinker)
