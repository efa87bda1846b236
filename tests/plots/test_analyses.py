"""Densities of several analyses: of the right draws, and of the same parameters."""

import arviz_base as az
import numpy as np
import pytest
import xarray as xr
from arviz_stats import eti

from pymc_dapper.plots import plot_analyses
from pymc_dapper.plots.analyses import comparable
from pymc_dapper.plots.drawing import COLOURS


def analysis(names, labels=("no", "yes")):
    posterior = xr.Dataset(
        {name: (("chain", "draw", "answer"), np.ones((2, 3, len(labels)))) for name in names},
        coords={"answer": list(labels)},
    )
    return xr.DataTree.from_dict({"posterior": posterior})


def test_variables_are_those_that_all_have_in_the_order_of_the_first():
    both = {"one": analysis(["q", "p", "r"]), "other": analysis(["p", "q", "s"])}
    for asked, expected in ((None, ["q", "p"]), (["p"], ["p"]), (["~p"], ["q"])):
        draws = comparable(both, asked)
        assert [list(one) for one in draws.values()] == [expected, expected]


@pytest.mark.parametrize(
    ("analyses", "names", "message"),
    [
        ({"one": xr.DataTree()}, None, "'one' has no group 'posterior'"),
        ({"one": analysis(["p"])}, ["q"], r"Variables in posterior of 'one': 'p'"),
        (
            {"one": analysis(["p"]), "other": analysis(["q"])},
            None,
            "no variable to draw. Variables in posterior of 'one', 'other': none",
        ),
    ],
)
def test_input_that_cannot_be_drawn_is_reported(analyses, names, message):
    with pytest.raises(ValueError, match=message):
        comparable(analyses, names)


def test_other_dims_and_coordinates_are_told():
    one = analysis(["p"])
    without = xr.DataTree.from_dict({"posterior": one["posterior"].dataset.isel(answer=0)})
    with pytest.raises(ValueError, match=r"'p' has dims .* in 'one', but .* in 'other'"):
        comparable({"one": one, "other": without}, None)
    for labels in (["yes", "never"], ["yes", "no"], ["no", "yes", "never"]):
        with pytest.raises(ValueError, match="'one', 'other' don't have the same entries"):
            comparable({"one": one, "other": analysis(["p"], labels)}, None)


def drawn(values, dims=("cell",), coords=("a", "b", "c")):
    """Draws of a naive analysis, (chain, draw, cell)."""
    return az.from_dict(
        {"posterior": {"p": values}}, dims={"p": list(dims)}, coords={dims[0]: list(coords)}
    )


def dirichlet(*size):
    return np.random.default_rng(1).dirichlet([14, 11, 4], size=size)


@pytest.fixture(scope="module")
def naive():
    return drawn(dirichlet(2, 200))


def test_densities_and_intervals_are_those_of_the_draws(private, naive):
    analyses = {"private": private, "naive": naive}
    collection = plot_analyses(analyses)
    assert set(collection.viz["dist"]["p"].sizes.items()) == {("model", 2), ("cell", 3)}
    for name, tree in analyses.items():
        interval = eti(tree["posterior"]["p"])
        for cell in "abc":
            values = tree["posterior"]["p"].sel(cell=cell).values.ravel()
            x, y = collection.viz["dist"]["p"].sel(model=name, cell=cell).item().get_data()
            # Smoothing doesn't change the mean of a density, except for the grid.
            assert np.trapezoid(y, x) == pytest.approx(1, abs=0.02)
            assert np.trapezoid(x * y, x) == pytest.approx(values.mean(), abs=0.1 * values.std())
            line = collection.viz["credible_interval"]["p"].sel(model=name, cell=cell).item()
            np.testing.assert_allclose(line.get_xdata(), interval.sel(cell=cell))
            assert line.get_ydata()[0] < 0


def test_private_and_naive_have_their_colours(private, naive):
    drawn_in = {
        name: line.get_color()
        for analyses in ({"private": private, "naive": naive}, {"naive": naive, "private": private})
        for name, line in zip(
            analyses, plot_analyses(analyses).viz["dist"]["p"].sel(cell="a").values, strict=True
        )
    }
    assert drawn_in == {name: COLOURS[name] for name in ("private", "naive")}


def test_variables_and_entries_are_chosen(private, naive):
    analyses = {"private": private, "also private": private}
    shown = plot_analyses(analyses).viz["plot"]
    assert set(shown.data_vars) == {"p", "log_odds"}
    assert set(plot_analyses(analyses, var_names="~p").viz["plot"].data_vars) == {"log_odds"}
    # What the naive analysis doesn't have is left out.
    some = plot_analyses({"private": private, "naive": naive}, coords={"cell": ["a", "c"]})
    assert set(some.viz["plot"].data_vars) == {"p"}
    assert some.viz["plot"]["p"].sizes == {"cell": 2}


def test_analyses_may_have_different_numbers_of_draws(private):
    few, many = dirichlet(1, 150), dirichlet(3, 400)
    collection = plot_analyses({"few": drawn(few), "many": drawn(many)})
    lines = collection.viz["credible_interval"]["p"].sel(cell="a")
    # All draws of the analysis with few of them, as many of the other.
    np.testing.assert_allclose(lines.sel(model="few").item().get_xdata(), eti(few[0, :, 0]))
    thinned = lines.sel(model="many").item().get_xdata()
    # A 5.5 % quantile of 150 draws has standard error 0.1 to 0.2 sd: 4 of them are 0.8 sd.
    np.testing.assert_allclose(thinned, eti(many[..., 0].ravel()), atol=0.8 * many[..., 0].std())


def test_options_are_passed_on(private, naive):
    collection = plot_analyses(
        {"private": private, "naive": naive},
        kind="ecdf",
        color=["red", "blue"],
        visuals={"credible_interval": False, "point_estimate": False, "legend": False},
        figure_kwargs={"figsize": (6, 2)},
    )
    lines = collection.viz["dist"]["p"].sel(cell="a")
    assert lines.sel(model="private").item().get_color() == "red"
    assert lines.sel(model="naive").item().get_color() == "blue"
    for name in ("credible_interval", "point_estimate", "legend"):
        assert name not in collection.viz
    np.testing.assert_allclose(collection.viz["figure"].item().get_size_inches(), [6, 2])


def test_the_legend_names_the_analyses(private, naive):
    collection = plot_analyses({"private": private, "naive": naive})
    (legend,) = collection.viz["figure"].item().legends
    assert [text.get_text() for text in legend.get_texts()] == ["private", "naive"]


def test_what_cannot_be_compared_is_refused(private, naive):
    with pytest.raises(TypeError, match="pass several results by name"):
        plot_analyses(private)
    with pytest.raises(ValueError, match="no analysis to draw"):
        plot_analyses({})
    with pytest.raises(ValueError, match=r"'q'.*in posterior of 'private', 'naive': 'p'"):
        plot_analyses({"private": private, "naive": naive}, var_names="q")
    with pytest.raises(ValueError, match=r"var_names='~p' must choose .*'private', 'naive': 'p'"):
        plot_analyses({"private": private, "naive": naive}, var_names="~p")
    other_dims = drawn(dirichlet(2, 200), dims=("group",))
    with pytest.raises(ValueError, match=r"'p' has dims .*cell.* in 'private'.*group.* in 'naive'"):
        plot_analyses({"private": private, "naive": other_dims})
    other_coords = drawn(dirichlet(2, 200), coords=(0, 1, 2))
    with pytest.raises(ValueError, match="don't have the same entries"):
        plot_analyses({"private": private, "naive": other_coords})
    prior_only = xr.DataTree.from_dict({"prior": naive["posterior"].dataset})
    with pytest.raises(ValueError, match="'naive' has no group 'posterior'"):
        plot_analyses({"private": private, "naive": prior_only})
