"""What a mechanism says of single cells: its own log-density, if it has one for each."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.answers.law import law_of


def query(mechanism, values):
    return pmd.Query("cases", values, mechanism)


def test_it_is_the_mechanisms_own_log_density():
    mechanism = pmd.LaplaceMechanism(np.array([2.0, 3.0]))
    law = law_of(query(mechanism, [4.5, 7.5]), whole=True)
    x = np.arange(20).reshape(10, 2)
    expected = mechanism.logp(np.array([4.5, 7.5]), x).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(law(x), expected, rtol=1e-14)


def test_cells_with_the_same_release_share_a_row():
    values = [3, 5, 3, 3]
    law = law_of(query(pmd.DiscreteLaplaceMechanism(2.0), values), whole=True)
    assert law.which.tolist() == [0, 1, 0, 0]
    assert law.near.tolist() == [3, 5]
    of_two_scales = query(pmd.DiscreteLaplaceMechanism(np.array([2.0, 2, 2, 4])), values)
    assert law_of(of_two_scales, whole=True).which.tolist() == [0, 1, 2, 3]


def test_likely_values_are_found_back_through_the_rules():
    mechanism = pmd.LaplaceMechanism(1.0).times(100).published_if(">=", 500)
    law = law_of(query(mechanism, np.ma.masked_array([700.0, 0], [False, True])), whole=True)
    assert law.near[law.which].tolist() == [7.0, 5.0]


def shared(released, statistic):
    """Log-density of noise on differences from the mean."""
    return -pt.abs(released - (statistic - statistic.mean(axis=-1, keepdims=True)))


@pytest.mark.parametrize(
    ("mechanism", "values"),
    [
        (pmd.KNormMechanism(2.0, norm=2), [1.0, 2.0, 3.0]),
        (pmd.CustomMechanism(shared), [1.0, 2.0, 3.0]),
        (pmd.NoisyMaxMechanism.calibrate(pmd.PureDP(1.0), sensitivity=1.0, candidates=3), [1]),
    ],
)
def test_mechanisms_of_several_cells_at_once_are_refused(mechanism, values):
    with pytest.raises(ValueError, match=r"'cases': \w+ doesn't release each cell by itself"):
        law_of(query(mechanism, values), whole=True)


def test_a_noise_scale_that_is_unknown_is_refused():
    with pm.Model():
        mechanism = pmd.LaplaceMechanism(pm.HalfNormal("scale"))
    with pytest.raises(ValueError, match="the noise scale is a variable of a model"):
        law_of(query(mechanism, [1.0]), whole=True)


def test_a_log_density_that_is_nan_is_reported():
    law = law_of(
        query(pmd.CustomMechanism(lambda r, s: pt.log(s + 10.0) + 0 * r), [1.0]), whole=True
    )
    with pytest.raises(ValueError, match="'cases': the mechanism's log-density is nan"):
        law(np.array([[-20]]))


def test_a_log_density_in_single_precision_can_be_drawn_from():
    """As PyTensor makes it of plain numbers: probabilities have to add up to 1 in double."""

    def uniform(released, statistic):
        return pt.switch(pt.abs(released - statistic) <= 10, -pt.log(21.0), -np.inf)

    mechanism = pmd.CustomMechanism(uniform, whole_numbers=True)
    assert mechanism.logp(np.array([3]), np.array([3])).dtype == "float32"
    values = np.arange(60)
    drawn = pmd.Release(query(mechanism, values)).posterior(random_seed=1).draws.values
    assert np.abs(drawn - values[:, None]).max() == 10
