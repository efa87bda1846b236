"""The figure of answers."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pymc_dapper.answers.figure import MOST, draw_intervals


def frame(n=3):
    at = np.arange(n)
    columns = {"released": at + 0.5, "median": at, "lower": at - 1, "upper": at + 1}
    return pd.DataFrame(columns, index=pd.Index([f"d{k}" for k in at], name="district"))


def test_it_has_a_line_for_each_cell_and_the_first_is_on_top():
    ax = draw_intervals(frame(), "cases", 0.9, None)
    [lines] = ax.collections
    ends = np.array([segment[:, 0] for segment in lines.get_segments()])
    np.testing.assert_array_equal(ends, [[-1, 1], [0, 2], [1, 3]])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["d0", "d1", "d2"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["90 % interval, median", "released"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("cases", "district")
    plt.close("all")


def test_it_draws_on_the_given_axes():
    _, own = plt.subplots()
    assert draw_intervals(frame(1).drop(columns="released"), "cases", 0.5, own) is own
    plt.close("all")


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="a comparison has no intervals to draw"):
        draw_intervals(pd.DataFrame({"probability": [0.5]}), "cases", 0.9, None)
    with pytest.raises(ValueError, match="too many for a figure"):
        draw_intervals(frame(MOST + 1), "cases", 0.9, None)
