"""Matrices of records in long form: the same values, entry by entry."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.long_form import LongForm

Z = np.array([[0.5], [2.0], [-1.0], [0.3]])


def _by_entry(x, b, d):
    return pt.switch(pt.eq(x, d), b + Z * x, pt.exp(-b))


def _totals(x, b, d):
    return (x * b).sum() ** 2 + pt.log(1 + (Z * x).sum(axis=0)).sum() * d.sum()


def _of_columns(x, b, d):
    return (x - 0.5 * d).sum(axis=0) * b


def _checked(x, b, d):
    return pm.logp(pm.Normal.dist(b * x, 1 + pt.exp(b)), d)


GRAPHS = [_by_entry, _totals, _of_columns, _checked]


@pytest.mark.parametrize("graph", GRAPHS)
def test_values_are_those_of_the_matrix(graph):
    rng = np.random.default_rng(0)
    x, d = (pt.matrix(name, shape=(4, 3)) for name in "xd")
    b = pt.vector("b", shape=(3,))
    long_form, written = LongForm(x, [d]), graph(x, b, d)
    long = long_form(written)
    values = [rng.integers(0, 2, (4, 3)) * 1.0, rng.normal(size=3), rng.normal(size=(4, 3))]
    [expected] = compile_in_python(pm.Model(), [x, b, d], [written])(*values)
    given = [values[0].ravel(), values[1], values[2], values[2].ravel()]
    inputs = [long_form.entries, b, d, long_form.flat[d]]
    [found] = compile_in_python(pm.Model(), inputs, [long])(*given)
    by_entry = expected.ravel() if expected.shape == (4, 3) else expected
    np.testing.assert_allclose(found, by_entry, rtol=1e-14)


@pytest.mark.parametrize(
    ("see", "message"),
    [
        (lambda x: x.sum(axis=1).max(), r"shape \(4, 3\), are combined by Sum\{axis=1\}"),
        (lambda x: (x @ np.ones(3)).sum(), "Write it as single variables, one for each column"),
        (lambda x: x[:, 0].sum(), "are combined by Subtensor"),
        (lambda x: (x - x.mean()).sum(), "are combined by Sub"),
    ],
)
def test_entries_that_are_combined_are_refused(see, message):
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=(4, 3))
        pm.Potential("privacy", -1.0 * see(x))
    with pytest.raises(TabulationError, match=message):
        pmd.tabulate(model, [x])
