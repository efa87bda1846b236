import json
from pathlib import Path

import numpy as np
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.releases.mechanism_json import (
    KINDS,
    NONEMPTY,
    RULES,
    _names,
    mechanism_from_dict,
    mechanism_to_dict,
)

LAPLACE = pmd.LaplaceMechanism(2.5)
MECHANISMS = [
    pmd.LaplaceMechanism(2.5),
    pmd.LaplaceMechanism(np.array([[1.0, 2.0]])),
    pmd.GaussianMechanism.calibrate(pmd.ZCDP(0.1), sensitivity=1.0),
    pmd.DiscreteLaplaceMechanism(3).nonempty().clamped(0, None).published_if(">", 4),
    pmd.DiscreteGaussianMechanism(0.1 + 0.2).rounded(5, ties="half up").clamped(None, 100),
    pmd.LaplaceMechanism(2.0).rounded(0.1).times(100).published_if(">=", 1.5),
    pmd.GaussianMechanism(1.5).in_ranges([0, 10, 20.5]),
    pmd.TulapMechanism(0.5, 0.01),
    pmd.IntervalQuantileMechanism(0, 100, 0.9, 2.0),
    pmd.KNormMechanism(2.0, np.inf),
    pmd.KNormMechanism(2.0, 2),
    pmd.LInfMechanism(2.0),
    pmd.NoisyMaxMechanism(2.0, 5, k=2),
    pmd.QuantileMechanism([1.0, 2.5, 4.0], 0.9, 2.0, "exponential"),
    pmd.NoisyStats(1.0, 40),
    pmd.RandomRounding(3),
    pmd.RandomRounding(5, [0.1, 0.2, 0.7, 0.9]).published_if(">=", 10),
    pmd.TransitionMechanism([[0.8, 0.2], [0.1, 0.9]], [0, 5]),
    pmd.TransitionMechanism([[1.0, 0.0], [0.4, 0.6]], differences=[0, 1], repeats=1),
    pmd.CellKey({"i": [0, 1, 1], "v": [0, 0, 1], "p": [1.0, 0.5, 0.5]}),
    pmd.RandomizedResponse.calibrate(pmd.PureDP(1.0), categories=3),
]


def test_all_kinds_are_tried():
    assert {type(each).__name__ for each in MECHANISMS} == set(KINDS)
    public = {n for n in pmd.mechanisms.__all__ if n not in ("Mechanism", "published_rows")}
    assert public == {*KINDS, "CustomMechanism"}
    written = [mechanism_to_dict("q", each).get("rules", []) for each in MECHANISMS]
    assert {rule["kind"] for rules in written for rule in rules} == {*RULES, NONEMPTY}


def test_the_page_has_all_kinds_with_their_parameters():
    page = (Path(__file__).parents[2] / "docs" / "releases.md").read_text("utf-8")
    for kind, made in KINDS.items():
        parameters = ", ".join(f"`{name}`" for name in _names(made))
        assert f"| `{kind}` | {parameters} |" in page


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_a_mechanism_comes_back_as_it_was(mechanism):
    content = json.loads(json.dumps(mechanism_to_dict("q", mechanism), allow_nan=False))
    again = mechanism_from_dict("q", content)
    assert type(again) is type(mechanism)
    assert repr(again) == repr(mechanism)
    assert again.budget == mechanism.budget
    # To the last digit, which repr leaves out.
    assert mechanism_to_dict("q", again) == mechanism_to_dict("q", mechanism)
    for key in ("scale", "sigma", "publication"):
        if hasattr(mechanism, key) and key != "publication":
            np.testing.assert_array_equal(getattr(again, key), getattr(mechanism, key))


def test_what_cannot_be_written_is_refused_by_name():
    custom = pmd.CustomMechanism(lambda released, statistic: -abs(released - statistic))
    with pytest.raises(TypeError, match=r"'income': a CustomMechanism can't be written"):
        mechanism_to_dict("income", custom)

    class Own(pmd.LaplaceMechanism):
        pass

    with pytest.raises(TypeError, match=r"'income': a Own can't"):
        mechanism_to_dict("income", Own(1.0))


def test_an_unknown_scale_cannot_be_written():
    with pytest.raises(TypeError, match="'income': 'scale' of LaplaceMechanism is a variable"):
        mechanism_to_dict("income", pmd.LaplaceMechanism(pt.dscalar("scale")))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"kind": "Snapping", "scale": 1.0}, "no mechanism of kind 'Snapping'"),
        ({"kind": "LaplaceMechanism"}, "'scale' of LaplaceMechanism is missing"),
        ({"kind": "LaplaceMechanism", "scale": -1.0}, "scale"),
        ({"kind": "LaplaceMechanism", "scale": "wide"}, "scale"),
        ({"kind": "LaplaceMechanism", "scale": 1.0, "sigma": 2.0}, "has no 'sigma'"),
        ({"kind": "LaplaceMechanism", "scale": 1.0, "rules": {}}, "rules must be a list"),
        (
            {"kind": "LaplaceMechanism", "scale": 1.0, "rules": [{"kind": "swapped"}]},
            "no rule of kind 'swapped'",
        ),
        (
            {"kind": "LaplaceMechanism", "scale": 1.0, "rules": [{"kind": "rounded"}]},
            "'step' of Rounding is missing",
        ),
        (
            {"kind": "KNormMechanism", "scale": 1, "norm": 2, "rules": [{"kind": "nonempty"}]},
            "takes no rules",
        ),
        ({"kind": "LaplaceMechanism", "scale": 1.0, "budget": {"kind": "x"}}, "no budget of kind"),
        ("LaplaceMechanism(2)", "written as a dict"),
    ],
)
def test_what_is_no_mechanism_is_refused_by_the_name_of_the_query(content, message):
    with pytest.raises((TypeError, ValueError), match=rf"^'income': .*{message}"):
        mechanism_from_dict("income", content)
