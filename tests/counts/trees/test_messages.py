"""What windows neglect, beside windows that neglect nothing."""

import numpy as np
import pytest

from pymc_dapper.counts.trees.compiled import ascend, bound_neglected
from pymc_dapper.counts.trees.forest import Forest, Releases
from pymc_dapper.counts.trees.priors import NO_TABLES, Prior

PARENT = np.array([-1, 0, 0, 1, 1, 2])
KINDS, SCALE = np.array([3, 2, 0, 2, 5, 2]), np.array([2.0, 1.5, 0.0, 8.0, 3.0, 6.0])


def made(released):
    law = Prior(*np.zeros((3, 6)), NO_TABLES)
    return Forest(PARENT, Releases(KINDS, np.array(released), SCALE), law)


def evidence(forest, drop):
    messages = ascend(forest.nodes, drop, True)
    assert messages.impossible < 0
    return messages.log_totals.sum(), bound_neglected(forest.nodes, messages)


@pytest.mark.parametrize("released", [[20.0, 12, 0, 3, 10, 8], [32.0, 12, 0, 3, 10, 8]])
@pytest.mark.parametrize("drop", [3.0, 6.0, 12.0, 20.0])
def test_the_bound_holds(released, drop):
    """Also if the sum's release is far from the sum of its parts' releases."""
    forest = made(released)
    exact, _ = evidence(forest, 600.0)
    found, (_, most, total) = evidence(forest, drop)
    assert -np.expm1(found - exact) <= total + 1e-13
    assert np.exp(most) <= total


def test_the_bound_is_of_use():
    """The bound is within some orders of magnitude of the neglected mass."""
    _, (_, _, total) = evidence(made([20.0, 12, 0, 3, 10, 8]), 42.0)
    assert total < 1e-12
