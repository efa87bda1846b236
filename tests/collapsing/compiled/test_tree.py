"""CollapsedStep with counts on a tree, in Python: beside all tables."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats

import pymc_dapper as pmd
from pymc_dapper.collapsing.step import CollapsedStep
from pymc_dapper.counts.trees.model import ModelTree, NoTreeError
from tests.counts.trees.models import COUNTS, MODELS, log_densities, tables_of
from tests.evaluated_in_python import evaluated_in_python

# Going through all tables takes 20 seconds; chains are in tests/statistical/test_collapsed.py.
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def built():
    """A model, its step, and the log-density of the parameters, by going through all tables."""
    with evaluated_in_python():
        model = MODELS["levels"]()
        parameters = [rv for rv in model.free_RVs if rv.name != "x"]
        step = CollapsedStep(parameters, counts=[model["x"]], model=model)
        joint = log_densities("levels", model)
        tables = tables_of("levels")
        yield model, step, lambda point: special.logsumexp(joint(point, tables))


def test_the_log_density_is_the_sum_over_all_tables(built):
    model, step, expected = built
    for effect in (0.3, -1.2, 2.5):
        point = model.initial_point() | {"effect": np.array(effect)}
        assert step._log_density(point) == pytest.approx(expected(point), rel=1e-12)


def test_the_gradient_is_that_of_finite_differences(built):
    model, step, expected = built
    point, h = model.initial_point(), 1e-5
    _, gradient = step.nuts._logp_dlogp_func([np.array([0.7])], extra_vars=point)
    up, down = (expected(point | {"effect": np.array(0.7 + x)}) for x in (h, -h))
    assert gradient[0] == pytest.approx((up - down) / (2 * h), rel=1e-6)


def test_chains_start_with_the_known_totals(built):
    model, step, _ = built
    assert model.initial_point()["x"][0].sum() != 4
    step.setup_chain(np.random.default_rng(3), tune=3, draws=3)
    point, seen = model.initial_point(), []
    for k in range(6):
        if k == 3:
            step.stop_tuning()
        point, _ = step.step(point)
        seen.append(np.append(point["effect"], point["x"]))
        assert (point["x"].sum(), point["x"][0].sum()) == (7, 4)
    assert (np.ptp(seen, axis=0) > 0).all()
    state = step.sampling_state
    expected, _ = step.step(point)
    step.setup_chain(np.random.default_rng(4), tune=3, draws=3)
    step.sampling_state = state
    again, _ = step.step(point)
    np.testing.assert_array_equal(again["x"], expected["x"])


def test_where_the_sum_cannot_be_bounded_is_a_divergence(built, monkeypatch):
    def fails(*_, **__):
        raise NoTreeError("too far")

    model, step, _ = built
    monkeypatch.setattr(ModelTree, "solve", fails)
    assert step._log_density(model.initial_point()) == -np.inf


def test_counts_that_were_rounded_at_random_with_a_margin_of_their_own():
    def rounded(released, count):
        return np.clip(1 - np.abs(released - count) / 3, 0, 1)

    mechanism, counts = pmd.RandomRounding(3), np.arange(12)
    with evaluated_in_python(), pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Poisson("x", pt.exp(effect) * np.array([2.0, 5.0]))
        mechanism.potential("cells", x, released=[3, 6])
        mechanism.potential("all", x.sum(), released=12)
        step = CollapsedStep([effect], counts=[x], model=model)
    first, second = counts[:, None], counts
    for effect in (0.0, 0.8):
        rates = np.exp(effect) * np.array([2.0, 5.0])
        of_cells = rounded(3, first) * rounded(6, second)
        prior = stats.poisson.pmf(first, rates[0]) * stats.poisson.pmf(second, rates[1])
        expected = np.log((of_cells * rounded(12, first + second) * prior).sum())
        found = step._log_density(model.initial_point() | {"effect": np.array(effect)})
        assert found == pytest.approx(expected + stats.norm.logpdf(effect), rel=1e-12)
        without_margin = np.log((of_cells * prior).sum()) + stats.norm.logpdf(effect)
        assert abs(found - without_margin) > 0.1


@pytest.mark.long
@pytest.mark.parametrize("name", ["known total", "latent totals", "families"])
def test_so_it_is_of_other_models(name):
    with evaluated_in_python():
        model = MODELS[name]()
        counts = [model[each] for each in COUNTS[name]]
        parameters = [rv for rv in model.free_RVs if rv not in counts]
        step = CollapsedStep(parameters, counts=counts, model=model)
        point = model.initial_point()
        logs = log_densities(name, model)(point, tables_of(name))
        assert step._log_density(point) == pytest.approx(special.logsumexp(logs), rel=1e-12)
