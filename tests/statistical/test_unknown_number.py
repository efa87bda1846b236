"""An unknown number of records: whole chains against enumeration and algebra, and Geweke's test.

Parameters are drawn given the present records alone, and the others are drawn anew before anything
looks at them. The same tests must fail if that is done in another order, and if a step has a fault.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy import special, stats

import pymc_dapper as pmd
from pymc_dapper.sizes import step as sizes
from pymc_dapper.sizes.compiled import draw as compiled
from pymc_dapper.sizes.step import SizeStep
from tests.broken import edited
from tests.enumerate_sweep import transition_matrix
from tests.evaluated_in_python import evaluated_in_python
from tests.interweave_twins import with_fault
from tests.monte_carlo import _mcse, smallest_ess, z_scores
from tests.moving_at_once import moving_at_once
from tests.sizes.reading.test_model import log_joint
from tests.sizes.unknown_numbers import bernoulli
from tests.sweep_parts import PythonFunction, take_apart

ROOM = 8
RELEASED = (4.2, 2.6)
DRAWS = 15_000


def enumerated():
    """Weights of all numbers n and totals t, shape (n, t), with the records marginalised."""
    n, t = np.arange(ROOM + 1)[:, None], np.arange(ROOM + 1)
    log_w = -np.abs(RELEASED[0] - n) / 1.5 - np.abs(RELEASED[1] - t)
    with np.errstate(divide="ignore"):
        log_w = log_w + np.log(special.comb(n, t))
    possible = t <= n
    log_w = log_w + special.betaln(2 + t, 1 + np.where(possible, n - t, 0))
    w = np.where(possible, np.exp(log_w), 0.0)
    return w / w.sum()


def worst_z(posterior):
    """Largest distance from the enumerated posterior, in standard errors of Monte Carlo."""
    w = enumerated()
    n, t = np.arange(ROOM + 1)[:, None], np.arange(ROOM + 1)
    a, b = 2 + t, np.maximum(1 + n - t, 0)
    moments = {1: a / (a + b), 2: a * (a + 1) / ((a + b) * (a + b + 1))}
    draws_n, draws_p = posterior["n"].values, posterior["p"].values
    quantities = [(draws_n == k, w[k].sum()) for k in range(ROOM + 1)]
    quantities += [(draws_p**k, (w * moment).sum()) for k, moment in moments.items()]
    quantities.append((draws_n * draws_p, (w * n * moments[1]).sum()))
    return max(abs(_z(draws, exact)) for draws, exact in quantities)


def _z(draws, exact):
    draws = np.asarray(draws, dtype=float)
    if np.ptp(draws) == 0:  # what never came, or always
        return 0.0 if np.isclose(draws.mean(), exact, atol=1 / draws.size) else np.inf
    return (draws.mean() - exact) / _mcse(draws, "mean")


def run(model, steps=None, draws=DRAWS, **options):
    """Sample with the steps that are chosen, or with these."""
    with model:
        steps = pmd.assign_steps(progressbar=False, **options) if steps is None else steps
        return pm.sample(
            draws, tune=500, chains=2, cores=1, step=steps, random_seed=5, progressbar=False
        ).posterior


@pytest.fixture(scope="module")
def model():
    return bernoulli(ROOM, RELEASED)


@pytest.fixture(scope="module")
def steps(model):
    """ConjugateStep given present records, DapperStep, SizeStep."""
    chosen = pmd.assign_steps(model=model, interweave=False, progressbar=False)
    assert [type(x).__name__ for x in chosen] == ["ConjugateStep", "DapperStep", "SizeStep"]
    return chosen


@pytest.mark.long
def test_records_and_their_number_are_enumerated(model, steps):
    posterior = run(model, steps)
    assert worst_z(posterior) < 4
    assert smallest_ess(posterior["p"].values) > 1_000


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [{}, {"conjugate": False}, {"conjugate": False, "interweave": False}]
)
def test_with_other_steps_of_parameters_too(model, options):
    assert worst_z(run(model, **options)) < 4


@pytest.mark.long
def test_parameters_between_the_records_and_their_number_are_caught(model, steps):
    """A small fault: it takes many draws to tell."""
    of_p, records, size = steps
    assert worst_z(run(model, [records, of_p, size], 8 * DRAWS)) > 4


def classes():
    """Write people of two classes, which are drawn apart from what is released of them."""
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, ROOM)
        p, q = pm.Beta("p", 1, 1), pm.Beta("q", 1, 1)
        z = pm.Bernoulli("z", p, shape=ROOM)
        x = pm.Bernoulli("x", pt.switch(z, q, 0.1), shape=ROOM)
        total = pt.switch(pmd.present(n, ROOM), x, 0).sum()
        pmd.LaplaceMechanism(0.5).potential("count", n, released=2.0)
        pmd.LaplaceMechanism(0.5).potential("total", total, released=1.0)
    return model


def worst_z_of_classes(posterior):
    """Largest distance from quadrature, with the people and their number marginalised."""
    grid = (np.arange(200) + 0.5) / 200
    p, q = np.meshgrid(grid, grid, indexing="ij")
    rate = p * q + 0.1 * (1 - p)
    w = np.zeros_like(rate)
    for n in range(ROOM + 1):
        noise = np.exp(-2 * np.abs(1 - np.arange(n + 1)) - 2 * abs(2 - n))
        w += sum(noise[t] * stats.binom.pmf(t, n, rate) for t in range(n + 1))
    w /= w.sum()
    exact = {"p": p, "q": q}
    return max(
        abs(_z(posterior[name].values ** k, (w * exact[name] ** k).sum()))
        for name in exact
        for k in (1, 2)
    )


@pytest.mark.long
def test_classes_of_absent_people_do_not_count():
    """The class of an absent person must not see what parameters have been drawn without."""
    model = classes()
    chosen = pmd.assign_steps(model=model, interweave=False, progressbar=False)
    *of_parameters, x, z, size = chosen
    assert [[v.name for v in step.vars] for step in (x, z, size)] == [["x"], ["z"], ["n"]]
    assert worst_z_of_classes(run(model, chosen)) < 4
    assert worst_z_of_classes(run(model, [*of_parameters, z, x, size])) > 6


@pytest.mark.long
def test_given_all_records_the_order_does_not_matter(model, steps):
    _, records, size = steps
    with model:
        of_p = pmd.ConjugateStep([model["p"]])
    assert worst_z(run(model, [records, of_p, size])) < 4


FAULTS = {
    "one record too many": (
        compiled,
        "drawn_number",
        {
            "number = pt.le(cumulated, u * total).sum()": (
                "number = (cumulated[:-1] <= u * total).sum() + (u * total < cumulated[-2])"
            )
        },
    ),
    "the room ends one record early": (
        compiled,
        "drawn_number",
        {"total = cumulated[-1]": "total = cumulated[-2]"},
    ),
    "sums of the old order": (
        sizes,
        "compile_draw",
        {
            "[log_weights] = rebuild([reading.log_weights], records)": (
                "log_weights = reading.log_weights"
            )
        },
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", FAULTS)
def test_faults_of_the_draw_are_caught(model, steps, name):
    of_p, records, _ = steps
    with edited(*FAULTS[name]):
        faulty = SizeStep([model["n"]], model=model)
    assert worst_z(run(model, [of_p, records, faulty])) > 4


def with_other_weights(size, weights):
    """Let a step draw by other log-weights than it has."""
    right = size._drawn
    given, u = pt.vector("log_weights"), pt.scalar("u", dtype="float64")
    draw = pytensor.function([given, u], compiled.drawn_number(given, u, size._last), mode="NUMBA")

    def drawn(point, rng):
        *records, _, _, log_weights = right(point, rng)
        outcome = np.array(draw(weights(log_weights, point), rng.random()))
        return *records, outcome[0].astype(int), outcome, log_weights

    size._drawn = drawn


@pytest.mark.long
def test_a_prior_of_the_number_that_is_dropped_is_caught():
    """The same model with a prior that matters, and its weights without it."""
    with pm.Model() as poisson:
        n = pm.Binomial("n", ROOM, 0.2)
        p = pm.Beta("p", 2, 1)
        x = pm.Bernoulli("x", p, shape=ROOM)
        # With the prior's reciprocal in the mechanism, the posterior is that of a uniform one.
        known = np.log(stats.binom.pmf(np.arange(ROOM + 1), ROOM, 0.2))
        pm.Potential("uniform", -pt.as_tensor(known)[n])
        pmd.LaplaceMechanism(1.5).potential("count", n, released=RELEASED[0])
        total = (pmd.present(n, ROOM) * x).sum()
        pmd.LaplaceMechanism(1.0).potential("total", total, released=RELEASED[1])
    chosen = pmd.assign_steps(model=poisson, interweave=False, progressbar=False)
    assert worst_z(run(poisson, chosen)) < 4
    [size] = next(step for step in chosen if isinstance(step, SizeStep))._sizes
    with_other_weights(size, lambda log_weights, point: log_weights - known)
    assert worst_z(run(poisson, chosen)) > 4


# InterweaveStep alone moves the number, with its parameter.


def interwoven(model, fault=None, monkeypatch=None):
    step = pmd.InterweaveStep if fault is None else with_fault(fault, monkeypatch)
    with model:
        steps = [
            pmd.ConjugateStep([model["p"]]),
            pmd.DapperStep([model["x"]]),
            step([model["p"], model["n"]], records=[model["x"]], moves=4),
        ]
    return run(model, steps)


@pytest.mark.long
def test_the_number_moves_with_its_parameter(model):
    assert worst_z(interwoven(model)) < 4


def without_what_takes_the_logarithm_back(reading):
    [n] = reading.proposed_numbers
    return replace(reading, log_density=reading.log_density - pt.log(n + 0.5))


def without_the_count(reading):
    [n] = reading.proposed_numbers
    return replace(reading, log_density=reading.log_density + pt.abs(RELEASED[0] - n) / 1.5)


def without_room_for_the_last(reading):
    [n] = reading.proposed_numbers
    return replace(reading, log_density=pt.switch(n < ROOM, reading.log_density, -np.inf))


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", [without_what_takes_the_logarithm_back, without_the_count, without_room_for_the_last]
)
def test_faults_of_such_moves_are_caught(model, fault, monkeypatch):
    assert worst_z(interwoven(model, fault, monkeypatch)) > 4


# An exact total of two variables, one given the other: transition matrices of both steps.

PAIRS = list(product(range(4), repeat=2))  # rows of two records, as 2 x + z


def exact_total():
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, 2)
        x = pm.Bernoulli("x", 0.3, shape=2)
        z = pm.Bernoulli("z", 0.2 + 0.4 * x, shape=2)
        there = pmd.present(n, 2)
        pmd.invariant("exact", (there * x).sum(), 1)
        pmd.LaplaceMechanism(1.5).potential("count", n, released=2.2)
        pmd.LaplaceMechanism(1.0).potential("both", (there * x * z).sum(), released=0.8)
        pmd.LaplaceMechanism(1.0).potential("z_total", (there * z).sum(), released=0.8)
    return model


def pair_prior(z_given_x=(0.2, 0.6)):
    x, z = np.divmod(np.arange(4), 2)
    p_z = np.array(z_given_x)[x]
    of_one = np.where(x, 0.3, 0.7) * np.where(z, p_z, 1 - p_z)
    return np.array([of_one[list(pair)].prod() for pair in PAIRS])


def matrices(z_given_x=(0.2, 0.6)):
    """The posterior, and the transition matrices of a sweep and of a draw of n, on all states."""
    model = exact_total()
    start = model.initial_point() | {"n": np.array(1), "x": np.array([1, 0])}
    with evaluated_in_python():
        step = pmd.DapperStep([model["x"], model["z"]], model=model, initial_point=start)
        size = SizeStep([model["n"]], model=model)._sizes[0]
        joint = log_joint(model)
        parts = take_apart(step._reading, function=PythonFunction)

        def point(n, pair):
            x, z = np.divmod(np.array(pair), 2)
            return {"n": np.array(n), "x": x, "z": z}

        def decide(state, proposal, log_uniforms, n):
            old, new = point(n, state), point(n, proposal)
            given = step._given({**start, "n": np.array(n)})
            x, z, *rest = parts.decide(old["x"], old["z"], new["x"], new["z"], log_uniforms, *given)
            return 2 * np.asarray(x) + np.asarray(z), *rest

        states = [(n, pair) for n in range(3) for pair in PAIRS]
        log_p = np.array([joint(point(*state)) for state in states])
        p = np.exp(log_p - np.logaddexp.reduce(log_p))
        sweep, draw = np.zeros((2, len(states), len(states)))
        for n in range(3):
            block = slice(16 * n, 16 * (n + 1))
            sweep[block, block] = transition_matrix(
                decide, np.array(PAIRS), pair_prior(z_given_x), n
            )
        for row, (n, pair) in enumerate(states):
            for k in range(n or 1):
                # Of two rows, both heaps have one.
                at = point(n, [*pair[k:n], *pair[:k], *pair[n:]])
                # With nobody present, nothing is shuffled.
                *_, log_w = size._drawn({**start, **at, "n": np.array(0)}, np.random.default_rng(0))
                column = [
                    states.index((m, tuple((2 * at["x"] + at["z"]).tolist()))) for m in range(3)
                ]
                if np.isfinite(log_w).any():
                    draw[row, column] += np.exp(log_w - np.logaddexp.reduce(log_w)) / (n or 1)
                else:
                    draw[row, row] += 1 / (n or 1)
    return p, sweep, draw


@pytest.mark.long
def test_an_exact_total_of_two_variables_in_a_row_is_kept():
    p, sweep, draw = matrices()
    possible = p > 0
    np.testing.assert_allclose(p @ sweep, p, atol=1e-11)
    np.testing.assert_allclose(p @ draw, p, atol=1e-11)
    # From each possible state, all others are reached.
    both = (sweep @ draw)[np.ix_(possible, possible)]
    np.testing.assert_allclose(both.sum(axis=1), 1)
    assert np.all(np.linalg.matrix_power(both, 20) > 0)
    wrong, wrong_sweep, _ = matrices(z_given_x=(0.4, 0.4))
    assert np.abs(wrong @ wrong_sweep - wrong).max() > 1e-3


# Normal records with an unclamped sum, which is normal given their number: by algebra.

SUM_NOISE, PRIOR_SD = 2.0, 1.5


@pytest.fixture(scope="module")
def sums():
    with pm.Model() as model:
        n = pm.Poisson("n", 12)
        mu = pm.Normal("mu", 0.5, PRIOR_SD)
        x = pm.Normal("x", mu, 1, shape=40)
        there = pmd.present(n, 40)
        pmd.GaussianMechanism(sigma=SUM_NOISE).potential(
            "total", pt.switch(there, x, 0).sum(), released=11.0
        )
        pmd.LaplaceMechanism(scale=3.0).potential("count", n, released=10.4)
    return model


@pytest.mark.long
def test_normal_records_agree_with_algebra(sums):
    """With all steps; with fewer, records with two values (above)."""
    n = np.arange(41)
    variance = n + SUM_NOISE**2
    log_w = stats.poisson.logpmf(n, 12) - np.abs(10.4 - n) / 3
    log_w += stats.norm.logpdf(11.0, 0.5 * n, np.sqrt(variance + (n * PRIOR_SD) ** 2))
    w = np.exp(log_w - special.logsumexp(log_w))
    precision = 1 / PRIOR_SD**2 + n**2 / variance
    mean = (0.5 / PRIOR_SD**2 + n * 11.0 / variance) / precision
    posterior = run(sums)
    draws_n, mu = posterior["n"].values, posterior["mu"].values
    exact = [(draws_n == k, w[k]) for k in np.flatnonzero(w > 0.01)]
    exact += [
        (mu, w @ mean),
        (mu**2, w @ (mean**2 + 1 / precision)),
        (mu * draws_n, w @ (mean * n)),
    ]
    assert max(abs(_z(*pair)) for pair in exact) < 4
    assert min(smallest_ess(x) for x in (mu, draws_n)) > 1_000


# Geweke's joint test: releases are drawn anew in each iteration, and the prior stays.

SCALE = np.array([2.0, 4.0])


def joint_model():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 5, 1)
        n = pm.Poisson("n", rate)
        slope = pm.Normal("slope", 0.5, 1)
        precision = pm.Gamma("precision", 3, 2)
        x = pm.Normal("x", 1, 1, shape=30)
        y = pm.Normal("y", slope * x, 1 / pt.sqrt(precision), shape=30)
        released = pm.Data("released", np.zeros(2))
        total = pt.switch(pmd.present(n, 30), pt.clip(x * y, -3, 3), 0).sum()
        seen = pt.stack([n.astype("float64"), total])
        pm.Potential("release", pm.logp(pm.Laplace.dist(seen, SCALE), released))
    return model


def geweke(reorder=lambda steps: steps, iterations=12_000, seed=3):
    model, rng = joint_model(), np.random.default_rng(seed)
    steps = reorder(moving_at_once(pmd.assign_steps(model=model, progressbar=False)))
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], tune=1_000, draws=iterations)
    point, draws = model.initial_point(), np.empty((iterations + 1_000, 4))
    for i in range(len(draws)):
        n, x, y = int(point["n"]), point["x"], point["y"]
        seen = np.array([n, np.clip(x * y, -3, 3)[:n].sum()])
        released = seen + rng.laplace(scale=SCALE)
        model["released"].set_value(released)
        for step in steps:
            for given in step._givens:
                if given.data.values:
                    given.data.values = [released]
            point, _ = step.step(point)
        rate, precision = np.exp(point["rate_log__"]), np.exp(point["precision_log__"])
        draws[i] = rate, precision, point["slope"], point["n"]
    return draws[1_000:]


class Prior:
    def __init__(self, law):
        self.mean, self.sd, self.quantile = law.mean(), law.std(), law.ppf


LAWS = stats.gamma(5), stats.gamma(3, scale=1 / 2), stats.norm(0.5, 1)


def prior_agreement(draws):
    chains = draws.reshape(4, -1, 4)
    z = [
        abs(v) for k, law in enumerate(LAWS) for v in z_scores(chains[..., k], Prior(law)).values()
    ]
    number = stats.nbinom(5, 0.5)
    z += [abs(_z(chains[..., 3] == k, number.pmf(k))) for k in range(12)]
    return max(z)


@pytest.mark.long
def test_all_keep_their_prior_if_releases_are_drawn_anew():
    draws = geweke()
    assert min(smallest_ess(draws.reshape(4, -1, 4)[..., k]) for k in range(4)) > 500
    assert prior_agreement(draws) < 4


class NotDrawnAnew:
    """DapperStep that leaves the records that aren't there as they are."""

    def __init__(self, step, records):
        self._step, self._records = step, records
        self._givens, self.setup_chain = step._givens, step.setup_chain

    def step(self, point):
        new, stats = self._step.step(point)
        there = np.arange(len(point[self._records[0]])) < point["n"]
        for name in self._records:
            new[name] = np.where(there, new[name], point[name])
        return new, stats


def stale(steps):
    return [NotDrawnAnew(x, ["x", "y"]) if isinstance(x, pmd.DapperStep) else x for x in steps]


def without_prior(steps):
    [size] = next(step for step in steps if isinstance(step, SizeStep))._sizes
    n = np.arange(31)
    with_other_weights(
        size,
        lambda log_weights, point: (
            log_weights - stats.poisson.logpmf(n, np.exp(point["rate_log__"]))
        ),
    )
    # InterweaveStep draws the number rightly, and so often that little of the fault is left.
    return [x for x in steps if not isinstance(x, pmd.InterweaveStep)]


def given_all(steps):
    """Parameters are drawn given the absent records, too."""
    model = steps[0]._conditionals[0].model
    names = [[x.name for x in step.vars] for step in steps if isinstance(step, pmd.ConjugateStep)]
    of_value = {value.name: rv for value, rv in model.values_to_rvs.items()}
    new = [pmd.ConjugateStep([of_value[x] for x in each], model=model) for each in names]
    rest = [x for x in steps if not isinstance(x, pmd.ConjugateStep | pmd.InterweaveStep)]
    return [*new, *stale(rest)]


@pytest.mark.long
@pytest.mark.parametrize("fault", [without_prior, given_all])
def test_faults_are_told_apart(fault):
    assert prior_agreement(geweke(fault)) > 4
