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


def test_colours_are_those_of_the_analyses_and_the_mechanisms_legend_has_none_of_them(result):
    plot = plot_study(result)
    lines = plot.get_target("mean", {"panel": "coverage"}).get_lines()
    assert {line.get_color() for line in lines if len(line.get_ydata()) == len(EPSILON)} == {
        COLOURS["private"],
        COLOURS["naive"],
    }
    analyses, mechanisms = plot.viz["figure"].item().legends
    assert [line.get_color() for line in analyses.get_lines()] == [
        COLOURS["private"],
        COLOURS["naive"],
    ]
    assert {line.get_color() for line in mechanisms.get_lines()} == {"black"}


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


def ends(plot):
    """Lower and upper ends of the utility's first error band."""
    band = plot.get_target("mean", {"panel": "utility"}).collections[0]
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
    plot = plot_study(tree)
    assert list(plot.viz["plot"]["panel"].values) == ["utility"]
    # Beside a parameter that has one, the other panel is drawn.
    tree["naive"] = result["naive"]
    assert list(plot_study(tree).viz["plot"]["panel"].values) == ["utility", "coverage"]


def test_further_settings_are_rows_of_panels(result):
    settings = {"n": [10, 20], "prior": ["flat", "steep"]}
    groups = {name: group.dataset.expand_dims(settings) for name, group in result.children.items()}
    more = xr.DataTree.from_dict({"/": result.dataset, **groups})
    plot = plot_study(more)
    assert dict(plot.viz["plot"].sizes) == {"panel": 2, "prior": 2, "mechanism": 2}
    panel = plot.get_target("mean", {"panel": "utility", "prior": "flat", "mechanism": "b"})
    assert panel.get_ylabel() == "prior = flat, mechanism = b"


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
