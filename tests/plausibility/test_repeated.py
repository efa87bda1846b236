"""A release that is in a model twice is refused, or warns if chance may explain it.

The same cells twice: told of where a cell is changed alike each time.
"""

import re
import warnings

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper import CellKey, RandomRounding
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.plausibility.repeated import check_cells_again
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
