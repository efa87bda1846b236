"""Contraction as drawn, and its Monte Carlo error, against their definitions."""

import arviz_base as az
import numpy as np
import pytest

from pymc_dapper.plots import plot_contraction
from pymc_dapper.plots.contraction import contraction


def variances(result, group):
    return result[group]["p"].var(["chain", "draw"]).values


def points(collection, **entry):
    """Places of the points, (x, y)."""
    return collection.viz["point_estimate"]["p"].sel(**entry).item().get_offsets()[0]


def test_contraction_is_one_less_the_ratio_of_variances(private):
    collection = plot_contraction(private)
    expected = 1 - variances(private, "posterior") / variances(private, "prior")
    assert np.all(expected > 0.5)
    drawn = [points(collection, cell=cell) for cell in "abc"]
    np.testing.assert_allclose([x for x, _ in drawn], expected)
    # The first entry is on top.
    assert np.all(np.diff([y for _, y in drawn]) < 0)
    axes = collection.viz["plot"].sel(column="forest").item()
    assert axes.get_xlabel() == "contraction: share of the prior variance that is gone"
    assert axes.get_xlim()[0] < 0 < 1 < axes.get_xlim()[1]
    assert set(collection.viz["point_estimate"].data_vars) == {"p", "log_odds"}


def test_two_standard_errors_are_drawn_to_either_side(private):
    collection = plot_contraction(private, var_names="p")
    found = contraction(private, ["p"])["p"]
    for cell in "abc":
        value, error = found.sel(cell=cell)
        line = collection.viz["twig"]["p"].sel(cell=cell).item().get_xdata()
        np.testing.assert_allclose(line, [value - 2 * error, value + 2 * error])


def test_a_bar_goes_from_zero_to_the_contraction(private):
    collection = plot_contraction(private, var_names="p")
    for cell in "abc":
        bar = collection.viz["trunk"]["p"].sel(cell=cell).item().get_xdata()
        np.testing.assert_allclose(bar, [0, points(collection, cell=cell)[0]])


def test_the_standard_error_is_what_repetition_shows():
    # Without the factor two of a variance it would be half, without the prior's part 70 %.
    rng = np.random.default_rng(1)
    repetitions, size = 300, 200
    found = [
        contraction(
            az.from_dict(
                {
                    "prior": {"p": rng.normal(0, 1, (2, size))},
                    "posterior": {"p": rng.normal(0, 0.5, (2, size))},
                }
            ),
            ["p"],
        )["p"].values
        for _ in range(repetitions)
    ]
    values, errors = np.transpose(found)
    # A standard deviation from 300 repetitions has relative error 1 / sqrt(600): four of them.
    assert errors.mean() == pytest.approx(values.std(), rel=4 / np.sqrt(2 * repetitions))


def test_analyses_stand_side_by_side(private):
    wide = private.copy()
    wide["posterior"] = private["prior"].dataset
    collection = plot_contraction({"a budget": private, "none": wide}, var_names="p")
    np.testing.assert_allclose(points(collection, cell="a", model="none")[0], 0, atol=1e-12)
    expected = 1 - variances(private, "posterior")[0] / variances(private, "prior")[0]
    np.testing.assert_allclose(points(collection, cell="a", model="a budget")[0], expected)
    (legend,) = collection.viz["figure"].item().legends
    assert [text.get_text() for text in legend.get_texts()] == ["a budget", "none"]


def test_options_are_respected(private):
    collection = plot_contraction(
        private,
        coords={"cell": ["b"]},
        visuals={"zero": False, "twig": False, "point_estimate": {"color": "red"}},
        figure_kwargs={"figsize": (5, 2)},
    )
    assert collection.viz["point_estimate"]["p"].sizes == {"cell": 1}
    for name in ("zero", "twig", "legend"):
        assert name not in collection.viz
    np.testing.assert_allclose(collection.viz["figure"].item().get_size_inches(), [5, 2])


def test_what_has_no_prior_is_refused_with_the_way_out(private):
    bare = az.from_dict({"posterior": {"p": np.zeros((1, 4))}})
    with pytest.raises(ValueError, match=r"the result has no draws .*sample_prior_predictive\("):
        plot_contraction(bare)
    with pytest.raises(ValueError, match="'bare' has no draws from the prior"):
        plot_contraction({"whole": private, "bare": bare})
    with pytest.raises(ValueError, match=r"'q'.*in posterior and prior of .*: 'p', 'log_odds'"):
        plot_contraction(private, var_names="q")
