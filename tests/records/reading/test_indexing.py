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


Y = pt.vector("y", shape=(N,))
PAIRS = pt.lmatrix("pairs").type.clone(shape=(1, N))("pairs")
ACROSS = pt.matrix("across", shape=(N, N))
ROWS = {X: Rows(0), K: Rows(0), Y: Rows(0), PAIRS: Rows(1), ACROSS: Rows(1)}
RNG = np.random.default_rng(0)


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


PLACES = np.array([1, -1, 0, 1])
ONE = K.type.clone(shape=(1,))("one")


@pytest.mark.parametrize(
    "filled",
    [
        pt.zeros((2, 3))[PLACES, K].inc(1),
        pt.ones((2, 3))[PLACES, K].inc(Y),
        pt.zeros((3, 2, 2))[K, PLACES, PLACES[::-1]].inc(np.arange(4.0)),
        pt.zeros((3, 2))[K, PLACES].inc(2.5),
        pt.zeros((2, 2))[PLACES, PLACES].inc(Y),
        pt.zeros((2, 3, 3))[PLACES, K].inc(X),
        pt.zeros((2, 3, 4))[PLACES, K].inc(np.arange(4.0)),
        pt.zeros((2, 3), dtype="int64")[PLACES, K].inc(2**60 + 1),
    ],
    ids=str,
)
def test_what_is_added_at_several_indices_is_a_sum(filled):
    """Also from the end, of values of each record, and of rows of values."""
    role = role_of(filled, ROWS)
    assert isinstance(role, SumOverRecords)
    x = RNG.integers(9, size=(N, 4)).astype(float)
    at = {X: x[:, :3], Y: x[:, 3], K: np.array([0, 2, -1, 0])}
    terms, offset, expected = (
        pt.as_tensor(x).eval(at, mode="FAST_COMPILE", on_unused_input="ignore")
        for x in (role.contributions, 0 if role.offset is None else role.offset, filled)
    )
    assert terms.shape == (N, *expected.shape)
    # Each record by itself: it isn't enough that the total is right.
    others = {x: np.concatenate([values[:1], values[::-1][:3]]) for x, values in at.items()}
    first = role.contributions.eval(others, mode="FAST_COMPILE", on_unused_input="ignore")[0]
    np.testing.assert_array_equal(first, terms[0])
    np.testing.assert_array_equal(terms.sum(axis=0) + offset, expected)


def test_what_lies_outside_is_added_nowhere():
    role = role_of(pt.zeros((2, 3))[PLACES, K].inc(1), ROWS)
    terms = role.contributions.eval({K: np.array([3, -4, 2, 99])}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(terms.sum(axis=(1, 2)), [0, 0, 1, 0])


@pytest.mark.parametrize(
    "picked",
    [
        X[K],
        pt.zeros(3)[K].set(1.0),
        pt.zeros((6, 3))[1:5].set(X),
        pt.zeros((2, 3))[PLACES, K].set(1.0),
        pt.inc_subtensor(pt.zeros((2, 3))[PLACES, K], 1.0, ignore_duplicates=True),
        pt.zeros((2, 3))[PLACES[:, None], PAIRS].inc(1.0),
        pt.zeros((3, 4))[PLACES].inc(Y),
        pt.zeros((4, 4))[np.arange(4)].inc(Y),
        pt.zeros((3, 4))[PLACES].inc(ACROSS),
        pt.zeros((2, 3))[PLACES, ONE].inc(1.0),
        pt.zeros((2, 3))[1:, K].inc(1.0),
    ],
    ids=[
        *("by the value of each", "set", "some of more rows", "set at several indices"),
        *(
            "each place once",
            "all pairs",
            "across records",
            "across, in order",
            "on the last axis",
            "the only one",
            "slice",
        ),
    ],
)
def test_indexing_that_mixes_records_is_reported(picked):
    with pytest.raises(NotAdditiveError):
        role_of(picked, ROWS | {ONE: Rows(0)})
