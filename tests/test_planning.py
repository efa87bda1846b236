import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.planning import Plan, _Planned

N = 20


def draw(rng):
    share = rng.normal(0.0, 1.0)
    return {"total": rng.normal(share, 1.0, N).sum()}, {"share": share}


def model(release):
    with pm.Model() as built:
        share = pm.Normal("share", 0, 1)
        release.potential(pm.Normal("record", share, 1, shape=N).sum())
    return built


def laplace(epsilon):
    return pmd.LaplaceMechanism(N / epsilon)


def gaussian(epsilon):
    return {"total": pmd.GaussianMechanism(N / epsilon)}


MECHANISMS = {"Laplace": laplace, "Gaussian": gaussian}


def test_simulated_releases_fit_the_model():
    planned = _Planned(draw, model, MECHANISMS)
    for label, kind in (("Laplace", pmd.LaplaceMechanism), ("Gaussian", pmd.GaussianMechanism)):
        released, truth = planned.simulate(np.random.default_rng(1), label, 2.0)
        built = planned.build(released, label, 2.0)
        assert set(truth) == {"share"}
        assert isinstance(built["total"].tag.mechanism, kind)
        assert built["total_released"].get_value() == released["total"]


def test_a_mechanism_for_each_query_is_needed():
    planned = _Planned(draw, model, {"none": lambda epsilon: {"other": laplace(epsilon)}})
    with pytest.raises(TypeError, match="mechanisms: 'none' must give a Mechanism for 'total'"):
        planned.simulate(np.random.default_rng(1), "none", 1.0)


def study_of(children):
    """A study of two mechanisms at two budgets, with two releases each; one release failed."""
    settings = {"mechanism": ["Laplace", "Gaussian"], "epsilon": [0.5, 2.0]}
    status = np.full((2, 2, 2), "done")
    status[1, 1, 1] = "failed"
    width = np.arange(8.0).reshape(2, 2, 2)
    width[1, 1, 1] = np.nan
    dims = (*settings, "replicate")
    share = xr.Dataset(
        {
            "width": (dims, width),
            "covered": (dims, np.where(np.isnan(width), np.nan, 1.0)),
            "coverage": (dims[:2], np.ones((2, 2))),
            "coverage_mcse": (dims[:2], np.full((2, 2), 0.25)),
        },
        settings,
    )
    root = xr.Dataset({"status": (dims, status)}, settings, {"prob": 0.9, "seed": 1})
    return xr.DataTree(root, children={"share": xr.DataTree(share)} if children else None)


def test_a_plan_is_shown_as_a_table_and_in_a_notebook_with_its_figure():
    plan = Plan(study_of(children=True))
    assert (
        repr(plan)
        == """\
Width and coverage of 90 % intervals
parameter  mechanism  epsilon  width  coverage     releases
share      Laplace    0.5      0.5    1.00 ± 0.25  2
share      Laplace    2        2.5    1.00 ± 0.25  2
share      Gaussian   0.5      4.5    1.00 ± 0.25  2
share      Gaussian   2        6      1.00 ± 0.25  1"""
    )
    before = plt.get_fignums()
    html = plan._repr_html_()
    assert "<td>Gaussian</td><td>2</td><td>6</td>" in html
    assert '<img src="data:image/png;base64,' in html
    # A notebook shows what pyplot holds by itself.
    assert plt.get_fignums() == before
    assert [line.get_label() for line in plan.figure.axes[0].get_lines()] == [
        "Laplace",
        "Gaussian",
    ]


def test_a_plan_without_finished_cells_is_an_empty_table():
    plan = Plan(study_of(children=False))
    assert "<img" not in plan._repr_html_()
    assert repr(plan).count("\n") == 1


@pytest.mark.long
def test_widths_are_those_of_the_posterior():
    """Of Gaussian noise the posterior is normal: its width is known."""
    plan = pmd.plan(
        draw,
        model,
        {"Gaussian": gaussian},
        [0.5, 2.0],
        replicates=2,
        seed=1,
        progressbar=False,
        missing_information=False,
        sample_kwargs={"draws": 2000, "tune": 500},
    )
    found = plan.study["share"].dataset["width"].sel(mechanism="Gaussian").mean("replicate").values
    sd = [(1 + N**2 / (N + (N / epsilon) ** 2)) ** -0.5 for epsilon in (0.5, 2.0)]
    np.testing.assert_allclose(found, 2 * stats.norm.ppf(0.95) * np.array(sd), rtol=0.08)
    assert "<img" in plan._repr_html_()
