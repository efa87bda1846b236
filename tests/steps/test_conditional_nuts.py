"""NUTS that evaluates only what depends on the variables it moves."""

from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.blocking import DictToArrayBijection

from pymc_dapper.steps.conditional_nuts import NUTS, TARGET_ACCEPT, conditional_nuts
from tests.admissions_and_tiny import admissions_model


def test_conditional_nuts_moves_what_nothing_else_enters():
    """A parameter apart from all others: catches NUTS that takes these for its own."""
    with pm.Model() as model:
        others = pm.Normal("others", shape=3)
        apart = pm.HalfNormal("apart")
        pm.Potential("privacy", -pt.abs(others.sum()))
    value = model.rvs_to_values[apart]
    step = conditional_nuts([value], model, compile_kwargs={"mode": "FAST_COMPILE"})
    step.setup_chain(np.random.default_rng(1), 5, 5)
    start = model.initial_point()
    point, _ = step.step(start)
    assert point.keys() == start.keys()
    assert point[value.name] != start[value.name]
    np.testing.assert_array_equal(point["others"], start["others"])


def test_nuts_is_compiled_once_whatever_the_order_of_the_starts_arrays():
    """PyMC's start of an AR process is in Fortran's order, and numba would compile it again."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, shape=(2, 3))
    step = conditional_nuts([model.rvs_to_values[mu]], model)
    step.setup_chain(np.random.default_rng(1), 5, 5)
    start = model.initial_point()
    point, _ = step.step(start | {x.name: np.asfortranarray(start[x.name])})
    assert point[x.name].flags.c_contiguous
    assert len(step._logp_dlogp_func._pytensor_function.vm.jit_fn.signatures) == 1


def test_conditional_nuts_has_the_gradient_of_the_whole_log_density():
    """It leaves out the mechanism, which doesn't depend on p, and nothing else."""
    admissions = admissions_model()
    p = admissions.rvs_to_values[admissions["p"]]
    rng = np.random.default_rng(2)
    point = admissions.initial_point() | {"record": rng.integers(0, 4, 400)}
    quickly = {"mode": "FAST_COMPILE"}
    conditional = conditional_nuts([p], admissions, compile_kwargs=quickly)._logp_dlogp_func
    whole = admissions.logp_dlogp_function([p], ravel_inputs=True, initial_point=point, **quickly)
    for function in (conditional, whole):
        function.set_extra_values(point)
    differences = []
    for _ in range(3):
        q = rng.normal(size=3)
        (logp, gradient), (expected, expected_gradient) = (
            conditional._pytensor_function(q),
            (whole._pytensor_function(q)),
        )
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-10)
        differences.append(expected - logp)
    mechanism = admissions.compile_logp(vars=[admissions["privacy"]], mode="FAST_COMPILE")(point)
    np.testing.assert_allclose(differences, mechanism)


def test_an_option_that_nuts_has_not_is_refused():
    """PyMC's own, with a log-density of one's own, leaves it aside."""
    with pm.Model() as model:
        value = model.rvs_to_values[pm.Normal("mu")]
    with pytest.raises(
        ValueError, match=r"pm\.NUTS has no option 'target_acept', but .*target_accept"
    ):
        conditional_nuts([value], model, target_acept=0.9)
    conditional_nuts([value], model, max_treedepth=3, Emax=100, gamma=0.1, step_scale=0.2)


def test_steps_are_shorter_than_by_default_unless_told_otherwise():
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu"), 1, shape=4)
        pm.Potential("privacy", -pt.abs(x.sum()))
    quickly = {"mode": "FAST_COMPILE"}
    value = model.rvs_to_values[model["mu"]]
    for given, expected in (({}, TARGET_ACCEPT), ({"target_accept": 0.8}, 0.8)):
        step = conditional_nuts([value], model, compile_kwargs=quickly, **given)
        assert step.target_accept == expected
        # PyMC's own switch is an attribute that nothing reads.
        assert step._logp_dlogp_func._pytensor_function.trust_input


def test_absent_rows_have_no_say():
    with pm.Model() as model:
        n = pm.Poisson("n", 2)
        mu = pm.Normal("mu")
        x = pm.Normal("x", mu, 1, shape=4)
    quickly = {"mode": "FAST_COMPILE"}
    step = conditional_nuts(
        [model.rvs_to_values[mu]], model, present={x: n}, compile_kwargs=quickly
    )
    function = step._logp_dlogp_func
    values = np.array([1.0, 3.0, -5.0, 70.0])
    for k in (0, 1, 3, 4):
        function.set_extra_values(model.initial_point() | {"n": np.array(k), "x": values})
        _, gradient = function._pytensor_function(np.array([0.5]))
        np.testing.assert_allclose(gradient, (values[:k] - 0.5).sum() - 0.5)


def test_a_trajectory_that_leaves_all_numbers_diverges_and_numpy_says_nothing():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        pm.Potential("steep", pt.exp(8000 * mu) - 8000 * mu)
    quickly = {"mode": "FAST_COMPILE"}
    step = conditional_nuts([model.rvs_to_values[mu]], model, compile_kwargs=quickly)
    step.setup_chain(np.random.default_rng(1), tune=0, draws=20)
    point, diverged = {"mu": np.array(0.0)}, []
    for _ in range(20):
        point, [stats] = step.step(point)
        diverged.append(stats["diverging"])
    assert any(diverged)
    assert np.isfinite(point["mu"])


def test_a_chain_starts_as_pymc_starts_nuts_by_itself():
    """From a jittered point, once, in tuning; with variances adapted around the initial point."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 7, shape=3)
        sigma = pm.HalfNormal("sigma")
        pm.Potential("narrow", pt.switch(pt.abs(mu[0] - 7) < 1e-6, 0.0, -np.inf))
    quickly = {"mode": "FAST_COMPILE"}
    start = model.initial_point()
    for free, moves in (([sigma], True), ([mu], False)):  # nearly all of mu is impossible
        values = [model.rvs_to_values[x] for x in free]
        step = conditional_nuts(values, model, compile_kwargs=quickly)
        at = DictToArrayBijection.map({x.name: start[x.name] for x in values})
        np.testing.assert_array_equal(step.potential._initial_mean, at.data)
        jittered = step._jittered(at).data
        assert np.all(np.abs(jittered - at.data) <= 1)
        assert bool(np.any(jittered != at.data)) is moves
        began_at = []
        step._hamiltonian_step = _kept(step._hamiltonian_step, began_at)
        for tune, number in ((5, 2), (0, 1)):
            step.setup_chain(np.random.default_rng(1), tune, 5)
            for _ in range(number):
                step.step(start)
        assert [bool(np.any(q != at.data)) for q in began_at] == [moves, False, False]


def _kept(function, starts):
    def keeping(start, *arguments):
        starts.append(start.q.data.copy())
        return function(start, *arguments)

    return keeping


def step_size_without_a_gradient():
    """Of a probability that is clipped to 1: PyMC's gradient is nan there."""
    with pm.Model() as model:
        p = pm.Normal("p", 5, 0.1)
        x = pm.Bernoulli("x", pt.clip(p, 0, 1), shape=3)
        pm.Potential("privacy", -pt.abs(x.sum()))
    step = conditional_nuts(
        [model.rvs_to_values[p]], model, compile_kwargs={"mode": "FAST_COMPILE"}
    )
    step.setup_chain(np.random.default_rng(1), 100, 5)
    point = model.initial_point() | {"x": np.ones(3, dtype=int)}
    for _ in range(100):
        point, stats = step.step(point)
    assert stats[0]["diverging"]
    return step.step_size


def test_no_step_size_is_learned_where_there_is_no_gradient(monkeypatch):
    assert step_size_without_a_gradient() > 0.1
    monkeypatch.delattr(NUTS, "_hamiltonian_step")
    assert step_size_without_a_gradient() < 1e-3


class Trajectory(NamedTuple):
    """What `NUTS` sees of a trajectory between some states."""

    end: SimpleNamespace
    divergence_info: str | None


class MoreToCome(Exception):
    """Another trajectory begins at a state, with steps of some length."""


LAW = np.array([0.5, 0.2, 0.3])
# By length of steps: the probability to be at one state and to reach another without divergence.
FLOWS = {
    1.0: np.array([[0.1, 0.03, 0.05], [0.03, 0.06, 0.0], [0.05, 0.0, 0.2]]),
    0.1: np.array([[0.2, 0.05, 0.1], [0.05, 0.02, 0.08], [0.1, 0.08, 0.02]]),
    0.01: np.array([[0.1, 0.1, 0.2], [0.1, 0.03, 0.01], [0.2, 0.01, 0.04]]),
}


def state(k):
    return SimpleNamespace(q=k, p=None, q_grad=np.zeros(1))


def flows(monkeypatch):
    """Enumerate how often a step leads from one state to another, if trajectories do so by FLOWS.

    One that diverges has an end, too: that of the part before.
    """
    known = []

    def trajectory(self, start, p0, step_size):
        if not known:
            raise MoreToCome(start.q, step_size)
        end = known.pop(0)
        return Trajectory(state(end), None) if end >= 0 else Trajectory(state(0), "diverged")

    monkeypatch.setattr(pm.NUTS, "_hamiltonian_step", trajectory)
    monkeypatch.setattr("pymc_dapper.steps.conditional_nuts.STEPS", [*FLOWS])
    step = object.__new__(NUTS)
    step.tune = False
    step.potential = SimpleNamespace(random=lambda: None)
    step.integrator = SimpleNamespace(compute_state=lambda q, p: state(q))
    found, branches = np.zeros((3, 3)), [(start, [], LAW[start]) for start in range(3)]
    for start, ends, probability in branches:
        known[:] = ends
        try:
            end = step._hamiltonian_step(state(start), None, 1.0).end.q
            found[start, end] += probability
        except MoreToCome as begins:
            at, length = begins.args
            to = FLOWS[length][at] / LAW[at]
            for end, p in [*enumerate(to), (-1, 1 - to.sum())]:
                branches.append((start, [*ends, end], probability * p))
    np.testing.assert_allclose(found.sum(axis=1), LAW)
    return found


def looking_back_at(n):
    """Whether only so many of the longer steps have to diverge from the end, the longest last."""

    def step(self, start, p0, step_size):
        longer = []
        for length in FLOWS:
            made = self._trajectory(start, length)
            if not made.divergence_info:
                back = (self._trajectory(made.end, x) for x in longer[:n])
                return made if all(x.divergence_info for x in back) else made._replace(end=start)
            longer.insert(0, length)
        return made._replace(end=start)

    return step


def test_shorter_steps_where_longer_ones_diverge_leave_the_law_as_it_is(monkeypatch):
    found = flows(monkeypatch)
    np.testing.assert_allclose(found, found.T, rtol=1e-12)
    assert (found > FLOWS[1.0] + 1e-3).all()
    for n, is_exact in ((2, True), (1, False), (0, False)):
        monkeypatch.setattr(NUTS, "_hamiltonian_step", looking_back_at(n))
        found = flows(monkeypatch)
        assert bool(np.abs(found.sum(axis=0) - LAW).max() < 1e-3) is is_exact


def test_steps_are_not_shortened_in_tuning(monkeypatch):
    """The step size is still learned there, from trajectories that diverge."""
    with pm.Model() as model:
        pm.Normal("narrow", 0, 1e-4)
    step = conditional_nuts(
        model.value_vars, model, adapt_step_size=False, compile_kwargs={"mode": "FAST_COMPILE"}
    )
    step.setup_chain(np.random.default_rng(1), tune=5, draws=5)
    point, diverging = model.initial_point(), []
    for stop in (False, True):
        if stop:
            step.stop_tuning()
        for _ in range(3):
            point, [stats] = step.step(point)
            diverging.append(stats["diverging"])
    assert diverging == [True, True, True, False, False, False]
