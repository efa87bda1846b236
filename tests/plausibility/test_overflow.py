"""Whole numbers that their type can't hold are refused."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.plausibility.overflow import check_overflow

LARGE = 3_000_000_000


def of(statistic, law=None):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=50) if law is None else law("x")
        pm.Potential("privacy", -1e-22 * (statistic(x) - 4.5e21) ** 2)
    return model


def check(model):
    check_overflow(model, [model.rvs_to_values[model["x"]]])


def counts(name):
    return pm.Poisson(name, 4.0, shape=50)


@pytest.mark.parametrize("law", [None, counts])
def test_a_square_beyond_64_bits_is_refused(law):
    model = of(lambda x: (x * LARGE).sum() ** 2, law)
    with np.errstate(over="ignore"):
        wrapped = np.int64(25 * LARGE) ** np.int64(2)
    assert wrapped != (25 * LARGE) ** 2  # what would be sampled
    with pytest.raises(ReadingError, match=r"'privacy' .*int64.*x\.astype\('float64'\)"):
        check(model)


@pytest.mark.parametrize("law", [None, counts])
def test_what_fits_and_what_is_computed_in_floats_passes(law):
    check(of(lambda x: (x.astype("float64") * LARGE).sum() ** 2, law))
    check(of(lambda x: (x * LARGE).sum(), law))
    check(of(lambda x: x.sum() ** 2, law))


def test_sampling_refuses_it(uncompiled):
    with pytest.raises(ReadingError, match="whole numbers"):
        pmd.assign_steps(model=of(lambda x: (x * LARGE).sum() ** 2))


def test_an_observed_variable_is_refused_too():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=50)
        pm.Normal("released", (x * LARGE).sum() ** 2, 1e20, observed=4.5e21)
    with pytest.raises(ReadingError, match=r"'released' .*from x\.astype\('float64'\)"):
        check(model)


def test_the_message_names_the_variable_that_is_too_large():
    with pm.Model() as model:
        x, y = pm.Bernoulli("x", 0.5, shape=50), pm.Bernoulli("y", 0.5, shape=50)
        pm.Potential("privacy", -1e-22 * ((x * LARGE).sum() ** 2 - 4.5e21) ** 2 - y.sum())
    with pytest.raises(ReadingError, match=r"from x\.astype\('float64'\)$"):
        check_overflow(model, [model.rvs_to_values[each] for each in (x, y)])


def test_what_records_are_drawn_by_is_looked_at_too():
    with pm.Model() as model:
        y = pm.Bernoulli("y", 0.5, shape=50)
        x = pm.Bernoulli("x", 1e-22 * (y * LARGE).sum() ** 2, shape=50)
        pm.Potential("privacy", -((x.sum() - 9.0) ** 2))
    with pytest.raises(ReadingError, match="'privacy' computes whole numbers of up to"):
        check_overflow(model, [model.rvs_to_values[each] for each in (x, y)])


def test_the_message_names_all_variables_of_a_product():
    with pm.Model() as model:
        x, y = pm.Bernoulli("x", 0.5, shape=50), pm.Bernoulli("y", 0.5, shape=50)
        pm.Potential("privacy", -1e-22 * ((x * y * LARGE).sum() ** 2 - 4.5e21) ** 2)
    for variables in ((x, y), (y, x)):
        names = " and ".join(rf"{v.name}\.astype\('float64'\)" for v in variables)
        with pytest.raises(ReadingError, match=names):
            check_overflow(model, [model.rvs_to_values[each] for each in variables])


@pytest.mark.parametrize(("dtype", "n"), [("uint8", 300), ("int8", 130)])
def test_counts_in_a_small_type_are_refused(dtype, n):
    """`pt.bincount` counts in the type of what it counts."""
    with pm.Model() as model:
        x = pm.Categorical("x", np.full(3, 1 / 3), shape=n)
        counted = pt.bincount(x.astype(dtype), minlength=3)
        pmd.GaussianMechanism(5.0).potential("cells", counted, released=np.full(3, n / 3))
    with pytest.raises(ReadingError, match=rf"'cells' .* in {dtype}.*from x\.astype\('int64'\)"):
        check_overflow(model, model.value_vars)
