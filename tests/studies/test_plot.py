"""plot_study, on made-up results."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from pymc_dapper.plots.study import plot_study

EPSILON = [0.5, 1.0, 8.0]
N = 40


def parameter(width, probability):
    rng = np.random.default_rng(1)
    shape = (2, 3, N)
    dims = ("mechanism", "epsilon", "replicate")
    dataset = xr.Dataset(
        {
            "width": (dims, width * rng.uniform(0.9, 1.1, shape)),
            "covered": (dims, (rng.random(shape) < probability).astype(float)),
            "mean": (dims, rng.normal(size=shape)),
        },
        coords={"mechanism": ["a", "b"], "epsilon": EPSILON, "replicate": range(N)},
    )
    return dataset.assign(
        coverage=dataset["covered"].mean("replicate"), bias=dataset["mean"].mean("replicate")
    )


@pytest.fixture
def result():
    yield xr.DataTree.from_dict(
        {
            "/": xr.Dataset(attrs={"prob": 0.8}),
            "private": parameter(2.0, 0.8),
            "naive": parameter(1.0, 0.3),
        }
    )
    plt.close("all")


def drawn(plot, panel):
    """The values of each line in a panel."""
    return [line.get_ydata() for line in plot.get_target("mean", {"panel": panel}).get_lines()]


def test_lines_are_means_and_coverage_over_replicates(result):
    plot = plot_study(result)
    for panel, values in (
        ("utility", lambda x: x["width"].mean("replicate")),
        ("coverage", lambda x: x["coverage"]),
    ):
        expected = [
            values(result[name].dataset).sel(mechanism=mechanism).values
            for name in ("private", "naive")
            for mechanism in ("a", "b")
        ]
        found = [y for y in drawn(plot, panel) if len(y) == len(EPSILON)]
        assert len(found) == 4
        for line in expected:
            assert any(np.allclose(line, y, rtol=1e-12) for y in found)


def test_the_band_is_binomial_at_the_nominal_level(result):
    plot = plot_study(result, "private")
    panel = plot.get_target("mean", {"panel": "coverage"})
    [band] = panel.patches
    low, high = band.get_y(), band.get_y() + band.get_height()
    counts = np.arange(N + 1)
    inside = (counts >= N * low - 1e-9) & (counts <= N * high + 1e-9)
    assert binom.pmf(counts, N, 0.8)[inside].sum() >= 0.95
    # No shorter one has that probability: without its ends it has less.
    assert binom.pmf(counts, N, 0.8)[inside][1:-1].sum() < 0.95
    assert any(np.allclose(y, 0.8) for y in drawn(plot, "coverage"))


def test_a_wide_setting_is_spread_by_logarithms(result):
    axis = plot_study(result).get_target("mean", {"panel": "utility"})
    np.testing.assert_allclose(axis.get_xticks(), np.log10(EPSILON))
    assert [label.get_text() for label in axis.get_xticklabels()] == ["0.5", "1", "8"]


def test_other_statistics_other_settings_and_parts_left_out(result):
    plot = plot_study(
        result, utility="bias", coords={"mechanism": "a"}, visuals={"band": False, "legend": False}
    )
    assert not plot.get_target("mean", {"panel": "coverage"}).patches
    found = [y for y in drawn(plot, "utility") if len(y) == len(EPSILON)]
    assert len(found) == 2
    np.testing.assert_allclose(found[0], result["private/bias"].sel(mechanism="a"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"var_names": "mu"}, "no parameters \\['mu'\\], but 'private', 'naive'"),
        ({"utility": "breadth"}, "no 'breadth' of 'private', but 'width'"),
        ({"x": "n"}, "'n' must be a setting"),
        ({"x": "mechanism"}, "'mechanism' must be a setting .* numbers"),
    ],
)
def test_refusals(options, message, result):
    with pytest.raises(ValueError, match=message):
        plot_study(result, **options)


def test_a_study_without_a_finished_cell_is_refused():
    with pytest.raises(ValueError, match="no cell is done"):
        plot_study(xr.DataTree())
