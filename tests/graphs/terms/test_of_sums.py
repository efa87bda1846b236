"""Terms of a log-density as functions of sums and of fixed values."""

import numpy as np
import pytensor.tensor as pt
from scipy import sparse

from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.of_sums import terms_of, tidy
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


def test_a_tidy_matrix_has_each_cell_once():
    matrix = sparse.csr_array((np.array([1.0, 2.0, -2.0]), ([0, 0, 0], [1, 0, 0])), shape=(1, 2))
    made = tidy(matrix)
    assert made.indices.tolist() == [1]
    assert made.data.tolist() == [1.0]
