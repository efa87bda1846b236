"""Tables of answers, and what has to be said beside them."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from pymc_dapper.answers.answer import Answer, Provenance
from pymc_dapper.answers.summary import Summary, moved

BY_HAND = Provenance("by hand", "made up", {})


def answer(shift=0, **options):
    draws = np.arange(101)[None] + np.array([[0], [100 + shift]])
    array = xr.DataArray(draws, dims=("district", "draw"), coords={"district": ["A", "B"]})
    return Answer(array, BY_HAND, **options)


def test_it_prints_a_table_and_what_has_to_be_said():
    released = xr.DataArray([50.5, np.nan], dims="district", coords={"district": ["A", "B"]})
    shown = repr(answer(released=released).summary(0.8))
    assert [line.split() for line in shown.splitlines()] == [
        ["released", "median", "lower", "upper"],
        ["district"],
        ["A", "50.5", "50", "10", "90"],
        ["B", "-", "150", "110", "190"],
        ["Intervals", "hold", "80", "%."],
        ["Prior:", "made", "up."],
        ["Method:", "by", "hand."],
    ]
    assert "<p>Prior: made up.</p>" in answer().summary()._repr_html_()


def test_comparisons_have_their_probability():
    summary = (answer() > 50).summary()
    assert list(summary.frame) == ["probability"]
    assert summary.frame["probability"].tolist() == [pytest.approx(50 / 101), 1.0]


@pytest.mark.parametrize(("shift", "matters"), [(5, False), (20, True)])
def test_it_says_how_far_intervals_move_under_the_other_prior(shift, matters):
    *_, note = answer(other=lambda: answer(shift)).summary().notes
    assert note.startswith("The prior matters" if matters else "The prior hardly matters")
    if matters:
        assert "the interval of B is 125 to 215; an end moves by 22 % of its width" in note
        assert "1 of 2 intervals move by more than 10 %" in note


def test_intervals_of_one_count_move_in_counts():
    frame = pd.DataFrame({"lower": [0], "upper": [0]})
    assert "100 % of its width" in moved(frame, pd.DataFrame({"lower": [0], "upper": [1]}), "x")


def test_a_ratio_without_a_value_under_the_other_prior_is_told():
    zero = answer(other=lambda: answer() * 0)["B"]
    note = (zero / zero).summary().notes[-1]
    assert note.startswith("Under the other prior (made up), 100 % of the draws are nan")


def test_it_can_be_written(tmp_path):
    Summary(answer().to_frame(), ()).to_csv(tmp_path / "summary.csv")
    assert pd.read_csv(tmp_path / "summary.csv").district.tolist() == ["A", "B"]
