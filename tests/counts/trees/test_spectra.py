"""Sums by transform against sums written out, and the bounds of their errors.

All is evaluated in Python: nothing is compiled.
"""

from functools import reduce

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.trees import spectra
from pymc_dapper.counts.trees.spectra import Tilted, padded, summed, tilted

sum_by_transform, others_by_transform = (
    in_python(f) for f in (spectra.sum_by_transform, spectra.others_by_transform)
)
ALWAYS = np.inf


def parts(n=7, widest=30):
    """Pmfs that have a peak at 0 and a long tail, one behind the other."""
    rng = np.random.default_rng(1)
    widths = rng.integers(widest // 2, widest, n)
    rows = [np.exp(-(((np.arange(w)) - rng.uniform(0, 9)) ** 2) / 80) for w in widths]
    for row in rows:
        row[0] += row.sum() * rng.uniform(0.2, 0.6)
    starts = np.cumsum([0, *widths[:-1]])
    return np.concatenate([row / row.sum() for row in rows]), starts, widths


def rows_of(values, starts, widths, tilt):
    """The parts, tilted."""
    rows = [
        values[s : s + w] * np.exp(tilt * np.arange(w)) for s, w in zip(starts, widths, strict=True)
    ]
    return [row / row.sum() for row in rows]


@pytest.mark.parametrize("first", [3, 30, 55, 90])
def test_sums_are_right_in_relative_terms_wherever_they_lie(first):
    """Far in the tail, too; where transforms that aren't tilted have no right digit."""
    values, starts, widths = parts()
    p = padded(values, starts, widths)
    how = tilted(p, sum(widths - 1), first, first + 3, ALWAYS)
    found, bound = summed(p, how)
    exact = reduce(np.convolve, rows_of(values, starts, widths, how.tilt))[first : first + 4]
    assert np.abs(found[first : first + 4] - exact).max() <= bound
    assert bound <= 1e-12 * exact.min()
    log_total = 0.0
    for start, width in zip(starts, widths, strict=True):
        log_total += np.log(values[start:][:width] @ np.exp(how.tilt * np.arange(width)))
    assert how.log_total == pytest.approx(log_total, rel=1e-12, abs=1e-12)


def test_a_sum_without_a_tilt_has_errors_in_its_tail_that_are_told():
    values, starts, widths = parts()
    found, bound = summed(padded(values, starts, widths), Tilted(256, 0.0, 0.0, 0.0))
    exact = reduce(np.convolve, rows_of(values, starts, widths, 0.0))
    assert np.abs(found[: len(exact)] - exact).max() <= bound
    assert bound > 1e-12 * exact[-1]


@pytest.mark.parametrize("tilt", [-0.1, 0.0, 0.05])
def test_what_is_wrapped_around_is_bounded(tilt):
    """And is there: a bound without it doesn't hold."""
    values, starts, widths = parts()
    p, first = padded(values, starts, widths), 20
    exact = reduce(np.convolve, rows_of(values, starts, widths, tilt))
    wrapped = spectra.beyond(p, tilt, first + 64, 10.0)
    assert exact[first + 64 :].sum() <= wrapped <= 1
    how = Tilted(64, tilt, 0.0, wrapped)
    found, bound = summed(p, how)
    apart = np.abs(found[first:] - exact[first:64]).max()
    assert apart <= bound
    assert apart > summed(p, how._replace(wrapped=0.0))[1]


def test_kernels_sum_by_transform_where_it_is_cheaper():
    values, starts, widths = parts()
    pmf, how, bound = sum_by_transform(values, starts, widths, 30, 33, ALWAYS)
    exact = reduce(np.convolve, rows_of(values, starts, widths, how.tilt))[30:34]
    assert np.abs(pmf - exact).max() <= bound <= 1e-12 * exact.min()
    pmf, how, _ = sum_by_transform(values, starts, widths, 30, 33, 1e6)
    assert pmf.size == how.size == 0


@pytest.mark.parametrize("n", [2, 7])
def test_all_others(n):
    """What is known of each part from the sum, beside the same written out; and its bound."""
    values, starts, widths = parts(n)
    known, first = np.array([0.2, 0.5, 0.3]), 21
    p = padded(values, starts, widths)
    how = tilted(p, sum(widths - 1), first, first + 2, ALWAYS)
    out = np.empty_like(values)
    bound = others_by_transform(values, starts, widths, how, known, first, out)
    assert bound < n * 1e-12
    for found, exact in messages(values, starts, widths, how.tilt, known, first, out):
        apart = found / found.sum() - exact / exact.sum()
        assert np.abs(apart).sum() <= 2 * bound
        assert np.abs(apart).sum() < 1e-12
        swapped = np.roll(found, 1) / found.sum() - exact / exact.sum()
        assert np.abs(swapped).sum() > 1e-3


def test_messages_without_a_tilt_have_errors_that_are_told():
    """From a sum in the tail: there are some, and less than the bound."""
    values, starts, widths = parts()
    known, first, out = np.ones(1), 110, np.empty_like(values)
    how = Tilted(256, 0.0, 0.0, 0.0)
    bound = others_by_transform(values, starts, widths, how, known, first, out)
    worst = 0.0
    for found, exact in messages(values, starts, widths, 0.0, known, first, out):
        apart = np.abs(found / found.sum() - exact / exact.sum()).sum()
        assert apart <= 2 * bound
        worst = max(worst, apart)
    assert worst > 1e-12


def messages(values, starts, widths, tilt, known, first, out):
    """Of each part, times its message by transform; and the same written out."""
    rows = rows_of(values, starts, widths, tilt)
    for k, (start, width) in enumerate(zip(starts, widths, strict=True)):
        others = reduce(np.convolve, [row for j, row in enumerate(rows) if j != k])
        others = np.concatenate([np.zeros(width), others, np.zeros(40)])
        q = [
            known @ others[first - x + width : first - x + width + len(known)] for x in range(width)
        ]
        yield values[start : start + width] * out[start : start + width], rows[k] * q
