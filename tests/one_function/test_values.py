"""Arrays as functions from indices to terms."""

import numpy as np

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.fusion import fused
from pymc_dapper.one_function.values import Value, constant, in_memory, parts, view

ZERO, ONE = Term("0"), Term("1")


def expensive(code, shape):
    return Value(
        code,
        "float64",
        shape,
        lambda index: code.evaluate(f"np.exp({index[0].text})", *index),
        weight=10,
    )


def test_an_array_that_is_used_often_is_stored_once():
    code = Code()
    value = expensive(code, ("n",)).ready()
    assert value.store() == value.stored
    assert sum("np.exp" in line for line in code.lines) == 1
    with code.loop("n") as i:
        assert "exp" not in value.entry([i]).text


def test_entries_of_a_small_one_are_numbers():
    code = Code()
    value = expensive(code, (3,)).ready()
    assert value.stored is None
    assert value.entry([ONE]) == value.entry([ONE])
    with code.loop(3) as i:
        value.entry([i])
    assert value.stored is not None


def test_a_small_view_that_takes_long_is_stored():
    """Its entries are numbers of their own then: in a loop, they would be read from it."""
    code = Code()
    of_stored = view(in_memory(code, "a", "float64", (3,)), (3,), lambda index: index[0])
    of_stored.weight = 10
    with code.loop(3) as i:
        assert of_stored.entry([i]).text.startswith("t")


def test_a_small_table_is_worked_out_row_by_row_with_what_a_row_shares_once():
    code = Code()
    shared = Value(code, "float64", (3,), lambda k: code.evaluate(f"np.exp({k[0].text})", *k), 10)
    table = Value(code, "float64", (3, 2), lambda index: shared.entry(index[:1]), weight=10)
    table.store()
    assert [line.split(" = ")[-1] for line in code.lines if "exp" in line] == ["np.exp(i2)"]
    assert sum("] = t" in line for line in code.lines) == 2
    assert table.entry([ONE, ZERO]).text.startswith("t")
    assert sum("np.exp" in line for line in code.lines) == 1


def test_numbers_in_their_order_are_not_stored():
    code = Code()
    order = constant(code, np.arange(6).reshape(2, 3))
    assert order.entry([Term("i"), ONE]).text == "t1"
    assert (code.lines, code.names) == (["t1 = i * 3 + 1"], {})


def test_constants_are_numbers_or_names():
    code = Code()
    assert constant(code, np.full(100, 2.5)).entry([Term("i")]) == Term("2.5")
    long = constant(code, np.arange(100.0))
    assert long.entry([ONE]) == Term("1.0")
    assert code.names == {}
    long.entry([Term("i")])
    [kept] = code.names.values()
    np.testing.assert_array_equal(kept, np.arange(100.0))


def test_a_short_constant_that_is_needed_as_an_array_is_referred_to():
    """So functions are compiled for one type of array, whether its numbers are equal or not."""
    for numbers in (np.full(7, 2.0), np.arange(7.0) ** 2):
        code = Code()
        assert code.names[constant(code, numbers).store()] is not None
        assert code.lines == []
    code = Code()
    assert constant(code, np.full(100_000, 2.0)).store() not in code.names
    assert len(code.lines) == 3  # filled, in a loop


def test_joined_arrays_are_looked_up_where_they_are():
    code = Code()
    first, second = (in_memory(code, name, "float64", (2,)) for name in "ab")
    joined = parts(code, "float64", (4,), 0, [first, second])
    joined.entry([Term("3")])
    assert code.lines == ["t1 = b[1]"]


def test_columns_are_joined_row_by_row_with_what_they_share_once():
    code = Code()
    shared = expensive(code, ("n",))
    column = Value(code, "float64", ("n", 1), lambda index: shared.entry(index[:1]), weight=10)
    parts(code, "float64", ("n", 2), 1, [column, column]).store()
    lines = fused(code.lines)
    assert sum("np.exp" in line for line in lines) == 1
    assert sum(line.lstrip().startswith("for ") for line in lines) == 1
