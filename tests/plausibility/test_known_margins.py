"""Values adjusted to add up to a known total are refused; noisy values aren't."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from tests.plausibility.ways import check

TOTALS = np.array([150, 250])
TABLE = np.array([[50.37, 60.9134, 41.2251], [91.081, 77.7, 84.23]])
LAPLACE = pmd.LaplaceMechanism(4.0)


def areas(released, tell, mechanism=LAPLACE, **shape):
    with pm.Model(coords={"area": range(2), "age": range(3)}) as model:
        table = pm.Poisson("table", 65, **(shape or {"shape": (2, 3)}))
        mechanism.potential("privacy", table, released=released)
        tell(table)
    check(model, "table", "the counts")


def by_area(table):
    pmd.invariant("by area", table.sum(axis=1), TOTALS)


def in_all(table):
    known = pm.Data("known", 400)
    pm.Potential("in all", pt.switch(pt.eq(table.sum(), known), 0.0, -np.inf))


def released_elsewhere(table):
    pmd.LaplaceMechanism(3.0).observe("total", table.sum(), released=411.25)


@pytest.mark.parametrize(
    ("tell", "onto", "message"),
    [
        (by_area, TOTALS[:, None], "exactly 150 and 1 more totals, as 'by area' tells"),
        (in_all, np.array(400), "exactly 400, as 'in all' tells"),
        (released_elsewhere, 411.25, "exactly 411.25, as 'total' was released.*leave it out"),
    ],
)
def test_values_adjusted_to_totals_known_elsewhere_are_refused(tell, onto, message):
    areas(TABLE, tell)
    axes = (0, 1) if np.ndim(onto) == 0 else 1
    fitted = TABLE * onto / TABLE.sum(axis=axes, keepdims=True)
    # With dims, too: one data set is drawn from the prior for all statistics.
    for shape in ({}, {"dims": ("area", "age")}):
        with pytest.raises(ReadingError, match=f"'privacy': .* add up to {message}"):
            areas(fitted, tell, **shape)


def test_least_squares_onto_an_exact_total_are_normal_noise_and_onto_a_noisy_one_are_not():
    fitted = TABLE - (TABLE.sum() - 411.25) / 6
    normal = pmd.GaussianMechanism(4.0)
    with pytest.raises(ReadingError, match="'total' was released"):
        areas(fitted, released_elsewhere, normal)
    areas(TABLE - (TABLE.sum(axis=1) - TOTALS)[:, None] / 3, by_area, normal)


def test_whole_numbers_that_may_add_up_by_chance_pass_and_unlikely_ones_warn():
    whole = np.array([[51, 60, 39], [91, 77, 82]])
    areas(whole, in_all, pmd.DiscreteLaplaceMechanism(4.0))
    with pytest.warns(UserWarning, match=r"'privacy': .* exactly 150 and 1 more .* so once in "):
        areas(whole, by_area, pmd.DiscreteLaplaceMechanism(12.0))
