"""Values drawn from a model's prior, for checks."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from pymc_dapper.graphs.prior_draws import draw_values, drawing, is_finite
from pymc_dapper.graphs.view import view_of


def test_values_follow_those_at_the_point():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        x = pm.Normal("x", 1000 * scale, 1e-6, shape=3)
    rng = np.random.default_rng(0)
    drawn = draw_values(view_of(model), [x], rng, {"scale_log__": np.log(2.0)})
    np.testing.assert_allclose(drawn["x"], 2000, atol=1e-4)
    both = draw_values(view_of(model), [scale, x], rng, {})
    np.testing.assert_allclose(both["x"], 1000 * np.exp(both["scale_log__"]), atol=1e-4)
    assert is_finite(both)


def test_what_cant_be_drawn_has_no_values():
    def random(rng=None, size=None):
        raise ValueError("there is nothing to draw")

    with pm.Model() as model:
        x = pm.CustomDist("x", logp=lambda value: -(value**2), random=random, shape=2)
        pm.Flat("flat")
    assert draw_values(view_of(model), [x], np.random.default_rng(0), {}) is None
    assert draw_values(view_of(model), [model["flat"]], np.random.default_rng(0), {}) is None


def test_values_that_are_impossible_are_told_from_others():
    with pm.Model() as model:
        x = pm.Deterministic("one", pt.constant(1.0)) * pm.Normal("x")
        pm.Normal("y", x)
    drawn = draw_values(view_of(model), model.free_RVs, np.random.default_rng(0), {})
    assert is_finite(drawn)
    assert not is_finite({**drawn, "y": np.array([0.0, np.inf])})


def test_graphs_of_random_variables_are_drawn_together_and_anew_by_each_generator():
    with pm.Model() as model:
        x = pm.Normal("x", pm.HalfNormal("scale"), 1.0, shape=3)
    given = pt.dscalar()
    draw = drawing(model, [x, given * x.sum()], [given])
    (first, total), (second, _) = (draw(np.random.default_rng(k), 2.0) for k in (0, 1))
    np.testing.assert_allclose(total, 2 * first.sum())
    assert np.all(first != second)
    np.testing.assert_array_equal(draw(np.random.default_rng(0), 2.0)[0], first)
