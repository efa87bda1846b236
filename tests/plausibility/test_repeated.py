"""A release that is in a model twice is refused, or warns if chance may explain it."""

import re
import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from tests.plausibility.ways import check

CELLS = np.array([61.25, 70.75, 58.4142])
WHOLE = np.array([61, 70, 58])


def released_twice(first, second, statistics=(lambda x: x, lambda x: x), values=(CELLS, CELLS)):
    with pm.Model() as model:
        table = pm.Poisson("table", 65, shape=3)
        for k, mechanism in enumerate((first, second)):
            mechanism.potential(f"privacy {k}", statistics[k](table), released=values[k])
    check(model, "table", "the counts")


@pytest.mark.parametrize("again", [lambda x: x, lambda x: 1 * x, lambda x: x + x[::-1] - x[::-1]])
def test_one_release_of_continuous_noise_is_not_taken_twice(again):
    laplace = pmd.LaplaceMechanism(4.0)
    with pytest.raises(ReadingError, match=r"'privacy 0' and 'privacy 1'.*never agree"):
        released_twice(laplace, pmd.LaplaceMechanism(4.0), (lambda x: x, again))


@pytest.mark.parametrize("observed", [pm.Normal, pm.Laplace])
def test_one_written_as_an_observed_variable_is_not_either(observed):
    with pm.Model() as model:
        table = pm.Poisson("table", 65, shape=3)
        for name in ("privacy", "again"):
            observed(name, table, 4.0, observed=CELLS)
    with pytest.raises(ReadingError, match="'privacy' and 'again'"):
        check(model, "table", "the counts")


def test_agreement_that_may_be_chance_warns_with_its_probability():
    mechanism = pmd.DiscreteGaussianMechanism(4.0)
    with pytest.warns(UserWarning, match="the same released values") as told:
        released_twice(mechanism, mechanism, values=(WHOLE, WHOLE))
    times = float(re.search(r"once in ([\d,]+) times", str(told[0].message))[1].replace(",", ""))
    rng = np.random.default_rng(1)
    nothing = np.zeros(10**6, dtype=int)
    agree = np.mean(mechanism.release(nothing, rng) == mechanism.release(nothing, rng))
    assert times == pytest.approx(agree**-3, rel=0.05)
    published = mechanism.rounded(10)
    with pytest.warns(UserWarning, match="the same released values"):
        released_twice(published, published, values=(np.array([60, 70, 60]),) * 2)


@pytest.mark.parametrize(
    "changed",
    [
        {"second": pmd.LaplaceMechanism(5.0)},
        {"second": pmd.GaussianMechanism(4.0 * np.sqrt(2))},
        {"statistics": (lambda x: x, lambda x: x[::-1])},
        {"values": (CELLS, CELLS + 0.5)},
    ],
)
def test_releases_that_differ_pass(changed):
    laplace = pmd.LaplaceMechanism(4.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released_twice(**{"first": laplace, "second": laplace, **changed})


def test_where_the_prior_cannot_be_drawn_from_graphs_tell():
    with pm.Model() as model:
        table = pm.Flat("table", shape=3)
        for name in ("privacy", "again"):
            pm.Normal(name, 2 * table, 4.0, observed=CELLS)
    with pytest.raises(ReadingError, match="'privacy' and 'again'"):
        check(model, "table", "the records")
