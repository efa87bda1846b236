"""Statistics: their values, how far one record moves them, and that DapperStep reads them."""

from dataclasses import dataclass
from functools import cache, partial
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats
from scipy.optimize import minimize

from pymc_dapper.budget import PureDP
from pymc_dapper.checks import whole_number
from pymc_dapper.reading import AdditiveFactor, read_model
from pymc_dapper.records.reading.self_check import check_reading
from pymc_dapper.reference import KnownTablePosterior, sample_under_invariants
from pymc_dapper.statistics import (
    clamped_moments,
    clamped_sum,
    count_where,
    counts,
    cross_counts,
    histogram,
    regression,
)
from tests.statistics.records import CATEGORY, NUMBER, NUMBERS, N


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
    "count where": Case(
        lambda r, neighbours: count_where(np.abs(r[:, 0]) < 1, neighbours=neighbours), 1
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


def farthest_apart(case, neighbours, order, rng, tries=60, climbs=5):
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


SMALL = {
    "counts": (partial(counts, k=3), [0, 1, 2]),
    "counts of two columns": (partial(counts, k=2), list(product([0, 1], repeat=2))),
    "histogram": (partial(histogram, edges=[0, 1, 2]), [-1.0, 0.5, 1.5]),
    "clamped sum": (partial(clamped_sum, lower=-1, upper=2), [-3, -1, 0, 1, 5]),
    "clamped sum away from 0": (partial(clamped_sum, lower=2, upper=3), [2, 3]),
    "clamped moments": (partial(clamped_moments, lower=-1, upper=1), [-1.0, -0.5, 0.0, 1.0]),
    "clamped moments away from 0": (partial(clamped_moments, lower=2, upper=3), [2.0, 2.5, 3.0]),
    "regression": (
        lambda r, **kwargs: regression(r[:, 1], r[:, 0], clamp=(-1, 1), sharp=True, **kwargs),
        list(product([-1.0, -1 / 3, 0.0, 1.0], repeat=2)),
    ),
}


def farthest_of_all(statistic, values, neighbours, order, n=2):
    """Largest distance over all pairs of neighbouring data sets, the larger one with n records."""
    columns = np.shape(values[0])

    @cache
    def value(data):
        records = np.array(data, dtype=np.asarray(values).dtype).reshape(len(data), *columns)
        return np.asarray(statistic(records, neighbours=neighbours).value, dtype=float).ravel()

    changed = values if neighbours == "replace" else [None]
    return max(
        np.linalg.norm(
            value(data) - value(data[:-1] if other is None else (*data[:-1], other)), order
        )
        for data in product(values, repeat=n)
        for other in changed
    )


@pytest.mark.parametrize("order", [1, 2, np.inf])
@pytest.mark.parametrize("name", SMALL)
def test_sensitivities_are_those_of_all_small_neighbouring_data_sets(name, order):
    statistic, values = SMALL[name]
    claimed, found = {}, {}
    for neighbours in ("replace", "add_remove"):
        sensitivity = statistic(np.array(values), neighbours=neighbours).sensitivity
        claimed[neighbours] = getattr(sensitivity, {1: "l1", 2: "l2", np.inf: "linf"}[order])
        found[neighbours] = farthest_of_all(statistic, values, neighbours, order)
        assert claimed[neighbours].neighbours == neighbours
    assert claimed == pytest.approx(found, rel=1e-12)
    # Broken twin: the other relation's number fails the same test, wherever the two differ. (In the
    # largest entry a table moves by one either way.)
    twin = {"replace": claimed["add_remove"], "add_remove": claimed["replace"]}
    alike = order == np.inf and name.startswith(("counts", "histogram"))
    assert (twin == pytest.approx(found, rel=1e-12)) == alike


@pytest.mark.parametrize("name", ["clamped sum away from 0", "counts"])
def test_the_other_relation_is_too_small_for_one_statistic_and_too_large_for_another(name):
    statistic, values = SMALL[name]
    other = statistic(np.array(values), neighbours="replace").sensitivity.l1
    needed = farthest_of_all(statistic, values, "add_remove", 1)
    assert (other < needed) == (name == "clamped sum away from 0")


@pytest.mark.parametrize(
    "mean",
    [
        lambda s: s / 4,
        lambda s: s * 0.25,
        lambda s: -s / 4,
        lambda s: 100 * s / 4,
    ],
)
def test_means_of_records_whose_number_is_not_public_have_no_known_sensitivity(mean):
    data = np.array([0, 1, 1, 3])
    for records in (data, pt.as_tensor(data)):
        assert mean(counts(records, 4)).sensitivity.neighbours == "replace"
        moved = counts(records, 4, neighbours="add_remove")
        assert (moved / 5).sensitivity.neighbours == "add_remove"
        with pytest.raises(ValueError, match="divided by their number, which isn't public"):
            mean(moved)


def test_shares_of_a_table_may_move_by_more_than_its_sensitivity_over_n():
    # Why they are refused: the number of records moves, too.
    table = counts([0, 0, 1], 2, neighbours="add_remove")
    more = counts([0, 0, 1, 1], 2, neighbours="add_remove")
    assert np.abs(table.value / 3 - more.value / 4).sum() > table.sensitivity.l1 / 4


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
    "count_where": lambda: count_where(pt.eq(category(), 1)),
    "count_where of two columns": lambda: count_where((two_columns() > 0) & (NUMBERS > 0)),
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
        lambda k, x, xs: count_where(x > 0),
        lambda k, x, xs: count_where(xs > 0),
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


def test_a_deterministic_of_a_statistic_is_told_to_take_its_value():
    table = counts(pt.as_tensor([0, 1, 1, 3]), 4)
    with pm.Model():
        with pytest.raises(AttributeError, match=r"isn't a variable: give its \.value"):
            pm.Deterministic("table", table)
        assert pm.Deterministic("table", table.value).type.shape == (4,)


def test_a_symbolic_statistic_is_no_array():
    with pytest.raises(TypeError, match=r"no numbers yet.*of its \.value"):
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
