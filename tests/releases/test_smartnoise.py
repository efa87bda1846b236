from types import SimpleNamespace

import pytest

import pymc_dapper as pmd
from pymc_dapper.releases import smartnoise_mechanism


def library(kind, scale=2.5):
    return SimpleNamespace(mechanism=SimpleNamespace(name=kind), scale=scale)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("laplace", pmd.LaplaceMechanism(2.5)),
        ("gaussian", pmd.GaussianMechanism(2.5)),
        ("geometric", pmd.DiscreteLaplaceMechanism(2.5)),
    ],
)
def test_kinds_of_noise(kind, expected):
    assert repr(smartnoise_mechanism(library(kind))) == repr(expected)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (library("snapping"), ValueError, "no noise 'snapping'"),
        (library("laplace", None), ValueError, "its scale isn't told"),
        (library("laplace", -1.0), ValueError, "mechanism: scale"),
        (SimpleNamespace(scale=1.0), TypeError, "must be a noise mechanism"),
    ],
)
def test_what_cannot_be_read_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        smartnoise_mechanism(given)
