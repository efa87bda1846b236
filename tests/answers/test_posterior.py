"""The posterior of a release: which method, against enumeration, and what is refused."""

import itertools
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import stats

import pymc_dapper as pmd
from benchmarks._models import example
from pymc_dapper.answers import posterior
from pymc_dapper.answers.answer import NOT_COMPARED, Answer
from tests.answers.cells_by_enumeration import CASES, COUNTS

coverage = example("answers")
NOISE = pmd.LaplaceMechanism(3.0)
DISTRICTS = {"district": ["A", "B", "C"]}


def release(values=(17.3, 4.0, 9.1), mechanism=NOISE, name="cases", coords=None):
    coords = DISTRICTS if coords is None and np.shape(values) == (3,) else coords
    dims = ["district"] * np.ndim(values) if coords is None else tuple(coords)
    return pmd.Release(pmd.Query(name, np.asarray(values), mechanism, dims, coords))


def z_of_mean(draws, mean, sd):
    return (draws.mean() - mean) / sd * np.sqrt(draws.size)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_draws_have_the_mean_by_enumeration(case):
    drawn = case.release.posterior(random_seed=1)
    assert drawn.method == posterior.CELLS
    mean = COUNTS @ case.pmf
    sd = np.sqrt((COUNTS - mean) ** 2 @ case.pmf)
    assert abs(z_of_mean(drawn.isel(district=0).draws.values, mean, sd)) < 4.5


def test_the_answers_of_the_readme_are_there():
    cases = release().posterior(random_seed=1)
    assert isinstance(cases, Answer)
    assert cases.released["district"].values.tolist() == ["A", "B", "C"]
    low, high = (cases["A"] + cases["B"]).interval()
    assert low < 17.3 + 4 < high
    assert cases.rank("district").median().sel(district="A") == 1
    assert (cases["A"] > cases["B"]).probability() > 0.9
    assert "counts, flat on 0, 1, 2 and so on" in repr(cases.summary())


def test_a_release_of_one_number_has_an_answer():
    one = release(5.0).posterior(random_seed=1)
    assert one.to_frame()["released"].tolist() == [5.0]
    assert one.interval()[0] <= one.median() <= one.interval()[1]
    assert (release(5.0).posterior(total=4, random_seed=1).draws == 4).all()


def enumerated(weights, tables):
    """Means of cells over tables with given log-weights."""
    p = np.exp(weights - weights.max())
    return p @ tables / p.sum()


TOTAL = 30
TABLES = np.array([t for t in itertools.product(range(TOTAL + 1), repeat=3) if sum(t) == TOTAL])
LAPLACE = -np.abs(TABLES - np.array([17.3, 4.0, 9.1])).sum(axis=1) / 3


def test_a_total_leaves_tables_with_that_sum():
    cases = release().posterior(total=TOTAL, random_seed=1)
    assert cases.method == posterior.TREE
    assert (cases.sum().draws == TOTAL).all()
    mean = enumerated(LAPLACE, TABLES)
    z = (cases.draws.mean("draw") - mean) / cases.draws.std("draw") * np.sqrt(4000)
    assert np.abs(z).max() < 4.5
    # Other tables have another mean.
    free = release().posterior(random_seed=1).draws
    assert np.abs((free.mean("draw") - mean) / free.std("draw") * np.sqrt(4000)).max() > 4.5


def test_a_smooth_prior_with_a_total_is_dirichlet_multinomial():
    cases = release().posterior(total=TOTAL, prior="smooth", random_seed=1, draws=20_000)
    logs, weights = [], []
    for a in np.linspace(-12, 23, 141):
        alpha = np.exp(a)
        prior = stats.dirichlet_multinomial(np.full(3, alpha), TOTAL).logpmf(TABLES)
        weights.append(prior + LAPLACE)
        logs.append(stats.halfcauchy.logpdf(np.exp(-a / 2)) - a / 2)
    mean = enumerated(np.logaddexp.reduce(np.array(weights) + np.array(logs)[:, None]), TABLES)
    z = (cases.draws.mean("draw") - mean) / cases.draws.std("draw") * np.sqrt(20_000)
    assert np.abs(z).max() < 4.5
    flat = enumerated(LAPLACE, TABLES)
    assert np.abs((flat - mean) / cases.draws.std("draw") * np.sqrt(20_000)).max() > 4.5


def test_totals_with_labels_are_put_in_order():
    coords = {"year": [2024, 2025], "district": ["A", "B"]}
    cases = release([[5.0, 9.0], [20.0, 8.0]], coords=coords)
    given = pd.Series([30, 12], index=pd.Index([2025, 2024], name="year"))
    drawn = cases.posterior(total=given, random_seed=1, draws=50)
    assert (drawn.sum("district").draws.sel(year=2024) == 12).all()
    assert (drawn.sum("district").draws.sel(year=2025) == 30).all()


def margins(*names):
    by = {"cells": ("a", "b"), "rows": ("a",), "columns": ("b",), "all": ()}
    values = {"cells": [[3.0, 6.1], [2.2, 8.7]], "rows": [9.5, 12.0], "columns": [4.0, 15.5]}
    values["all"] = 21.0
    return pmd.Release([pmd.Query(name, values[name], NOISE, by[name]) for name in names])


def test_margins_of_one_table_are_joined():
    drawn = margins("cells", "rows", "all").posterior(margins=True, random_seed=1)
    assert drawn.method == posterior.TREE
    alone = margins("cells").posterior(random_seed=1)
    assert drawn.sum().draws.std() < 0.7 * alone.sum().draws.std()


def test_groups_of_a_dim_are_margins():
    levels = [
        pmd.Query("tract", [5.0, 7.0, 4.0], NOISE, "tract"),
        pmd.Query("county", [11.0, 5.0], NOISE, "county", {"county": ["01", "02"]}),
    ]
    within = {"county": ("tract", ["01", "01", "02"])}
    drawn = pmd.Release(levels).posterior(within=within, random_seed=1)
    assert drawn.groupby("county").sum().draws.sizes["county"] == 2
    assert drawn.method == posterior.TREE


def test_statistics_of_their_own_have_an_answer_each():
    both = pmd.Release(
        [
            pmd.Query("cases", [30.0, 50.0], NOISE, "district"),
            pmd.Query("deaths", [3.0, 9.0], NOISE, "district"),
        ]
    )
    found = both.posterior(random_seed=1, prior={"cases": "flat", "deaths": range(20)})
    assert list(found) == ["cases", "deaths"]
    assert found["deaths"].draws.max() < 20
    assert ((found["deaths"] / found["cases"]).median() < 0.5).all()
    means = np.corrcoef(found["cases"].draws[0], found["deaths"].draws[0])[0, 1]
    assert abs(means) * np.sqrt(4000) < 4.5


def test_releases_with_the_same_seed_have_draws_of_their_own():
    one, other = (release(values).posterior(random_seed=1) for values in ([20.0], [20.1]))
    both = [each.draws.values[0] for each in (one, other)]
    assert abs(np.corrcoef(both)[0, 1]) * np.sqrt(4000) < 4.5
    same = release([20.0]).posterior(random_seed=1).draws.values[0]
    assert np.array_equal(same, both[0])
    with pytest.raises(ValueError, match="two sets of draws of the same release"):
        one - release([20.0]).posterior(random_seed=2)


def test_sums_may_have_limits_of_their_own():
    sums = release([120.0, 60.0], pmd.LaplaceMechanism(50.0))
    drawn = sums.posterior(prior=(0, np.array([1000.0, 100.0])), random_seed=1).draws
    assert drawn.dtype == float
    assert 99 < drawn[1].max() <= 100 < drawn[0].max()


def test_the_prior_is_compared_with_the_other_one():
    cases = release().posterior(random_seed=1)
    assert "smooth" in cases.other.prior
    assert "flat" in release().posterior(prior="smooth", random_seed=1).other.prior
    assert "Dirichlet" in release().posterior(total=30, random_seed=1).other.prior
    told = release().posterior(prior=range(100), random_seed=1).other.prior
    assert told == "counts, likelier in the middle on 0, ..., 99"


@pytest.mark.parametrize("prior", [(0.0, 30.0), range(31)], ids=["real", "counts"])
def test_a_range_is_compared_with_one_that_is_likelier_in_the_middle(prior):
    def mean(bend):
        x = np.linspace(0, 30, 30_001) if isinstance(prior, tuple) else np.arange(31)
        ends = (x, 30 - x) if isinstance(prior, tuple) else (x + 1, 31 - x)
        p = np.exp(-np.abs(4.0 - x) / 3) * (np.multiply(*ends) if bend else 1)
        return p @ x / p.sum()

    drawn = release().posterior(prior=prior, random_seed=1).other.draws.values[1]
    assert abs(z_of_mean(drawn, mean(True), drawn.std())) < 4.5
    assert abs(z_of_mean(drawn, mean(False), drawn.std())) > 4.5


def test_draws_by_a_tree_are_weighed_for_a_range():
    of_range = release().posterior(prior=range(26), total=TOTAL, random_seed=1)
    other = of_range.other
    assert other.method == posterior.WEIGHED
    bent = np.prod((TABLES + 1.0) * np.maximum(26 - TABLES, 1e-300), axis=1)
    mean = enumerated(LAPLACE + np.log(bent), TABLES)
    # Weighed draws have about a third of the information.
    z = (other.draws.mean("draw") - mean) / other.draws.std("draw") * np.sqrt(4000 / 3)
    assert np.abs(z).max() < 4.5
    z = (of_range.draws.mean("draw") - mean) / of_range.draws.std("draw") * np.sqrt(4000 / 3)
    assert np.abs(z).max() > 4.5


def test_where_the_other_prior_is_not_cheap_the_summary_says_so(monkeypatch):
    monkeypatch.setattr(posterior, "MOST_WEIGHED", 2)
    of_range = release().posterior(prior=range(26), total=TOTAL, random_seed=1)
    assert of_range.other is None
    assert of_range.summary().notes[-1] == NOT_COMPARED
    assert (of_range["A"] - of_range["B"]).summary().notes[-1] == NOT_COMPARED
    assert release([5.0]).posterior(random_seed=1).other.summary().notes[-1].startswith("Method")


@pytest.mark.long
def test_large_trees_are_compared_at_the_likeliest_parameters(monkeypatch):
    """Means differ by less than one person from the exact ones, and the flat prior's by more."""
    asked = {"total": 1000, "draws": 100_000, "random_seed": 1}
    flat = release(np.linspace(0, 60, 40)).posterior(**asked)
    exact, far = (x.draws.mean("draw") for x in (flat.other, flat))
    monkeypatch.setattr(posterior, "FEW", 20)
    near = release(np.linspace(0, 60, 40)).posterior(**asked).other.draws.mean("draw")
    assert 0 < np.abs(exact - near).max() < 1 < np.abs(exact - far).max()


def test_a_cell_that_differs_from_all_others_is_drawn_where_the_smooth_prior_leads(monkeypatch):
    """Far from where it is likely by itself, against quadrature by SciPy's laws."""
    values, counts = np.array([*[500.0] * 79, 1.2]), np.arange(1500)
    law = np.exp(-np.abs(values[[0, -1], None] - counts) / 3)
    logs, means = [], []
    for a in np.linspace(-3, 20, 93):
        mu = np.exp(np.linspace(5.7, 6.7, 60))[:, None]
        joint = law[:, None] * stats.nbinom.pmf(counts, np.exp(a), 1 / (1 + mu / np.exp(a)))
        seen = joint.sum(axis=2)
        prior = stats.halfcauchy.logpdf(np.exp(-a / 2)) - a / 2
        with np.errstate(divide="ignore", invalid="ignore"):
            logs.append(79 * np.log(seen[0]) + np.log(seen[1]) + prior)
            means.append(np.nan_to_num(joint[1] @ counts / seen[1]))
    weights = np.exp(np.array(logs) - np.max(logs))
    mean = (weights * np.array(means)).sum() / weights.sum()

    def z():
        drawn = release(values).posterior(prior="smooth", random_seed=1).draws[-1]
        return (drawn.mean() - mean) / drawn.std() * np.sqrt(4000)

    assert abs(z()) < 4.5
    monkeypatch.setattr(posterior, "MARGIN", -np.inf)
    assert abs(z()) > 4.5


MISTAKES = [
    (lambda: release().posterior(total=-1), "total must be whole numbers from 0"),
    (lambda: release().posterior(total=1.5), "total must be whole numbers from 0"),
    (lambda: release().posterior(total=np.nan), "total must be whole numbers from 0"),
    (lambda: release().posterior(total=[1, 2]), "total must be a whole number, or totals with"),
    (lambda: release().posterior(total="many"), "total must be a number"),
    (
        lambda: release().posterior(total=10**7),
        "no table of counts fits the released cells and sums",
    ),
    (
        lambda: release().posterior(total=xr.DataArray([1, 2], dims="month")),
        "total: there is no dim 'month', but district",
    ),
    (
        lambda: release().posterior(
            total=xr.DataArray([1, 2, 3], dims="district", coords={"district": list("ABD")})
        ),
        "total: its labels along 'district' aren't those of the release",
    ),
    (lambda: release().posterior(prior="uniform"), "prior must be 'flat' or 'smooth'"),
    (lambda: release().posterior(prior={"deaths": "flat"}), "there is no statistic 'deaths'"),
    (lambda: release().posterior(prior=(0, 50), total=30), "don't go with this prior: real"),
    (lambda: release().posterior(prior=range(-5, 50), total=30), "for counts from 0 on"),
    (
        lambda: release([5, 6], pmd.DiscreteLaplaceMechanism(2.0)).posterior(prior=(0, 50)),
        "adds whole numbers",
    ),
    (
        lambda: release([3, 6], pmd.RandomRounding(3)).posterior(prior=(0, 50)),
        "RandomRounding adds whole numbers",
    ),
    (
        lambda: release([3, 9], pmd.RandomRounding(3)).posterior(prior=range(6)),
        "no true value can have led",
    ),
    (
        lambda: release([3, 9], pmd.RandomRounding(3).clamped(0, 9)).posterior(),
        "neither the release nor the prior bounds",
    ),
    (lambda: release(np.zeros(0)).posterior(), "'cases': nothing was released"),
    (lambda: release().posterior(draws=0), "draws must be a whole number of at least 1"),
    (lambda: release().posterior(random_seed=-1), "random_seed must be"),
    (lambda: release().posterior(margins="yes"), "margins must be True or False"),
    (lambda: release().posterior(within=3), "within must be a dict"),
    (lambda: release().posterior(within={}, margins=False), "margins=False means several tables"),
    (lambda: release([-80.0, 5.0]).posterior(), "Look for a wrong scale, or give another prior"),
    (
        lambda: release([5.0], NOISE.clamped(0, 5)).posterior(),
        "neither the release nor the prior bounds",
    ),
    (lambda: margins("cells", "rows").posterior(), "say margins=True if all queries are margins"),
    (lambda: margins("rows", "columns").posterior(total=9, margins=False), "total is of one table"),
    (lambda: release([5.0, np.nan]).posterior(), "must be finite numbers, but nan"),
    (
        lambda: release([1.0, 2.0], pmd.KNormMechanism(2.0, norm=2)).posterior(),
        "KNormMechanism doesn't release each cell by itself",
    ),
    (
        lambda: release(20, pmd.QuantileMechanism([10, 20, 30], 0.5, 2.0)).posterior(),
        "no answer without a model.*best candidate's by at most 7.38 records",
    ),
    (
        lambda: pmd.read_release(
            {"district": ["A", "A"], "cases": [1.0, 2.0]},
            values="cases",
            noise="laplace",
            scale=2,
            dims="district",
        ).posterior(),
        "there are two rows of district 'A'",
    ),
    (
        lambda: pmd.read_release({"cases": [1.0]}, values="cases", noise="laplace", scale=0),
        "scale of the laplace noise: scale must be positive",
    ),
]


@pytest.mark.parametrize(("wrong", "told"), MISTAKES, ids=[told for _, told in MISTAKES])
def test_mistakes_are_answered_in_a_sentence(wrong, told):
    with pytest.raises((TypeError, ValueError), match=told) as raised:
        wrong()
    assert len(str(raised.value)) < 400


LONG = pytest.param("cells that share strength", marks=pytest.mark.long)


@pytest.mark.parametrize("name", [LONG if k == LONG.values[0] else k for k in coverage.KINDS])
def test_intervals_hold_a_truth_that_is_drawn_from_the_prior(name):
    """Ends counted by the share that is needed; beside intervals of a wrong scale, which don't."""
    n, z, z_of_narrowed = 400, [], []

    def z_of(inside):
        # As if there were one interval in each table: those of its cells depend on each other.
        return (inside.mean() - coverage.PROBABILITY) / np.sqrt(0.09 / n)

    for asked in coverage.KINDS[name](np.random.default_rng(3), n, 400).values():
        z.append(z_of(coverage.holds_evenly(asked)))
        answer = SimpleNamespace(interval=partial(narrowed, asked.answer, 0.75))
        z_of_narrowed.append(z_of(coverage.holds(asked._replace(answer=answer))))
    assert np.abs(z).max() < 4
    assert min(z_of_narrowed) < -4


def narrowed(answer, by, probability):
    """Intervals of which both ends are that much nearer to the median."""
    median = answer.median()
    return (median + by * (answer.interval(probability) - median)).transpose("end", ...)
