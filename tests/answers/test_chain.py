"""Tables of which released sums overlap: a chain, against enumeration."""

import itertools

import numpy as np
import pytensor
import pytest
import xarray as xr
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.answers import chain
from pymc_dapper.answers.posterior import WEIGHED, Posterior
from pymc_dapper.answers.prior import Prior
from pymc_dapper.answers.table import joint_table
from tests.monte_carlo import z_score_of_mean

NOISE = pmd.LaplaceMechanism(1.5)
RELEASED = {"rows": [4.4, 6.0], "columns": [3.0, 7.5]}
DIMS = {"rows": ("a",), "columns": ("b",)}


def release():
    queries = [pmd.Query(name, RELEASED[name], NOISE, DIMS[name]) for name in RELEASED]
    cells = pmd.Query("cells", [[1.0, 3.0], [2.0, 4.0]], pmd.LaplaceMechanism(3.0), ("a", "b"))
    return pmd.Release([cells, *queries])


def exact(total=None, most=30):
    """Means of cells, by going through all tables."""
    tables = np.array(list(itertools.product(range(most), repeat=4))).reshape(-1, 2, 2)
    if total is not None:
        tables = tables[tables.sum((1, 2)) == total]
    logs = log_weights(tables)
    p = np.exp(logs - logs.max())
    return np.tensordot(p / p.sum(), tables, 1)


TABLES = np.array([[[3, 2], [1, 4]], [[2, 3], [2, 3]], [[1, 4], [3, 2]]])
"""Of ten people each."""


def log_weights(tables):
    """What was released says of tables, each of which the flat prior weighs alike."""
    logs = -np.abs(tables - np.array([[1.0, 3.0], [2.0, 4.0]])).sum((1, 2)) / 3
    logs -= np.abs(tables.sum(2) - RELEASED["rows"]).sum(1) / 1.5
    return logs - np.abs(tables.sum(1) - RELEASED["columns"]).sum(1) / 1.5


class Stopped(Exception):
    """Carries the model that was to be sampled."""


@pytest.mark.parametrize("total", [None, 10, "by a", "limits"])
def test_the_model_says_of_tables_what_the_release_does(total, monkeypatch):
    def stop(draws, *, model, **options):
        raise Stopped(model)

    monkeypatch.setattr(chain, "sample", stop)
    known = xr.DataArray([5, 5], dims="a") if total == "by a" else total
    prior = range(40) if total == "limits" else "flat"
    with pytest.raises(Stopped) as stopped:
        release().posterior(margins=True, total=None if total == "limits" else known, prior=prior)
    [model] = stopped.value.args
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        logp = model.compile_logp()
    found = np.array([logp({"cells": table.ravel()}) for table in TABLES])
    np.testing.assert_allclose(np.diff(found), np.diff(log_weights(TABLES)), atol=1e-6)
    if total in ("by a", "limits"):
        outside = np.array([45, 0, 0, 0]) if total == "limits" else np.array([3, 3, 1, 3])
        assert logp({"cells": outside}) == -np.inf


def test_draws_of_a_chain_are_weighed_for_the_other_prior():
    """Exact draws under the flat prior, and enumeration under the smooth one."""
    total = 10
    tables = np.array(list(itertools.product(range(total + 1), repeat=4))).reshape(-1, 2, 2)
    tables = tables[tables.sum((1, 2)) == total]
    logs = log_weights(tables)
    p = np.exp(logs - logs.max())
    rng = np.random.default_rng(1)
    flat = tables[rng.choice(len(tables), 4000, p=p / p.sum())].reshape(4000, 4).T
    known = [(np.zeros(4, dtype=int), np.array([total]))]
    joint = joint_table(list(release()), {})
    drawn, method = Posterior(joint, Prior("smooth"), known)._instead_of(Prior("flat"), flat, rng)
    assert method == WEIGHED
    exact, axis = np.zeros(len(tables)), np.linspace(-12, 23, 281)
    for a in axis:
        law = stats.dirichlet_multinomial(np.full(4, np.exp(a)), total)
        density = stats.halfcauchy.pdf(np.exp(-a / 2)) * np.exp(-a / 2)
        exact += p * law.pmf(tables.reshape(-1, 4)) * density
    mean = exact @ tables.reshape(-1, 4) / exact.sum()
    z = (drawn.mean(axis=1) - mean) / drawn.std(axis=1) * np.sqrt(4000 / 3)
    assert np.abs(z).max() < 4.5
    z = (flat.mean(axis=1) - mean) / flat.std(axis=1) * np.sqrt(4000 / 3)
    assert np.abs(z).max() > 4.5


@pytest.mark.long
@pytest.mark.parametrize("total", [None, 10])
def test_overlapping_margins_are_sampled(total):
    drawn = release().posterior(margins=True, total=total, draws=1200, random_seed=1)
    assert drawn.method.startswith("a chain, as released sums overlap; R-hat is at most 1.0")
    assert drawn.draws.sizes["draw"] == 1200
    assert drawn.other.method == WEIGHED
    mean, wrong = exact(total), exact(10 if total is None else None)
    z = [
        [z_score_of_mean(drawn.draws.values[i, j], of[i, j]) for i in range(2) for j in range(2)]
        for of in (mean, wrong)
    ]
    assert np.abs(z[0]).max() < 4.5
    assert np.abs(z[1]).max() > 4.5
