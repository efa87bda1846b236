"""A model is read by all steps, and refused if it has to be, before anything is compiled."""

import pymc as pm
import pytensor.tensor as pt
import pytest
from numba.core.dispatcher import Dispatcher

import pymc_dapper as pmd
from pymc_dapper.assignment.latent import find_latent
from pymc_dapper.assignment.steps import read_steps
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.interweaving import step as interweaving


class Compiled(Exception):
    """Raised instead of compiling."""


@pytest.fixture(autouse=True)
def nothing_is_compiled(monkeypatch):
    def refuse(*_):
        raise Compiled

    monkeypatch.setattr(Dispatcher, "compile", refuse)


def means():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        sigma = pm.HalfNormal("sigma", 1)
        x = pm.Normal("x", mu, sigma, shape=5)
        pmd.LaplaceMechanism(6.0).potential("privacy", pt.clip(x, -3, 3).sum(), released=1.5)
    return model


def table():
    with pm.Model() as model:
        p = pm.Dirichlet("p", [1.0, 1.0, 1.0])
        cells = pm.Multinomial("cells", 20, p)
        pmd.invariant("known", cells[0], 30)
        pm.Potential("privacy", -pt.abs(cells - [3.0, 5.0, 12.0]).sum())
    return model


def test_all_steps_describe_how_a_model_is_read():
    model = means()
    latent, options = find_latent(model, None, None), ("dapper", "nuts", "compile_kwargs")
    steps = read_steps(
        latent, conjugate=True, interweave=True, marginalise=True, **dict.fromkeys(options)
    )
    described = [step.describe() for step in steps if hasattr(step, "describe")]
    assert len(described) == 3 == len(steps) - 1
    with pytest.raises(Compiled):
        steps[0].compile()


@pytest.mark.parametrize("choose", [pmd.assign_steps, pmd.sample])
def test_the_last_step_refuses_a_model_before_the_first_is_compiled(choose, monkeypatch):
    def refuse(*_):
        raise ReadingError("the last one")

    monkeypatch.setattr(interweaving, "check_noise", refuse)
    with pytest.raises(ReadingError, match="the last one"):
        choose(model=means())


def test_totals_that_cannot_be_reached_are_refused():
    with pytest.raises(ReadingError, match="known"):
        pmd.assign_steps(model=table())


def test_compiling_is_what_comes_next():
    with pytest.raises(Compiled):
        pmd.assign_steps(model=means())
