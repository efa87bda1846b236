"""How models of counts are read: terms, wholes, totals, and checks of parameters."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import norm

from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.graphs.errors import ReadingError
from tests.counts.systems import read


def test_each_factor_has_terms_and_totals_are_invariants():
    with pm.Model() as model:
        x = pm.Multinomial("x", n=[30, 40], p=np.ones((2, 3)) / 3)
        pm.Normal("cells", x, 2.0, observed=np.ones((2, 3)))
        pm.Laplace("columns", x.sum(axis=0), 2.0, observed=np.ones(3))
        pm.Potential("distance", -pt.sqrt(((x - 3) ** 2).sum()))
    reading = read(model, "x")
    assert [(terms.factor, terms.size) for terms in reading.terms] == [
        ("x", 6),  # counts times log-probabilities
        ("x", 6),  # their factorials
        ("cells", 6),
        ("columns", 3),
    ]
    [whole] = reading.wholes
    assert whole.factor == "distance"
    assert "Sqrt" in whole.reason
    known = reading.known
    np.testing.assert_array_equal(known.matrix.toarray(), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    np.testing.assert_array_equal(known.offset.eval(mode="FAST_COMPILE"), [-30, -40])


def test_a_cell_with_coefficient_0_is_seen_like_others():
    """Such as a Poisson count with a rate of 1, beside others."""
    with pm.Model() as model:
        x = pm.Poisson("x", [1.0, 3.0, 0.5])
        pm.Normal("released", x[1] + np.array([0.0, 1.0]) * x[2], 1.0, observed=np.ones(2))
    terms = read(model, "x").terms
    assert [[x.toarray().tolist() for x in each.linear.values()] for each in terms] == [
        [np.eye(3).tolist()],
        [[[0, 1, 0], [0, 1, 1]]],
    ]


def test_a_total_is_found_whatever_its_probabilities_depend_on():
    with pm.Model() as model:
        x = pm.Poisson("x", 3.0)
        y = pm.Multinomial("y", n=10, p=pt.stack([x + 1, 2]) / (x + 3))
        pm.Normal("released", y, 1.0, observed=np.ones(2))
    reading = read(model, "x", "y")
    np.testing.assert_array_equal(reading.known.matrix.toarray(), [[0, 1, 1]])
    assert [whole.factor for whole in reading.wholes] == ["y"]


def looks_up(index):
    with pm.Model() as model:
        n = pm.Binomial("n", 4, 0.3)
        x = pm.Poisson("x", 2.0, shape=3)
        table = pt.constant([0.0, 1.0, 4.0, 9.0, 16.0])
        pm.Normal("fees", (table[index(n, x)] * x).sum(), 1.0, observed=5.0)
    return model


@pytest.mark.parametrize("index", [lambda n, x: n, lambda n, x: x])
def test_counts_that_there_may_be_no_entry_for_are_no_indices(index):
    """Ones that the prior rules out are evaluated, too; compiled, they would be out of bounds."""
    with pytest.raises(ReadingError, match=r"'fees' looks up .*table\[pt.clip\(counts"):
        read(looks_up(index), "n", "x")


def test_a_count_with_bounds_may_be_an_index():
    reading = read(looks_up(lambda n, x: pt.clip(n, 0, 4)), "n", "x")
    [whole] = reading.wholes
    inputs = {k: [0.0] * linear.matrix.shape[0] for k, linear in whole.linear.items()}
    of_counts = {"n": np.array(2), "x": np.array([1, 0, 2])}
    counts = np.concatenate([np.ravel(of_counts[x.name]) for x in reading.counts])
    for scalar, linear in whole.linear.items():
        offset = linear.offset.eval(mode="FAST_COMPILE")
        entries = linear.matrix @ counts + np.ravel(offset)
        inputs[scalar] = entries.reshape(linear.shape).astype(scalar.dtype)
    found = whole.log_density.eval(inputs, mode="FAST_COMPILE")
    np.testing.assert_allclose(found, norm.logpdf(5.0, 4.0 * 3))


# Parameter checks ---------------------------------------------------------------------

CHILDREN = {
    "free": lambda x: pm.Bernoulli("child", 0.5 + 0.3 * x),
    "scale": lambda x: pm.Normal("child", x, 0.5 * x - 0.4, observed=1.0),
    "probability": lambda x: pm.Binomial("child", n=3, p=pm.Normal("p", 0.3) + x / 4, observed=2),
    "mean": lambda x: pm.NegativeBinomial("child", mu=x - 1, alpha=1.0, observed=2),
    "total": lambda x: pm.Multinomial("child", n=x - 2, p=np.ones(2) / 2),
    "whole": lambda x: pm.DirichletMultinomial(
        "child", n=2, a=pt.stack([x - 1, pt.sqrt(x * x + 1)]), observed=[1, 1]
    ),
    "parameter": lambda x: pm.Beta("child", x - 2.0, 1.0),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_count_with_which_parameters_are_invalid_is_impossible(name):
    with pm.Model() as model:
        x = pm.Poisson("x", 2.0, initval=4)
        CHILDREN[name](x)
    point = model.initial_point()
    reading = read_counts(model, [model.rvs_to_values[x]])
    logp = model.compile_logp([x, model["child"]], mode="FAST_COMPILE")
    at = [{**point, "x": np.array(count)} for count in range(6)]
    expected = np.array([logp(each) for each in at])
    parts = [*reading.terms, *reading.wholes]
    found = np.array([sum(value_of(part, each, reading) for part in parts) for each in at])
    possible = np.isfinite(expected)
    assert 0 < possible.sum() < 6
    np.testing.assert_array_equal(np.isfinite(found), possible)
    assert np.ptp(found[possible] - expected[possible]) < 1e-10


def value_of(part, point, reading):
    """A part of the log-density at a point."""
    counts = np.concatenate([np.ravel(point[x.name]) for x in reading.counts])
    given = {x: point[x.name] for x in reading.parameters}
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    if not hasattr(part, "function"):
        linear = {
            x: (at.matrix @ counts).reshape(at.shape) + at.offset.eval(given, **options)
            for x, at in part.linear.items()
        }
        linear = {x: value.astype(x.dtype) for x, value in linear.items()}
        return part.log_density.eval({**linear, **given}, **options)
    linear = {x: matrix @ counts for x, matrix in part.linear.items()}
    fixed = {x: values.eval(given, **options) for x, values in part.fixed.items()}
    with np.errstate(all="ignore"):
        return sum(
            part.function.eval({x: v[k] for x, v in {**linear, **fixed}.items()}, **options)
            for k in range(part.size)
        )
