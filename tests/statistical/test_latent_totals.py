"""Latent totals above latent tables, against all tables enumerated; and chains that can't move."""

from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.counts.step import CountStep
from tests.monte_carlo import smallest_ess
from tests.statistical.test_counts import normalised, z_scores

SIGMA = 1.5


def sampled(model, step, *, draws=4_000, tune=200, cores=1):
    """Draws of all counts, with the cells of all variables last."""
    with model:
        posterior = pm.sample(
            draws=draws,
            tune=tune,
            chains=2,
            cores=cores,
            step=[step],
            random_seed=4,
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior
    names = [x.name for x in step._reading.counts]
    values = [posterior[name].values for name in names]
    return np.concatenate([x.reshape(*x.shape[:2], -1) for x in values], axis=-1).astype(float)


# A total above a table ---------------------------------------------------------------------------

RATE, P, RELEASED = 5.0, np.array([0.2, 0.3, 0.5]), np.array([2.3, -0.4, 4.1])


@pytest.fixture(scope="module")
def total_above_table():
    with pm.Model() as model:
        n = pm.Poisson("n", RATE)
        t = pm.Multinomial("t", n=n, p=P)
        pmd.GaussianMechanism(SIGMA).potential("privacy", t, released=RELEASED)
    return model


def table_alone(model):
    """The same, with moves that never change the total."""
    broken = CountStep([model["n"], model["t"]], model=model)
    moves = replace(broken.sweep.moves, single=broken.sweep.moves.single[:0], blocks=())
    broken.sweep = replace(broken.sweep, moves=moves)
    return broken


def tables_and_totals():
    t = np.array(list(product(range(18), repeat=3)))
    n = t.sum(axis=1)
    logp = stats.poisson.logpmf(n, RATE) + stats.multinomial.logpmf(t, n, P)
    logp += stats.norm.logpdf(RELEASED, t, SIGMA).sum(axis=1)
    return np.column_stack([n, t]), normalised(logp)


# Which moves connect the tables of such models is enumerated in every run, in
# counts/reading/test_moves.py; chains that can't move log a warning (below).
@pytest.mark.long
def test_a_total_above_a_table_agrees_with_all_tables_enumerated(total_above_table, caplog):
    model = total_above_table
    values = sampled(model, CountStep([model["n"], model["t"]], model=model))
    assert np.all(values[..., 0] == values[..., 1:].sum(axis=-1))
    assert np.abs(z_scores(values, *tables_and_totals())).max() < 4
    assert "never moved" not in caplog.text


@pytest.mark.long
def test_a_total_that_never_moves_is_detected(total_above_table):
    values = sampled(total_above_table, table_alone(total_above_table))
    tables, probabilities = tables_and_totals()
    assert np.all(values[..., 0] == 5)
    assert np.abs(z_scores(values[..., 1:], tables[:, 1:], probabilities)).max() > 8


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_total_that_never_moved_is_reported_from_any_process(total_above_table, cores, caplog):
    sampled(total_above_table, table_alone(total_above_table), draws=100, cores=cores)
    reports = [record for record in caplog.records if "never moved" in record.getMessage()]
    assert len(reports) == 2  # of two chains
    for report in reports:
        assert report.levelname == "WARNING"
        assert "CountStep: 'n' never moved in this chain of 300 sweeps" in report.getMessage()


# Others ------------------------------------------------------------------------------------------


def totals_above_rows():
    """Two totals; each row's proportions are unknown. Noise on cells and totals."""
    mean, alpha, released = 2.0, 1.5, np.array([[2.1, 0.4], [-0.5, 1.2]])
    seen = np.array([3.2, 0.1])
    with pm.Model() as model:
        n = pm.NegativeBinomial("n", mu=mean, alpha=alpha, shape=2)
        t = pm.DirichletMultinomial("t", n=n, a=np.array([1.0, 2.0]))
        pmd.GaussianMechanism(SIGMA).potential("cells", t, released=released)
        pmd.GaussianMechanism(1.0).potential("totals", n, released=seen)
        step = CountStep([t, n])

    def row(k):
        rows = np.array(list(product(range(12), repeat=2)))
        total = rows.sum(axis=1)
        logp = stats.nbinom.logpmf(total, alpha, alpha / (alpha + mean))
        logp += stats.betabinom.logpmf(rows[:, 0], total, 1.0, 2.0)
        logp += stats.norm.logpdf(released[k], rows, SIGMA).sum(axis=1)
        return rows, normalised(logp + stats.norm.logpdf(seen[k], total, 1.0))

    (first, p), (second, q) = row(0), row(1)
    tables = np.array([(*x, *y, sum(x), sum(y)) for x, y in product(first, second)])
    return model, step, tables, np.outer(p, q).ravel()


def totals_of_totals():
    released = np.array([[2.1, 0.4], [-0.5, 1.2]])
    with pm.Model() as model:
        n = pm.Binomial("n", n=6, p=0.6)
        t = pm.Multinomial("t", n=n, p=np.array([0.7, 0.3]))
        s = pm.Multinomial("s", n=t, p=np.array([[0.5, 0.5], [0.2, 0.8]]))
        pmd.GaussianMechanism(SIGMA).potential("cells", s, released=released)
        step = CountStep([n, s, t])
    cells = np.array([x for x in product(range(7), repeat=4) if sum(x) <= 6])
    a, b, c, d = cells.T
    n, first, second = a + b + c + d, a + b, c + d
    logp = stats.binom.logpmf(n, 6, 0.6) + stats.binom.logpmf(first, n, 0.7)
    logp += stats.binom.logpmf(a, first, 0.5) + stats.binom.logpmf(c, second, 0.2)
    logp += stats.norm.logpdf(released.ravel(), cells, SIGMA).sum(axis=1)
    return model, step, np.column_stack([n, cells, first, second]), normalised(logp)


def a_count_within_a_count_above_a_table():
    released = np.array([2.1, 0.4, 1.2])
    with pm.Model() as model:
        n = pm.Binomial("n", n=6, p=0.6)
        k = pm.Binomial("k", n=n, p=0.4)
        t = pm.Multinomial("t", n=k, p=np.ones(3) / 3)
        pmd.GaussianMechanism(SIGMA).potential("cells", t, released=released)
        step = CountStep([n, k, t])
    tables = np.array([(n, sum(t), *t) for n, *t in product(range(7), repeat=4) if sum(t) <= n])
    n, k, t = tables[:, 0], tables[:, 1], tables[:, 2:]
    logp = stats.binom.logpmf(n, 6, 0.6) + stats.binom.logpmf(k, n, 0.4)
    logp += stats.multinomial.logpmf(t, k, np.ones(3) / 3)
    logp += stats.norm.logpdf(released, t, SIGMA).sum(axis=1)
    return model, step, tables, normalised(logp)


def parameters_above_both():
    """The total's rate and the table's proportions marginalised, as pmd.sample has it."""
    released = np.array([2.3, 0.4, 3.1])
    with pm.Model() as model:
        rate = pm.Gamma("rate", 4.0, 1.0)
        p = pm.Dirichlet("p", np.array([1.0, 2.0, 1.5]))
        n = pm.Poisson("n", rate)
        t = pm.Multinomial("t", n=n, p=p)
        pmd.GaussianMechanism(SIGMA).potential("cells", t, released=released)
        step = CountStep([n, t], integrate=[rate, p])
    t = np.array(list(product(range(18), repeat=3)))
    n = t.sum(axis=1)
    logp = stats.nbinom.logpmf(n, 4.0, 0.5)
    logp += stats.dirichlet_multinomial.logpmf(t, [1.0, 2.0, 1.5], n)
    logp += stats.norm.logpdf(released, t, SIGMA).sum(axis=1)
    return model, step, np.column_stack([n, t]), normalised(logp)


@pytest.mark.long
@pytest.mark.parametrize(
    "build",
    [
        totals_above_rows,
        totals_of_totals,
        a_count_within_a_count_above_a_table,
        parameters_above_both,
    ],
)
def test_other_latent_totals_agree_with_all_tables_enumerated(build, caplog):
    model, step, tables, probabilities = build()
    values = sampled(model, step)
    assert np.abs(z_scores(values, tables, probabilities)).max() < 4
    assert "never moved" not in caplog.text


# Mixing ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def noisy_total():
    """A total with a wide prior above a table of unknown proportions; all numbers are data."""
    with pm.Model() as model:
        mean, sigma = pm.Data("mean", 400.0), pm.Data("sigma", 1.0)
        released = pm.Data("released", np.zeros(4))
        n = pm.NegativeBinomial("n", mu=mean, alpha=2.0)
        t = pm.DirichletMultinomial("t", n=n, a=np.arange(1.0, 5.0))
        pm.Potential("privacy", -0.5 * (((released - t) / sigma) ** 2).sum())
        step = CountStep([n, t])
    return model, step


@pytest.mark.long
@pytest.mark.parametrize("sigma", [1.0, 20.0, 1_000.0])
@pytest.mark.parametrize("mean", [400, 1_000_000])
def test_totals_and_cells_mix(noisy_total, mean, sigma):
    model, step = noisy_total
    rng = np.random.default_rng(1)
    truth = rng.multinomial(mean, np.arange(1, 5) / 10)
    data = {"mean": mean, "sigma": sigma, "released": truth + rng.normal(0, sigma, 4)}
    pm.set_data(data, model=model)
    step.setup_chain(rng, tune=200, draws=2_000)
    point, draws = {"n": np.array(mean), "t": truth}, []
    for k in range(2_200):
        point, [sampled] = step.step(point)
        if k >= 200:
            draws.append([point["n"], *point["t"]])
    assert sampled["warning"] is None
    values = np.array(draws, dtype=float)[None]
    assert min(smallest_ess(values[..., k]) for k in range(5)) / 2_000 > 0.2
