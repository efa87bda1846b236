"""Statistics: their values, how far one record moves them, and that DapperStep reads them."""

import copy
import math
import pickle
import tracemalloc
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.type import random_generator_type
from scipy import stats
from scipy.optimize import minimize

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.budget import PureDP
from pymc_dapper.checks import whole_number
from pymc_dapper.mechanisms import LaplaceMechanism
from pymc_dapper.reading import AdditiveFactor, ReadingError, read_model
from pymc_dapper.records.compiled.rows import rows_by_array
from pymc_dapper.records.reading import self_check
from pymc_dapper.records.reading.entrywise import read_entrywise
from pymc_dapper.records.reading.self_check import check_reading
from pymc_dapper.reference import KnownTablePosterior, sample_under_invariants
from pymc_dapper.statistics import (
    Sensitivity,
    clamped_moments,
    clamped_sum,
    counts,
    cross_counts,
    histogram,
    regression,
    regression_labels,
)

N = 9
RNG = np.random.default_rng(4)
CATEGORY = RNG.integers(0, 4, size=N)
CATEGORIES = RNG.integers(0, 3, size=(N, 2))
NUMBER = RNG.normal(scale=2.0, size=N)
NUMBERS = RNG.normal(scale=2.0, size=(N, 2))

# Values -----------------------------------------------------------------------------------------


def test_counts_are_those_of_bincount():
    np.testing.assert_array_equal(counts(CATEGORY, 5).value, np.bincount(CATEGORY, minlength=5))
    by_column = [np.bincount(column, minlength=3) for column in CATEGORIES.T]
    np.testing.assert_array_equal(counts(CATEGORIES, 3).value, by_column)
    assert counts([True, False, True], 2).value.tolist() == [1, 2]
    assert counts(CATEGORY, 5).value.dtype.kind == "i"


def test_cross_counts_are_those_of_each_pair():
    table = cross_counts(CATEGORY, CATEGORIES[:, 0], 4, 3).value
    for j in range(4):
        for k in range(3):
            assert table[j, k] == np.sum((j == CATEGORY) & (k == CATEGORIES[:, 0]))


def test_histogram_is_numpys():
    x, edges = np.array([-3.0, -1.0, -0.5, 0.0, 0.99, 1.0, 1.5, 2.0, 2.1, np.inf]), [-1, 0, 1, 2]
    np.testing.assert_array_equal(histogram(x, edges).value, np.histogram(x, edges)[0])
    assert histogram(x, edges, outside="end_bins").value.tolist() == [3, 2, 5]
    assert histogram(x, [0, np.inf]).value.tolist() == [7]
    by_column = [np.histogram(column, edges)[0] for column in NUMBERS.T]
    np.testing.assert_array_equal(histogram(NUMBERS, edges).value, by_column)


def test_clamped_sums_and_moments():
    clipped = np.clip(NUMBER, -1, 2)
    np.testing.assert_allclose(clamped_sum(NUMBER, -1, 2).value, clipped.sum())
    np.testing.assert_allclose(
        clamped_moments(NUMBER, -1, 2, order=3).value, [np.sum(clipped**k) for k in (1, 2, 3)]
    )
    low, high = [-1, 0], [1, 0.5]
    columns = np.clip(NUMBERS, low, high)
    np.testing.assert_allclose(clamped_sum(NUMBERS, low, high).value, columns.sum(axis=0))
    np.testing.assert_allclose(
        clamped_moments(NUMBERS, low, high).value,
        np.stack([columns.sum(axis=0), (columns**2).sum(axis=0)], axis=1),
    )
    # Integers stay what they are, so that an integer mechanism can take them.
    assert clamped_sum([1, 5, 9], 2, 6).value.dtype.kind == "i"


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_regression_has_the_unique_entries_of_the_cross_products(p):
    x, y = RNG.normal(size=(N, p)), RNG.normal(size=N)
    s = regression(x, y, clamp={"x": (-1, 1), "y": (-1, 3)}).value
    x, y = np.clip(x, -1, 1), np.clip(y, -1, 3) / 2 - 0.5
    design = np.column_stack([np.ones(N), x])
    upper = np.triu_indices(p + 1)
    by_column = np.lexsort(upper)  # rows within columns
    within = (design.T @ design)[upper][by_column]
    np.testing.assert_allclose(s, [*(design.T @ y), y @ y, *within[1:]], rtol=1e-12)
    assert len(regression_labels(p)) == len(s)


def test_regression_limits_each_column_by_its_own():
    x, y = np.array([[2.0, 10.0], [5.0, 99.0]]), np.array([1.0, -1.0])
    s = regression(x, y, clamp={"x": [(0, 4), (0, 20)], "y": (-2, 2)}).value
    named = dict(zip(regression_labels(2), s, strict=True))
    assert named == {
        "sum y": 0.0,
        "sum x1 y": -0.5,
        "sum x2 y": -0.5,
        "sum y^2": 0.5,
        "sum x1": 1.0,
        "sum x1^2": 1.0,
        "sum x2": 1.0,
        "sum x1 x2": 1.0,
        "sum x2^2": 1.0,
    }
    one_column = regression(x[:, :1], y, clamp=(-10, 10)).value
    np.testing.assert_array_equal(regression(x[:, 0], y, clamp=(-10, 10)).value, one_column)


def test_regression_reproduces_the_papers_third_example():
    y, *x = np.reshape([float(word) for word in PAPER_DATA.split()], (-1, 3)).T
    s = regression(np.transpose(x), y, clamp=(-10, 10))
    np.testing.assert_allclose(s.value, PAPER_STATISTIC, rtol=1e-13, atol=1e-14)
    assert regression_labels(2) == PAPER_ORDER
    assert s.sensitivity.l1 == 15
    assert s.sensitivity.l1 / 10 == 1.5  # the scale of the Laplace noise at epsilon = 10


# Sensitivity ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Case:
    """A statistic of (n, columns) records, and what one record can be."""

    statistic: object
    columns: int
    categories: int | None = None  # else numbers
    reach: float = 3.0  # numbers are searched in [-reach, reach]

    def draw(self, rng, n):
        if self.categories:
            return rng.integers(0, self.categories, size=(n, self.columns))
        return rng.uniform(-self.reach, self.reach, size=(n, self.columns))


def columns(function, *args, **fixed):
    return lambda r, neighbours: function(r, *args, neighbours=neighbours, **fixed)


def single(function, *args, **fixed):
    return lambda r, neighbours: function(r[:, 0], *args, neighbours=neighbours, **fixed)


def on_paper_terms(**fixed):
    return lambda r, neighbours: regression(
        r[:, 1:], r[:, 0], clamp=(-2, 1), neighbours=neighbours, **fixed
    )


CASES = {
    "counts": Case(single(counts, 4), 1, categories=4),
    "counts of two columns": Case(columns(counts, 3), 2, categories=3),
    "cross counts": Case(
        lambda r, neighbours: cross_counts(r[:, 0], r[:, 1], 3, 3, neighbours=neighbours),
        2,
        categories=3,
    ),
    "histogram": Case(single(histogram, [-1, 0, 2]), 1),
    "histogram, end bins": Case(single(histogram, [-1, 0, 2], outside="end_bins"), 1),
    "histogram of two columns": Case(columns(histogram, [-1, 0, 2]), 2),
    "histogram, one bin": Case(single(histogram, [-1, 1]), 1),
    "clamped sum": Case(single(clamped_sum, -1, 2), 1),
    "clamped sum of two columns": Case(columns(clamped_sum, [-1, 0.5], [2, 1]), 2),
    "clamped moments, order 1": Case(single(clamped_moments, -1, 2, 1), 1),
    "clamped moments, [-1, 1]": Case(single(clamped_moments, -1, 1), 1),
    "clamped moments, [-0.2, 1]": Case(single(clamped_moments, -0.2, 1), 1),
    "clamped moments, [-2.5, 2]": Case(single(clamped_moments, -2.5, 2), 1),
    "clamped moments, [-2.5, 2], order 3": Case(single(clamped_moments, -2.5, 2, 3), 1),
    "clamped moments, [-1, 1.5], order 4": Case(single(clamped_moments, -1, 1.5, 4), 1),
    "clamped moments, [0.5, 2], order 3": Case(single(clamped_moments, 0.5, 2, 3), 1),
    "clamped moments, [-2, -1]": Case(single(clamped_moments, -2, -1), 1),
    "clamped moments of two columns": Case(columns(clamped_moments, [-1, 0.5], [2, 1]), 2),
    "regression, p = 1": Case(on_paper_terms(), 2),
    "regression, p = 2": Case(on_paper_terms(), 3),
    "regression, p = 1, sharp": Case(on_paper_terms(sharp=True), 2),
    "regression, p = 2, sharp": Case(on_paper_terms(sharp=True), 3),
    "regression, p = 3, sharp": Case(on_paper_terms(sharp=True), 4),
}


def farthest_apart(case, neighbours, order, rng, tries=150, climbs=30):
    """Search neighbouring data sets for those whose statistics are farthest apart.

    Random pairs first; from the best of them, where records are numbers, uphill.
    """
    others = case.draw(rng, 3)

    def value(record):
        data = others if record is None else np.vstack([others, record])
        return case.statistic(data, neighbours).value.ravel()

    without = value(None)

    def distance(records):
        if neighbours == "add_remove":
            return np.linalg.norm(value(records) - without, order)
        first, second = np.split(records, 2)
        return np.linalg.norm(value(first) - value(second), order)

    size = case.columns * (2 if neighbours == "replace" else 1)
    starts = case.draw(rng, tries * size).reshape(tries * case.columns, size)
    starts = sorted(starts, key=distance)[-climbs:]
    if case.categories:
        return distance(starts[-1])
    bounds = [(-case.reach, case.reach)] * size
    ends = [minimize(lambda x: -distance(x), x, bounds=bounds, method="L-BFGS-B") for x in starts]
    return max(-end.fun for end in ends)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("name", CASES)
def test_a_search_never_exceeds_the_sensitivity_and_attains_it_where_exact(name, neighbours, order):
    case = CASES[name]
    sensitivities = case.statistic(case.draw(np.random.default_rng(1), 2), neighbours).sensitivity
    claimed = sensitivities.l1 if order == 1 else sensitivities.l2
    found = farthest_apart(case, neighbours, order, np.random.default_rng(8))
    assert found <= claimed * (1 + 1e-9)
    if claimed.exact:
        assert found == pytest.approx(claimed, rel=1e-6)
    else:
        assert found < 0.95 * claimed
    assert sensitivities.neighbours == neighbours


def test_the_search_finds_out_a_sensitivity_that_is_too_small():
    # The distance between the ends: for moments of order 2 the farthest records aren't the ends.
    case = CASES["clamped moments, [-1, 1]"]
    ends = [case.statistic(np.array([[end]]), "replace").value for end in (-1.0, 1.0)]
    too_small = np.abs(ends[0] - ends[1]).sum()
    assert farthest_apart(case, "replace", 1, np.random.default_rng(8)) > 1.1 * too_small


@pytest.mark.parametrize("order", range(1, 9))
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-0.3, 1), (-5, 7), (-1e-3, 1e4), (-1e5, 1e5), (2, 3), (-3, -2)]
)
def test_sensitivity_of_moments_against_a_grid(low, high, order):
    largest = max(-low, high)
    v = np.concatenate(
        [
            np.linspace(low, high, 2001),
            np.outer([-1, 1], np.geomspace(1e-8, 1, 4001)).ravel() * largest,
        ]
    )
    powers = v[(v >= low) & (v <= high), None] ** np.arange(1, order + 1)
    s = clamped_moments([0.0], low, high, order).sensitivity
    # One of the two records is at an end of the interval: the search above, of pairs, agrees.
    ends = [np.array([float(end)]) ** np.arange(1, order + 1) for end in (low, high)]
    for claimed, norm in ((s.l1, 1), (s.l2, 2), (s.linf, np.inf)):
        on_grid = max(np.linalg.norm(powers - end, norm, axis=1).max() for end in ends)
        assert on_grid * (1 - 1e-12) <= claimed <= on_grid * (1 + 1e-4)


def test_sensitivities_in_closed_form():
    assert clamped_moments([0.0], -1, 1).sensitivity.l1 == 9 / 4
    assert clamped_moments([0.0], -1, 1).sensitivity.l2 == 2
    for p, bound, sharp in [(1, 8, 16 / 3), (2, 15, 9.375), (3, 24, 14.4)]:
        x, y = np.zeros((2, p)), np.zeros(2)
        assert regression(x, y, clamp=(-1, 1)).sensitivity.l1 == p**2 + 4 * p + 3 == bound
        exact = regression(x, y, clamp=(-1, 1), sharp=True).sensitivity
        assert exact.l1 == pytest.approx(sharp, rel=1e-15)
        assert exact.l1.exact
        assert not regression(x, y, clamp=(-1, 1)).sensitivity.l1.exact
    assert regression(np.zeros((2, 2)), y, clamp=(-1, 1), sharp=True).sensitivity.l2 == 4


@pytest.mark.parametrize(
    ("make", "replace", "add_remove"),
    [
        (lambda **k: counts(np.zeros((2, 3), dtype=int), 4, **k), 1, 1),
        (lambda **k: histogram([0.5], [0, 1], **k), 1, 1),
        (lambda **k: clamped_sum(np.zeros((2, 2)), [-1, 0], [2, 5], **k), 5, 5),
        (lambda **k: clamped_moments([0.0], -1, 2, 4, **k), 16, 16),
        (lambda **k: clamped_moments([0.0], -1, 0.5, 4, **k), 1.5, 1),
        (lambda **k: clamped_moments([0.0], 2, 3, 3, **k), 19, 27),
        (lambda **k: regression([0.0], [0.0], clamp=(-1, 1), **k), 2, 1),
    ],
)
def test_the_largest_change_of_one_entry(make, replace, add_remove):
    assert make().sensitivity.linf == replace
    assert make(neighbours="add_remove").sensitivity.linf == add_remove


@pytest.mark.parametrize(
    ("low", "high"), [(0, 2**53 + 1), (-1e16, 1.0), (0.1, 0.3), (-(2**62), 2**62), (1e-300, 1e300)]
)
def test_sensitivities_are_rounded_up(low, high):
    s = clamped_sum([1], low, high).sensitivity
    distance = Fraction(high) - Fraction(low)
    assert all(Fraction(float(claimed)) >= distance for claimed in (s.l1, s.l2, s.linf))
    assert Fraction(math.nextafter(s.l1, 0)) < distance
    two = clamped_sum([[1, 1]], low, high).sensitivity.l2
    assert Fraction(float(two)) ** 2 >= 2 * distance**2 > Fraction(math.nextafter(two, 0)) ** 2


def test_rounding_to_nearest_would_be_noticed():
    assert Fraction(float(2**53 + 1)) < 2**53 + 1
    assert Fraction(math.hypot(0.1, 0.1)) ** 2 < 2 * Fraction(0.1) ** 2


@pytest.mark.parametrize("records", [np.full(4, 2**62), pt.lvector("x", shape=(4,))])
def test_sums_that_need_not_fit_into_64_bits_are_refused(records):
    with pytest.raises(ValueError, match="needn't fit into 64-bit integers: give them as floats"):
        clamped_sum(records, 0, 2**62)
    if isinstance(records, np.ndarray):
        assert clamped_sum(records, 0, 2.0**62).value == 2.0**64
        assert clamped_sum(records // 4, 0, 2**60).value == 2**62
    with pytest.raises(ValueError, match="within 2"):
        clamped_sum(records, 0, 2**63)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: clamped_sum([0.5], -1e308, 1e308), "sensitivity is too large for a float"),
        (lambda: clamped_sum([0.5] * 9, 0, 1e308), "a sum needn't fit into a float"),
        (lambda: clamped_moments([0.5], 0, 100, order=400), "powers up to 400 needn't fit"),
        (lambda: regression([0.5], [0.5], clamp=(-1e308, 1e308)), "distance isn't a float"),
    ],
)
def test_limits_that_overflow_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tables_of_data_take_no_array_of_records_times_cells():
    n, k = 10_000, 2_000
    x = np.random.default_rng(1).integers(k, size=n)
    tracemalloc.start()
    tables = [
        counts(x, k).value,
        cross_counts(x // 50, x % 50, 40, 50).value.ravel(),
        histogram(x.astype(float), np.arange(k + 1) - 0.5).value,
    ]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 20 * 8 * n  # of bytes, one to each record and cell would be 2,000 n
    for table in tables:
        np.testing.assert_array_equal(table, np.bincount(x, minlength=k))


def test_many_categories_of_a_model_are_counted_without_comparing_each_with_each():
    n, k = 50, 300
    x = np.random.default_rng(1).integers(-5, k + 5, size=n)
    records = pt.vector("x", shape=(n,), dtype="int64")
    table = counts(records, k).value
    inside = x[(x >= 0) & (x < k)]
    np.testing.assert_array_equal(
        table.eval({records: x}, mode="FAST_COMPILE"), np.bincount(inside, minlength=k)
    )
    assert all(variable.type.ndim <= 1 for variable in ancestors([table]))


def many_categories(n, k):
    with pm.Model() as model:
        record = pm.Categorical("record", pm.Dirichlet("p", np.ones(k)), shape=n)
        LaplaceMechanism(4.0).potential("privacy", counts(record, k), released=np.zeros(k))
    point = model.initial_point()
    return read_model(model, [model.rvs_to_values[record]], point), point


def test_many_categories_are_read_without_an_array_of_records_times_categories(monkeypatch):
    n, k = 20_000, 400
    monkeypatch.setattr(self_check, "ENTRIES_AT_ONCE", n * k // 2)
    tracemalloc.start()
    reading, point = many_categories(n, k)
    check_reading(reading, point)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * n * k / 2
    # Nor does the sweep need one: it goes by blocks of records, entry by entry of the table.
    assert rows_by_array(reading, numba_mode(None)) is not None
    assert read_entrywise(reading.additive_factors) is not None


def test_a_misreading_is_found_by_blocks_of_records_too(monkeypatch):
    monkeypatch.setattr(self_check, "ENTRIES_AT_ONCE", 0)
    rows_of_others = self_check.rows_of_others
    reading, point = many_categories(30, 300)
    check_reading(reading, point)
    monkeypatch.setattr(self_check, "rows_of_others", lambda *args: 2 * rows_of_others(*args))
    with pytest.raises(ReadingError, match="record by record"):
        check_reading(reading, point)


SECRET = 41250.5


@pytest.mark.parametrize(
    "make",
    [
        lambda: counts([0, 41250], 4),
        lambda: cross_counts([0, 41250], [0, 0], 2, 2),
        lambda: counts([0.0, SECRET], 4),
        lambda: clamped_sum([np.nan, SECRET], 0, 1),
        lambda: clamped_sum([SECRET, "a"], 0, 1),
        lambda: clamped_sum([0.5, 0.5], [SECRET, 2.0], [SECRET, SECRET]),  # arguments swapped
        lambda: histogram([0, 1], [SECRET, 2.0, 7.0]),  # arguments swapped
        lambda: regression([0.5, 0.5], [0.5, 0.5], clamp=[SECRET, 2.0, 7.0]),
        lambda: whole_number([SECRET], "k"),
        lambda: KnownTablePosterior(np.ones(2), [41250, -1]),
        lambda: sample_under_invariants(
            [41250, np.nan], stats.norm(), equalities=[[1, 1]], random_seed=1
        ),
        lambda: PureDP([SECRET]),
    ],
)
def test_messages_do_not_say_what_is_confidential(make):
    with pytest.raises((TypeError, ValueError)) as error:
        make()
    assert "41250" not in str(error.value)


def test_high_moments_within_one():
    s = clamped_moments([0.5], -1, 1, order=400).sensitivity
    w = np.linspace(0, 1, 100_001)
    powers = [1 - (-w) ** k for k in range(1, 401)]
    assert 0 <= s.l1 / np.sum(powers, axis=0).max() - 1 < 1e-8
    assert Fraction(float(s.l2)) ** 2 >= 800 > Fraction(math.nextafter(s.l2, 0)) ** 2


def test_a_sensitivity_is_a_number():
    s = Sensitivity(1.5, norm="l1", exact=False)
    assert s == 1.5
    assert type(2 * s) is float
    assert f"{s:.2f} {s} {s!r}" == "1.50 1.5 Sensitivity(1.5, norm='l1', exact=False)"
    for again in (pickle.loads(pickle.dumps(s)), copy.deepcopy(s)):
        assert again == s
        assert again.exact is False
    with pytest.raises(AttributeError):
        s.exact = True


# In a model -------------------------------------------------------------------------------------


def category(name="record", k=4, **kwargs):
    return pm.Categorical(name, pm.Dirichlet(f"p_{name}", np.ones(k)), **({"shape": N} | kwargs))


def number(name="record", **kwargs):
    return pm.Normal(name, pm.Normal(f"mu_{name}"), 1.5, **({"shape": N} | kwargs))


def two_columns():
    return number(shape=(N, 2))


MODELS = {
    "counts": lambda: counts(category(), 4),
    "counts of many categories": lambda: counts(category(k=300), 300),
    "counts of two columns": lambda: counts(category(k=3, shape=(N, 2)), 3),
    "counts of Bernoulli records": lambda: counts(pm.Bernoulli("record", 0.3, shape=N), 2),
    "cross_counts": lambda: cross_counts(category("record_a"), category("record_b", 3), 4, 3),
    "cross_counts with public": lambda: cross_counts(CATEGORY, category("record_b", 3), 4, 3),
    "histogram": lambda: histogram(number(), [-1, 0, 2]),
    "histogram of two columns": lambda: histogram(two_columns(), [-1, 0, 2], outside="end_bins"),
    "clamped_sum": lambda: clamped_sum(number(), -1, 2),
    "clamped_sum of counts": lambda: clamped_sum(pm.Poisson("record", 2.0, shape=N), 0, 3),
    "clamped_sum of two columns": lambda: clamped_sum(two_columns(), [-1, 0], 2),
    "clamped_moments": lambda: clamped_moments(number(), -1, 2, 3),
    "clamped_moments of two columns": lambda: clamped_moments(two_columns(), [-1, 0], 2),
    "clamped_moments of dims": lambda: clamped_moments(
        number(shape=None, dims=("person", "column")), [-1, 0], 2
    ),
    "regression": lambda: regression(
        number("record_x", shape=(N, 2)), number("record_y"), clamp=(-2, 2)
    ),
    "regression on one": lambda: regression(number("record_x"), number("record_y"), clamp=(-2, 2)),
    "regression on public": lambda: regression(NUMBERS, number("record_y"), clamp=(-2, 2)),
    "regression of dims": lambda: regression(
        number("record_x", shape=None, dims=("person", "column")),
        number("record_y", shape=None, dims="person"),
        clamp=(-2, 2),
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_dapper_step_reads_it_as_sums(name):
    with pm.Model(coords={"person": range(N), "column": ["a", "b"]}) as model:
        statistic = MODELS[name]()
        # PyTensor takes a statistic for its value.
        pm.Potential("privacy", -0.5 * (pt.sub(1.5, statistic) ** 2).sum())
    records = [model.rvs_to_values[rv] for rv in model.free_RVs if rv.name.startswith("record")]
    point = model.initial_point()
    reading = read_model(model, records, point)
    assert [type(factor) for factor in reading.factors] == [AdditiveFactor]
    assert len(reading.sums) == 1  # one total, of all entries
    check_reading(reading, point)


@pytest.mark.parametrize(
    "statistic",
    [
        lambda k, x, xs: counts(k, 4),
        lambda k, x, xs: cross_counts(k, k, 4, 5),
        lambda k, x, xs: histogram(x, [-1, 0, 2]),
        lambda k, x, xs: histogram(xs, [-1, 0, 2], outside="end_bins"),
        lambda k, x, xs: clamped_sum(x, -1, 2),
        lambda k, x, xs: clamped_sum(k, 1, 2),
        lambda k, x, xs: clamped_moments(xs, [-1, 0], 2, 3),
        lambda k, x, xs: regression(xs, x, clamp={"x": (-1, 2), "y": (-3, 1)}),
    ],
)
def test_symbolic_and_numerical_values_agree(statistic):
    variables = [pt.lvector("k"), pt.vector("x"), pt.matrix("xs", shape=(None, 2))]
    data = [CATEGORY, NUMBER, NUMBERS]
    symbolic, numerical = statistic(*variables), statistic(*data)
    value = symbolic.value.eval(
        dict(zip(variables, data, strict=True)), mode="FAST_COMPILE", on_unused_input="ignore"
    )
    np.testing.assert_allclose(value, numerical.value, rtol=1e-13)
    assert value.dtype == numerical.value.dtype
    assert value.shape == numerical.value.shape == np.asarray(numerical).shape
    assert symbolic.sensitivity == numerical.sensitivity


def test_a_symbolic_statistic_is_no_array():
    with pytest.raises(TypeError, match=r"symbolic.*Use \.value"):
        np.asarray(counts(pt.lvector(), 4))


# Scaled by a public number ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scaled", "factor"),
    [
        (lambda t: t / 400, 1 / 400),
        (lambda t: t * 3, 3),
        (lambda t: 0.25 * t, 0.25),
        (lambda t: np.float64(0.25) * t, 0.25),
        (lambda t: -t, -1),
    ],
)
def test_times_a_public_number_a_statistic_has_the_sensitivity_of_the_product(scaled, factor):
    data = counts([0, 1, 1, 3], 4)
    product = scaled(data)
    np.testing.assert_allclose(product.value, data.value * factor, rtol=1e-15)
    symbolic = scaled(counts(pt.as_tensor([0, 1, 1, 3]), 4)).value
    np.testing.assert_allclose(symbolic.eval(mode="FAST_COMPILE"), product.value, rtol=1e-15)
    for norm in ("l1", "l2", "linf"):
        before, after = (getattr(t.sensitivity, norm) for t in (data, product))
        assert after == pytest.approx(float(before) * abs(factor), rel=1e-15)
        assert after >= float(before) * abs(factor)  # rounded up: noise by it is enough
        assert (after.norm, after.exact) == (norm, True)


@pytest.mark.parametrize(
    ("product", "error", "message"),
    [
        (lambda t: t / pt.scalar("n"), TypeError, r"must be a finite number.*\.value"),
        (lambda t: t * [1, 2, 3, 4], TypeError, r"must be a finite number, got a list.*\.value"),
        (lambda t: t * t, TypeError, r"must be a finite number, got a Statistic.*\.value"),
        (lambda t: t / True, TypeError, "must be a finite number, got True"),
        (lambda t: t / 0, ValueError, "must not be 0"),
        (lambda t: t * np.nan, ValueError, "must be a finite number, got nan"),
    ],
)
def test_what_else_a_statistic_is_multiplied_by_is_refused(product, error, message):
    with pytest.raises(error, match=message):
        product(counts([0, 1, 1, 3], 4))


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: counts(NUMBER, 4), "record must hold categories.*float64.*use histogram"),
        (lambda: counts(pt.vector(), 4), "record must hold categories"),
        (lambda: counts(["a", "b"], 4), "record must hold numbers"),
        (
            lambda: counts([0, 1, 4], 4),
            r"categories 0, ..., 3: 1 of 3 doesn't, the first at index 2",
        ),
        (lambda: counts([0, -1], 4), "1 of 2 doesn't, the first at index 1"),
        (lambda: counts(3, 4), "record must have one axis.* or two.*it has 0"),
        (lambda: counts(pt.ltensor3(), 4), "it has 3"),
        (lambda: counts(pt.lmatrix(), 4), "number of columns of record isn't known"),
        (lambda: counts(random_generator_type(), 4), "not a tensor"),
        (lambda: counts(CATEGORY, 1), "k must be a whole number of at least 2, got 1"),
        (lambda: counts(CATEGORY, 4.0), r"k must be a whole number of at least 2, got 4\.0"),
        (lambda: counts(CATEGORY, 4, neighbours="swap"), "neighbours must be .*got 'swap'"),
        (lambda: cross_counts(CATEGORY, CATEGORIES, 4, 3), "b must have one axis, over records:"),
        (lambda: cross_counts([0, 1], [0, 1, 1], 2, 2), "a has 2 records, but b has 3"),
        (lambda: histogram([np.nan, 1.0], [0, 1]), "x must have no nan in it: 1 of 2 doesn't"),
        (lambda: histogram(NUMBER, [0, 1, 1]), "edges must be two numbers or more, increasing"),
        (lambda: histogram(NUMBER, [0]), "edges must be two"),
        (lambda: histogram(NUMBER, [0, np.nan]), "edges must be two"),
        (lambda: histogram(NUMBER, [0, 1], outside="clip"), "outside must be .* got 'clip'"),
        (lambda: histogram(NUMBER, [0, 1], outside="end_bins"), "counts every record"),
        (lambda: clamped_sum(NUMBER, 1, 1), "lower must be less than upper, got 1 and 1"),
        (lambda: clamped_sum(NUMBER, -np.inf, 1), "lower must be finite, got -inf"),
        (lambda: clamped_sum(NUMBER, 0, None), "upper must be finite, got None"),
        (lambda: clamped_sum(NUMBER, 0, [1, 2]), r"upper must be one number: its shape is \(2,\)"),
        (
            lambda: clamped_sum(NUMBERS, [0, 0, 0], 1),
            "lower must be one number or one per column, 2",
        ),
        (lambda: clamped_sum(NUMBER, 0, 1, neighbours=None), "neighbours must be"),
        (
            lambda: clamped_moments(NUMBER, 0, 1, 0),
            "order must be a whole number of at least 1, got 0",
        ),
        (lambda: clamped_moments(NUMBER, 0, 1, neighbours=2), "neighbours must be"),
        (lambda: regression(NUMBERS, NUMBERS, clamp=(0, 1)), "y must have one axis"),
        (lambda: regression(NUMBERS, NUMBER[1:], clamp=(0, 1)), "x has 9 records, but y has 8"),
        (lambda: regression(NUMBERS[:, :0], NUMBER, clamp=(0, 1)), "x has no columns"),
        (lambda: regression(NUMBERS, NUMBER, clamp=(1, 0)), "lower before upper"),
        (lambda: regression(NUMBERS, NUMBER, clamp=(0, np.inf)), "finite"),
        (lambda: regression(NUMBERS, NUMBER, clamp=10), "one pair .lower, upper. for all columns"),
        (lambda: regression(NUMBERS, NUMBER, clamp=[(0, 1)] * 3), "or a mapping .*'x'.*'y'"),
        (lambda: regression(NUMBERS, NUMBER, clamp={"x": (0, 1)}), "keys 'x' and 'y'"),
        (
            lambda: regression(NUMBERS, NUMBER, clamp={"x": [(0, 1)] * 3, "y": (0, 1)}),
            "for x one pair or one per column, 2;",
        ),
        (lambda: regression(NUMBERS, NUMBER, clamp=("a", "b")), "pairs of numbers"),
        (lambda: regression(NUMBERS, NUMBER, clamp=(0, 1), neighbours=""), "neighbours must be"),
        (lambda: regression_labels(0), "p must be a whole number of at least 1, got 0"),
    ],
)
def test_what_makes_no_sense_is_refused(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()


# The paper's third example ------------------------------------------------------------------------

PAPER_ORDER = [
    "sum y",
    "sum x1 y",
    "sum x2 y",
    "sum y^2",
    "sum x1",
    "sum x1^2",
    "sum x2",
    "sum x1 x2",
    "sum x2^2",
]
PAPER_STATISTIC = [
    -17.794973927120306,
    -2.7320890423338566,
    1.6485610721877977,
    11.151322136866687,
    3.9133677306547283,
    0.7662164154167304,
    -5.347758600198721,
    -0.4031278331569494,
    0.910666216017999,
]
# Columns y, x1, x2.
PAPER_DATA = """
    -2.9321454592239227 0.501894119632932 -1.7964538107423325
    -5.449200031489541 1.5120263932507712 -0.9863566757779176
    -3.369686957234908 0.5588803085755752 -2.005628612410047
    -7.712058243905419 2.0293630960807927 0.4252808021377916
    -0.6205591126332964 -0.533023701701037 -0.8404922281846394
    5.145386465155935 -1.0803998985058598 -1.990468384118015
    -3.988195808753289 1.267221476466509 -0.6825709475715147
    -5.836462635965425 1.9441346263165307 -0.4316752948707826
    -1.8090058252795553 0.33028037255758713 -0.5942186483465076
    -1.4285952423222112 1.0350546038808244 -1.475388387156356
    1.4250326414116223 -1.5016177605047765 0.34178116845084805
    -4.642364382604388 0.9392400027331693 -0.7801567635885689
    0.8101185075320516 0.2102606375492233 -1.7912405805418037
    -2.996395443424962 0.871997841219334 -3.3846998871775
    -6.802594639821519 1.6432732088824054 -0.045069081856891735
    -3.5990483736780448 0.7112077004856572 -1.2149336090152307
    -9.276983118413765 2.704958628891038 -1.186190263098946
    -0.4010041676437577 -0.5655548615628859 -0.22616378931470071
    -3.0190160008868654 0.7467466617881023 -0.3487788049019114
    2.017289682295227 -1.2726116703621528 -0.5760986787824911
    -3.5666344316472536 0.4244904711003375 -0.2510226283917817
    -4.287411422496924 1.6099464309218146 -0.3878636992689328
    -2.2064748372106364 0.2892736465109451 -1.0954350166348092
    -5.259301316182071 1.8340976316442514 -3.1593516958633727
    -7.7925766253499456 2.153633400239102 -0.5501742521052897
    -1.7316130543869461 0.6085537644825372 -1.2261287395290008
    -4.9011242571991 1.343291873218433 -1.3257955067053293
    -2.698131716108459 0.8988946483683758 -2.640752383899274
    -4.052388030819989 0.825658675848336 -1.6481500551086203
    -6.056944381100493 1.489520946188072 -0.7520584398002975
    -6.07390143107381 1.468668732818502 0.18867955152904403
    -4.77444886693665 1.035178615123832 -1.2727877273429955
    0.28165728043802396 -0.27808699657320435 -0.7823283884406308
    -10.133730229947211 2.423566800429762 -1.223805040582905
    -0.5598979258660117 0.30605381237157847 -2.5470595568286063
    -4.555545193767747 0.5670496287864817 -1.5849945632996798
    -0.711854621345341 -0.16309983727636268 -1.5642899537103492
    -5.205845303069037 1.2041839236343006 -1.2293133967111856
    -4.197663667643068 0.5299811900837119 -0.06997462801611687
    -3.431044683537343 0.632901209227769 -0.4068242515424557
    -7.785410379091944 1.4425200309916504 -1.3345235962535869
    1.7030967452999688 -0.3078678059831722 -1.4233616801365074
    -3.0798588686771047 -0.2604026156949516 -0.4730366245952625
    -2.6181112443607626 0.19978635048500182 -0.6133368013263426
    -0.15642190505067388 -0.6868334545408455 -1.8587556945495198
    -2.599645840896468 0.3415135744346961 -1.8774951569621194
    -4.597076341695022 2.1765922084580365 -0.8054180378631697
    -5.758167656028695 1.4732654142368862 -0.40146707548458416
    -8.902885612465028 2.1246126148983557 -1.282346212150228
    -7.888625536048506 1.3734006364393117 -0.28889227354578517
"""
