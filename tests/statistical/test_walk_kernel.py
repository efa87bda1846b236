"""Records that walk leave the posterior as it is: transition matrices, and balance of densities."""

from functools import cache, reduce
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper import DapperStep
from pymc_dapper.graphs import local_draws
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.local import read_local
from pymc_dapper.records.walks import INDEPENDENT
from tests import broken
from tests.broken import edited
from tests.enumerate_sweep import acceptance_probability, transition_matrix
from tests.evaluated_in_python import evaluated_in_python
from tests.sweep_parts import PythonFunction, broken_parts, take_apart

MEAN, SD = 0.3, 1.2
RELEASED, SCALE = np.array([0.7, 1.5]), np.array([0.6, 0.9])
REACH = 0.5


def shrinking(reach):
    """Broken: noise that walks so loses its spread, and the way back isn't as likely."""
    return 1 - reach


RULE = local_draws._back


def of_the_same_spread(present, draw, walk):
    """Broken: without the Jacobian of a spread that changes with another record."""
    present_parameters = [walk.present_parameters[0], walk.parameters[1]]
    return RULE(present, draw, walk._replace(present_parameters=present_parameters))


def model_of(n):
    """Normal records, of whose sum and sum of squares a noisy value is known."""
    with pm.Model() as model:
        x = pm.Normal("x", MEAN, SD, shape=n)
        sums = pt.stack([x.sum(), (x**2).sum()])
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, SCALE), RELEASED))
    return model


def local_reading(model):
    return read_local(read_model(model, model.value_vars, model.initial_point()))


def log_mechanism(records):
    sums = np.stack([records.sum(axis=-1), (records**2).sum(axis=-1)], axis=-1)
    return -(np.abs(sums - RELEASED) / SCALE).sum(axis=-1)


def posterior(states):
    law = np.exp(stats.norm.logpdf(states, MEAN, SD).sum(axis=1) + log_mechanism(states))
    return law / law.sum()


def walk_densities(reading, grid, reach):
    """Density of the proposal from each place of a grid to each, as the reading's graph makes it.

    It is normal, since a proposal is linear in its noise.
    """
    *_, shared = reading.data
    shared.set_value(reach)
    n = len(grid)
    propose = compile_in_python(
        reading.model, [*reading.randomness.inputs, *reading.records], reading.proposals
    )
    at = {
        noise: [propose(np.full(1, noise), np.full(1, x))[0][0] for x in grid] for noise in (0, 1)
    }
    centre, width = np.array(at[0]), np.array(at[1]) - np.array(at[0])
    assert (width > 0).all()
    return stats.norm.pdf(np.tile(grid, (n, 1)), centre[:, None], width[:, None])


# One record on a grid: the transition density, by quadrature.

GRID = np.linspace(MEAN - 6 * SD, MEAN + 6 * SD, 37)
STATES = GRID[:, None]
INSIDE = np.abs(GRID - MEAN) < 2 * SD
QUADRATURE = 1e-6
"""Error: what a narrow walk leaves between the places of the grid, and a wide one beyond them."""


@cache
def accepted():
    """The sweep's acceptance probability from each place of the grid to each."""
    parts = take_apart(local_reading(model_of(1)), function=PythonFunction)
    log_density, given = log_mechanism(STATES), [np.array(REACH)]
    found = np.ones((len(GRID), len(GRID)))
    for i, j in product(range(len(GRID)), repeat=2):
        guess = log_density[j] - log_density[i]
        found[i, j] = acceptance_probability(parts.decide, STATES[i], STATES[j], guess, *given)
    return found


def kernel(reach):
    """Transition matrix of a walk; where proposals lead off the grid, it stays."""
    proposed = walk_densities(local_reading(model_of(1)), GRID, reach) * (GRID[1] - GRID[0])
    matrix = proposed * accepted()
    return matrix + np.diag(1 - matrix.sum(axis=1)), proposed


def invariance_error(matrix, states=STATES):
    law = posterior(states)
    return np.abs(law @ matrix - law).max()


@pytest.mark.parametrize("reach", [0.35, 0.7, 1.0])
def test_the_transition_density_integrates_to_one_and_leaves_the_posterior(reach):
    matrix, proposed = kernel(reach)
    np.testing.assert_allclose(proposed[INSIDE].sum(axis=1), 1.0, atol=QUADRATURE)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert (matrix >= -1e-12).all()
    assert invariance_error(matrix) < 1e-12


def test_a_walk_that_is_not_reversible_is_detected(monkeypatch):
    monkeypatch.setattr(local_draws, "_keep", shrinking)
    assert invariance_error(kernel(REACH)[0]) > 1e-3


# When records are drawn anew.


def iteration_kernels():
    """Transition matrices of four iterations: which sweeps each makes in a state, the step says."""
    walk, anew = kernel(REACH)[0], kernel(1.0)[0]
    with evaluated_in_python(), model_of(1) as model:
        step = DapperStep([model["x"]])
    step.setup_chain(np.random.default_rng(1), tune=0, draws=10)
    step.walks.reach, step.walks.number = REACH, 2
    made = []

    def update(records, *_, walking=None):
        made.append(anew if walking is None else walk)
        return (*records, np.array([0.5, 0.0]))

    step._update, step._walking_sweep = update, object
    for done in range(1, INDEPENDENT + 1):
        rows = []
        for k, state in enumerate(STATES):
            step.sweeps_done = INDEPENDENT + done
            step._as_written = step._long_memory = None
            made.clear()
            step.step({"x": state})
            rows.append(reduce(np.matmul, made)[k])
        yield np.array(rows), [sweep is anew for sweep in made]


def test_each_iteration_leaves_the_posterior_whether_or_not_records_are_drawn_anew_first():
    drawn_anew = []
    for matrix, sweeps in iteration_kernels():
        assert invariance_error(matrix) < 1e-12
        drawn_anew.append(sweeps)
    assert drawn_anew == [[False] * 2] * 3 + [[True, False, False]]


def test_an_iteration_that_chooses_by_the_state_is_detected():
    every_fourth = "if self.walks.number == 0 or self.sweeps_done % INDEPENDENT == 0:"
    with edited(DapperStep, "_sweeps", {every_fourth: "if records[0][0] <= 0.5:"}):
        assert max(invariance_error(matrix) for matrix, _ in iteration_kernels()) > 1e-3


# Two records, tied by their sums, that a sweep decides on one after the other.

FEW = MEAN + SD * np.array([-1.1, 0.1, 1.2])
PAIRS = np.array(list(product(FEW, repeat=2)))


def pair_kernel(parts):
    """Of records that walk from each of a few places to each, or else stay."""
    densities = walk_densities(local_reading(model_of(1)), FEW, REACH)
    one = 0.9 * densities / densities.sum(axis=1).max()
    one += np.diag(1 - one.sum(axis=1))
    return transition_matrix(parts.decide, PAIRS, np.kron(one, one), np.array(REACH))


def test_two_records_that_walk_leave_the_posterior():
    matrix = pair_kernel(take_apart(local_reading(model_of(2)), function=PythonFunction))
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    assert invariance_error(matrix, PAIRS) < 1e-10


def test_two_records_of_a_broken_sweep_do_not():
    parts = broken_parts(local_reading(model_of(2)), broken.STALE_SUMS)
    assert invariance_error(pair_kernel(parts), PAIRS) > 1e-4


# Records of all families that walk, whose parameters depend on each other.

COVARIANCE = np.array([[1.0, 0.6], [0.6, 2.0]])


def all_families():
    with pm.Model() as model:
        a = pm.Normal("a", 0.5, 1.3, shape=1)
        b = pm.Normal("b", a / 2, pt.exp(a / 2), shape=1)
        wage = pm.LogNormal("wage", a / 4, 0.3 + pt.exp(b / 5), shape=1)
        pair = pm.MvNormal("pair", a[:, None] * np.array([1.0, -1.0]), COVARIANCE, shape=(1, 2))
        sums = [pt.clip(a, -2, 2), a * b, pt.log(wage), pair[:, 0] * pair[:, 1]]
        sums = pt.stack([x.sum() for x in sums])
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, 1.5), np.array([0.3, 1, 0, 1])))
    return model


class Densities:
    """Of the records, and of the proposals that their walk makes."""

    def __init__(self, model, reach):
        reading = local_reading(model)
        *_, shared = reading.data
        shared.set_value(reach)
        inputs = [*reading.randomness.inputs, *reading.records]
        self._shapes = [x.shape for x in reading.randomness.noise]
        self._propose = compile_in_python(model, inputs, reading.proposals)
        [mechanism] = reading.factors
        terms = [pt.add(*reading.log_priors), mechanism.as_written]
        self._logp = compile_in_python(model, reading.records, terms)
        self._decide, self._reach = take_apart(reading, function=PythonFunction).decide, reach
        self._record_shapes = [x.type.shape for x in reading.records]

    def records(self, flat):
        return _cut(flat, self._record_shapes)

    def propose(self, flat, noise):
        made = self._propose(*_cut(noise, self._shapes), *self.records(flat))
        return np.concatenate([np.ravel(x) for x in made])

    def noise_to(self, flat, other):
        """What noise leads from one state to another, and the Jacobian's log.

        Each number that is proposed is linear in noise of its own, given what comes before.
        """
        noise, log_jacobian, units = np.zeros(len(flat)), 0.0, dict(enumerate(np.eye(len(flat))))
        for k in range(len(flat)):
            at_zero = self.propose(flat, noise)[k]
            slopes = {j: self.propose(flat, noise + x)[k] - at_zero for j, x in units.items()}
            [own] = (j for j, slope in slopes.items() if slope != 0)
            noise[own] = (other[k] - at_zero) / slopes[own]
            log_jacobian += np.log(np.abs(slopes[own]))
            del units[own]
        np.testing.assert_allclose(self.propose(flat, noise), other, rtol=1e-9, atol=1e-9)
        return noise, log_jacobian

    def log_transition(self, flat, other):
        """Log-density of the posterior at a state, and of the move from it to another state."""
        prior, mechanism = self._logp(*self.records(flat))
        _, at_other = self._logp(*self.records(other))
        guess = float(at_other - mechanism)

        def decide(state, proposal, log_uniforms):
            *_, accepted, logp = self._decide(
                *self.records(flat), *self.records(other), log_uniforms, np.array(self._reach)
            )
            return None, accepted, logp

        share = acceptance_probability(decide, np.zeros(1), np.ones(1), guess)
        noise, log_jacobian = self.noise_to(flat, other)
        proposal = stats.norm.logpdf(noise).sum() - log_jacobian
        return prior + mechanism + proposal + np.log(share)


def _cut(flat, shapes):
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])
    parts = np.split(flat, ends[:-1])
    return [x.reshape(shape) for x, shape in zip(parts, shapes, strict=True)]


def imbalance(reach, pairs=5):
    """Largest difference of flows from one state to another and back."""
    found, rng = Densities(all_families(), reach), np.random.default_rng(1)
    differences = []
    for _ in range(pairs):
        here = rng.normal(0, 0.8, 5)
        there = found.propose(here, rng.normal(size=5))
        differences.append(found.log_transition(here, there) - found.log_transition(there, here))
    return np.abs(differences).max()


@pytest.mark.parametrize("reach", [pytest.param(0.2, marks=pytest.mark.long), 0.8])
def test_as_much_flows_from_one_state_to_another_as_back(reach):
    assert imbalance(reach) < 1e-8


@pytest.mark.parametrize(("rule", "fault"), [("_keep", shrinking), ("_back", of_the_same_spread)])
def test_a_walk_with_a_fault_is_out_of_balance(rule, fault, monkeypatch):
    monkeypatch.setattr(local_draws, rule, fault)
    assert imbalance(0.8) > 0.1
