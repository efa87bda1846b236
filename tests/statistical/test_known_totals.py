"""Records whose sums are known exactly: no single record can change, but two can."""

from itertools import permutations, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats
from scipy.stats import binom, norm, poisson

import pymc_dapper as pmd
from pymc_dapper import DapperStep
from pymc_dapper.records.compiled.exchange import compile_exchange
from pymc_dapper.records.reading import exchange_groups
from pymc_dapper.records.reading.exchanges import Proposed
from tests.against_python import assert_same_in_python
from tests.broken import edited
from tests.enumeration import conditional_posterior
from tests.quadrature import linear_gaussian

NEVER, ALWAYS = -np.inf, np.inf  # as exponentials


def chain(step, start, draws, seed=1, tune=100, told=None):
    """Make draws of the records with a step alone, and take down what it tells."""
    names = [value.name for value in step.vars]
    step.setup_chain(np.random.default_rng(seed), tune, draws)
    point, kept = dict(start), []
    for k in range(tune + draws):
        point, [stats] = step.step(point)
        if stats["warning"] is not None:
            told.append(stats["warning"].message)
        if k >= tune:
            kept.append([point[name].copy() for name in names])
    return [np.array(each) for each in zip(*kept, strict=True)]


def standard_errors(draws, exact):
    """How many Monte Carlo standard errors means of the entries lie from exact ones."""
    chains = draws.reshape(4, -1, draws.shape[1])
    mcse = [
        array_stats.mcse(x, chain_axis=0, draw_axis=1, method="mean")
        for x in np.moveaxis(chains, 2, 0)
    ]
    return np.abs(draws.mean(axis=0) - exact) / np.maximum(mcse, 1e-12)


# Every record assignment of a small model ---------------------------------------------------------

P = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
WEIGHTS = np.arange(1.0, 6.0)


def bernoulli_model(n, total, released):
    with pm.Model() as m:
        x = pm.Bernoulli("x", P[:n], shape=n)
        pm.Potential("total", pt.switch(pt.eq(x.sum(), total), 0.0, -np.inf))
        pm.Potential("noisy", -0.5 * ((released - (WEIGHTS[:n] * x).sum()) / 1.5) ** 2)
    return m


def bernoulli_posterior(n, total, released):
    """Enumerate all assignments."""

    def log_mechanism(records):
        if sum(records) != total:
            return -np.inf
        return -0.5 * ((released - float(np.dot(WEIGHTS[:n], records))) / 1.5) ** 2

    return conditional_posterior(np.column_stack([1 - P[:n], P[:n]]), log_mechanism)


@pytest.fixture(scope="module")
def of_four():
    model = bernoulli_model(4, 2, 4.2)
    return DapperStep([model["x"]], model=model)


def transition_matrix(exchange, states):
    """Enumerate the exchanges through the compiled function that users run.

    Goes through all orders of the records and all proposals. The exponentials of the first pair
    force its outcome; an acceptance probability is found as the one at which an outcome changes.
    """
    index = {tuple(state): k for k, state in enumerate(states)}
    orders = [np.array(order) for order in permutations(range(len(states[0])))]
    matrix = np.zeros((len(states), len(states)))

    def after(state, noise, order, exponentials):
        u = np.full(2, 0.5)  # what the second takes is settled: there is one such value
        return tuple(exchange.function(noise, order, u, np.array(exponentials), state)[0])

    def probability(outcome, refused):
        """Bisect for the exponential from which on the exchange is made."""
        if outcome(ALWAYS) == refused:
            return 0.0
        if outcome(1e-300) != refused:
            return 1.0
        low, high = 1e-300, 700.0
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if outcome(middle) != refused else (middle, high)
        return float(np.exp(-high))

    for state in states:
        for order in orders:
            for proposal in product([0, 1], repeat=2):
                noise, weight = np.full(4, 0.5), 1 / len(orders)
                for record, value in zip(order[::2], proposal, strict=True):
                    noise[record] = 0.0 if value else 1 - 1e-16
                    weight *= P[record] if value else 1 - P[record]
                unchanged = after(state, noise, order, [NEVER, NEVER])
                assert unchanged == tuple(state)
                first = after(state, noise, order, [ALWAYS, NEVER])
                p = probability(
                    lambda e, s=state, z=noise, o=order: after(s, z, o, [e, NEVER]), unchanged
                )
                for outcome, forced, q in ((first, ALWAYS, p), (unchanged, NEVER, 1 - p)):
                    second = after(state, noise, order, [forced, ALWAYS])
                    r = probability(
                        lambda e, s=state, z=noise, o=order, f=forced: after(s, z, o, [f, e]),
                        outcome,
                    )
                    matrix[index[tuple(state)], index[second]] += weight * q * r
                    matrix[index[tuple(state)], index[outcome]] += weight * q * (1 - r)
    return matrix


def invariance_error(exchange):
    posterior = bernoulli_posterior(4, 2, 4.2)
    possible = posterior.probabilities > 0
    states, exact = posterior.states[possible], posterior.probabilities[possible]
    matrix = transition_matrix(exchange, states)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert np.all(np.linalg.matrix_power(matrix, 8) > 0)  # from everywhere to everywhere
    return np.abs(exact @ matrix - exact).max()


@pytest.mark.long
def test_exchanges_leave_the_posterior_of_all_assignments_invariant(of_four):
    assert invariance_error(of_four.exchange) < 1e-7


@pytest.mark.long
def test_the_kernel_of_exchanges_does_the_same_in_python(of_four):
    point = of_four._reading.model.initial_point()
    assert_same_in_python(of_four, of_four.exchange.function, point)


@pytest.mark.long
def test_exchanges_that_ignore_what_the_second_record_draws_from_do_not(of_four):
    exchange = of_four.exchange.exchange

    class Ignoring(type(exchange)):
        def propose(self, *arguments):
            proposed = super().propose(*arguments)
            log = pt.switch(pt.isfinite(proposed.log_proposed), 0.0, -np.inf)
            return Proposed(proposed.records, pt.zeros_like(log), log)

    broken = Ignoring(**vars(exchange))
    assert invariance_error(compile_exchange(of_four._reading, broken, {})) > 1e-3


@pytest.mark.usefixtures("in_python")
def test_five_records_of_known_total_follow_the_posterior_and_stay_put_without_exchanges():
    model = bernoulli_model(5, 3, 8.0)
    posterior = bernoulli_posterior(5, 3, 8.0)
    exact = posterior.probabilities @ posterior.states
    step = DapperStep([model["x"]], model=model)
    [draws] = chain(step, model.initial_point(), 1_000)
    assert np.all(draws.sum(axis=1) == 3)
    assert np.all(standard_errors(draws, exact) < 4)
    assert "total  1 total" in step.describe()

    step.exchange = None
    told = []
    [draws] = chain(step, {"x": draws[-1]}, 400, told=told)
    assert told[0].startswith("DapperStep: 5 of 5 records of 'x' never moved while tuning")
    assert np.any(standard_errors(draws, exact) > 4)


# Other records ------------------------------------------------------------------------------------
# Two of them compiled. The compiled exchange does as it does in Python (above).


@pytest.mark.long
def test_categories_of_known_margin():
    prior = np.array([[0.5, 0.2, 0.3], [0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.2, 0.2, 0.6]])
    weights = np.array([1.0, -2.0, 0.5, 3.0])

    def log_mechanism(records):
        if list(np.bincount(records, minlength=3)) != [1, 2, 1]:
            return -np.inf
        return -0.5 * (3.0 - float(weights @ np.array(records))) ** 2

    with pm.Model() as model:
        x = pm.Categorical("x", prior, shape=4)
        table = pt.eye(3)[x].sum(axis=0)
        pm.Potential("margin", pt.switch(pt.all(pt.eq(table, [1, 2, 1])), 0.0, -np.inf))
        pm.Potential("noisy", -0.5 * (3.0 - (weights * x).sum()) ** 2)
        step = DapperStep([x])
    posterior = conditional_posterior(prior, log_mechanism)
    [draws] = chain(step, model.initial_point(), 8_000)
    shown = (draws[:, :, None] == np.arange(3)).reshape(len(draws), -1)
    exact = posterior.probabilities @ (posterior.states[:, :, None] == np.arange(3)).reshape(-1, 12)
    assert np.all(standard_errors(shown, exact) < 4)


def looked_up(n):
    """Return a step of classes of known total, which a second variable looks up; and a start."""
    with pm.Model() as model:
        x = pm.Binomial("x", n, P, shape=5) if max(n) > 1 else pm.Bernoulli("x", P, shape=5)
        y = pm.Normal("y", WEIGHTS * pt.constant([0.0, 0.5, 0.7][: max(n) + 1])[x], 1, shape=5)
        pmd.invariant("total", x.sum(), sum(n) // 2)
        pm.Normal("noisy", y.sum(), 2, observed=4.0)
        return DapperStep([x, y]), model.initial_point()


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    "n", [(1, 1, 1, 1, 1), pytest.param((1, 2, 1, 2, 1), marks=pytest.mark.long)]
)
def test_classes_of_known_total_that_another_variable_looks_up(n):
    """A shift proposes classes that there aren't, which must neither be looked up nor stay."""
    states = np.array([x for x in product(*(range(k + 1) for k in n)) if sum(x) == sum(n) // 2])
    mean = np.array([0.0, 0.5, 0.7])[states] @ WEIGHTS
    log = binom.logpmf(states, n, P).sum(axis=1) + norm.logpdf(4, mean, 3)
    exact = np.exp(log - log.max())
    draws, _ = chain(*looked_up(n), 2_000)
    assert np.all(standard_errors(draws, exact @ states / exact.sum()) < 4)
    line = "log_prior = pt.switch(all_entries(pt.eq(x, held)), log_prior, -np.inf)"
    with edited(exchange_groups, "_natural_space", {line: "pass"}):
        broken = looked_up(n)
    draws, _ = chain(*broken, 100)
    assert draws.max() > max(n)


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
def test_counts_per_record_of_known_total():
    """In every run: a shift keeps the total, in `tests/records/reading/test_exchanges.py`."""
    means, weights = np.array([1.0, 2.0, 4.0]), np.array([1.0, 2.0, 3.0])
    with pm.Model() as model:
        x = pm.Poisson("x", means, shape=3)
        pmd.invariant("total", x.sum(), 8)
        pm.Potential("noisy", -0.5 * ((15.0 - (weights * x).sum()) / 2) ** 2)
        step = DapperStep([x])
    states = np.array([s for s in product(range(9), repeat=3) if sum(s) == 8])
    log = poisson.logpmf(states, means).sum(axis=1) - 0.5 * ((15 - states @ weights) / 2) ** 2
    exact = np.exp(log - log.max())
    [draws] = chain(step, model.initial_point(), 2_000)
    assert np.all(draws.sum(axis=1) == 8)
    assert np.all(standard_errors(draws, exact @ states / exact.sum()) < 4)


def gaussian_model(total=4.0):
    """Incomes of different scales, with a known total and a noisy weighted sum."""
    with pm.Model() as m:
        x = pm.Normal("x", [0.0, 1.0, 2.0], [1.0, 2.0, 0.5], shape=3)
        pm.Potential("total", pt.switch(pt.abs(x.sum() - total) < 1e-6, 0.0, -np.inf))
        pm.Potential("noisy", -0.5 * (2.0 - (x * [1.0, 0.0, -1.0]).sum()) ** 2)
    return m


@pytest.mark.long
def test_continuous_records_of_known_total():
    model = gaussian_model()
    design = np.array([[1.0, 1.0, 1.0], [1.0, 0.0, -1.0]])
    prior = np.array([0.0, 1.0, 2.0]), np.diag([1.0, 4.0, 0.25])
    released = np.array([4.0, 2.0])
    mean, cov, _ = linear_gaussian(*prior, design, np.diag([1e-12, 1.0]), released)
    step = DapperStep([model["x"]], model=model)
    [draws] = chain(step, model.initial_point(), 10_000)
    assert np.all(np.abs(draws.sum(axis=1) - 4) < 1e-6)
    assert np.all(standard_errors(draws, mean) < 4)
    assert np.all(standard_errors((draws - mean) ** 2, np.diag(cov)) < 4)


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
def test_positive_records_of_known_total_are_dirichlet():
    shape = np.array([0.7, 1.5, 3.0])
    with pm.Model() as model:
        x = pm.Gamma("x", shape, 2.0, shape=3)
        pm.Potential("total", pt.switch(pt.abs(x.sum() - 6) < 1e-6, 0.0, -np.inf))
        step = DapperStep([x])
    [draws] = chain(step, model.initial_point(), 2_000)
    draws = np.exp(draws)
    share, total = shape / shape.sum(), shape.sum()
    assert np.all(standard_errors(draws, 6 * share) < 4)
    second = 36 * share * (shape + 1) / (total + 1)
    assert np.all(standard_errors(draws**2, second) < 4)


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
def test_a_known_count_of_continuous_records_is_kept_by_swaps():
    means = np.array([-1.0, 0.0, 0.5, 1.5])
    with pm.Model() as model:
        x = pm.Normal("x", means, 1.0, shape=4)
        pmd.invariant("above", (x > 0).sum(), 2)
        step = DapperStep([x])
    above = np.array([s for s in product([0, 1], repeat=4) if sum(s) == 2])
    tail = norm.cdf(means)
    p = np.where(above, tail, 1 - tail).prod(axis=1)
    half = norm.pdf(means)
    given = np.where(above, means + half / tail, means - half / (1 - tail))
    [draws] = chain(step, model.initial_point(), 2_000)
    assert np.all((draws > 0).sum(axis=1) == 2)
    assert np.all(standard_errors(draws, p @ given / p.sum()) < 4)


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
def test_exchanges_beside_a_factor_that_takes_full_evaluations():
    def log_mechanism(records):
        if sum(records) != 2:
            return -np.inf
        return -0.5 * (1.5 - np.sort(WEIGHTS[:4] * np.array(records))[2]) ** 2

    with pm.Model() as model:
        x = pm.Bernoulli("x", P[:4], shape=4)
        pmd.invariant("total", x.sum(), 2)
        pm.Potential("full", -0.5 * (1.5 - pt.sort(WEIGHTS[:4] * x)[2]) ** 2)
    with pytest.warns(UserWarning, match="evaluate the model from all"):
        step = DapperStep([model["x"]], model=model)
    posterior = conditional_posterior(np.column_stack([1 - P[:4], P[:4]]), log_mechanism)
    [draws] = chain(step, model.initial_point(), 2_000)
    exact = posterior.probabilities @ posterior.states
    assert np.all(standard_errors(draws, exact) < 4)
