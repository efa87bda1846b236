"""plot_study, on made-up results."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from scipy.stats import binom

from pymc_dapper.plots.drawing import COLOURS
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


ORDER = [(name, mechanism) for name in ("private", "naive") for mechanism in ("a", "b")]


def lines(panel):
    """Those of results: the first line of coverage is its nominal value."""
    return [line for line in panel.get_lines() if len(line.get_ydata()) == len(EPSILON)]


def test_lines_are_means_and_coverage_over_replicates(result):
    utility, coverage = plot_study(result).axes
    for panel, values in (
        (utility, lambda x: x["width"].mean("replicate")),
        (coverage, lambda x: x["coverage"]),
    ):
        for (name, mechanism), line in zip(ORDER, lines(panel), strict=True):
            expected = values(result[name].dataset).sel(mechanism=mechanism).values
            np.testing.assert_allclose(line.get_ydata(), expected, rtol=1e-12)
            np.testing.assert_array_equal(line.get_xdata(), EPSILON)


def test_analyses_have_their_colours_and_mechanisms_their_markers(result):
    figure = plot_study(result)
    for panel in figure.axes:
        assert [line.get_color() for line in lines(panel)] == [COLOURS[name] for name, _ in ORDER]
        markers = [line.get_marker() for line in lines(panel)]
        assert markers[:2] == markers[2:]
        assert markers[0] != markers[1]
    [legend] = figure.legends
    assert legend.get_title().get_text() == "analysis, mechanism"
    assert [text.get_text() for text in legend.get_texts()] == [", ".join(each) for each in ORDER]


def test_a_single_line_has_no_legend(result):
    figure = plot_study(result, "naive", coords={"mechanism": "a"})
    assert figure.legends == []
    assert len(lines(figure.axes[0])) == 1


def test_the_band_is_binomial_at_the_nominal_level(result):
    panel = plot_study(result, "private").axes[1]
    [band] = panel.patches
    low, high = band.get_y(), band.get_y() + band.get_height()
    counts = np.arange(N + 1)
    inside = (counts >= N * low - 1e-9) & (counts <= N * high + 1e-9)
    assert binom.pmf(counts, N, 0.8)[inside].sum() >= 0.95
    # No shorter one has that probability: without its ends it has less.
    assert binom.pmf(counts, N, 0.8)[inside][1:-1].sum() < 0.95
    assert set(panel.get_lines()[0].get_ydata()) == {0.8}


def test_a_wide_setting_is_spread_by_logarithms(result):
    for panel in plot_study(result).axes:
        assert panel.get_xscale() == "log"
        np.testing.assert_array_equal(panel.get_xticks(), EPSILON)
        assert [label.get_text() for label in panel.get_xticklabels()] == ["0.5", "1", "8"]
    few = xr.DataTree.from_dict(
        {"/": result.dataset, "private": result["private"].dataset.isel(epsilon=[0, 1])}
    )
    assert plot_study(few).axes[0].get_xscale() == "linear"


def test_other_statistics_and_other_settings(result):
    utility, _ = plot_study(result, utility="bias", coords={"mechanism": "a"}).axes
    private, naive = lines(utility)
    np.testing.assert_allclose(private.get_ydata(), result["private/bias"].sel(mechanism="a"))
    np.testing.assert_allclose(naive.get_ydata(), result["naive/bias"].sel(mechanism="a"))


def ends(figure):
    """Lower and upper ends of the utility's first error band."""
    band = figure.axes[0].collections[0]
    y = band.get_paths()[0].vertices[:, 1]
    return y.min(), y.max()


def test_the_error_is_that_of_the_mean_over_replicates(result):
    few = result.isel(replicate=slice(0, 4))
    plot = plot_study(few, "private", coords={"mechanism": "a"})
    width = few["private/width"].sel(mechanism="a")
    mean, error = width.mean("replicate"), width.std("replicate", ddof=1) / 2
    expected = (mean - 2 * error).min(), (mean + 2 * error).max()
    np.testing.assert_allclose(ends(plot), expected)


def test_monte_carlo_errors_over_replicates_are_those_of_the_result(result):
    private = result["private"].dataset
    result["private"] = xr.DataTree(private.assign(bias_mcse=0 * private["bias"] + 0.25))
    plot = plot_study(result, "private", utility="bias", coords={"mechanism": "a"})
    bias = private["bias"].sel(mechanism="a")
    np.testing.assert_allclose(ends(plot), (bias.min() - 0.5, bias.max() + 0.5))


def test_without_a_true_value_there_is_no_coverage(result):
    nothing = {"covered": np.nan, "coverage": np.nan}
    private = result["private"].dataset
    unknown = private.assign({name: private[name] * value for name, value in nothing.items()})
    tree = xr.DataTree.from_dict({"/": result.dataset, "private": unknown})
    assert len(plot_study(tree).axes) == 1
    # Beside a parameter that has one, the other panel is drawn.
    tree["naive"] = result["naive"]
    assert len(plot_study(tree).axes) == 2


def test_further_settings_have_lines_of_their_own(result):
    settings = {"n": [10, 20], "prior": ["flat", "steep"]}
    groups = {name: group.dataset.expand_dims(settings) for name, group in result.children.items()}
    more = xr.DataTree.from_dict({"/": result.dataset, **groups})
    figure = plot_study(more)
    assert figure.legends[0].get_title().get_text() == "analysis, n, prior, mechanism"
    assert len(lines(figure.axes[0])) == 16
    found = {line.get_label(): line.get_ydata() for line in lines(figure.axes[0])}
    width = result["naive/width"].sel(mechanism="b").mean("replicate")
    np.testing.assert_allclose(found["naive, 20, flat, b"], width)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"var_names": "mu"}, "the study has no parameter 'mu', but private, naive"),
        ({"utility": "breadth"}, "'private': the study has no 'breadth', but width"),
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
