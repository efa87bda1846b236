"""Numbers in the source. Operations on them: `test_operations.py`."""

import numpy as np
import pytensor.scalar as ps
import pytest

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.scalars import apply_scalar, cast, literal, weight


@pytest.mark.parametrize(
    "number",
    [
        *(np.float64(0.1), np.float64(-0.0), np.float64(np.nan), np.float64(-np.inf)),
        *(np.int64(-3), np.uint64(2**64 - 1), np.bool_(True), np.float32(0.1), np.int8(5)),
    ],
)
def test_a_number_is_written_exactly(number):
    read = np.asarray(eval(literal(number), {"np": np})).astype(number.dtype)[()]
    assert read.tobytes() == number.tobytes()


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("x", "float64", "float64", "x"),
        ("x", "int64", "float64", "np.float64(x)"),
        ("x", "int64", "bool", "(x != 0)"),
        ("3", "int64", "float64", "3.0"),
        ("np.float32(0.5)", "float32", "float64", "0.5"),
        ("(-2.7)", "float64", "int64", "(-2)"),
    ],
)
def test_types_are_converted(text, old, new, expected):
    assert cast(text, old, new) == expected


def test_a_function_of_numbers_takes_longer_than_a_sum():
    assert weight(ps.exp) > weight(ps.add)


def test_a_known_choice_is_no_choice():
    code = Code()
    operands = [Term("False"), Term("x"), Term("y")]
    apply_scalar(code, ps.switch, operands, ["bool", "float64", "float64"], "float64")
    assert code.lines == ["t1 = y"]


def test_numbers_of_a_narrow_type_stay_so():
    code = Code()
    apply_scalar(code, ps.add, [Term("x"), Term("y")], ["int8", "int8"], "int8")
    assert code.lines == ["t1 = np.int8((x + y))"]
