"""Plotting libraries are chosen by the caller, or by ArviZ's setting."""

import pytest
from arviz_base import rc_context

from pymc_dapper.plots import drawing, plot_analyses, plot_record_acceptance

PLOTS = {
    "analyses": lambda private, **options: plot_analyses({"private": private}, **options),
    "record_acceptance": plot_record_acceptance,
}


def test_the_usual_analyses_have_their_colours_wherever_they_stand():
    colours = drawing.COLOURS
    assert drawing.colours_of(["naive", "epsilon = 1", "private"]) == {
        "color": [colours["naive"], "C2", colours["private"]]
    }
    assert drawing.colours_of(["epsilon = 1", "epsilon = 2"]) == {}


@pytest.mark.parametrize("name", PLOTS)
def test_who_asks_for_no_plotting_library_gets_what_would_have_been_drawn(name, private):
    assert PLOTS[name](private, backend="none").backend == "none"
    with rc_context({"plot.backend": "none"}):
        assert PLOTS[name](private).backend == "none"
