"""Two passes beside the normal equations."""

import numpy as np
import pytest

from pymc_dapper.reference import tree_least_squares

PARENT = [-1, 0, 0, 1, 1, 2, 2, 2]
RELEASED = np.array([31.0, np.nan, 19.5, 4, -3, 7, 2, 11])
SD = np.array([2.0, 1, 1.5, 3, 4, 2, 6, 1])


def by_normal_equations(sd):
    leaves = [3, 4, 5, 6, 7]
    design = np.zeros((8, 5))
    for column, leaf in enumerate(leaves):
        node = leaf
        while node >= 0:
            design[node, column] = 1
            node = PARENT[node]
    known = ~np.isnan(RELEASED)
    weights = known / np.maximum(sd, 1e-4) ** 2
    covariance = np.linalg.inv((design.T * weights) @ design)
    estimate = covariance @ ((design.T * weights) @ np.nan_to_num(RELEASED))
    return design @ estimate, np.sqrt(np.diag(design @ covariance @ design.T))


@pytest.mark.parametrize("exact", [None, 0, 3])
def test_estimates_and_their_sd(exact):
    sd = SD.copy()
    if exact is not None:
        sd[exact] = 0
    found = tree_least_squares(PARENT, RELEASED, sd)
    estimate, expected = by_normal_equations(sd)
    np.testing.assert_allclose(found.estimate, estimate, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(found.sd, expected, rtol=1e-4, atol=1e-4)
    if exact is None:
        np.testing.assert_allclose(found.sd, expected, rtol=1e-10)


def test_what_has_no_estimate():
    with pytest.raises(ValueError, match="of node 4"):
        tree_least_squares(PARENT, np.where(np.arange(8) == 4, np.nan, RELEASED), SD)
    with pytest.raises(ValueError, match="circle"):
        tree_least_squares([-1, 2, 1], [1.0, 1, 1], [1.0, 1, 1])
