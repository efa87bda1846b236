import math
from types import SimpleNamespace

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.releases import diffprivlib_mechanism


def library(kind, **attributes):
    """A mechanism as diffprivlib 0.6.6 makes it: its class, and what its instances have."""
    attributes = {"epsilon": 0.5, "delta": 0.0, "sensitivity": 2, **attributes}
    return type(kind, (SimpleNamespace,), {"randomise": lambda self, value: value})(**attributes)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (library("Laplace"), pmd.LaplaceMechanism(4.0)),
        (library("Laplace", delta=0.1), pmd.LaplaceMechanism(2 / (0.5 - math.log(0.9)))),
        (
            library("LaplaceTruncated", lower=0, upper=9.5),
            pmd.LaplaceMechanism(4.0).clamped(0, 9.5),
        ),
        (library("Gaussian", variance=lambda value: 9.0), pmd.GaussianMechanism(3.0)),
        (library("GaussianAnalytic", variance=lambda value: 9.0), pmd.GaussianMechanism(3.0)),
        (library("GaussianDiscrete", _scale=3.5), pmd.DiscreteGaussianMechanism(3.5)),
        (library("Geometric"), pmd.DiscreteLaplaceMechanism(4.0)),
        (
            library("GeometricTruncated", lower=0, upper=math.inf),
            pmd.DiscreteLaplaceMechanism(4.0).clamped(0, None),
        ),
        (
            library("GeometricTruncated", lower=0, upper=2**63 - 1),
            pmd.DiscreteLaplaceMechanism(4.0).clamped(0, None),
        ),
        (library("Binary"), pmd.RandomizedResponse.calibrate(pmd.PureDP(0.5), categories=2)),
        (
            library("Exponential", utility=[1, 2, 3], monotonic=False),
            pmd.NoisyMaxMechanism(8.0, 3),
        ),
        (
            library("PermuteAndFlip", utility=[1, 2, 3], monotonic=True),
            pmd.NoisyMaxMechanism(4.0, 3, noise="exponential"),
        ),
    ],
)
def test_mechanisms_are_read(given, expected):
    assert repr(diffprivlib_mechanism(given)).partition(", budget")[0].rstrip(")") == repr(
        expected
    ).partition(", budget")[0].rstrip(")")


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (library("Laplace", epsilon=0), ValueError, "Laplace: epsilon"),
        (library("Gaussian"), TypeError, "Gaussian doesn't tell its variance"),
        (
            library("LaplaceFolded"),
            ValueError,
            "diffprivlib's LaplaceFolded: it has no likelihood here. These have one: Laplace",
        ),
        (library("Laplace", sensitivity=0), ValueError, "Laplace: scale"),
        (
            library("Exponential", measure=[1.0], monotonic=True, utility=[1]),
            ValueError,
            "IntervalQuant",
        ),
        (np.float64(3), TypeError, "must be one of diffprivlib's"),
    ],
)
def test_what_cannot_be_read_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        diffprivlib_mechanism(given)
