"""Which entries an index takes. More of them: `test_operations.py`."""

import numpy as np
import pytest

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.indexing import number, select, unify
from pymc_dapper.one_function.values import constant, single


def at(code, *indices):
    return [constant(code, np.asarray(k)) for k in indices]


def test_known_slices_need_no_source():
    code = Code()
    start, step = at(code, 5, -2)
    shape, origin = select(code, (7, 3), [slice(start, None, step)])
    assert shape == [3, 3]
    assert origin([Term("1"), Term("2")]) == [Term("3"), Term("2")]
    assert code.lines == []


def test_a_number_counts_from_the_end():
    code = Code()
    shape, origin = select(code, ("n", 3), at(code, 0, -1))
    assert shape == []
    assert origin([])[1] == Term("2")


@pytest.mark.parametrize("index", [3, -4])
def test_a_known_index_out_of_bounds_raises_when_evaluated(index):
    code = Code()
    select(code, (3,), at(code, index))
    assert "raise IndexError" in code.lines[0]


def test_known_indices_are_checked_when_they_are_written():
    code = Code()
    shape, origin = select(code, (3,), at(code, [2, 0]))
    assert shape == [2]
    assert origin([Term("0")]) == [Term("2")]
    assert code.lines == []


def test_lengths_in_common():
    code = Code()
    assert unify(code, ["n", 3, "n"], "differ") == 3
    assert code.lines == ["if n != 3: raise ValueError('differ')"]
    assert number(single(code, "int64", Term("(-2)"))) == -2
