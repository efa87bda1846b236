"""Tables of which released sums overlap: a chain, against enumeration."""

import itertools

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import pymc_dapper as pmd
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


def log_weights(tables):
    """What was released says of tables, each of which the flat prior weighs alike."""
    logs = -np.abs(tables - np.array([[1.0, 3.0], [2.0, 4.0]])).sum((1, 2)) / 3
    logs -= np.abs(tables.sum(2) - RELEASED["rows"]).sum(1) / 1.5
    return logs - np.abs(tables.sum(1) - RELEASED["columns"]).sum(1) / 1.5


KNOWN = {
    "nothing": {},
    "total": {"total": 10},
    "rows": {"total": xr.DataArray([6, 4], dims="a")},
    "limits": {"prior": range(1, 5)},
}


def tables_of(known, most=25):
    """All tables that are possible, and their means by what was released."""
    tables = np.array(list(itertools.product(range(most), repeat=4))).reshape(-1, 2, 2)
    if "prior" in known:
        limits = known["prior"]
        tables = tables[np.all((tables >= limits[0]) & (tables <= limits[-1]), axis=(1, 2))]
    if "total" in known:
        total = np.asarray(known["total"])
        sums = tables.sum((1, 2)) if total.ndim == 0 else tables.sum(2)
        tables = tables[np.all(sums == total, axis=tuple(range(1, sums.ndim)))]
    return tables


def z_scores(drawn, tables, logs):
    p = np.exp(logs - logs.max())
    mean = np.tensordot(p / p.sum(), tables, 1)
    return [z_score_of_mean(drawn.values[i, j], mean[i, j]) for i in range(2) for j in range(2)]


@pytest.mark.parametrize("name", ["nothing", "total", "rows", "limits"])
def test_overlapping_margins_are_sampled(name):
    known = KNOWN[name]
    drawn = release().posterior(margins=True, draws=4000, random_seed=1, **known)
    assert drawn.method.startswith("a chain, as released sums overlap; R-hat is at most 1.0")
    assert drawn.draws.sizes["draw"] == 4000
    tables = tables_of(known)
    z = z_scores(drawn.draws, tables, log_weights(tables))
    assert np.abs(z).max() < 4.5
    # Without what was released of rows it would be another posterior.
    without = log_weights(tables) + np.abs(tables.sum(2) - RELEASED["rows"]).sum(1) / 1.5
    if name != "rows":
        assert np.abs(z_scores(drawn.draws, tables, without)).max() > 4.5


def smooth_law(tables):
    """Log-probability of tables under the smooth prior, by SciPy's laws."""
    found = np.full(len(tables), -np.inf)
    for a, m in itertools.product(np.linspace(-8, 20, 57), np.linspace(np.log(0.1), 8, 57)):
        prior = stats.halfcauchy.logpdf(np.exp(-a / 2)) - a / 2
        law = stats.nbinom.logpmf(np.arange(25), np.exp(a), 1 / (1 + np.exp(m - a)))
        found = np.logaddexp(found, prior + law[tables].sum((1, 2)))
    return found


@pytest.mark.long
def test_overlapping_margins_are_sampled_under_the_smooth_prior():
    drawn = release().posterior(margins=True, draws=4000, random_seed=1, prior="smooth").draws
    tables = tables_of({}, 13)
    logs = log_weights(tables)
    assert np.abs(z_scores(drawn, tables, logs + smooth_law(tables))).max() < 4.5
    assert np.abs(z_scores(drawn, tables, logs)).max() > 4.5


def test_cells_that_are_known_by_their_sums_stay_there():
    known = xr.DataArray([[3, 3], [1, 3]], dims=("a", "b"))
    drawn = release().posterior(margins=True, draws=40, random_seed=1, total=known).draws
    assert (drawn == known).all()


def test_the_same_seed_gives_the_same_tables():
    one, same, other = (
        release().posterior(margins=True, draws=40, random_seed=seed).draws.values
        for seed in (1, 1, 2)
    )
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_margins_that_contradict_each_other_are_refused():
    rows = pmd.Query("rows", [4.0, 6.0], NOISE, ("a",))
    columns = pmd.Query("columns", [900_000.0, 70.0], NOISE, ("b",))
    with pytest.raises(ValueError, match="no table of counts fits the released cells and sums"):
        pmd.Release([rows, columns]).posterior(margins=True)


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
    drawn, method = Posterior(joint, Prior("smooth"), known)._instead_of(flat, rng)
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
