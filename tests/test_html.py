"""What notebooks show: well-formed, and with all that the text has."""

from xml.etree import ElementTree

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.html import table, unfolding


def text_of(html):
    """All that is shown, with the tags taken away."""
    return " ".join(ElementTree.fromstring(f"<div>{html}</div>").itertext())


def test_what_is_shown_is_escaped():
    assert text_of(table("a < b", ("<x>",), [("1 & 2",)])) == "a < b <x> 1 & 2"
    assert text_of(unfolding("a < b", "c\n<d>")) == "a < b c\n<d>"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (pmd.PureDP(0.5), "PureDP epsilon 0.5 if one person changes"),
        (
            pmd.ApproxDP(1, 1e-6, neighbours="add_remove"),
            "delta 1e-06 if one person joins or leaves",
        ),
        (pmd.LaplaceMechanism(2.0), "LaplaceMechanism scale 2"),
        (
            pmd.GaussianMechanism.calibrate(pmd.ZCDP(0.5), sensitivity=3).rounded(5),
            "GaussianMechanism sigma 3 budget ZCDP(rho=0.5, one person changes) "
            "published rounded(5)",
        ),
        (pmd.LaplaceMechanism(np.array([1.0, 2.0])), "LaplaceMechanism scale [1. 2.]"),
    ],
)
def test_mechanisms_and_budgets_are_tables(given, shown):
    assert shown in text_of(given._repr_html_())


@pytest.mark.usefixtures("uncompiled")
def test_steps_unfold_to_how_they_read_the_model():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        record = pm.Bernoulli("record", p, shape=5)
        pmd.LaplaceMechanism(2.0).potential("privacy", record.sum(), released=3.0)
        own = pmd.FunctionStep([p], lambda rng, point: {"p": rng.random()})
        steps = [*pmd.assign_steps(model=model), own]
    for step in steps:
        shown = text_of(step._repr_html_())
        assert repr(step) in shown
        assert step.describe() in shown
