"""The three tests: of one sampler, each gives its worst statistic and the limit it is held to."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from arviz_stats.base import array_stats
from scipy import stats

from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.statistical.exactness.sampler import stack
from tests.sweep_parts import parts_of

FALSE_ALARM = 1e-6
"""Probability that one statistic of an exact sampler is beyond its limit. A test looks at several
tens of statistics, and all tests together at less than three thousand: three in a thousand runs, at
most, would raise an alarm without a fault if seeds weren't fixed."""

Z_LIMIT = float(stats.norm.isf(FALSE_ALARM / 2))
ROUNDING = 1e-10


@dataclass(frozen=True)
class Verdict:
    """What a test found.

    Attributes
    ----------
    statistic : float
        The worst of the statistics.
    caught : bool
        Whether it is beyond its limit.
    where : str
        What it is a statistic of.
    size : int
        How many statistics were looked at.
    """

    statistic: float
    caught: bool
    where: str
    size: int


# Geweke's joint distribution test -----------------------------------------------------------------


def geweke(sampler, rng, iterations):
    """Compare successive with marginal draws of (parameters, records, release).

    The largest z of the means of parameters, records, what was released, their squares, and
    products of two of them; after the records' step as well as after all steps.
    """
    marginal = sampler.case.prior(rng, (iterations,))
    expected = _moments(sampler, sampler.to_values(marginal), sampler.case.release(rng, marginal))
    released, *points = map(stack, zip(*sampler.successive(rng, iterations), strict=True))
    z = {}
    for when, at in zip(("after the records' step", "after all steps"), points, strict=True):
        for name, x in _moments(sampler, at, released).items():
            error = np.hypot(_mcse(x), expected[name].std() / np.sqrt(iterations))
            z[f"{name}, {when}"] = float((x.mean() - expected[name].mean()) / error)
    where = max(z, key=lambda name: abs(z[name]))
    return Verdict(abs(z[where]), abs(z[where]) > Z_LIMIT, where, len(z))


def _moments(sampler, points, released):
    x = sampler.quantities(points)
    for name, value in released.items():
        entries = value.reshape(len(value), -1).T.astype(float)
        x |= {f"{name} {k}": entry for k, entry in enumerate(entries)}
    squares = {f"({name})^2": value**2 for name, value in x.items()}
    products = {f"({a}) * ({b})": x[a] * x[b] for a, b in combinations(x, 2)}
    return x | squares | products


def _mcse(x):
    return float(array_stats.mcse(x[None], chain_axis=0, draw_axis=1, method="mean"))


# Simulation-based calibration ---------------------------------------------------------------------

DRAWS = 15  # so that there are 16 ranks


def calibration(sampler, rng, replicates, thin):
    """Rank a draw from the prior among draws given what it led to; test ranks for uniformity.

    The smallest p-value of the chi-squared tests, of parameters and records, and of both times how
    far what was released lies from its mean: without that, draws from the prior would pass.
    """
    case = sampler.case
    centres = {
        name: value.mean() for name, value in case.release(rng, case.prior(rng, (1_000,))).items()
    }
    ranks = []
    for _ in range(replicates):
        true = case.prior(rng, ())
        released = case.release(rng, true)
        sampler.set_release(rng, released)
        point = sampler.to_values(case.prior(rng, ()))
        points = [sampler.to_values(true)]
        for k in range((DRAWS + 5) * thin):
            point = sampler.advance(point)
            if k % thin == 0 and k >= 5 * thin:
                points.append(point)
        surprise = sum(np.mean(value) - centres[name] for name, value in released.items())
        x = sampler.quantities(stack(points))
        x |= {f"({name}) * surprise": value * surprise for name, value in x.items()}
        ranks.append({name: _rank(rng, value) for name, value in x.items()})
    p = {
        name: stats.chisquare(np.bincount(rank, minlength=DRAWS + 1)).pvalue
        for name, rank in stack(ranks).items()
    }
    where = min(p, key=p.get)
    return Verdict(float(p[where]), bool(p[where] < FALSE_ALARM), where, len(p))


def _rank(rng, x):
    """Rank of the first among the others, ties broken at random."""
    ties = np.count_nonzero(x[1:] == x[0])
    return np.count_nonzero(x[1:] < x[0]) + int(rng.integers(ties + 1))


def thinning(sampler, rng, iterations=600):
    """Iterations from one draw to one that is all but independent: twice those per effective draw.

    The worst of all quantities, for three releases.
    """
    lowest = iterations
    for _ in range(3):
        drawn = sampler.case.prior(rng, ())
        sampler.set_release(rng, sampler.case.release(rng, drawn))
        points = [sampler.to_values(drawn)]
        for _ in range(iterations):
            points.append(sampler.advance(points[-1]))
        for x in sampler.quantities(stack(points)).values():
            if np.ptp(x) > 0:
                ess = array_stats.ess(x[None], chain_axis=0, draw_axis=1, method="mean")
                lowest = min(lowest, float(ess))
    return int(np.ceil(2 * iterations / lowest))


# Enumerated transition matrix ---------------------------------------------------------------------


def matrix(sampler):
    """Transition matrix of a sweep at two sets of parameters, through the compiled functions.

    The largest change that a sweep makes to the exact conditional posterior; or the second largest
    eigenvalue, if this is 1: then another distribution is invariant, too.
    """
    case, dapper = sampler.case, sampler.dapper
    sampler.set_release(np.random.default_rng(0), case.released)
    order = [case.records.index(name) for name in dapper._reading.record_names]
    values = np.array(case.finite.values)
    drawn = case.prior(np.random.default_rng(0), ())
    errors, seconds = [], []
    for parameters in case.finite.parameters:
        given = dapper._given(sampler.to_values(drawn | parameters))
        law = case.finite.law(parameters)
        exact = conditional_posterior(
            law, lambda state, at=parameters: _log_release(case, values, at, state)
        )
        coded = _Coded(dapper, values[:, order])
        proposed = coded.proposal_law(given)
        probabilities = proposed[np.arange(len(law)), exact.states].prod(axis=1)
        p = transition_matrix(coded.decide, exact.states, probabilities, *given)
        np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-9)
        errors.append(np.abs(exact.probabilities @ p - exact.probabilities).max())
        seconds.append(np.sort(np.abs(np.linalg.eigvals(p)))[-2])
    if max(seconds) > 1 - ROUNDING:
        return Verdict(float(max(seconds)), True, "second eigenvalue", len(errors))
    return Verdict(float(max(errors)), max(errors) > ROUNDING, "invariance", len(errors))


def _log_release(case, values, parameters, state):
    columns = values[list(state)].T
    return float(case.finite.log_release(parameters, *columns))


class _Coded:
    """A compiled sweep of records of few values, each written as the number of its value."""

    def __init__(self, step, values):
        self._step, self._values = step, values
        self._codes = {tuple(value): k for k, value in enumerate(values.tolist())}

    def _columns(self, state):
        return [np.ascontiguousarray(column) for column in self._values[state].T]

    def _code(self, columns):
        rows = zip(*(x.tolist() for x in columns), strict=True)
        return np.array([self._codes[row] for row in rows])

    def decide(self, state, proposal, log_uniforms, *given):
        *columns, accepted, logp = parts_of(self._step).decide(
            *self._columns(state), *self._columns(proposal), log_uniforms, *given
        )
        return self._code(columns), accepted, logp

    def proposal_law(self, given):
        """Probability of each value of each record: the compiled function of uniform noise, solved.

        Each record is proposed by uniform numbers of its own. Here all get the same ones, and what
        is proposed for each is looked at apart.
        """
        one_hot = np.eye(len(self._values))

        def proposed(*uniforms):
            return one_hot[self._code(parts_of(self._step).propose(_Constants(uniforms), *given))]

        return _integral(proposed, len(self._step._reading.randomness.noise))


class _Constants:
    """In place of a generator: arrays of one number each."""

    def __init__(self, uniforms):
        self._left = list(uniforms)

    def random(self, shape):
        return np.full(shape, self._left.pop(0))


def _integral(f, dims, cells=32):
    """Integral over the unit cube of a function that is constant but for jumps."""
    if dims == 0:
        return f()

    def inner(u):
        return _integral(lambda *rest: f(u, *rest), dims - 1, cells)

    total = 0.0
    points = np.linspace(0, 1 - 2.0**-53, cells)
    heights = [inner(u) for u in points]
    for left, right, at_left, at_right in zip(
        points, points[1:], heights, heights[1:], strict=False
    ):
        total = total + _between(inner, left, right, at_left, at_right)
    return total


def _between(f, left, right, at_left, at_right):
    """Integral between two points, jumps found by bisection."""
    if np.array_equal(at_left, at_right):
        return (right - left) * at_left
    middle = (left + right) / 2
    if not left < middle < right:
        return (right - left) * at_left
    at_middle = f(middle)
    return _between(f, left, middle, at_left, at_middle) + _between(
        f, middle, right, at_middle, at_right
    )
