from types import SimpleNamespace

import pytest

import pymc_dapper as pmd
from pymc_dapper.releases import smartnoise_mechanism


def library(kind, scale=2.5, **more):
    """A mechanism as SmartNoise SQL 1.0.10 makes it."""
    return SimpleNamespace(mechanism=SimpleNamespace(name=kind), scale=scale, **more)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("laplace", pmd.LaplaceMechanism(2.5)),
        ("gaussian", pmd.GaussianMechanism(2.5)),
        ("geometric", pmd.DiscreteLaplaceMechanism(2.5)),
    ],
)
def test_kinds_of_noise(kind, expected):
    given = library(kind, threshold=7.5)
    assert repr(smartnoise_mechanism(given, "float")) == repr(expected)
    cut = expected.rounded(1, ties="toward zero")
    assert repr(smartnoise_mechanism(given, "int")) == repr(cut)
    told = smartnoise_mechanism(given, "int", clamp_counts=True, censor_dims=True)
    rules = ".nonempty().published_if('>', 7.5).clamped(0, None).rounded(1, ties='toward zero')"
    assert repr(told) == repr(expected) + rules


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (library("snapping"), ValueError, "no noise 'snapping'"),
        (library("laplace", "wide"), ValueError, "mechanism: could not convert"),
        (library("laplace", None), ValueError, "its scale isn't told"),
        (library("laplace", -1.0), ValueError, "mechanism: scale"),
        (SimpleNamespace(scale=1.0), TypeError, "must be a noise mechanism"),
    ],
)
def test_what_cannot_be_read_is_refused(given, error, message):
    with pytest.raises(error, match=message):
        smartnoise_mechanism(given, "int")


def test_a_threshold_that_is_not_told_is_refused():
    with pytest.raises(ValueError, match="its threshold isn't told"):
        smartnoise_mechanism(library("laplace"), "int", censor_dims=True)
    with pytest.raises(ValueError, match="column must be"):
        smartnoise_mechanism(library("laplace"), "text")
