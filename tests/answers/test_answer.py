"""Answers: arithmetic draw by draw, and what is read off the draws."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_dapper.answers.answer import Answer, Provenance

DRAWS = 1000
BY_HAND = Provenance("by hand", "made up", {1: "call"})


def answer(values=None, **options):
    rng = np.random.default_rng(1)
    if values is None:
        values = rng.poisson([[20, 30], [5, 60], [9, 9]], (DRAWS, 3, 2)).transpose(1, 2, 0)
    array = xr.DataArray(
        values,
        dims=("district", "year", "draw"),
        coords={
            "district": list("ABC"),
            "year": [2024, 2025],
            "region": ("district", ["n", "n", "s"]),
        },
        name="cases",
    )
    return Answer(array, options.pop("provenance", BY_HAND), **options)


def test_arithmetic_is_draw_by_draw():
    cases = answer()
    x = cases.draws
    a, b = cases.sel(district="A"), cases.sel(district="B")
    for made, expected in [
        (a + b, x.sel(district="A") + x.sel(district="B")),
        (1 - a / b, 1 - x.sel(district="A") / x.sel(district="B")),
        (100 * a // 7 % 5, 100 * x.sel(district="A") // 7 % 5),
        (-a, -x.sel(district="A")),
        (np.log1p(a), np.log1p(x.sel(district="A"))),
        (
            (a > b) & (a > 10),
            (x.sel(district="A") > x.sel(district="B")) & (x.sel(district="A") > 10),
        ),
        (a * np.float64(2), 2 * x.sel(district="A")),
        (cases / cases.sum(), x / x.sum(["district", "year"])),
        (cases.sum("year"), x.sum("year")),
        (cases.mean(["year"]), x.mean("year")),
        (cases.max("district"), x.max("district")),
        (cases.min(), x.min(["district", "year"])),
        (cases.map(lambda d: d.cumsum("year")), x.cumsum("year")),
    ]:
        np.testing.assert_array_equal(made.draws.values, expected.transpose(..., "draw").values)


def test_products_of_large_counts_do_not_overflow():
    large = answer(np.full((3, 2, 4), 10**5))
    four = large.sum("year") ** 2 * large.sum("year") * large["A"].sum()
    np.testing.assert_array_equal(four.draws, np.full((3, 4), 1.6e21))
    np.testing.assert_array_equal((large**-1).draws, np.full((3, 2, 4), 1e-5))
    np.testing.assert_array_equal(np.square(large * large).draws, np.full((3, 2, 4), 1e20))
    whole = [large * 2, (large > 5) * large, large**3, np.square(large)]
    assert {x.draws.dtype for x in whole} == {np.dtype(np.int64)}


def test_an_array_or_a_series_has_a_number_for_each_cell():
    cases = answer()
    people = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    expected = cases.draws / xr.DataArray(people, dims=("district", "year"))
    by_labels = xr.DataArray(people, dims=("district", "year"), coords=cases.draws.coords)
    for given in (people, people.tolist(), by_labels.to_series()):
        np.testing.assert_array_equal((cases / given).draws, expected)
    # An array as long as there are draws is still of cells.
    few = answer(cases.draws.values[..., :2])["A"]
    np.testing.assert_array_equal((few * [1, 10]).draws, few.draws * np.array([[1], [10]]))


def test_cells_are_chosen_by_labels_and_numbers():
    cases = answer()
    assert cases["B", 2025].draws.identical(cases.draws.sel(district="B", year=2025))
    assert cases["B"].draws.identical(cases.sel(district="B").draws)
    assert cases.isel(district=[0, 2]).draws.district.values.tolist() == ["A", "C"]
    # Labels that choose one of two are forgotten where these are compared.
    assert (cases.sel(year=2025) > cases.sel(year=2024)).draws.dims == ("district", "draw")


def test_groups_are_those_of_xarray():
    cases = answer()
    expected = cases.draws.groupby("region").sum().transpose("region", "year", "draw")
    found = cases.groupby("region").sum().draws.transpose("region", "year", "draw")
    assert np.array_equal(found, expected)
    assert cases.groupby("region").mean().draws.sel(region="s").mean() == cases["C"].draws.mean()
    assert cases.groupby("region").max().draws.max() == cases.draws.max()
    assert cases.groupby("region").min().draws.min() == cases.draws.min()
    moved = cases.assign_coords(kind=("district", ["x", "y", "x"]))
    assert moved.groupby("kind").sum().draws.sizes["kind"] == 2


def test_intervals_medians_and_probabilities_are_of_draws():
    draws = np.arange(1, DRAWS + 1, dtype=np.int64)
    cases = answer(np.broadcast_to(draws, (3, 2, DRAWS)).copy())
    lower, upper = cases.interval(0.9)
    assert (lower == 50).all()
    assert (upper == 950).all()
    assert (cases.median() == 500).all()
    assert cases.interval(0.5).end.values.tolist() == ["lower", "upper"]
    assert ((cases > 250).probability() == 0.75).all()


def test_ranks_are_from_the_largest_on_and_ties_share_theirs():
    draws = np.array([[[3, 1], [1, 1]], [[3, 2], [7, 1]], [[1, 0], [2, 1]]])
    ranks = answer(draws).rank("district").draws.sel(year=2024)
    assert ranks.values.tolist() == [[1, 2], [1, 1], [3, 3]]


def test_released_values_stay_with_the_cells_they_are_of():
    released = xr.DataArray(np.arange(6.0).reshape(3, 2), dims=("district", "year")).assign_coords(
        district=list("ABC"), year=[2024, 2025]
    )
    cases = answer(released=released)
    assert cases["C", 2024].released == 4
    assert cases.sum().released is None
    assert (cases + 1).released is None


def test_the_other_prior_goes_through_the_same_arithmetic():
    other = answer(np.zeros((3, 2, DRAWS), dtype=np.int64))
    cases = answer(other=lambda: other)
    assert ((cases["A"] + 3 * cases["B"]).other.draws == 0).all()
    assert (cases.sel(year=2024) + 5).other.draws.max() == 5
    assert answer().other is None
    assert (cases + answer()).other is None


def test_draws_of_two_calls_are_not_taken_for_independent():
    again = answer(provenance=Provenance("by hand", "made up", {1: "another call"}))
    of_another_release = answer(provenance=Provenance("by hand", "made up", {2: "call"}))
    cases = answer()
    with pytest.raises(ValueError, match="two sets of draws of the same release"):
        cases - again
    assert (cases - of_another_release - cases).method == "by hand"


def test_labels_that_differ_are_not_dropped():
    cases = answer()
    with pytest.raises(ValueError, match="different labels along a dim"):
        cases.isel(district=[0, 1]) + cases.isel(district=[1, 2])


def test_numbers_of_draws_must_agree():
    with pytest.raises(ValueError, match="different numbers of draws"):
        answer() + Answer(answer().draws.isel(draw=slice(10)), BY_HAND)


def test_a_ratio_of_zeros_has_no_interval():
    zeros = answer(np.zeros((3, 2, DRAWS), dtype=np.int64))
    ratio = zeros["A"] / zeros["B"]
    with pytest.raises(ValueError, match="100 % of the draws are nan, such as 0 / 0"):
        ratio.interval()
    assert (answer()["A"] / zeros["B"]).interval().values.min() == np.inf


@pytest.mark.parametrize(
    ("wrong", "error", "match"),
    [
        (lambda a: a.interval(1.5), ValueError, "probability must be"),
        (lambda a: a.interval("90"), TypeError, "probability must be"),
        (lambda a: (a > 3).interval(), TypeError, "a comparison has a probability"),
        (lambda a: (a > 3).median(), TypeError, "a comparison has a probability"),
        (lambda a: a.probability(), TypeError, "is of a comparison"),
        (lambda a: a.sel(region_="n"), ValueError, "there is no dim 'region_', but district, year"),
        (lambda a: a.sum("month"), ValueError, "there is no dim 'month', but district, year"),
        (lambda a: a.sum("draw"), ValueError, "there is no dim 'draw', but district, year"),
        (lambda a: a.rank("month"), ValueError, "there is no dim 'month', but"),
        (lambda a: a.groupby("month"), ValueError, "groupby: there is no 'month', but district"),
        (lambda a: a["A", 2024, 1], KeyError, "there are 3 labels"),
        (lambda a: a["people"], KeyError, "'district' has no label 'people'"),
        (lambda a: a.map(3), TypeError, "function_of_draws must be a function"),
        (lambda a: a.map(lambda x: x.mean("draw")), ValueError, "must return a DataArray with"),
        (lambda a: list(a), TypeError, "can't be iterated over"),
        (lambda a: a + "3", TypeError, "ufunc|operand"),
        (
            lambda a: a / [1, 2, 3],
            ValueError,
            r"or \(3, 2\), one for each cell .*, got \(3,\)",
        ),
        (lambda a: a / np.ones(DRAWS), ValueError, "one for each cell"),
        (
            lambda a: a / pd.Series([1, 2, 3]),
            ValueError,
            "the answer has no dim None, but",
        ),
        (lambda a: a["A"] > a["B"] and a["B"] > 3, TypeError, "a comparison has a probability"),
    ],
)
def test_mistakes_are_answered_in_a_sentence(wrong, error, match):
    with pytest.raises(error, match=match):
        wrong(answer())


def test_it_shows_how_it_was_made():
    shown = repr(answer())
    assert "'cases' by district: 3, year: 2: 1000 draws" in shown
    assert "Prior: made up." in shown
    assert "Method: by hand." in shown
    assert "grouped by 'region'" in repr(answer().groupby("region"))


def test_tables_have_a_row_for_each_cell(tmp_path):
    cases = answer()
    frame = cases.to_frame(0.5)
    assert list(frame) == ["median", "lower", "upper"]
    assert frame.loc[("B", 2025), "median"] == cases["B", 2025].median()
    cases.to_csv(tmp_path / "cases.csv")
    first, second, *_ = (tmp_path / "cases.csv").read_text().splitlines()
    assert first == "district,year,median,lower,upper"
    assert second.startswith("A,2024,")
    cases.sum().to_csv(tmp_path / "sum.csv")
    assert (tmp_path / "sum.csv").read_text().startswith("median,lower,upper\n")
    assert "cases" in cases.plot().get_xlabel()
