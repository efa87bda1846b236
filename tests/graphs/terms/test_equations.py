"""What log-densities require exactly."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.terms.equations import compares, requires
from pymc_dapper.graphs.terms.walk import CountWalk
from tests.counts.systems import read


@pytest.mark.parametrize(
    "potential",
    [
        lambda x: pt.switch(pt.all(pt.eq(x.sum(axis=1), [4, 5])), 0, -np.inf),
        lambda x: pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf),
        lambda x: pt.switch(pt.neq(x.sum(axis=1), [4, 5]), -np.inf, 0.0).sum(),
        lambda x: pt.switch(pt.any(pt.neq(x.sum(axis=1), [4, 5])), -np.inf, -(x**2).sum()),
        lambda x: pt.switch(~pt.all(pt.eq(x.sum(axis=1), [4, 5])), -np.inf, 0.0),
        lambda x: pm.math.log(1.0) + pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf),
        lambda x: 2.0 * pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf) / 3,
        lambda x: pt.log(pt.eq(x.sum(axis=1), [4, 5])),
        lambda x: pt.log(pt.all(pt.eq(x.sum(axis=1), [4, 5]))),
        # With something that isn't a sum of terms.
        lambda x: pt.switch(pt.all(pt.eq(x.sum(axis=1), [4, 5])), -pt.sqrt((x**2).sum()), -np.inf),
        lambda x: pt.log(pt.all(pt.eq(x.sum(axis=1), [4, 5]))) - pt.max(x),
    ],
)
def test_invariants_may_be_written_in_several_ways(potential):
    with pm.Model() as model:
        x = pm.Poisson("x", 3, shape=(2, 3))
        pm.Potential("known", potential(x))
    known = read(model, "x").known
    assert known.factors == ("known", "known")
    np.testing.assert_array_equal(known.matrix.toarray(), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    np.testing.assert_array_equal(known.offset.eval(mode="FAST_COMPILE"), [-4, -5])


@pytest.mark.parametrize(
    "condition",
    [
        lambda x: pt.eq(x.sum(), 9) & (x[0, 0] > 1),
        lambda x: pt.abs(x.sum() - 9) < 2,
    ],
)
def test_a_condition_that_says_more_or_less_stays_a_factor(condition):
    """Of counts, what is read as an equation leaves the log-density."""
    with pm.Model() as model:
        x = pm.Poisson("x", 3, shape=(2, 3))
        pm.Potential("known", pt.switch(condition(x), 0, -np.inf))
    assert not read(model, "x").known.factors


@pytest.mark.parametrize("at_least", [True, False])
@pytest.mark.parametrize(
    ("condition", "tolerances"),
    [
        (lambda s: pt.switch(pt.eq(s, 9) & (s > 1), 0, -np.inf), [0.0]),
        (lambda s: pt.switch(pt.neq(s, 9) | (s > 1), -np.inf, 0), [0.0]),
        (lambda s: pt.switch(pt.abs(s - 9) < 2, 0, -np.inf), [2.0]),
        (lambda s: pt.switch((pt.abs(s - 9) < 2) & pt.eq(s, 9), 0, -np.inf), [2.0, 0.0]),
        (lambda s: pt.switch(pt.eq(s, 9) | (s > 1), 0, -np.inf), []),
        (lambda s: pt.switch(pt.abs(s - 9) < 2, -np.inf, 0), []),
    ],
)
def test_more_equations_are_found_where_the_factor_stays(condition, tolerances, at_least):
    total = pt.lvector("total").type.clone(shape=(1,))()
    assert compares([total], condition(total))
    role = CountWalk([total], {}, at_least=at_least).follow(condition(total))
    assert [rows.tolerance for rows in requires(role)] == (tolerances if at_least else [])


def test_without_a_comparison_of_counts_nothing_is_required():
    total, known = pt.lvector("total"), pt.lvector("known")
    assert not compares([total], pt.switch(total - known, 0, -np.inf))
    assert not compares([total], -((total - known.clip(0, 9)) ** 2))
