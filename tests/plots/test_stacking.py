"""Several analyses as one dataset: of the same variables, with the same dims and coordinates."""

import numpy as np
import pytest
import xarray as xr

from pymc_dapper.plots.stacking import MODEL, stack, variables


def analysis(names, labels=("no", "yes")):
    posterior = xr.Dataset(
        {name: (("chain", "draw", "answer"), np.ones((2, 3, len(labels)))) for name in names},
        coords={"answer": list(labels)},
    )
    return xr.DataTree.from_dict({"posterior": posterior})


def test_variables_are_those_that_all_have_in_the_order_of_the_first():
    both = {"one": analysis(["q", "p", "r"]), "other": analysis(["p", "q", "s"])}
    assert variables(both, None) == ["q", "p"]
    assert variables(both, ["p"]) == ["p"]
    assert variables(both, ["~p"]) == ["q"]


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
        variables(analyses, names)


def test_analyses_stand_one_behind_the_other():
    datasets = {name: analysis(["p"])["posterior"].dataset for name in ("one", "other")}
    stacked = stack({"one": datasets["one"], "other": 2 * datasets["other"]})
    assert list(stacked[MODEL].values) == ["one", "other"]
    np.testing.assert_array_equal(stacked["p"].sel(answer="yes").mean(("chain", "draw")), [1, 2])


def test_other_dims_and_coordinates_are_told():
    one = analysis(["p"])["posterior"].dataset
    with pytest.raises(ValueError, match=r"'p' has dims .* in 'one', but .* in 'other'"):
        stack({"one": one, "other": one.isel(answer=0, drop=True)})
    others = analysis(["p"], ["yes", "never"])["posterior"].dataset
    with pytest.raises(ValueError, match="'one', 'other' don't have the same entries"):
        stack({"one": one, "other": others})
