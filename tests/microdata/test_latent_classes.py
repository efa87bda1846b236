import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.microdata import latent_classes
from tests.microdata.releases import (
    ALL_PAIRS,
    assignments,
    likelihood_of_model,
    log_likelihood,
    prior_of,
    release,
)

N = 2


def test_a_model_is_what_enumeration_says():
    given = release(N, ALL_PAIRS)
    model = latent_classes(given, n=N, classes=2)
    rng = np.random.default_rng(3)
    tables = {f"p_{x}": rng.dirichlet([2.0, 2.0], size=2) for x in "abc"}
    tables["p_latent_class"] = rng.dirichlet([2.0, 2.0])
    a, b, c = (tables[f"p_{x}"] for x in "abc")
    cells = np.einsum("z,za,zb,zc->abc", tables["p_latent_class"], a, b, c).ravel()
    states = assignments(N, 8)
    expected = np.sum(cells[states].prod(axis=1) * np.exp(log_likelihood(given, states)))
    names = ("latent_class", "a", "b", "c")
    assert likelihood_of_model(model, names, tables, N) == pytest.approx(expected, rel=1e-10)
    # A twin in which the classes of one column are exchanged.
    twin = {**tables, "p_a": a[::-1]}
    assert likelihood_of_model(model, names, twin, N) != pytest.approx(expected, rel=1e-3)


def test_classes_lie_around_all_people_with_the_weight_of_one():
    given = release(50, ALL_PAIRS)
    model = latent_classes(given, n=50, classes=3)
    for column, weights in prior_of(given).items():
        rv = model[f"p_{column}"]
        [found] = rv.owner.op.dist_params(rv.owner)
        np.testing.assert_allclose(found.eval(mode="FAST_COMPILE"), np.tile(weights, (3, 1)))
        assert weights.sum() == pytest.approx(1 + 0.1 * 2)


def test_a_column_called_as_the_classes_is_refused():
    given = pmd.Query("q", [3.0, 4.0], pmd.GaussianMechanism(1.0), "latent_class")
    with pytest.raises(ValueError, match="a column 'latent_class'"):
        latent_classes(pmd.Release(given), n=7, classes=2)
    with pytest.raises(ValueError, match="classes must be"):
        latent_classes(release(9, ALL_PAIRS), n=9, classes=1)
