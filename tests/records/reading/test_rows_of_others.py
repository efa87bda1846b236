"""What records contribute, with others in their place."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.records.reading.rows_of_others import rows_of_others

N, M = 5, 2
X, K = pt.dmatrix("x").type.clone(shape=(N, 2))("x"), pt.lvector("k").type.clone(shape=(N,))("k")
OTHER_X, OTHER_K = X.type.clone(shape=(M, 2))("other_x"), K.type.clone(shape=(M,))("other_k")
WEIGHTS, OTHER_WEIGHTS = np.arange(5.0), pt.constant([10.0, 20.0])
TABLE = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
AT = {OTHER_X: np.array([[1.0, -2.0], [3.0, 0.5]]), OTHER_K: np.array([2, 0])}

CONTRIBUTIONS = {
    "each by itself": (X**2, AT[OTHER_X] ** 2),
    "columns": (pt.stack([X[:, 0], X[:, 1] * K], axis=1), [[1.0, -4.0], [3.0, 0.0]]),
    "summed over columns": (X.sum(axis=1), [-1.0, 3.5]),
    "looked up": (pt.constant(TABLE)[K], TABLE[[2, 0]]),
    "beside what there is for each": (WEIGHTS * X[:, 0], [10.0, 60.0]),
    "transposed": (X.T[0], [1.0, 3.0]),
}


def rows(contributions):
    return rows_of_others(contributions, {X: OTHER_X, K: OTHER_K}, lambda x, axis: OTHER_WEIGHTS)


@pytest.mark.parametrize("name", CONTRIBUTIONS)
def test_others_contribute_what_they_would(name):
    contributions, expected = CONTRIBUTIONS[name]
    found = rows(contributions).eval(AT, mode="FAST_COMPILE", on_unused_input="ignore")
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "contributions",
    [X[::-1], X[1:], pt.sort(X, axis=0), pt.cumsum(K)],
    ids=["other places", "some", "sorted", "cumulated"],
)
def test_what_depends_on_a_records_place_is_not_known(contributions):
    assert rows(contributions) is None
