"""Plotting libraries are loaded when a figure is asked for, and missed in clear words."""

import importlib

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
def test_a_figure_needs_a_plotting_library(name, private, monkeypatch):
    with rc_context({"plot.backend": "none"}):
        with pytest.raises(ImportError, match=r"no plotting library.*pip install matplotlib"):
            PLOTS[name](private)
        # Who asks for none gets what would have been drawn.
        assert PLOTS[name](private, backend="none").backend == "none"

    def without_matplotlib(module):
        if module == "arviz_plots.backend.matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")
        return importlib.import_module(module)

    monkeypatch.setattr(drawing, "import_module", without_matplotlib)
    with pytest.raises(ImportError, match="needs matplotlib, which isn't installed"):
        PLOTS[name](private, backend="matplotlib")
