"""ThinnedStep: a draw is the last of several iterations, if a chain would be worth few draws."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.step_methods import BlockedStep

from pymc_dapper import (
    ConjugateStep,
    CountStep,
    DapperStep,
    GibbsStep,
    InterweaveStep,
    SizeStep,
    assign_steps,
    present,
    sample,
)
from pymc_dapper.records.long_memory import LongMemory
from pymc_dapper.steps import gibbs, thinning
from pymc_dapper.steps.stats import WARNING_STAT, WARNING_TYPE, warning_of
from pymc_dapper.steps.thinning import MOST, ThinnedStep
from tests.broken import edited
from tests.evaluated_in_python import evaluated_in_python
from tests.states import same_states
from tests.steps.test_gibbs import chain_of, same

TUNE, DRAWS, TIMES = 6, 12, 3
KEPT = 1000


class Autoregression(BlockedStep):
    """Moves normal variables that take some iterations to forget, and diverges at times."""

    name = "autoregression"
    stats_dtypes_shapes = {"diverging": (bool, []), WARNING_STAT: WARNING_TYPE}  # noqa: RUF012

    def __init__(self, vars, forgets_in, diverges_at=(), **options):
        self.vars, self.made, self.diverges_at = vars, 0, diverges_at
        self.left = 1 - 2 / (forgets_in + 1)

    def setup_chain(self, rng, tune, draws):
        self.rng, self.made = rng, 0

    def step(self, point):
        fresh = {
            x.name: self.left * point[x.name]
            + np.sqrt(1 - self.left**2) * self.rng.normal(size=x.type.shape)
            for x in self.vars
        }
        self.made += 1
        there = self.made in self.diverges_at
        warning = warning_of(f"at {self.made}") if there else None
        return point | fresh, [{"diverging": there, WARNING_STAT: warning}]


@pytest.fixture(scope="module")
def normal():
    with pm.Model() as model:
        pm.Normal("a", shape=2)
        pm.Normal("b", shape=1000)
    return model


def stepping(model, forgets_in, *names, **options):
    step = Autoregression(model.value_vars, forgets_in, model=model, **options)
    return ThinnedStep([step], names or ["a"])


def chosen(step, model, tune=1000, draws=KEPT, seed=1):
    """How many iterations a draw has, after tuning, and the statistics of its last iteration."""
    step.setup_chain(np.random.default_rng(seed), tune, draws)
    *_, (_, [stats, *_]) = chain_of(step, model, tune)
    return step.iterations, stats[WARNING_STAT]


@pytest.fixture(scope="module")
def small():
    """Records and a parameter, moved by compiled functions alone."""
    with evaluated_in_python(), pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=4)
        pm.Normal("noisy_sum", x.sum(), 1.5, observed=2.0)
        moves = InterweaveStep([mu], records=[x], moves=0)
        return model, [DapperStep([x]), ConjugateStep([mu]), moves]


def begun(step, tune=TUNE, draws=DRAWS):
    step.setup_chain(np.random.default_rng(1), tune, draws)
    return step


def one_in(times, chain):
    return chain[:TUNE] + chain[TUNE + times - 1 :: times]


@pytest.fixture(params=[False, True], ids=["by itself", "in blocks"])
def in_blocks(request, monkeypatch):
    monkeypatch.setattr(gibbs, "FEWEST", 0 if request.param else 10**9)
    monkeypatch.setattr(gibbs, "SECONDS", 1e6)


@pytest.mark.usefixtures("in_blocks")
def test_a_draw_is_the_last_of_its_iterations(small):
    model, steps = small
    every = chain_of(begun(GibbsStep(steps), draws=TIMES * DRAWS), model, TUNE + TIMES * DRAWS)
    thinned = chain_of(begun(ThinnedStep(steps, ["mu"], TIMES)), model, TUNE + DRAWS)
    assert same(thinned, one_in(TIMES, every))
    assert not same(thinned, every[: TUNE + DRAWS])


@pytest.mark.usefixtures("in_blocks")
@pytest.mark.parametrize("stop", [2, TUNE, TUNE + 4])
def test_a_chain_goes_on_from_a_state(small, stop):
    model, steps = small
    whole = chain_of(begun(ThinnedStep(steps, ["mu"], TIMES)), model, TUNE + DRAWS)
    step = begun(ThinnedStep(steps, ["mu"], TIMES))
    before = chain_of(step, model, stop)
    state = step.sampling_state
    again = begun(ThinnedStep(steps, ["mu"], TIMES))
    again.sampling_state = state
    assert same_states(again.sampling_state, state)
    rest = chain_of(again, model, TUNE + DRAWS - stop, before[-1][0])
    assert same(before + rest, whole)


RULES = {
    "forgets at once": ({}, 1, 1),
    "has enough effective draws": ({}, 3, 1),
    "has too few": ({}, 25, range(3, 9)),
    "has hardly any": ({}, 200, range(16, MOST + 1)),
    "has enough, as many are asked for": ({"draws": 20_000}, 25, 1),
    "is to have few": ({"draws": 10}, 3, 1),
    "is tuned for too short a time": ({"tune": 150}, 200, 1),
    "isn't tuned": ({"tune": 1}, 200, 1),
}


@pytest.mark.parametrize(("options", "forgets_in", "expected"), RULES.values(), ids=RULES)
def test_draws_have_as_many_iterations_as_a_chain_needs(normal, options, forgets_in, expected):
    number, told = chosen(stepping(normal, forgets_in), normal, **options)
    assert number in (expected if isinstance(expected, range) else [expected])
    assert (told is None) == (number == 1)
    if told is not None:
        assert "thin=1 keeps each iteration" in told.message


def test_a_draw_of_a_large_model_is_not_made_longer(normal, monkeypatch):
    monkeypatch.setattr(thinning, "LARGEST", 5 * 1002)
    assert chosen(stepping(normal, 200), normal)[0] == 5
    monkeypatch.setattr(thinning, "LARGEST", 1001)
    assert chosen(stepping(normal, 200), normal) == (1, None)


def test_moves_that_only_tuning_makes_are_allowed_for(normal, monkeypatch):
    step = stepping(normal, 25)
    before, _ = chosen(step, normal)
    monkeypatch.setattr(step.methods[0], "slower", 3.0, raising=False)
    assert chosen(step, normal)[0] in range(3 * before - 2, 3 * before + 1)
    assert chosen(step, normal, tune=150) == (1, None)  # too short to tell


def test_what_does_not_change_says_nothing(normal):
    assert chosen(stepping(normal, np.inf), normal) == (1, None)


def test_a_thousand_iterations_are_kept(normal):
    step = stepping(normal, 3)
    step.setup_chain(np.random.default_rng(1), 3000, KEPT)
    chain_of(step, normal, 2999)
    assert len(step.seen) == 999


def test_other_variables_do_not_count(normal):
    """They take as long, and nobody looks at them."""
    a, b = normal.value_vars
    quick, slow = Autoregression([a], 1, model=normal), Autoregression([b], 200, model=normal)
    assert chosen(ThinnedStep([quick, slow], ["a"]), normal)[0] == 1
    assert chosen(ThinnedStep([quick, slow], ["a", "b"]), normal)[0] == MOST


def test_thinned_draws_have_as_many_effective_ones_as_expected(normal):
    """Five iterations apart; without, more than 20."""

    def memory_of(step):
        begun(step, 1000, KEPT)
        draws = [point["a"] for point, _ in chain_of(step, normal, 1000 + KEPT)[1000:]]
        return thinning.memory(np.array(draws))

    assert memory_of(stepping(normal, 40)) < 10
    with edited(
        ThinnedStep,
        "_choose",
        {"self.iterations = max(1, min(ceil(min(needed, MOST)), LARGEST // n_values))": "pass"},
    ):
        assert memory_of(stepping(normal, 40)) > 20


def test_divergences_and_warnings_of_all_iterations_are_kept(normal):
    step = ThinnedStep(
        [Autoregression(normal.value_vars, 2, (3, TUNE + 2, TUNE + 9), model=normal)], ["a"], TIMES
    )
    found = [stats for _, [stats] in chain_of(begun(step), normal, TUNE + DRAWS)]
    assert [k for k, x in enumerate(found) if x["diverging"]] == [2, TUNE, TUNE + 2]
    told = [x[WARNING_STAT].message for x in found if x[WARNING_STAT] is not None]
    assert told == ["at 3", f"at {TUNE + 2}", f"at {TUNE + 9}"]


def test_events_of_other_iterations_would_be_missed(normal):
    lost = {"now[event] = earlier[event] or now[event]": "pass"}
    with edited(ThinnedStep, "step", lost), pytest.raises(AssertionError):
        test_divergences_and_warnings_of_all_iterations_are_kept(normal)


def test_another_chain_chooses_anew(normal):
    step = stepping(normal, 200)
    assert chosen(step, normal)[0] > 1
    step.setup_chain(np.random.default_rng(1), 10, 10)
    assert step.iterations == 1


def test_a_chosen_number_goes_on_from_a_state(normal):
    step = stepping(normal, 200)
    number, _ = chosen(step, normal)
    again = stepping(normal, 200)
    again.setup_chain(np.random.default_rng(1), 3, 4)
    again.sampling_state = step.sampling_state
    assert number > 1
    assert (again.iterations, again.done, again.n_draws) == (number, 1000, KEPT)


COUNTED = {
    "records": (0, lambda step: step._draws),
    "counts": (1, lambda step: step.total_sweeps - TUNE),
    "numbers of records": (2, lambda step: step.all_steps - TUNE),
}


@pytest.fixture(scope="module")
def counting():
    """Steps that look at a chain's end whether it was a good one."""
    with evaluated_in_python(), pm.Model():
        n = pm.DiscreteUniform("n", 0, 5)
        x = pm.Bernoulli("x", 0.4, shape=5)
        y = pm.Poisson("y", 3.0, shape=2)
        pm.Normal("noisy_n", n, 1.5, observed=4.0)
        pm.Normal("noisy_sum", pt.switch(present(n, 5), x, 0).sum(), 1.5, observed=2.0)
        pm.Normal("noisy_y", y, 1.5, observed=[1.0, 2.0])
        [size] = [s for s in assign_steps([x], progressbar=False) if isinstance(s, SizeStep)]
        return [DapperStep([x]), CountStep([y]), size]


@pytest.mark.parametrize("step", COUNTED)
def test_steps_know_how_many_iterations_there_will_be(counting, step):
    place, told = COUNTED[step]
    begun(ThinnedStep(counting, ["n"], TIMES))
    assert told(counting[place]) == TIMES * DRAWS


@pytest.mark.parametrize(("thin", "last"), [(1, 200), (TIMES, TIMES * 200)])
def test_a_long_memory_is_told_of_when_the_chain_ends(small, monkeypatch, thin, last):
    model, steps = small
    monkeypatch.setattr(LongMemory, "_message", lambda self: f"{self._draws} sweeps")
    step = begun(ThinnedStep(steps, ["mu"], thin), draws=200)
    found = [stats[0][WARNING_STAT] for _, stats in chain_of(step, model, TUNE + 200)]
    assert [x.message for x in found if x is not None] == [f"{last} sweeps"]
    assert found[-1] is not None


def test_sampling_takes_it(small):
    model, [records, *_] = small
    with evaluated_in_python(), model:
        options = {
            "records": records.vars,
            "tune": 3,
            "chains": 1,
            "random_seed": 1,
            "progressbar": False,
            "cores": 1,
        }
        every = sample(6, thin=1, compute_convergence_checks=False, **options)
        second = sample(3, thin=2, compute_convergence_checks=False, **options)
    assert np.array_equal(every.posterior["mu"][:, 1::2], second.posterior["mu"])
