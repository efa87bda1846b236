"""Counts keep their place in the step of the distribution function that they lie in."""

import sys

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.interweaving.compiled import counts
from pymc_dapper.interweaving.kernels.cdf_of_counts import BINOMIAL, NEGATIVE_BINOMIAL, POISSON
from pymc_dapper.interweaving.reading.maps import record_map
from tests.interweaving.moving import assert_steps_are_kept, move


def negative_binomial(n, p):
    return stats.nbinom(n, p)


COUNTS = {
    "Poisson": (pm.Poisson.dist, stats.poisson, (2.5,), (4.1,)),
    "Poisson, large": (pm.Poisson.dist, stats.poisson, (900.0,), (1300.0,)),
    "Binomial": (pm.Binomial.dist, stats.binom, (12.0, 0.3), (12.0, 0.6)),
    "NegativeBinomial": (
        lambda n, p, **k: pm.NegativeBinomial.dist(n=n, p=p, **k),
        negative_binomial,
        (2.5, 0.3),
        (1.7, 0.6),
    ),
}


@pytest.mark.parametrize("family", COUNTS)
def test_counts_move_to_the_step_that_a_point_in_theirs_lies_in(family):
    assert_steps_are_kept(*COUNTS[family])


@pytest.mark.parametrize("family", COUNTS)
def test_kernels_are_compiled_for_double_precision_only(family):
    """Whole numbers and single precision would each take machine code of their own."""
    make, _, at, _ = COUNTS[family]
    node = make(*(int(x) if x > 2 else x for x in at)).owner
    parameters = node.op.dist_params(node)
    of_node = record_map(node.op, node, [True] * len(parameters))
    noise = of_node.noise(pt.lscalar("x"), parameters, pt.dscalar("v"))
    records = of_node.records(pt.dscalar("u"), parameters)
    for result in (noise, records):
        assert {x.type.dtype for x in result.owner.inputs} == {"float64"}


@pytest.mark.parametrize(
    ("law", "expected"),
    [((POISSON, 900.0, 0.0), stats.poisson(900)), ((BINOMIAL, 1e6, 0.3), stats.binom(10**6, 0.3))],
)
@pytest.mark.parametrize("many", [False, True], ids=["in Python", "compiled"])
def test_a_kernel_is_evaluated_in_python_until_many_counts_were(law, expected, many, monkeypatch):
    calls = []

    def counted(kernel):
        calls.append(kernel)
        return kept_on_disk(kernel)

    monkeypatch.setattr(counts, "kept_on_disk", counted)
    monkeypatch.setattr(counts, "COMPILED_AFTER", 2)
    monkeypatch.setattr(counts.CountNoise, "evaluated", 2 if many else 0)
    k = np.floor(expected.mean())
    found = counts.CountNoise().impl(k, 0.5, *law)
    assert found == pytest.approx((expected.cdf(k - 1) + expected.cdf(k)) / 2, rel=1e-10)
    assert len(calls) == many
    assert counts.CountNoise.evaluated == (2 if many else 1)


def test_python_finds_what_the_compiled_kernel_finds():
    """Where Python sums up, where only compiled code does, and where neither does."""
    compiled = counts.functions()
    for law in [(POISSON, 2.0, 0.0), (POISSON, 0.0, 0.0), (POISSON, 300.0, 0.0)] + [
        (family, n, p)
        for family in (BINOMIAL, NEGATIVE_BINOMIAL)
        for n, p in [(7.0, 0.2), (400.0, 0.6), (3e4, 0.4)]
    ]:
        for uniform in np.random.default_rng(0).random(20):
            count = compiled.quantile(uniform, *law)
            assert counts.CountQuantile().impl(uniform, *law) == count
            noise = compiled.noise(count, uniform, *law)
            assert counts.CountNoise().impl(count, uniform, *law) == pytest.approx(noise, abs=1e-12)


def test_python_takes_no_longer_with_large_counts():
    """A check of many records would: each step of a sum takes Python longer than SciPy's cdf."""
    quantile, steps = counts.functions_in_python().quantile, 0

    def line(frame, event, _):
        nonlocal steps
        steps += event == "line"
        return line

    sys.settrace(line)
    try:
        quantile(0.7, POISSON, 1_000.0, 0.0)
    finally:
        sys.settrace(None)
    assert 10 < steps < 500


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.3, 0.7], [0.6, 0.4]),
        ([0.1, 0.3, 0.2, 0.15, 0.25], [0.3, 0.1, 0.1, 0.4, 0.1]),
        ([0.5, 0.5, 0, 0], [0.2, 0.8, 0, 0]),
    ],
)
def test_multinomial_counts_move_to_those_of_other_probabilities(p, q):
    rng = np.random.default_rng(1)
    n, size = 7, 20_000
    x, uniforms = rng.multinomial(n, p, size), rng.random((size, len(p)))
    moved, back = move(
        pm.Multinomial.dist, (n, np.array(p)), (n, np.array(q)), x, uniforms, size=size
    )
    np.testing.assert_array_equal(back, x)
    np.testing.assert_array_equal(moved.sum(axis=1), n)
    law = stats.multinomial(n, q)
    np.testing.assert_allclose(moved.mean(axis=0), law.mean(), atol=5 * np.sqrt(n / 4 / size))
    np.testing.assert_allclose(np.cov(moved.T), law.cov(), atol=5 * n / 2 / np.sqrt(size))
    assert np.corrcoef(x[:, 0], moved[:, 0])[0, 1] > 0.5
