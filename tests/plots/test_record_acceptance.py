"""Acceptance as drawn is acceptance as the diagnostics have it."""

import numpy as np
import pytest
import xarray as xr

import pymc_dapper as pmd
from pymc_dapper.diagnostics import acceptance, record_acceptance
from pymc_dapper.plots import plot_record_acceptance
from pymc_dapper.steps.stats import record_stats
from tests.plots.conftest import EPSILON


def artists(collection, name):
    return np.atleast_1d(collection.viz[name]["acceptance"].values)


def heights(collection, name):
    """Where horizontal lines are."""
    return [line.get_ydata()[0] for line in artists(collection, name)]


def without_records(private):
    result, stats = private.copy(), private["sample_stats"].dataset
    result["sample_stats"] = stats.drop_vars(record_stats(stats.data_vars))
    return result


def of_two_steps(private):
    """As PyMC writes it, an axis for the steps. The second has half the rate."""
    result = without_records(private)
    rates = result["sample_stats"]["dapper_accept"]
    result["sample_stats"]["dapper_accept"] = xr.concat([rates, rates / 2], "dim_0").transpose(
        "chain", "draw", "dim_0"
    )
    return result


def test_a_line_for_each_chain_goes_from_its_least_accepted_record_to_its_most_accepted(private):
    collection = plot_record_acceptance(private)
    rates = record_acceptance(private)
    for line, of_chain in zip(artists(collection, "rate"), rates, strict=True):
        expected = np.column_stack([np.arange(30), np.sort(of_chain)])
        np.testing.assert_allclose(line.get_xydata(), expected)
    np.testing.assert_allclose(heights(collection, "mean"), acceptance(private).rates)
    axes = collection.viz["plot"].item()
    assert axes.get_xlabel() == "records, from the least to the most accepted"
    assert axes.get_ylabel() == "share of proposals accepted"


def test_many_records_are_drawn_as_a_line_that_has_the_ends(private, monkeypatch):
    monkeypatch.setattr(pmd.plots.record_acceptance, "SHOWN", 10)
    (line, _) = artists(plot_record_acceptance(private), "rate")
    x, y = line.get_data()
    rates = record_acceptance(private)[0].values
    assert len(x) == 10
    assert (x[0], x[-1]) == (0, 29)
    assert (y[0], y[-1]) == (rates.min(), rates.max())


@pytest.mark.parametrize("tracked", [True, False])
def test_without_tracked_records_each_draw_is_at_its_rate(private, tracked):
    result = private if tracked else without_records(private)
    collection = plot_record_acceptance(result, by="draw" if tracked else None)
    rates = private["sample_stats"]["dapper_accept"]
    for line, of_chain in zip(artists(collection, "rate"), rates, strict=True):
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([np.arange(200), of_chain]))
    np.testing.assert_allclose(heights(collection, "mean"), acceptance(private).rates)
    assert collection.viz["plot"].item().get_xlabel() == "draw"


def test_the_floor_is_that_of_the_budget(private):
    collection = plot_record_acceptance(private)
    assert heights(collection, "floor") == [pytest.approx(np.exp(-EPSILON))]
    assert artists(collection, "floor_text")[0].get_text() == "floor\n0.607"

    # A budget of one's own, which counts twice.
    collection = plot_record_acceptance(private, pmd.PureDP(0.8, neighbours="add_remove"))
    assert heights(collection, "floor") == [pytest.approx(np.exp(-1.6))]


def test_no_floor_is_drawn_where_there_is_none(private):
    collection = plot_record_acceptance(private, pmd.ZCDP(0.1))
    assert "floor" not in collection.viz
    assert "floor_text" not in collection.viz


def test_a_rate_below_the_floor_is_warned_of(private):
    with pytest.warns(UserWarning, match="A rate is below"):
        collection = plot_record_acceptance(private, pmd.PureDP(0.001))
    assert heights(collection, "floor")[0] > max(heights(collection, "mean"))


def test_one_of_several_steps_is_drawn(private):
    two = of_two_steps(private)
    collection = plot_record_acceptance(two, pmd.PureDP(3), step=1)
    np.testing.assert_allclose(heights(collection, "mean"), acceptance(private).rates / 2)
    with pytest.raises(ValueError, match=r"there are 2 DapperSteps.*step=0"):
        plot_record_acceptance(two, pmd.PureDP(3))


def test_visuals_are_changed_and_left_out(private):
    visuals = {
        "rate": {"color": "red"},
        "mean": False,
        "floor_text": {"text": "e"},
        "legend": False,
    }
    collection = plot_record_acceptance(private, visuals=visuals, figure_kwargs={"figsize": (3, 2)})
    assert {line.get_color() for line in artists(collection, "rate")} == {"red"}
    assert "mean" not in collection.viz
    assert "legend" not in collection.viz
    assert artists(collection, "floor_text")[0].get_text() == "e"
    np.testing.assert_allclose(collection.viz["figure"].item().get_size_inches(), [3, 2])


def test_what_cannot_be_drawn_is_refused(private):
    with pytest.raises(ValueError, match="no acceptance by record was kept"):
        plot_record_acceptance(without_records(private), by="record")
    with pytest.raises(ValueError, match="by must be 'record' or 'draw', got 'chain'"):
        plot_record_acceptance(private, by="chain")
    with pytest.raises(ValueError, match=r"\['rates'\] but valid keys are .*rate"):
        plot_record_acceptance(private, visuals={"rates": False})
    others = private.copy()
    others["sample_stats"] = private["sample_stats"].dataset[["dapper_mechanism_logp"]]
    with pytest.raises(ValueError, match="no DapperStep was among the steps"):
        plot_record_acceptance(others)
