"""Terms of a log-density as functions of sums and of fixed values."""

import numpy as np
import pytensor.tensor as pt
from scipy import sparse

from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.of_sums import Terms, terms_of, tidy, united
from pymc_dapper.graphs.terms.walk import CountWalk, as_terms


def test_offsets_and_scales_are_part_of_the_function():
    counts = pt.tensor("n", dtype="float64", shape=(3,))
    shift = np.array([1.0, 2.0, 5.0])
    density = ((2.0 * counts - shift) ** 2).sum()
    walk = CountWalk([counts], {})
    [part] = as_terms(walk.follow(density), walk, density)
    terms = terms_of("noise", part)
    [(sum_, matrix)] = terms.linear.items()
    np.testing.assert_array_equal(matrix.toarray(), np.eye(3))
    at = np.array([4.0, 0.0, 7.0])
    total = 0.0
    for k in range(3):
        values = {x: pt.constant(v.eval(mode="FAST_COMPILE")[k]) for x, v in terms.fixed.items()}
        [term] = rebuild([terms.function], {sum_: pt.constant(at[k]), **values})
        total += term.eval(mode="FAST_COMPILE")
    assert total == ((2 * at - shift) ** 2).sum()


def test_terms_of_the_same_sums_are_added_up():
    x, y, z, fixed = (pt.dscalar() for _ in range(4))
    cells, total = sparse.csr_array(np.eye(2)), sparse.csr_array(np.ones((1, 2)))
    squares = Terms("a", x**2, {x: cells}, {})
    shifted = Terms("b", -y * fixed, {y: cells.copy()}, {fixed: pt.constant([3.0, 5.0])})
    of_total = Terms("c", z, {z: total}, {})
    both, alone = united([squares, of_total, shifted])
    assert alone.linear == of_total.linear
    assert list(both.linear) == [x]
    [added] = rebuild([both.function], {x: pt.constant(2.0), fixed: pt.constant(5.0)})
    assert added.eval(mode="FAST_COMPILE") == 4 - 10
    np.testing.assert_array_equal(both.fixed[fixed].data, [3.0, 5.0])


def test_terms_of_other_sums_are_not():
    x, y = pt.dscalar(), pt.dscalar()
    one = Terms("a", x, {x: sparse.csr_array(np.eye(2))}, {})
    for matrix in (2 * np.eye(2), np.eye(2)[::-1], np.eye(2)[:1], np.ones((2, 2))):
        assert len(united([one, Terms("b", y, {y: sparse.csr_array(matrix)}, {})])) == 2


def test_a_tidy_matrix_has_each_cell_once():
    matrix = sparse.csr_array((np.array([1.0, 2.0, -2.0]), ([0, 0, 0], [1, 0, 0])), shape=(1, 2))
    made = tidy(matrix)
    assert made.indices.tolist() == [1]
    assert made.data.tolist() == [1.0]
