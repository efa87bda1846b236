"""Tabulated models, sampled: against closed forms, however many records there are."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from scipy.special import expit, logsumexp

import pymc_dapper as pmd
from pymc_dapper.interweaving.step import InterweaveStep
from tests import interweave_twins as twins
from tests.evaluated_in_python import evaluated_in_python
from tests.tabulation import tabulable

STANDARD_ERRORS = 4.5
OPTIONS = {"tune": 100, "chains": 1, "cores": 1, "random_seed": 1, "progressbar": False}
OPTIONS |= {"compute_convergence_checks": False}


def in_standard_errors(draws, expected, method="mean"):
    """Distance of an estimate, a vector, from the expected value."""
    found = draws.mean(axis=0) if method == "mean" else draws.std(axis=0)
    errors = [array_stats.mcse(x[None], chain_axis=0, draw_axis=1, method=method) for x in draws.T]
    return np.max(np.abs(found - expected) / np.array(errors))


N, SIGMA = 330_000_000, 10_000.0
RELEASED = np.array([91_206_051.0, 108_618_082.0, 38_969_744.0, 91_256_112.0])


@pytest.fixture(scope="module")
def of_all_people():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=N)
        table = pmd.statistics.counts(record, 4)
        pmd.GaussianMechanism(SIGMA).potential("privacy", table, released=RELEASED)
    with evaluated_in_python():
        return pmd.sample(320, model=model, **OPTIONS).posterior


def normal_limit(n):
    """Mean and sd of counts and of probabilities.

    Under a flat Dirichlet prior all tables are as likely, so that counts are normal about what was
    released, given their sum; and probabilities about the counts.
    """
    mean = RELEASED + (n - RELEASED.sum()) / 4
    variance, share = SIGMA**2 * 3 / 4, mean / n
    return (mean, np.sqrt(variance)), (share, np.sqrt(variance / n**2 + share * (1 - share) / n))


@pytest.mark.long
def test_posterior_of_a_nation_is_its_normal_limit(of_all_people):
    (mean, sd), (share, spread) = normal_limit(N)
    counts = of_all_people["record_counts"].values[0].astype(float)
    p = of_all_people["p"].values[0]
    assert np.all(counts.sum(axis=1) == N)
    assert in_standard_errors(counts, mean) < STANDARD_ERRORS
    assert in_standard_errors(counts, sd, "sd") < STANDARD_ERRORS
    assert in_standard_errors(p, share) < STANDARD_ERRORS
    assert in_standard_errors(p, spread, "sd") < STANDARD_ERRORS


@pytest.mark.long
def test_another_number_of_people_is_found_out(of_all_people):
    (mean, _), (_, spread) = normal_limit(N - 20_000)
    counts = of_all_people["record_counts"].values[0].astype(float)
    p = of_all_people["p"].values[0]
    assert in_standard_errors(counts, mean) > STANDARD_ERRORS
    # Of the noise alone, without what people vary by.
    noise = np.sqrt(SIGMA**2 * 3 / 4) / N
    assert in_standard_errors(p, np.minimum(noise, spread), "sd") > STANDARD_ERRORS


def exact_moments(form, log_density):
    """Mean and sd of the first of two probabilities, by quadrature over all data sets."""
    name = next(x.name for x in form.model.continuous_value_vars)
    data_sets, grid = list(form.data_sets()), np.linspace(-4, 4, 33)
    logs = [
        logsumexp([log_density({name: np.array([x]), **records}) for records in data_sets])
        for x in grid
    ]
    weights, p = np.exp(logs - np.max(logs)), expit(2 * grid)  # of PyMC's simplex transform
    mean = np.average(p, weights=weights)
    return mean, np.sqrt(np.average((p - mean) ** 2, weights=weights))


def test_randomised_answers_have_the_posterior_that_quadrature_finds():
    n, yes, keep = 1_000, 420, 0.75
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        x = pm.Bernoulli("x", p, shape=n)
        answers = (np.arange(n) < yes).astype(int)
        pmd.RandomizedResponse(keep, categories=2).observe("answer", x, released=answers)
    with evaluated_in_python():
        posterior = pmd.sample(400, model=model, **OPTIONS).posterior
    assert list(posterior.data_vars) == ["p"]
    draws = posterior["p"].values[0][:, None]

    def moments(keep):
        grid = np.linspace(0.0, 1.0, 20_001)[1:-1]
        answered = grid * keep + (1 - grid) * (1 - keep)
        logs = stats.beta.logpdf(grid, 2, 3) + stats.binom.logpmf(yes, n, answered)
        weights = np.exp(logs - logs.max())
        mean = np.average(grid, weights=weights)
        return mean, np.sqrt(np.average((grid - mean) ** 2, weights=weights))

    mean, sd = moments(keep)
    assert in_standard_errors(draws, mean) < STANDARD_ERRORS
    assert in_standard_errors(draws, sd, "sd") < STANDARD_ERRORS
    # As if the answers were true.
    mean, sd = moments(1.0)
    assert in_standard_errors(draws, mean) > STANDARD_ERRORS
    assert in_standard_errors(draws, sd, "sd") > STANDARD_ERRORS


@pytest.mark.long
def test_answers_and_a_noisy_count_have_the_posterior_of_all_data_sets():
    form = tabulable.answers_and_counts()
    with evaluated_in_python():
        mean, sd = exact_moments(form, form.model.compile_logp())
        tabulated = pmd.tabulate(form.model)
        draws = pmd.sample(400, model=tabulated, **OPTIONS).posterior["p"].values[0][:, :1]
    assert in_standard_errors(draws, mean) < STANDARD_ERRORS
    assert in_standard_errors(draws, sd, "sd") < STANDARD_ERRORS


DRAWS = 4_000
LINKED = {
    "chain": ({"a": "", "b": "a", "c": "b"}, ("ab", "bc"), {"a": "", "b": "a", "c": "b"}),
    "star": ({"a": "", "b": "a", "c": "a"}, ("ab", "ac"), {"a": "", "b": "a", "c": "a"}),
    "ring": (
        {"a": "", "b": "a", "c": "b", "d": "c"},
        ("ab", "bc", "cd", "ad"),
        {"a": "", "b": "a", "c": "ab", "d": "ac"},
    ),
}
"""Of each form: what columns depend on, which pairs are released, what each is counted with."""


def linked_columns(which, n=3):
    """Columns of zeros and ones, with known probabilities, of which pairs are released.

    In a star, people are of two public groups, and the first column has been asked for.
    """
    depends, pairs, given = LINKED[which]
    rng, people = np.random.default_rng(2), {}
    group = np.arange(n) % 2 if which == "star" else np.zeros(n, dtype=int)
    with pm.Model() as model:
        for name, others in depends.items():
            chance = pt.as_tensor(rng.uniform(0.1, 0.9, (2,) * (1 + len(others))))
            chance = chance[(group, *(people[x] for x in others))]
            people[name] = pm.Bernoulli(name, chance, shape=n)
        for pair in pairs:
            table = pmd.statistics.joint_counts([people[x] for x in pair], (2, 2))
            released = rng.normal(n / 4, 1.0, (2, 2))
            pmd.GaussianMechanism(0.8).potential(f"t_{pair}", table, released=released)
        if which == "star":
            mechanism = pmd.RandomizedResponse(0.7, categories=2)
            mechanism.observe("answer", people["a"], released=group)
    values = dict.fromkeys(depends, range(2))
    return tabulable.Form(
        model, values, group.tolist(), given={x: tuple(y) for x, y in given.items()}
    )


@pytest.mark.long
@pytest.mark.parametrize("which", LINKED)
def test_linked_tables_are_those_of_all_data_sets(which):
    form = linked_columns(which)
    with evaluated_in_python():
        log_density = form.model.compile_logp()
    posterior = pmd.sample(DRAWS, model=pmd.tabulate(form.model), **OPTIONS).posterior
    data_sets = list(form.data_sets())
    logs = np.array([float(log_density(x)) for x in data_sets])
    tables = [form.counts(x) for x in data_sets]
    assert set(posterior.data_vars) == set(tables[0])
    cells = np.array([np.concatenate([x.ravel() for x in each.values()]) for each in tables])
    draws = np.concatenate([posterior[x].values[0].reshape(DRAWS, -1) for x in tables[0]], axis=1)

    def worst(logs, cells):
        weights = np.exp(logs - logs.max())
        mean = np.average(cells, weights=weights, axis=0)
        sd = np.sqrt(np.average((cells - mean) ** 2, weights=weights, axis=0))
        return max(in_standard_errors(draws, mean), in_standard_errors(draws, sd, "sd"))

    assert worst(logs, cells) < STANDARD_ERRORS
    # A twin: as if one data set were behind each of the tables.
    _, first = np.unique(cells, axis=0, return_index=True)
    assert worst(logs[first], cells[first]) > STANDARD_ERRORS


OUTCOMES, NOISE = np.array([5, 9]), 2.0
"""How many people have each outcome, and the scale of the noise of the counts."""
SHARES, OBSERVED = np.array([0.5, 0.2, 0.3]), np.array([4.0, 1.5, 8.5])


def people_with_outcomes():
    """Public outcomes that depend on a private column by an unknown slope."""
    outcome = np.repeat([0, 1], OUTCOMES)
    with pm.Model() as model:
        slope = pm.Normal("slope", 0, 1.5)
        x = pm.Categorical("x", SHARES, shape=len(outcome))
        pm.Bernoulli("y", logit_p=slope * (x - 1), observed=outcome)
        table = pmd.statistics.counts(x, 3)
        pmd.GaussianMechanism(NOISE).potential("privacy", table, released=OBSERVED)
    return model


def exact_outcomes():
    """Mean and sd of the slope and of the counts: quadrature, over all tables of each outcome."""
    grid = np.linspace(-8, 8, 321)
    ones = expit(grid[:, None] * (np.arange(3) - 1))
    tables = [np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
              for n in OUTCOMES]  # fmt: skip
    logs = [
        stats.multinomial.logpmf(each[None], n, SHARES) + np.log(p) @ each.T
        for each, n, p in zip(tables, OUTCOMES, (1 - ones, ones), strict=True)
    ]
    both = tables[0][:, None] + tables[1]
    noise = stats.norm.logpdf(OBSERVED, both, NOISE).sum(axis=-1)
    joint = logs[0][:, :, None] + logs[1][:, None, :] + noise
    joint += stats.norm.logpdf(grid, 0, 1.5)[:, None, None]
    weights = np.exp(joint - joint.max())
    weights /= weights.sum()
    values = [grid[:, None, None], *np.moveaxis(both, -1, 0)]
    mean = np.array([(weights * x).sum() for x in values])
    return mean, np.sqrt(
        [(weights * (x - m) ** 2).sum() for x, m in zip(values, mean, strict=True)]
    )


def furthest_of_outcomes(step=InterweaveStep):
    """Sample the tabulated people; return how far draws are from the exact answer."""
    with pmd.tabulate(people_with_outcomes()) as model:
        counts = model["x_counts"]
        steps = [step(model["slope"], records=counts), pmd.CountStep(counts)]
        posterior = pm.sample(DRAWS, step=steps, **OPTIONS).posterior
    counts = posterior["x_counts"].values[0].sum(axis=1)  # by outcome
    draws = np.concatenate([posterior["slope"].values.T, counts], axis=1)
    mean, sd = exact_outcomes()
    return max(in_standard_errors(draws, mean), in_standard_errors(draws, sd, "sd"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:InterweaveStep alone has moved")
def test_people_with_outcomes_are_counted_as_quadrature_finds(monkeypatch):
    assert furthest_of_outcomes() < STANDARD_ERRORS
    fault = twins.with_fault(twins.with_stale_records, monkeypatch)
    assert furthest_of_outcomes(fault) > STANDARD_ERRORS
