"""Windows and tables of log-weights, by the kernels' own source, of functions of one's own."""

import numpy as np
import pytest
from scipy import special, stats

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.trees import tables as module
from pymc_dapper.counts.trees.tables import Terms

FIND, TABULATE = map(in_python, (module.find_window, module.tabulate))
LAWS = {
    "normal": (stats.norm(30, 4).logpdf, 25),
    "far from the peak": (stats.norm(3e6, 40).logpdf, 10),
    "at the edge": (stats.poisson(0.2).logpmf, 1),
    "heavy tail": (stats.t(5, 50, 3).logpdf, 47),
    "two peaks": (lambda k: np.logaddexp(stats.norm.logpdf(k, 5), stats.norm.logpdf(k, 40, 2)), 5),
    "gap": (lambda k: np.where((k < 9) | (k > 20), stats.poisson.logpmf(k, 12), -np.inf), 3),
    "bounded": (stats.binom(9, 0.3).logpmf, 2),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("drop", [30.0, 60.0])
def test_a_window_has_all_but_a_bounded_rest(law, drop):
    of, near = LAWS[law]
    if law == "heavy tail":
        drop /= 2  # its window is as wide as that allows
    base = float(of(near))
    window = FIND(lambda c, i, k: float(of(k)), None, 0, near, base, 0.0, 0, 2**53, drop)
    inside = np.arange(window.lowest, window.highest + 1)
    logs = np.asarray(of(inside)) - base
    assert window.top == pytest.approx(logs.max())
    for edge in (window.lowest - 1, window.highest + 1):
        assert edge < 0 or not of(edge) - base >= window.top - drop
    far = np.concatenate([np.arange(window.lowest), window.highest + 1 + np.arange(200_000)])
    rest = special.logsumexp(np.append(np.asarray(of(far), dtype=float) - base, -1e9))
    assert rest <= window.beyond + 1e-9 or rest < -1e3


def terms(exact=(0, 0, 0)):
    """Two leaves and their sum, each with a term of its own."""
    left, right = np.array([-1, -1, 0]), np.array([-1, -1, 1])
    return Terms(left, right, np.array(exact), np.arange(4))


def tabulated(of, near, drop=40.0, tilted=True, **options):
    def log_weight(context, i, count):
        return float(of[i](count))

    return TABULATE(log_weight, np.zeros(3), terms(**options), np.array(near), drop, tilted)


def table(found, i):
    values = found.values[found.starts[i] : found.starts[i + 1]]
    return found.lowest[i] + np.arange(values.size), values


@pytest.mark.parametrize(
    "above", [stats.norm(90, 2.0).logpdf, lambda s: 0.7 * s, stats.t(4, 70, 3.0).logpdf]
)
def test_tilts_cancel_in_each_table_of_counts(above):
    parts = [stats.norm(40, 5.0).logpdf, stats.poisson(20.0).logpmf]
    near = (25, 25, 50)
    found = tabulated([*parts, above], near)
    if found.fault:  # a heavy tail, which grows if it is tilted
        assert (found.fault, found.at) == (module.GROWS, 2)
        found = tabulated([*parts, above], near, tilted=False)
    assert found.fault == 0
    (x, a), (y, b), (s, c) = (table(found, i) for i in range(3))
    of = [*parts, above]
    middle = [int(x[a.argmax()]), int(y[b.argmax()])]
    for change in [(0, 0), (3, -5), (-4, 2)]:
        counts = np.add(middle, change)
        sums = (*counts, sum(counts))
        expected = sum(float(of[i](sums[i]) - of[i](near[i])) for i in range(3))
        got = a[counts[0] - x[0]] + b[counts[1] - y[0]] + c[sum(counts) - s[0]]
        assert got + found.tops.sum() == pytest.approx(expected, abs=1e-8)


def test_parts_of_a_known_total_are_likely_where_they_add_up_to_it():
    parts = [lambda k: k * np.log(0.3) - special.gammaln(k + 1.0)] * 2
    found = tabulated([*parts, lambda s: 0.0 * s], (600_000, 400_000, 10**6), exact=(0, 0, 1))
    assert found.highest.tolist() == [10**6] * 3
    for i in range(2):
        x, values = table(found, i)
        assert abs(x[values.argmax()] - 500_000) < 10
    assert table(found, 2)[0].tolist() == [10**6]


@pytest.mark.parametrize("released", [-40, 90])
def test_sums_that_are_released_where_they_cannot_be(released):
    """Parts have upper ends, so terms of other sums don't matter."""
    parts = [stats.binom(6, 0.4).logpmf, stats.randint(3, 9).logpmf]
    found = tabulated([*parts, stats.norm(released, 1.0).logpdf], (3, 5, 8), tilted=False)
    assert found.fault == 0
    sums, values = table(found, 2)
    assert (sums[values.argmax()], values.max()) == ((3 if released < 0 else 14), 0.0)
    # Of which more may be possible than their windows have, it does.
    parts = [stats.norm(5, 0.1).logpdf] * 2
    found = tabulated([*parts, stats.norm(released, 0.1).logpdf], (5, 5, 10), tilted=False)
    assert found[-2:] == (module.GROWS, 2)


def test_what_cannot_be_tabulated_is_told():
    flat = [lambda k: 0.0 * k] * 3
    parts = [stats.poisson(3.0).logpmf] * 2
    assert tabulated([*parts, lambda s: -np.inf], (1, 1, 2))[-2:] == (module.IMPOSSIBLE, 2)
    assert tabulated(flat, (1, 1, 2))[-2:] == (module.TOO_WIDE, 0)
    rare = [stats.poisson(0.2).logpmf] * 2
    grows = tabulated([*rare, lambda s: special.gammaln(s + 1.0)], (1, 1, 2))
    assert grows[-2:] == (module.GROWS, 2)
