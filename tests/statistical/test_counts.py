"""CountStep in pm.sample, against exact posteriors."""

from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats
from pytensor.scalar.math import GammaLn
from pytensor.tensor.elemwise import Elemwise
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.counts import step as steps
from pymc_dapper.counts.compiled import sweep
from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.step import CountStep
from pymc_dapper.graphs.rebuild import rebuild, with_inputs
from tests.against_python import assert_same_in_python


def draws_of(model, name, *, draws=4_000, seed=3, step=None):
    """Draws of one count variable, with its cells last: shape (chain, draw, cell)."""
    with model:
        step = CountStep([model[name]]) if step is None else step
        values = (
            pm.sample(
                draws=draws,
                tune=200,
                chains=2,
                cores=1,
                step=[step],
                random_seed=seed,
                progressbar=False,
                compute_convergence_checks=False,
            )
            .posterior[name]
            .values
        )
    return values.reshape(*values.shape[:2], -1).astype(float)


def effective(draws):
    return float(array_stats.ess(draws, chain_axis=0, draw_axis=1, method="mean"))


def z_scores(values, tables, probabilities):
    """Distance of the cells' mean and mean square from the exact ones, in standard errors."""
    z = []
    for k in range(values.shape[-1]):
        for power in (1, 2):
            x, exact = values[..., k] ** power, tables[:, k] ** power
            mean = probabilities @ exact
            sd = np.sqrt(probabilities @ (exact - mean) ** 2)
            z.append((x.mean() - mean) / (sd / np.sqrt(effective(x))))
    return np.array(z)


def normalised(logp):
    weights = np.exp(np.array(logp) - np.max(logp))
    return weights / weights.sum()


# A Dirichlet-multinomial table of three cells -----------------------------------------------------

N, ALPHA, RELEASED = 12, np.array([0.5, 1.0, 2.0]), np.array([5, -3, 8])


def dirichlet_multinomial():
    with pm.Model() as model:
        x = pm.DirichletMultinomial("x", n=N, a=ALPHA)
        pmd.DiscreteGaussianMechanism(2.0).potential("privacy", x, released=RELEASED)
    return model


def all_tables():
    tables = np.array([x for x in product(range(N + 1), repeat=3) if sum(x) == N])
    logp = stats.dirichlet_multinomial.logpmf(tables, ALPHA, N)
    logp -= ((RELEASED - tables) ** 2).sum(axis=1) / (2 * 2.0**2)
    return tables, normalised(logp)


@pytest.mark.usefixtures("in_python")
def test_a_table_agrees_with_all_tables_enumerated():
    values = draws_of(dirichlet_multinomial(), "x", draws=600)
    assert np.all(values.sum(axis=-1) == N)
    assert np.abs(z_scores(values, *all_tables())).max() < 4


@pytest.mark.usefixtures("in_python")
def test_a_prior_without_its_coefficient_shows(monkeypatch):
    def no_factorials(node, inputs):
        if isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, GammaLn):
            return [pt.zeros(())]
        return with_inputs(node, inputs)

    def misread(*arguments):
        reading = read(*arguments)
        terms = tuple(
            replace(each, function=rebuild([each.function], replace_node=no_factorials)[0])
            for each in reading.terms
        )
        return replace(reading, terms=terms)

    read = steps.read_counts
    monkeypatch.setattr(steps, "read_counts", misread)
    # The step finds out by itself ...
    with pytest.raises(pmd.ReadingError, match="can't read the model exactly"):
        draws_of(dirichlet_multinomial(), "x", draws=10)
    # ... and so would the comparison.
    monkeypatch.setattr(sweep, "check_gain", lambda *_: None)
    values = draws_of(dirichlet_multinomial(), "x", draws=500)
    assert np.abs(z_scores(values, *all_tables())).max() > 8


# Independent counts, and a third that two of them sum ---------------------------------------------


# Counts with a parameter in common move by themselves in every run:
# test_marginalised_parameters.py.
@pytest.mark.long
def test_a_count_within_a_count_agrees_with_all_tables_enumerated():
    with pm.Model():
        births = pm.Poisson("births", 6.0)
        girls = pm.Binomial("girls", n=births, p=0.48)
        pm.Laplace("released", pt.stack([births, girls]), 1.5, observed=[4.2, 3.9])
        step = CountStep([births, girls])
        posterior = pm.sample(
            draws=6_000, chains=2, cores=1, tune=200, step=[step], random_seed=2, progressbar=False
        ).posterior
    values = np.stack([posterior[name].values for name in ("births", "girls")], axis=-1)
    tables = np.array([(n, k) for n in range(40) for k in range(n + 1)])
    n, k = tables.T
    logp = stats.poisson.logpmf(n, 6.0) + stats.binom.logpmf(k, n, 0.48)
    logp += stats.laplace.logpdf([4.2, 3.9], tables, 1.5).sum(axis=1)
    assert np.abs(z_scores(values.astype(float), tables, normalised(logp))).max() < 4


# Known margins ---------------------------------------------------------------------------------


# That moves connect all tables of known margins is enumerated in every run, in
# counts/reading/test_moves.py.
@pytest.mark.long
def test_a_table_of_known_margins_agrees_with_all_tables_enumerated():
    rates = np.array([[1.0, 2.0, 0.5], [3.0, 1.0, 2.0]])
    rows, columns = [5, 6], [4, 3, 4]
    released = np.array([[0.0, 4.0, -1.0], [2.0, 1.0, 5.0]])
    with pm.Model() as model:
        x = pm.Poisson("x", rates)
        invariant("rows", x.sum(axis=1), rows)
        invariant("columns", x.sum(axis=0), columns)
        # Not a sum of terms: evaluated as a whole.
        pm.Potential("privacy", -0.7 * pt.sqrt(((x - released) ** 2).sum()))
    values = draws_of(model, "x")
    tables = np.array(
        [
            (a, b, 5 - a - b, 4 - a, 3 - b, a + b - 1)
            for a in range(5)
            for b in range(4)
            if 1 <= a + b <= 5
        ]
    )
    logp = stats.poisson.logpmf(tables, rates.ravel()).sum(axis=1)
    logp -= 0.7 * np.sqrt(((tables - released.ravel()) ** 2).sum(axis=1))
    assert np.abs(z_scores(values, tables, normalised(logp))).max() < 4


# Sums that overlap -------------------------------------------------------------------------------


@pytest.mark.long
def test_cells_that_move_together_agree_with_all_tables_enumerated():
    """Nearly exact sums, and a factor that isn't a sum of terms: evaluated as a whole."""
    rates, released, sums = (
        np.array([1.0, 2.0, 0.5]),
        np.array([0.0, 3.0, 1.5]),
        np.array([2.4, 2.6]),
    )
    with pm.Model() as model:
        x = pm.Poisson("x", rates)
        pm.Normal("windows", x[:-1] + x[1:], 0.5, observed=sums)
        pm.Potential("privacy", -1.5 * pt.sqrt(((x - released) ** 2).sum()))
        step = CountStep([x])
    assert step._moves.blocks
    assert_same_in_python(step, step.sweep.update, model.initial_point())
    values = draws_of(model, "x", step=step)
    tables = np.array(list(product(range(9), repeat=3)))
    logp = stats.poisson.logpmf(tables, rates).sum(axis=1)
    logp += stats.norm.logpdf(sums, tables[:, :-1] + tables[:, 1:], 0.5).sum(axis=1)
    logp -= 1.5 * np.sqrt(((tables - released) ** 2).sum(axis=1))
    assert np.abs(z_scores(values, tables, normalised(logp))).max() < 4


# Mixing ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[4, 50])
def noisy_table(request):
    """One multinomial with independent noise on each cell; all numbers are shared data."""
    k = request.param
    with pm.Model() as model:
        n = pm.Data("n", 400)
        sigma = pm.Data("sigma", 1.0)
        p = np.arange(1, k + 1) / np.arange(1, k + 1).sum()
        released = pm.Data("released", 400 * p)
        x = pm.Multinomial("x", n=n, p=p)
        pm.Potential("privacy", -0.5 * (((released - x) / sigma) ** 2).sum())
        step = CountStep([x])
    return model, step, p


@pytest.mark.long
@pytest.mark.parametrize("sigma", [1.0, 6.0, 1_000.0])
@pytest.mark.parametrize("n", [400, 10_000, 1_000_000])
def test_every_cell_mixes(noisy_table, n, sigma):
    model, step, p = noisy_table
    rng = np.random.default_rng(5)
    truth = rng.multinomial(n, p)
    pm.set_data(
        {"n": n, "sigma": sigma, "released": truth + rng.normal(0, sigma, len(p))}, model=model
    )
    step.setup_chain(rng, tune=50, draws=1_000)
    point, draws = {"x": truth}, []
    for k in range(1_050):
        point, _ = step.step(point)
        if k >= 50:
            draws.append(point["x"])
    draws = np.array(draws, dtype=float)[None]
    moving = draws.std(axis=(0, 1)) > 0  # with n = 400, noise of 1 may pin down an empty cell
    shares = [effective(draws[..., k]) / 1_000 for k in np.flatnonzero(moving)]
    assert moving.mean() > 0.9
    assert min(shares) > 0.3
