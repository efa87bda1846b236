"""What indexing does to the record axis: the roles of its results."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.reading import NotAdditiveError, follow_records
from pymc_dapper.records.reading.roles import Fixed, Rows, SumOverRecords

N = 4
X = pt.matrix("x", shape=(N, 3))
K = pt.lvector("k").type.clone(shape=(N,))("k")
TABLE = pt.constant(np.arange(12.0).reshape(6, 2))


def role_of(variable, rows):
    node = variable.owner
    [role] = follow_records(node.op, node, [rows.get(x, Fixed()) for x in node.inputs])
    return role


def order_of(role):
    at = {X: np.zeros((N, 3))}
    return role.records.eval(at, mode="FAST_COMPILE", on_unused_input="ignore")


ROWS = {X: Rows(0), K: Rows(0)}


@pytest.mark.parametrize(
    ("picked", "axis", "records"),
    [
        (X[:, 1], 0, None),
        (X[1:], 0, [1, 2, 3]),
        (X[::-1, 0], 0, [3, 2, 1, 0]),
        (X[[2, 0, 2]], 0, [2, 0, 2]),
        (X[np.arange(N)], 0, None),
        (X[:, [2, 1]], 0, None),
        (X[np.arange(N), K], 0, None),
        (TABLE[K], 0, None),
        (TABLE[:, K], 1, None),
    ],
    ids=str,
)
def test_rows_are_followed_to_where_they_go(picked, axis, records):
    role = role_of(picked, ROWS)
    assert isinstance(role, Rows)
    assert role.axis == axis
    if records is None:
        assert role.records is None
    else:
        np.testing.assert_array_equal(order_of(role), records)


def test_a_single_record_is_a_sum_of_one_term():
    role = role_of(X[2], ROWS)
    assert isinstance(role, SumOverRecords)
    np.testing.assert_array_equal(order_of(role), [2])


def test_what_is_added_to_entries_of_a_buffer_is_a_sum():
    role = role_of(pt.zeros(3)[K].inc(1.0), {K: Rows(0)})
    assert isinstance(role, SumOverRecords)
    terms = role.contributions.eval({K: np.array([0, 2, -1, 0])}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(terms, np.eye(3)[[0, 2, 2, 0]])


@pytest.mark.parametrize(
    "picked",
    [X[K], pt.zeros(3)[K].set(1.0), pt.zeros((6, 3))[1:5].set(X)],
    ids=["by the value of each", "set", "some of more rows"],
)
def test_indexing_that_mixes_records_is_reported(picked):
    with pytest.raises(NotAdditiveError):
        role_of(picked, ROWS)
