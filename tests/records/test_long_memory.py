"""A warning about chains whose records have a long memory, and none about other chains."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import DapperStep
from pymc_dapper.reading import read_model
from pymc_dapper.records.long_memory import (
    FEWEST,
    LOOKS,
    SHORTEST_CHAIN,
    LongMemory,
    least_effective,
)
from pymc_dapper.records.reading.known_totals import find_known_totals
from pymc_dapper.records.reading.sufficient_statistics import SufficientStatistics
from tests.evaluated_in_python import evaluated_in_python

DRAWS, TUNE = 640, 10
SLOW = np.cumsum(np.random.default_rng(1).normal(size=DRAWS)) / np.sqrt(DRAWS)
FAST = np.random.default_rng(2).normal(size=DRAWS)


def read(mechanism, prior=pm.Normal, **parameters):
    with pm.Model() as model:
        x = prior("x", shape=3, **parameters)
        pm.Potential("privacy", mechanism(x))
    return read_model(model, model.value_vars, model.initial_point())


def told(reading, chain, accepted=0.01, known=None):
    """What is said at the end of a chain of states of the records."""
    watch = LongMemory(reading, SufficientStatistics(reading), TUNE, len(chain), known)
    messages = [
        watch.look(TUNE + k, [np.asarray(state)], [], accepted)
        for k, state in enumerate(chain, start=1)
    ]
    assert messages[:-1] == [None] * (len(chain) - 1)
    return messages[-1]


def states(first, second):
    return np.stack([first, second, np.zeros(DRAWS)], axis=1)


def powers(x):
    return -(((pt.stack([x.sum(), (x**2).sum()]) - 1.0) / 0.1) ** 2).sum()


def test_a_sum_that_is_known_has_nothing_to_forget():
    """It moves by rounding, within what its equation leaves open."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Potential("total", pt.switch(pt.abs(x.sum() - 1.0) < 1e-6, 0.0, -np.inf))
        pm.Potential("privacy", -pt.abs((x**2).sum() - 2.0))
    reading = read_model(model, model.value_vars, model.initial_point())
    known = find_known_totals(reading.additive_factors, reading.sums)
    drifting, slow = states(1e-7 * SLOW + FAST, 1.0 - FAST), states(SLOW, 1.0 - SLOW)
    assert "effective draws of the sum of x." in told(reading, drifting)
    assert told(reading, drifting, known=known) is None
    assert "effective draws of the sum of (x ** 2)." in told(reading, slow, known=known)


def test_the_slowest_sum_is_named_with_what_holds_the_records():
    message = told(read(powers), states(5 * SLOW + FAST, FAST - 5 * SLOW))
    assert message.startswith(
        "DapperStep: the records 'x' have a long memory: this chain of 640 sweeps has hardly more"
    )
    assert "effective draws of the sum of (x ** 2). 1.0% of the proposals are accepted" in message
    assert "hardly any room to move alone. Draw many times as many" in message


def test_where_proposals_are_accepted_the_way_out_is_another():
    message = told(read(powers), states(SLOW, SLOW), accepted=0.98)
    assert "and as few of 2 of all 2" in message
    assert "98% of the proposals are accepted, so the released values don't" in message
    assert "InterweaveStep" in message


OTHERS = {
    "a median": (lambda x: -pt.abs(pt.sort(x)[1] - 0.1), "the log-density of 'privacy'"),
    "each by itself": (lambda x: -((x - 5.0) ** 2), "the log-density of 'privacy'"),
    "a single sum": (lambda x: -((x.sum() - 1.0) ** 2), "the sum of x. "),
}


@pytest.mark.parametrize(("mechanism", "name"), OTHERS.values(), ids=OTHERS)
def test_everything_that_a_mechanism_sees_is_looked_at(mechanism, name):
    reading = read(mechanism)
    assert name in told(reading, states(SLOW, SLOW))
    assert told(reading, states(FAST, FAST)) is None


def test_continuous_records_that_stand_still_warn():
    message = told(read(powers), np.zeros((DRAWS, 3)))
    assert "no record of 'x' has moved in this chain of 640 sweeps" in message


def test_records_that_end_where_they_were_seen_first_have_moved():
    reading = read(lambda x: -((x[0] - x[1] - 1.0) ** 2), pm.Poisson, mu=3.0)
    chain = np.random.default_rng(3).poisson(3, (DRAWS, 3))
    chain[DRAWS // LOOKS - 1] = chain[-1]
    assert told(reading, chain) is None


def test_counts_that_are_known_by_their_noise_are_not():
    reading = read(lambda x: -50.0 * (x.sum() - 2.0) ** 2, pm.Bernoulli, p=0.5)
    assert told(reading, [np.array([0, 1, 1])] * DRAWS) is None


@pytest.mark.parametrize("each", [True, False], ids=["each column", "both together"])
def test_columns_that_stand_still_warn_unless_the_table_is_known(each):
    """Two margins leave open who has which pair; their joint table doesn't."""
    with pm.Model() as model:
        a = pm.Categorical("a", np.full(3, 1 / 3), shape=5)
        b = pm.Categorical("b", np.full(3, 1 / 3), shape=5)
        counted = (pt.eye(3)[a], pt.eye(3)[b]) if each else (pt.eye(9)[3 * a + b],)
        for k, rows in enumerate(counted):
            pm.Potential(f"privacy{k}", -50.0 * ((rows.sum(axis=0) - 1.0) ** 2).sum())
    reading = read_model(model, model.value_vars, model.initial_point())
    watch = LongMemory(reading, SufficientStatistics(reading), TUNE, DRAWS)
    state = [np.array([0, 1, 2, 0, 1]), np.array([2, 1, 0, 0, 1])]
    *_, message = (watch.look(TUNE + k, state, [], 0.3) for k in range(1, DRAWS + 1))
    assert (message is not None) == each
    assert not each or message.startswith("DapperStep: no record of 'a', 'b' has moved in this")


@pytest.mark.parametrize("mechanism", [powers, lambda x: pt.log(x.sum() - 100.0)])
def test_a_chain_that_forgets_does_not_warn(mechanism):
    assert told(read(mechanism), states(FAST, FAST[::-1])) is None


def autoregressions(length, chains, effective):
    """Paths that are worth so many draws, shape (length, chains)."""
    rng, correlation = np.random.default_rng(0), (length - effective) / (length + effective)
    noise = rng.normal(size=(length, chains))
    x = [noise[0]]
    for each in noise[1:]:
        x.append(correlation * x[-1] + np.sqrt(1 - correlation**2) * each)
    return np.array(x)


@pytest.mark.parametrize(
    ("effective", "fewest", "most"), [(1, 0.7, 1.0), (2, 0.6, 1.0), (20, 0.0, 0.02), (60, 0, 0)]
)
def test_most_chains_that_stick_warn_and_hardly_any_other(effective, fewest, most):
    reading, chains = read(OTHERS["a single sum"][0]), 100
    seen, paths = SufficientStatistics(reading), autoregressions(DRAWS, chains, effective)
    share = 0.0
    for path in paths.T:
        watch = LongMemory(reading, seen, TUNE, DRAWS)
        for sweep, total in enumerate(path, TUNE + 1):
            found = watch.look(sweep, [np.array([total, 0.0, 0.0])], [], 0.01)
        share += (found is not None) / chains
    assert fewest <= share <= most


def test_a_sum_with_some_effective_draws_rarely_warns():
    """One in a hundred, at most, if the chain has 20 effective draws."""
    assert np.mean(least_effective(autoregressions(LOOKS, 4_000, 20)) < FEWEST) < 0.01


@pytest.mark.parametrize(
    ("scale", "draws", "n_told"), [(1e-9, 200, 1), (3.0, 200, 0), (1e-9, 199, 0)]
)
def test_a_chain_that_sticks_warns_in_pymcs_log(scale, draws, n_told, caplog):
    assert SHORTEST_CHAIN == 200
    with evaluated_in_python(), pm.Model():
        x = pm.Normal("x", 0, 1, shape=3)
        pm.Normal("noisy_sum", x.sum(), scale, observed=1.0)
        pm.sample(
            step=[DapperStep([x])],
            draws=draws,
            tune=5,
            chains=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    reports = [x for x in caplog.records if "Don't rely on the draws" in x.getMessage()]
    assert [x.levelname for x in reports] == ["WARNING"] * n_told
