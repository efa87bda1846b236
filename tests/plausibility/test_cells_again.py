"""The same cells twice: told of where a cell is changed alike each time."""

import warnings

import numpy as np
import pymc as pm
import pytest

from pymc_dapper import CellKey, RandomRounding, ReadingError
from pymc_dapper.plausibility.cells_again import check_cells_again

KEYS = CellKey([[0, 0, 1.0], [1, -1, 0.5], [1, 1, 0.5], [2, -1, 0.5], [2, 1, 0.5]])
ROUNDING = RandomRounding(3)
RELEASED = 3 * np.arange(12)


def model(mechanism, released, again, of_rest=False):
    with pm.Model() as m:
        n = pm.Poisson("n", 10.0, shape=12)
        mechanism.potential("first", n, released=released)
        if of_rest:
            mechanism.potential("again", n.sum(), released=again[:1].sum())
        else:
            mechanism.observe("again", n, released=again)
    return m


def test_cells_that_are_changed_alike_are_refused():
    with pytest.raises(ReadingError, match=r"'first' and 'again' .* one observation"):
        check_cells_again(model(KEYS, RELEASED, RELEASED))
    with pytest.raises(ReadingError, match=r"'first' and 'again' .* but they differ"):
        check_cells_again(model(KEYS, RELEASED, RELEASED + 1))


def test_cells_that_may_be_rounded_twice_warn_if_all_agree():
    with pytest.warns(UserWarning, match=r"RandomRounding was applied once"):
        check_cells_again(model(ROUNDING, RELEASED, RELEASED))


@pytest.mark.parametrize(
    "m",
    [
        model(ROUNDING, RELEASED, RELEASED[::-1].copy()),
        model(KEYS, RELEASED, RELEASED, of_rest=True),
    ],
)
def test_other_releases_are_fine(m):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_cells_again(m)
