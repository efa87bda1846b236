from enum import Enum

import pytest

import pymc_dapper as pmd
from pymc_dapper.releases import tumult_mechanisms

Noise = Enum("Noise", "LAPLACE GEOMETRIC DISCRETE_GAUSSIAN EXPONENTIAL GAUSSIAN")


def info(*pairs):
    return [{"noise_mechanism": kind, "noise_parameter": number} for kind, number in pairs]


def test_noise_of_each_column():
    told = info(
        (Noise.LAPLACE, 2.0),
        (Noise.GEOMETRIC, 3),
        (Noise.GAUSSIAN, 9.0),
        (Noise.DISCRETE_GAUSSIAN, 16),
    )
    found = tumult_mechanisms(told, ["a", "b", "c", "d"])
    expected = [
        pmd.LaplaceMechanism(2.0),
        pmd.DiscreteLaplaceMechanism(3.0),
        pmd.GaussianMechanism(3.0),
        pmd.DiscreteGaussianMechanism(4.0),
    ]
    assert list(found) == ["a", "b", "c", "d"]
    assert [repr(x) for x in found.values()] == [repr(x) for x in expected]
    frame = {"sex": ["m", "f"], "a": [1.0, 2.0]}
    noise = tumult_mechanisms(told[:1], "a")
    assert pmd.read_release(frame, values="a", noise=noise, dims="sex").names == ("a",)


@pytest.mark.parametrize(
    ("told", "error", "message"),
    [
        (info((Noise.EXPONENTIAL, 1.0)), ValueError, "'a': noise of kind EXPONENTIAL"),
        (info((Noise.LAPLACE, -1.0)), ValueError, "'a': noise_parameter"),
        ([{"noise_mechanism": Noise.LAPLACE}], ValueError, "'a': 'noise_parameter' is missing"),
        (info((Noise.LAPLACE, 1.0), (Noise.LAPLACE, 1.0)), ValueError, "2 noises"),
        (3.0, TypeError, "noise_info must be"),
    ],
)
def test_wrong_or_incomplete_metadata_is_refused_by_name(told, error, message):
    with pytest.raises(error, match=message):
        tumult_mechanisms(told, "a")
