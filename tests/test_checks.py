"""Checks of arguments: valid ones come back in plain form, others raise one clear sentence."""

import sys

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper import checks

ODD: list = [
    None,
    True,
    0,
    1,
    2.5,
    np.nan,
    np.inf,
    "",
    "1",
    [],
    [1],
    {},
    {1: 2},
    1j,
    10**400,
    object(),
]
ODD += [np.zeros(()), np.array([1.0, 2.0]), pt.constant(3), pt.vector("v"), pt.scalar("s"), len]

CHECKS = {
    checks.flag: ({}, [True]),
    checks.whole_number: ({"at_least": 1}, [1, 10**400]),
    checks.finite_number: ({"above": 0, "below": 1}, []),
    checks.choice: ({"choices": ("simple", "tight")}, []),
    checks.text: ({}, ["1"]),
    checks.names: ({}, []),
    checks.options: ({}, [None, {}]),
    checks.random_generator: ({}, [None, 0, 1, [], [1], 10**400]),
    checks.function: ({"signature": "draw(rng, point)"}, [len]),
}
"""Each check, limits for it, and what of the odd values passes it."""


@pytest.mark.parametrize(
    ("check", "limits", "given", "plain"),
    [
        (checks.flag, {}, np.True_, True),
        (checks.whole_number, {"at_least": 3, "at_most": 3}, np.int8(3), 3),
        (checks.whole_number, {}, np.array(-3), -3),
        (checks.finite_number, {"above": 0, "at_most": 0.5}, np.array(0.5), 0.5),
        (checks.finite_number, {"at_least": 1, "below": 2}, 1, 1.0),
        (checks.choice, {"choices": ("a", "b")}, "b", "b"),
        (checks.text, {}, "a", "a"),
        (checks.names, {}, ["a", "b"], ("a", "b")),
        (checks.options, {}, None, {}),
        (checks.options, {}, {"a": 1}, {"a": 1}),
        (checks.function, {"signature": ""}, len, len),
    ],
)
def test_what_fits_comes_back_in_plain_form(check, limits, given, plain):
    value = check(given, "x", **limits)
    assert (type(value), value) == (type(plain), plain)


def said(check, value, limits):
    """What a check says of a value; None if it passes."""
    try:
        check(value, "the_argument", **limits)
    except (TypeError, ValueError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("check", CHECKS)
def test_nothing_odd_passes_without_a_sentence(check):
    limits, fit = CHECKS[check]
    sentences = [said(check, value, limits) for value in ODD]
    passed = [value for value, x in zip(ODD, sentences, strict=True) if x is None]
    assert list(map(repr, passed)) == list(map(repr, fit))
    assert all(x is None or x.startswith("the_argument must ") for x in sentences)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: checks.flag(1, "x"), TypeError, "x must be True or False, got 1"),
        (lambda: checks.whole_number(0, "x", at_least=1), ValueError, "of at least 1, got 0"),
        (lambda: checks.whole_number(9, "x", at_most=8), ValueError, "of at most 8, got 9"),
        (
            lambda: checks.finite_number(np.nan, "x"),
            ValueError,
            "x must be a finite number, got nan",
        ),
        (lambda: checks.finite_number(10**400, "x"), ValueError, "a whole number of 1329 bits"),
        (lambda: checks.choice("c", "x", ["a", "b"]), ValueError, "must be 'a' or 'b', got 'c'"),
        (lambda: checks.names("a", "x"), TypeError, r"write \['a'\]"),
        (lambda: checks.names(["a", 1], "x"), TypeError, "list of names, got 1"),
    ],
)
def test_the_sentence_says_what_is_expected(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_what_may_be_confidential_is_not_shown():
    assert checks.shown([41250.5]) == "a list"
    assert checks.shown(np.array([41250.5])) == "ndarray of shape (1,)"
    assert checks.shown(pt.vector("income")) == "a TensorVariable 'income'"


@pytest.mark.parametrize(
    ("chosen", "text"),
    [
        (True, "it is wrong"),
        ([], "it is empty"),
        ([False, True], "1 of 2 is wrong, at index 1"),
        ([[False, False], [True, True]], "2 of 4 are wrong, the first at index (1, 0)"),
    ],
)
def test_places_says_how_many_and_where(chosen, text):
    assert checks.places(chosen) == text


@pytest.mark.parametrize("value", [True, "1", 1j, None, [1, [2]], [None]])
def test_real_numbers_are_numbers(value):
    with pytest.raises(TypeError, match="scale must be a number, or an array of them, got"):
        checks.real_numbers(value, "scale")
    with pytest.raises(ValueError, match="empty"):
        checks.real_numbers([], "scale")
    assert checks.real_numbers(np.int8(3), "scale").dtype == np.float64


def test_pyarrow_is_asked_for_by_what_needs_it(monkeypatch):
    assert checks.pyarrow("store=").parquet.read_table
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="store= needs pyarrow"):
        checks.pyarrow("store=")
