"""Releases of OpenDP, by what it tells. Its own are made in statistical/test_opendp.py."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import pymc_dapper as pmd
from pymc_dapper.releases import opendp_mechanism, read_opendp

SUMMARY = {
    "column": ["len", "age"],
    "aggregate": ["Frame Length", "Sum"],
    "distribution": ["Integer Laplace", "Float Gaussian"],
    "scale": [12.0, 300.0],
    "accuracy": [36.4, 588.0],
}
FRAME = pd.DataFrame({"sex": ["m", "f"], "len": [240, 180], "age": [9308.5, 9840.25]})


def summary(**columns):
    return {**SUMMARY, **columns}


def test_columns_become_queries():
    release = read_opendp(SUMMARY, FRAME, budget=pmd.PureDP(1.0))
    assert release.names == ("len", "age")
    assert release["len"].values.tolist() == [240, 180]
    assert repr(release["len"].mechanism) == "DiscreteLaplaceMechanism(scale=12)"
    assert repr(release["age"].mechanism) == "GaussianMechanism(sigma=300)"
    assert release.budget == pmd.PureDP(1.0)
    assert release.coords == {"sex": ("m", "f")}


def test_counts_of_an_unsigned_type_were_clamped():
    release = read_opendp(SUMMARY, FRAME.astype({"len": "uint32"}))
    assert repr(release["len"].mechanism).endswith("(scale=12).clamped(0, None)")
    assert repr(release["age"].mechanism) == "GaussianMechanism(sigma=300)"


def test_without_groups_values_are_numbers():
    release = read_opendp(SUMMARY, FRAME.drop(columns="sex").iloc[:1])
    assert release["len"].values == 240
    assert release["len"].dims == ()


def test_groups_below_a_threshold_are_suppressed():
    told = {key: column[:1] for key, column in summary(threshold=[180, None]).items()}
    frame = FRAME[["sex", "len"]].assign(len=[240, 181])
    release = read_opendp(told, frame, coords={"sex": ["f", "x", "m"]})
    assert release["len"].values.tolist() == [181, None, 240]
    assert repr(release["len"].mechanism).endswith(".nonempty().published_if('>', 180)")


@pytest.mark.parametrize("of", [dict, pd.DataFrame])
def test_columns_beside_a_count_with_a_threshold_have_none(of):
    """Where there is none, Polars has null and pandas nan."""
    told = of(summary(threshold=[100.0, None]))
    release = read_opendp(told, FRAME, coords={"sex": ["f", "m"]})
    assert repr(release["len"].mechanism).endswith(".nonempty().published_if('>', 100)")
    assert repr(release["age"].mechanism) == "GaussianMechanism(sigma=300)"
    assert release["age"].values.tolist() == [9840.25, 9308.5]


def test_other_columns_are_by_the_groups_that_were_published():
    told = summary(threshold=[100.0, np.nan])
    release = read_opendp(told, FRAME, coords={"sex": ["f", "x", "m"]})
    assert release["len"].dims == ("sex",)
    assert release["age"].dims == ("sex_published",)
    assert release["age"].coords == {"sex_published": ("m", "f")}
    assert release["age"].values.tolist() == [9308.5, 9840.25]
    frame = FRAME.assign(race=["a", "b"])
    both = read_opendp(told, frame, coords={"sex": ["f", "m"], "race": ["a", "b"]})
    assert both["age"].coords == {"sex_race_published": ("m, a", "f, b")}


@pytest.mark.parametrize(
    ("told", "frame", "coords", "message"),
    [
        (summary(scale=[None, 1.0]), FRAME, None, "'len': scale is missing"),
        (summary(scale=[-1.0, 1.0]), FRAME, None, "'len': .*scale"),
        (summary(distribution=["ExponentialMax", None]), FRAME, None, "'len': noise of kind 'Exp"),
        (summary(column=["age", "age"]), FRAME, None, "'age': a ratio"),
        ({"column": ["len"]}, FRAME, None, "no column 'aggregate'"),
        (SUMMARY, FRAME.drop(columns="age"), None, "no column 'age'"),
        (SUMMARY, FRAME.assign(age=[1.0, np.nan]), None, "'age': there is no value of sex 'f'"),
        (SUMMARY, FRAME, {"sex": ["m", "f", "x"]}, "'len': there is no value of sex 'x'"),
        (SUMMARY, FRAME, {"race": ["a"]}, "coords has labels of 'race'"),
        (summary(threshold=[180, None]), FRAME, None, "'len': groups were left out .*180.*'sex'"),
        (
            summary(threshold=[100, None]),
            FRAME.assign(age=[1.0, np.nan]),
            {"sex": ["m", "f", "x"]},
            "'age': there is no value of sex_published 'f'",
        ),
        (SUMMARY, {"len": [1], "age": [2.0]}, None, "released must be"),
        (SUMMARY, FRAME.drop(columns="sex"), None, "'len': released has 2 rows, and no column"),
    ],
)
def test_wrong_or_incomplete_metadata_is_refused_by_name(told, frame, coords, message):
    with pytest.raises((TypeError, ValueError), match=message):
        read_opendp(told, frame, coords=coords)


def measurement(function, carrier_type="i32", **given):
    domain = SimpleNamespace(carrier_type=carrier_type)
    made = {"__function__": function, "__kwargs__": {"input_domain": domain, **given}}
    return SimpleNamespace(__opendp_dict__=made)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (measurement("make_laplace", scale=2.0), pmd.DiscreteLaplaceMechanism(2.0)),
        (measurement("make_laplace", "Vec<f64>", scale=2.0), pmd.LaplaceMechanism(2.0)),
        (measurement("make_gaussian", "Vec<u8>", scale=2.0), pmd.DiscreteGaussianMechanism(2.0)),
        (measurement("make_gaussian", "f32", scale=2.0, k=-40), pmd.GaussianMechanism(2.0)),
        (measurement("make_randomized_response_bool", prob=0.75), pmd.RandomizedResponse(0.75, 2)),
        (
            measurement("make_chain_mt", measurement1=measurement("make_geometric", scale=2.0)),
            pmd.DiscreteLaplaceMechanism(2.0),
        ),
    ],
)
def test_constructors_tell_their_noise(given, expected):
    assert repr(opendp_mechanism(given)) == repr(expected)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (measurement("make_geometric", scale=2.0, bounds=(0, 9)), "bounds"),
        (measurement("make_laplace", "f64", scale=2.0, k=0), r"multiples of 2\^0"),
        (measurement("make_laplace"), "make_laplace doesn't tell its 'scale'"),
        (measurement("make_chain_mt"), "make_chain_mt doesn't tell its 'measurement1'"),
        (
            SimpleNamespace(__opendp_dict__={"__kwargs__": 2}),
            "must be one of OpenDP's constructors",
        ),
        (measurement("make_chain_pm"), "make_chain_pm can't be read"),
        (SimpleNamespace(), "must be one of OpenDP's constructors"),
    ],
)
def test_other_measurements_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        opendp_mechanism(given)
