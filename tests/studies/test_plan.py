import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.studies.plan import _Planned

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


def test_what_is_simulated_is_what_is_modelled():
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


@pytest.mark.long
def test_widths_are_those_of_the_posterior():
    """Of Gaussian noise the posterior is normal: its width is known."""
    result = pmd.plan(
        draw,
        model,
        MECHANISMS,
        [0.5, 2.0],
        replicates=2,
        seed=1,
        progressbar=False,
        missing_information=False,
        sample_kwargs={"draws": 2000, "tune": 500},
    )
    found = result["share"].dataset["width"].sel(mechanism="Gaussian").mean("replicate").values
    sd = [(1 + N**2 / (N + (N / epsilon) ** 2)) ** -0.5 for epsilon in (0.5, 2.0)]
    np.testing.assert_allclose(found, 2 * stats.norm.ppf(0.95) * np.array(sd), rtol=0.08)
    assert pmd.plot_study(result).viz["figure"].item() is not None
