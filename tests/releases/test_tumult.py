import json
from dataclasses import replace
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.releases import tumult_mechanisms

# Made by Tumult Analytics itself: `libraries/record_tumult.py`.
RECORDED = json.loads((Path(__file__).parent / "data" / "tumult.json").read_text("utf-8"))["found"]

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


def uniform(noise, mechanism, times=1):
    """Noise as a uniform variate, by the law that was read, with so many times its scale."""
    scale = times * getattr(mechanism, "scale", getattr(mechanism, "sigma", None))
    match type(mechanism).__name__:
        case "DiscreteLaplaceMechanism":
            law, ends = stats.dlaplace(1 / scale), (noise - 1, noise)
        case "DiscreteGaussianMechanism":  # of this width as good as a normal law, rounded
            law, ends = stats.norm(scale=scale), (noise - 0.5, noise + 0.5)
        case "LaplaceMechanism":
            law, ends = stats.laplace(scale=scale), (noise, noise)
        case "GaussianMechanism":
            law, ends = stats.norm(scale=scale), (noise, noise)
    low, high = map(law.cdf, ends)
    return low + np.random.default_rng(1).uniform(size=noise.size) * (high - low)


@pytest.mark.parametrize("told", RECORDED, ids=lambda told: f"{told['query']}, {told['budget']}")
def test_noise_that_tumult_added_has_the_law_that_is_read(told):
    if told["true"] is None:
        with pytest.raises(ValueError, match=r"'x': a quantile has no noise|has 2 noises"):
            tumult_mechanisms(told["noise_info"], "x")
        return
    mechanism = tumult_mechanisms(told["noise_info"], "x")["x"]
    frame = {"group": list(range(len(told["released"]))), "x": told["released"]}
    release = pmd.read_release(frame, values="x", noise=mechanism, dims="group")
    true = np.zeros(len(told["released"]))
    true[: len(told["true"])] = told["true"]
    noise = release["x"].values - true
    assert stats.kstest(uniform(noise, mechanism), "uniform").pvalue > 1e-3
    assert stats.kstest(uniform(noise, mechanism, times=2), "uniform").pvalue < 1e-3


@pytest.mark.parametrize(
    ("told", "error", "message"),
    [
        (info((Noise.EXPONENTIAL, 1.0)), ValueError, "'a': a quantile has no noise"),
        (info((Noise.LAPLACE, -1.0)), ValueError, "'a': noise_parameter"),
        ([{"noise_mechanism": Noise.LAPLACE}], ValueError, "'a': 'noise_parameter' is missing"),
        (info((Noise.LAPLACE, 1.0), (Noise.LAPLACE, 1.0)), ValueError, "2 noises"),
        (3.0, TypeError, "noise_info must be"),
    ],
)
def test_wrong_or_incomplete_metadata_is_refused_by_name(told, error, message):
    with pytest.raises(error, match=message):
        tumult_mechanisms(told, "a")


def test_columns_differ():
    with pytest.raises(ValueError, match="different columns"):
        tumult_mechanisms(info((Noise.LAPLACE, 1.0)) * 2, ["a", "a"])


# Made by Tumult Core: `libraries/record_tumult_quantiles.py`.
QUANTILES = json.loads(
    (Path(__file__).parent / "data" / "tumult_quantiles.json").read_text("utf-8")
)["found"]


@pytest.mark.parametrize("told", QUANTILES, ids=lambda told: f"{told['quantile']}")
def test_quantiles_that_tumult_drew_have_the_law_that_is_read(told):
    """The broken twin has twice the scale."""
    low, high, records = told["lower"], told["upper"], np.array(told["records"])
    asked = {"age": (told["quantile"], low, high)}
    read = tumult_mechanisms(info((Noise.EXPONENTIAL, told["epsilon"])), "age", quantiles=asked)
    edges = np.unique(np.clip([low, *records, high], low, high))
    found = np.histogram(told["released"], edges)[0]
    for times, same in ((1, True), (2, False)):
        mechanism = replace(read["age"], scale=times * read["age"].scale)
        logp = mechanism.logp(low + np.arange(high - low) + 0.5, mechanism.statistic(records))
        by_unit = np.exp(logp.eval(mode="FAST_COMPILE"))
        expected = np.add.reduceat(by_unit, edges[:-1] - low) * len(told["released"])
        assert (stats.chisquare(found, expected).pvalue > 1e-4) == same


@pytest.mark.parametrize(
    ("kind", "quantiles", "message"),
    [
        ("EXPONENTIAL", {"b": (0.5, 0, 9)}, "quantiles: there is no column 'b', but"),
        ("EXPONENTIAL", {"a": (0.5, 0, 9.5)}, "'a': quantile.*upper must be a whole number"),
        ("EXPONENTIAL", {"a": (5, 0, 9)}, "'a': quantile.*alpha must be"),
        ("LAPLACE", {"a": (0.5, 0, 9)}, "'a' isn't a quantile"),
    ],
)
def test_quantiles_that_cannot_be_are_refused(kind, quantiles, message):
    with pytest.raises((TypeError, ValueError), match=message):
        tumult_mechanisms(info((Noise[kind], 1.0)), "a", quantiles=quantiles)
