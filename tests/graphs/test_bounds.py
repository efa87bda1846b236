"""Bounds of expressions that hold for all inputs."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.bounds import ANY_NUMBER, Bounds, bounds_of

EXPRESSIONS = {
    "sum": lambda x, k: x - 2 * k + 1,
    "product": lambda x, k: x * k * -0.3,
    "product of signs": lambda x, k: (k - 1.5) * (k - 2),
    "square": lambda x, k: x**2 * (k - 4),
    "exponential": lambda x, k: pt.exp(-(x**2)) + 1 / (1 + k),
    "logarithm": lambda x, k: pt.log(1 + pt.exp(k)) / 3,
    "magnitude": lambda x, k: pt.abs(k - 2) - pt.sqrt(k),
    "clip": lambda x, k: pt.clip(x, -1, 2) * k,
    "clip the wrong way round": lambda x, k: pt.clip(x, 2, -1),
    "extremes": lambda x, k: pt.maximum(x, k) + pt.minimum(x, 1.0),
    "switch": lambda x, k: pt.switch(x > 0, k, -k),
    "sigmoid": lambda x, k: pt.sigmoid(x) + pt.tanh(k),
    "error functions": lambda x, k: pt.erf(x) - pt.erfc(k - 1) / 2,
    "table": lambda x, k: pt.constant([3.0, -1.0, 2.0, 0.5])[k.astype("int64")] / 2,
    "columns": lambda x, k: pt.stack([k, -k], axis=1).sum(axis=1),
    "conditions": lambda x, k: (k >= 0) & ((k > 3) | (x < 10)) & (k <= 3),
    "always": lambda x, k: k + 1 > 0,
    "never": lambda x, k: k > 3,
    "quotient": lambda x, k: (4 * k.astype("int64") - 7) // 3,
    "remainder": lambda x, k: (k.astype("int64") - 2) % 3,
    "rounded": lambda x, k: (k / 2).astype("int64"),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_values_lie_within_their_bounds(name):
    rng = np.random.default_rng(8)
    x, k = pt.vector("x"), pt.vector("k")
    graph = EXPRESSIONS[name](x, k)
    bounds = bounds_of(graph, {x: ANY_NUMBER, k: Bounds(0.0, 3.0)})
    values = graph.eval(
        {x: 3 * rng.standard_normal(1000), k: rng.integers(0, 4, 1000).astype(float)},
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    if name == "clip the wrong way round":
        assert bounds is None
        return
    assert bounds is not None
    # NumPy's logarithm may have another last digit than Python's.
    low, high = np.nextafter(np.float64([values.min(), values.max()]), [np.inf, -np.inf])
    assert bounds.low <= low
    assert high <= bounds.high


def test_whole_quotients_and_remainders_end_where_values_do():
    k = pt.lvector("k")
    known = {k: Bounds(0.0, 5.0)}
    assert bounds_of(k // 2, known)[:2] == (0, 2)
    assert bounds_of(k % 2, known)[:2] == (0, 1)
    for decimals in (k.astype("float64") // 0.1, k.astype("float64") % 0.1):
        assert bounds_of(decimals, known) is None
    assert bounds_of(k // 2, {k: ANY_NUMBER})[:2] == (-np.inf, np.inf)
    assert bounds_of(k % -2, known) is bounds_of(k // (k - 1), known) is None


@pytest.mark.parametrize(
    "of", [pt.log, pt.sqrt, lambda x: 1 / x, lambda x: pt.exp(x) - pt.exp(x**2), lambda x: x**0.5]
)
def test_what_may_be_no_number_has_no_bounds(of):
    x = pt.vector("x")
    assert bounds_of(of(x), {x: ANY_NUMBER}) is None
    assert not bounds_of(pt.exp(x), {x: ANY_NUMBER}).finite
