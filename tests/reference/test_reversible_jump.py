"""Reversible jumps against enumeration, with faults that it must find; compiled as in Python."""

import doctest
import importlib
import inspect
import math

import numpy as np
import pytest
from scipy.special import betaln, gammaln, logsumexp

from pymc_dapper.reference import reversible_jump
from tests.long_cases import one_in_three

MODULE = importlib.import_module("pymc_dapper.reference.reversible_jump")

# Records are 0 or 1; their number and their sum are released with Laplace noise. -----------------

LOW, HIGH = 1, 7
NOISY_N, NOISY_SUM, SCALE = 2.2, 1.9, 1.5
OPTIONS = {"width": 1, "sums": 1, "start": [0.5], "n_start": 4, "n_range": (LOW, HIGH)}


def draw_record(rng, p, record):
    record[0] = 1.0 if rng.random() < p[0] else 0.0


def contribution(record, sums):
    sums[0] = record[0]


def log_mechanism(sums, n):
    return -abs(NOISY_N - n) / SCALE - abs(NOISY_SUM - sums[0]) / SCALE


def log_size(n):
    return -0.3 * n


def draw_parameters(rng, records, p):
    """Metropolis in p, with proposals from its prior, which is uniform."""
    ones = 0
    for record in records:
        ones += record[0]
    zeros = len(records) - ones
    for _ in range(3):
        q = 1 - rng.random()
        ratio = ones * math.log(q / p[0])
        if zeros > 0:
            ratio += zeros * math.log((1 - q) / (1 - p[0])) if q < 1 else -math.inf
        if math.log(1 - rng.random()) < ratio:
            p[0] = q


FUNCTIONS = (draw_record, contribution, log_mechanism, log_size, draw_parameters)


def enumerated():
    """Posterior of (n, k), k the sum, p marginalised: sums in closed form."""
    n, k = np.array([(n, k) for n in range(LOW, HIGH + 1) for k in range(n + 1)]).T
    choose = gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
    logs = log_size(n) + choose + betaln(1 + k, 1 + n - k)
    logs = logs + log_mechanism(k[None], n)
    weights = np.exp(logs - logsumexp(logs))
    size = np.bincount(n, weights, minlength=HIGH + 1)
    p = (weights @ ((1 + k) / (2 + n)), weights @ ((1 + k) * (2 + k) / ((2 + n) * (3 + n))))
    return size, p


def distances(draws):
    """How far the law of n and two moments of p are off, in Monte Carlo standard errors."""
    size, p = enumerated()
    found = {f"n = {n}": (draws.n == n, size[n]) for n in range(LOW, HIGH + 1)}
    found |= {f"p^{k}": (draws.parameters[:, 0] ** k, p[k - 1]) for k in (1, 2)}
    z = {}
    for name, (values, exact) in found.items():
        means = values.reshape(-1, 200).mean(axis=1)  # long enough to be independent
        z[name] = (means.mean() - exact) / (means.std() / math.sqrt(len(means)))
    return z


def run(draws, **options):
    return reversible_jump(
        *FUNCTIONS, **OPTIONS, draws=draws, tune=200, compiled=False, random_seed=3, **options
    )


def test_draws_are_from_the_enumerated_posterior():
    z = distances(run(16_000, jumps=4))
    assert max(map(abs, z.values())) < 4, z


FAULTS = {
    "n's prior dropped": ("+ log_size(m) - log_size(n)", ""),
    "ends of the range forgotten": ("if m in (low, high):", "if False:"),
    "the sum of a deleted record kept": ("proposed[:] = total - added[i]", "proposed[:] = total"),
    "the mechanism at the old n": ("log_mechanism(proposed, m)", "log_mechanism(proposed, n)"),
    "the density of the old n kept": ("n, log_density = m, proposed_density", "n = m"),
}


@pytest.mark.parametrize("fault", one_in_three(FAULTS))
def test_a_fault_in_the_jumps_is_found(fault, monkeypatch):
    line, broken = FAULTS[fault]
    source = inspect.getsource(MODULE._cycles)
    assert source.count(line) == 1
    namespace = vars(MODULE).copy()
    exec(source.replace(line, broken), namespace)
    monkeypatch.setattr(MODULE, "_cycles", namespace["_cycles"])
    z = distances(run(8_000, jumps=4))
    assert max(map(abs, z.values())) > 6, z


@pytest.mark.long
def test_compiled_draws_are_those_of_python():
    options = OPTIONS | {"draws": 200, "tune": 10, "jumps": 3, "random_seed": 5}
    compiled = reversible_jump(*FUNCTIONS, **options)
    python = reversible_jump(*FUNCTIONS, **options, compiled=False)
    np.testing.assert_array_equal(compiled.n, python.n)
    np.testing.assert_allclose(compiled.parameters, python.parameters, rtol=1e-14)
    assert compiled.record_acceptance == python.record_acceptance
    assert compiled.jump_acceptance == python.jump_acceptance
    assert 0 < compiled.jump_acceptance < 1
    assert len(np.unique(compiled.n)) > 3


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"width": 0}, ValueError, "width must be"),
        ({"sums": 1.5}, TypeError, "sums must be"),
        ({"start": [[0.5]]}, ValueError, r"start must be a vector, got shape \(1, 1\)"),
        ({"n_range": (5, 5)}, ValueError, "the most of n_range must be"),
        ({"n_range": (-1, 5)}, ValueError, "the least of n_range must be"),
        ({"n_start": 8}, ValueError, "n_start must be"),
        ({"draws": 0}, ValueError, "draws must be"),
        ({"jumps": -1}, ValueError, "jumps must be"),
        ({"compiled": 1}, TypeError, "compiled must be"),
    ],
)
def test_nonsense_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        reversible_jump(*FUNCTIONS, **OPTIONS | options)


def test_the_example_in_the_docstring_is_right():
    found = doctest.testmod(MODULE)
    assert found.attempted > 1
    assert found.failed == 0
