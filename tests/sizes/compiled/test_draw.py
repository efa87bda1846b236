"""The compiled draw of a number of records: its parts, evaluated in Python and compiled."""

from dataclasses import replace

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.sizes.compiled.draw import drawn_number, shuffled
from pymc_dapper.sizes.reading.self_check import check_size
from pymc_dapper.sizes.step import SizeStep
from tests.evaluated_in_python import evaluated_in_python
from tests.sizes.unknown_numbers import bernoulli

LAST = 4


def graphs():
    """Rows of two kinds, the number of present ones, log-weights and a uniform variate."""
    rows = pt.tensor("rows", dtype="float64", shape=(9, 2))
    marks = pt.tensor("marks", dtype="int8", shape=(9,))
    n, log_weights, u = pt.lscalar("n"), pt.vector("log_weights", shape=(6,)), pt.dscalar("u")
    outputs = [shuffled(rows, n, u), shuffled(marks, n, u), *drawn_number(log_weights, u, LAST)]
    return [rows, marks, n, log_weights, u], outputs


ROWS, MARKS = np.random.default_rng(1).normal(size=(9, 2)), np.arange(9, dtype="int8")
WEIGHTS = np.array([-np.inf, 0.0, 1.0, np.nan, -1.0, -np.inf]) + 1000


@pytest.fixture(scope="module")
def function():
    return pytensor.function(*graphs(), mode="FAST_COMPILE", on_unused_input="ignore")


@pytest.fixture(scope="module")
def shuffle(function):
    return lambda n, u: function(ROWS, MARKS, n, WEIGHTS, u)[:2]


@pytest.fixture(scope="module")
def draw(function):
    return lambda log_weights, u: [
        x.item() for x in function(ROWS, MARKS, 0, np.asarray(log_weights, float), u)[2:]
    ]


def test_what_is_compiled_agrees_with_the_model():
    SizeStep([(model := bernoulli())["n"]], model=model)  # compares them, and refuses what differs


def test_what_differs_is_refused(monkeypatch):
    def off_at_two(*arguments):
        checked = check_size(*arguments)
        return replace(
            checked, log_density=checked.log_density + (np.arange(len(checked.log_density)) == 2)
        )

    monkeypatch.setattr("pymc_dapper.sizes.step.check_size", off_at_two)
    model = bernoulli()
    with (
        evaluated_in_python(),
        pytest.raises(ReadingError, match=r"at n = 2 the compiled .* a fault of pymc_dapper"),
    ):
        SizeStep([model["n"]], model=model)


@pytest.mark.parametrize("n", [1, 2, 7, 9])
def test_each_row_comes_first_equally_often(shuffle, n):
    for k in range(n):
        cut = np.roll(np.arange(n), -k)
        expected = np.r_[cut[::2], cut[1::2], np.arange(n, 9)]
        for u in (k / n + 1e-12, (k + 0.5) / n, (k + 1) / n - 1e-12):
            assert shuffle(n, u)[1].tolist() == expected.tolist()


def test_whole_rows_change_places_and_the_same_in_each_array(shuffle):
    before = ROWS.copy()
    rows, marks = shuffle(6, 0.3)
    np.testing.assert_array_equal(ROWS, before)
    np.testing.assert_array_equal(rows, ROWS[marks])
    assert marks.tolist() == [1, 3, 5, 2, 4, 0, 6, 7, 8]
    for u in (0.0, np.nextafter(1, 0)):
        np.testing.assert_array_equal(shuffle(0, u)[0], ROWS)


def test_each_number_has_its_share(draw):
    shares = np.exp([0.0, 1.0, -1.0])
    ends = np.cumsum(shares) / shares.sum()
    for k, low, high in zip((1, 2, 4), [0, *ends[:2]], ends, strict=True):
        for u in (low + 1e-12, (low + high) / 2, high - 1e-12):
            assert draw(WEIGHTS, u) == [k, pytest.approx(shares[2] / shares.sum())]


def test_what_has_no_weight_is_never_drawn(draw):
    weights = [-np.inf, -np.inf, 0.0, -np.inf, np.nan, np.inf]
    assert [draw(weights, u) for u in (0.0, np.nextafter(1, 0))] == [[2, 0.0], [2, 0.0]]
    for nothing in (-np.inf, np.nan):
        assert draw(np.full(6, nothing), 0.5)[0] == -1


@pytest.mark.parametrize("mode", [None, pytest.param("NUMBA", marks=pytest.mark.long)])
def test_compiled_it_agrees_with_python(function, mode):
    """With numbers that aren't finite, which fast arithmetic may take for others."""
    compiled = pytensor.function(*graphs(), mode=numba_mode(mode))
    for weights in (WEIGHTS, np.full(6, -np.inf), np.full(6, np.nan), np.zeros(6) - 1e4):
        for n, u in ((7, 0.3), (0, 0.9), (9, np.nextafter(1, 0)), (1, 0.0)):
            values = ROWS, MARKS, n, weights, u
            for ours, expected in zip(compiled(*values), function(*values), strict=True):
                np.testing.assert_allclose(ours, expected, rtol=1e-13)
                assert ours.dtype == expected.dtype
