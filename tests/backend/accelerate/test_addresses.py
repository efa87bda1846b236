"""Functions called by their addresses do what they do when they are called by their names."""

import numpy as np
import pytest
from numba import njit, types
from numba.core import event

from pymc_dapper.backend.accelerate import addresses
from pymc_dapper.backend.accelerate.addresses import by_itself, given_function, load
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.kernel_key import kernel_key

NUMBERS = types.float64[::1]
TERM = types.float64(NUMBERS, types.int64)
KERNEL = NUMBERS(NUMBERS)


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


def calling(term, of=kernel):
    given = given_function(of, term, TERM, KERNEL, kernel_key(of))

    @njit
    def call(x, *context):
        return given(context, x)

    return call


@pytest.fixture(scope="module")
def external():
    return by_itself(kernel, TERM, KERNEL, kernel_key(kernel))


SCALES, X = np.array([[2.0, 0.0], [3.0, 0.0], [4.0, 0.0]]), np.array([1.5, 2.5, 3.5])
CASES = {
    "scaled": (scaled, (SCALES, np.array(0.5)), [3.5, 8.0, 14.5]),
    "summed": (summed, (np.array([1, 2, 3]),), [2.5, 6.0, 10.5]),
}


@pytest.mark.parametrize("case", CASES)
def test_functions_with_arrays_of_any_kind_are_called_by_one_kernel(case, external):
    """As in Python, and compiled once for all of them."""
    term, context, expected = CASES[case]
    call = calling(term)
    np.testing.assert_array_equal(in_python(call)(X, *context), expected)
    load(external)
    with event.install_recorder("numba:compile") as compiled:
        np.testing.assert_array_equal(call(X, *context), expected)
    names = {each.data["dispatcher"].py_func.__name__ for _, each in compiled.buffer}
    assert {"call", term.__name__} <= names
    assert "kernel" not in names


def test_numbers_come_with_arrays():
    """Only arrays, among the arguments, have reference counts."""

    @njit
    def shifted(context, x, k):
        scale, shift = context
        return scale * x[k] + shift[k]

    call = calling(shifted)
    np.testing.assert_array_equal(call(X, 2, np.array([0.5, 1.0, 1.5])), [3.5, 6.0, 8.5])


def test_arrays_that_are_not_contiguous_are_copied():
    """Else numba can't convert them: PyTensor's own functions may hand out such ones."""
    call = calling(scaled)
    readonly = X.copy()
    readonly.setflags(write=False)
    for x in (np.repeat(X, 2)[::2], readonly):
        np.testing.assert_array_equal(call(x, SCALES, np.array(0.5)), [3.5, 8.0, 14.5])


def test_errors_come_back_and_arrays_stay_who_owns_them():
    call = calling(scaled)
    scales, offset, x = np.ones((4, 1)), np.array(0.0), np.ones(4)
    for _ in range(100):
        with pytest.raises(ValueError, match="too many"):
            call(x, scales, offset)
    np.testing.assert_array_equal(x, 1)
    np.testing.assert_array_equal(scales, 1)


def test_what_has_another_signature_is_refused():
    with pytest.raises(Exception, match="too many positional arguments"):
        calling(njit(lambda context: 0.0))(X, SCALES)
    with pytest.raises(Exception, match="complex128"):
        calling(njit(lambda context, x, k: 1j))(X, SCALES)


def test_a_kernel_that_is_edited_has_another_symbol(external):
    same = by_itself(kernel, TERM, KERNEL, kernel_key(kernel))
    edited = by_itself(summed, TERM, KERNEL, kernel_key(summed))
    assert same is external
    assert edited.symbol != external.symbol


def test_the_key_is_of_how_functions_are_called_too(monkeypatch):
    key = kernel_key(calling(scaled))
    assert key == kernel_key(calling(scaled)) != kernel_key(calling(summed))
    monkeypatch.setattr(addresses, "LOWERED_BY", "another version")
    assert key != kernel_key(calling(scaled))
