import numpy as np
import pytest

from pymc_dapper.releases.arrays import Cells

KEYS = {"sex": ["m", "f", "m", "f"], "age": [1, 1, 2, 2]}


def test_rows_find_their_place():
    cells = Cells("q", KEYS)
    assert cells.coords == {"sex": ("m", "f"), "age": (1, 2)}
    filled = cells.fill([2**60 + 1, 20, 30, 40])
    assert filled.tolist() == [[2**60 + 1, 30], [20, 40]]
    assert filled.dtype == np.int64
    assert cells.missing() is None
    assert cells.empty(filled) is None


def test_labels_have_the_order_that_is_asked_for():
    cells = Cells("q", KEYS, {"sex": ("f", "m", "x")})
    filled = cells.fill([1, 2, 3, 4])
    np.testing.assert_array_equal(filled, [[2, 4], [1, 3], [np.nan, np.nan]])
    assert cells.missing() == "sex 'x', age 1"


def test_a_value_that_is_missing_is_told():
    cells = Cells("q", KEYS)
    assert cells.empty(cells.fill([1.0, 2.0, None, 4.0])) == "sex 'm', age 2"


@pytest.mark.parametrize(
    ("keys", "coords", "message"),
    [
        ({"sex": ["m", "m"]}, None, "'q': there are two rows of sex 'm'"),
        ({"sex": ["m", None]}, None, "'q': labels of 'sex': a label is missing"),
        ({"sex": ["m", "x"]}, {"sex": ("m", "f")}, "'q': 'x' isn't among the coords of 'sex'"),
    ],
)
def test_rows_that_have_no_place_are_refused(keys, coords, message):
    with pytest.raises(ValueError, match=message):
        Cells("q", keys, coords)


def test_what_is_no_number_is_refused():
    with pytest.raises(
        TypeError, match=r"'q': values must be numbers, got '<5' at sex 'm', age 1.* empty, or nan"
    ):
        Cells("q", KEYS).fill(["<5", 1, 2, 3])
    for value in ("3", True, np.True_, b"3", 1j):
        with pytest.raises(TypeError, match="'q': values must be numbers"):
            Cells("q", KEYS).fill([value, 1, 2, 3])
    with pytest.raises(ValueError, match="'q': values must fit into 64 bits, got 1180591620717"):
        Cells("q", KEYS).fill([2**70, 1, 2, 3])
