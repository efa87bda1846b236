"""Functions called by their addresses do what they do when they are called by their names."""

import numpy as np
import pytest
from numba import njit, types
from numba.core import event
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend import addresses
from pymc_dapper.backend.addresses import FunctionAt, Outside, address, as_matrix, by_address
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.kernel_key import kernel_key

NUMBERS = types.float64[::1]
TERM = types.float64(NUMBERS, types.int64)
KERNEL = NUMBERS(FunctionAt(TERM.return_type(address, *TERM.args)), address, NUMBERS)


@njit
def kernel(term, context, x):
    found = np.empty(x.size)
    for k in range(x.size):
        found[k] = term(context, x, k)
    return found


@njit
def scaled(context, x, k):
    scales, offset = context
    if k == 3:
        raise ValueError("too many")
    return scales[k, 0] * x[k] + offset.item()


@njit
def summed(context, x, k):
    return context[0][k] + x[: k + 1].sum()


@njit
def as_matrix_of(x, n_rows, n_columns):
    return as_matrix(x, n_rows, n_columns)


def calling(term, outside):
    passed = by_address(TERM)

    @njit
    def call(x, *context):
        function, at = passed(term, context)
        return outside(function, at, x)

    return call


@pytest.fixture(scope="module")
def outside():
    return Outside(kernel, KERNEL, kernel_key(kernel))


SCALES, X = np.array([[2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]), np.array([1.5, 2.5, 3.5])
CASES = {
    "scaled": (scaled, (SCALES, np.array(0.5)), [3.5, 8.0, 14.5]),
    "summed": (summed, (np.array([1, 2, 3]),), [2.5, 6.0, 10.5]),
}


@pytest.mark.parametrize("case", CASES)
def test_functions_with_arrays_of_any_kind_are_called_by_one_kernel(case, outside):
    """As in Python, and compiled once for all of them."""
    term, context, expected = CASES[case]
    call = calling(term, outside)
    np.testing.assert_array_equal(in_python(call)(X, *context), expected)
    outside.load()
    with event.install_recorder("numba:compile") as compiled:
        np.testing.assert_array_equal(call(X, *context), expected)
    names = {each.data["dispatcher"].py_func.__name__ for _, each in compiled.buffer}
    assert {"call", term.__name__} <= names
    assert "kernel" not in names


def test_numbers_come_with_arrays(outside):
    """Of what is passed on, only arrays have references that could be counted."""

    @njit
    def shifted(context, x, k):
        scale, shift = context
        return scale * x[k] + shift[k]

    call = calling(shifted, outside)
    np.testing.assert_array_equal(call(X, 2, np.array([0.5, 1.0, 1.5])), [3.5, 6.0, 8.5])


def test_errors_come_back_and_arrays_stay_who_owns_them(outside):
    call = calling(scaled, outside)
    scales, offset, x = np.ones((4, 1)), np.array(0.0), np.ones(4)
    for _ in range(100):
        with pytest.raises(ValueError, match="too many"):
            call(x, scales, offset)
    np.testing.assert_array_equal(x, 1)
    np.testing.assert_array_equal(scales, 1)


@pytest.mark.parametrize("shape", [(2, 3), (1, 6), (0, 4)])
def test_a_vector_is_seen_as_a_matrix(shape):
    """Whose memory lives as long as the matrix does."""

    @njit
    def seen(x, n_rows, n_columns):
        matrix = as_matrix(x.copy(), n_rows, n_columns)
        for i in range(n_rows):
            as_matrix(x, n_rows, n_columns)[i, i] += 10
        return matrix

    x = np.arange(float(np.prod(shape)))
    expected = x.reshape(shape).copy()
    for _ in range(100):
        np.testing.assert_array_equal(seen(x, *shape), expected)
        for i in range(shape[0]):
            x.reshape(shape)[i, i] -= 10
    np.testing.assert_array_equal(in_python(as_matrix_of)(x, *shape), expected)
    np.testing.assert_array_equal(x.reshape(shape), expected)


def test_what_has_another_signature_is_refused(outside):
    with pytest.raises(Exception, match="too many positional arguments"):
        calling(njit(lambda context: 0.0), outside)(X, SCALES)
    with pytest.raises(Exception, match="complex128"):
        calling(njit(lambda context, x, k: 1j), outside)(X, SCALES)


def test_a_kernel_that_is_edited_has_another_symbol(outside):
    same = Outside(kernel, KERNEL, kernel_key(kernel))
    edited = Outside(summed, KERNEL, kernel_key(summed))
    assert same.symbol == outside.symbol != edited.symbol


def test_the_key_is_of_how_functions_are_called_too(outside, monkeypatch):
    key = kernel_key(calling(scaled, outside))
    assert key == kernel_key(calling(scaled, outside)) != kernel_key(calling(summed, outside))
    monkeypatch.setattr(addresses, "LOWERED_BY", "another version")
    assert key != kernel_key(calling(scaled, outside))


def test_a_caller_of_code_from_disk_has_the_kernel_loaded_too(outside):
    """Else the symbol of a kernel is undefined in the next process that loads the caller."""
    call = calling(scaled, outside)
    key = f"{kernel_key(call)}_{__name__}"

    def caller():
        """What calls ``call``, which is on disk after the first time."""
        arguments = {"call": call, "np": np, "__name__": addresses.__name__}  # which is looked up
        source = "def kept(x, scales, offset): return call(x, scales, offset)"
        kept = compile_numba_function_src(source, "kept", arguments, cache_key=f"{key}_caller")
        kept = numba_njit(kept, cache=True)

        @njit
        def calls(x, scales, offset):
            return kept(x, scales, offset)

        np.testing.assert_array_equal(calls(X, SCALES, np.array(0.5)), [3.5, 8.0, 14.5])
        [result] = calls.overloads.values()
        return kept, [each.args for each in result.reload_init]

    (_, expected), (kept, found) = caller(), caller()
    assert sum(kept.stats.cache_hits.values()) == 1
    assert found == expected == [(outside.symbol,)]
