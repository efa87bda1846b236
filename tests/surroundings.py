"""What tests of any folder may ask for, and what PyTensor and PyMC do differently in all."""

import gc
from contextlib import contextmanager

import pytensor
import pytest
from pytensor.compile import mode

from pymc_dapper import DapperStep, InterweaveStep, SizeStep, garbage
from pymc_dapper.conjugacy import families, rules
from pymc_dapper.conjugacy import step as conjugate
from pymc_dapper.counts import step as counts
from pymc_dapper.counts.compiled.sweep import CompiledCountSweep
from pymc_dapper.counts.kernels.schedule import Packed
from pymc_dapper.counts.start import Starts
from pymc_dapper.marginalised.step import MarginalisedStep
from pymc_dapper.steps import conditional_nuts
from tests.as_written import AS_WRITTEN
from tests.evaluated_in_python import evaluated_in_python

# To rewrite a graph takes longer than a few evaluations of it.
mode.FAST_COMPILE = mode.predefined_modes["FAST_COMPILE"] = AS_WRITTEN
# Variables of graphs don't note where they were made.
pytensor.config.traceback__limit = 0
# As within one call of `pmd.sample`: tests/conftest.py says when garbage is searched for.
garbage._searched_less.set(True)


@pytest.fixture
def searches_as_users_have_them():
    """Garbage is searched for as it is where no tests run."""
    frozen, threshold, token = (
        gc.get_freeze_count(),
        gc.get_threshold(),
        garbage._searched_less.set(False),
    )
    gc.unfreeze()
    gc.set_threshold(2000, 10, 10)
    try:
        yield
    finally:
        garbage._searched_less.reset(token)
        gc.set_threshold(*threshold)
        if frozen:
            gc.freeze()


@pytest.fixture
def in_python():
    """Steps are evaluated in Python: for what they are asked, say and keep."""
    with evaluated_in_python():
        yield


@contextmanager
def nothing_compiled():
    """Steps are built, but not compiled: for how models are read, and which step takes what.

    What is called all the same is evaluated in Python.
    """
    with evaluated_in_python(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(DapperStep, "_update", _nothing)
        patch.setattr(DapperStep, "_check_compiled", _nothing)
        patch.setattr(InterweaveStep, "_check_compiled", _nothing)
        patch.setattr(MarginalisedStep, "_check_compiled", _nothing)
        patch.setattr(conditional_nuts, "_compile", _nothing)
        patch.setattr(conjugate.ConjugateStep, "_update", _nothing)
        patch.setattr(SizeStep, "_compile", _nothing)
        patch.setattr(Starts, "possible", lambda _, sweep, counts, *others: counts)
        patch.setattr(Starts, "near", lambda _, sweep, counts, *others: counts)
        patch.setattr(counts, "check_sweep", lambda *_: Packed(None, None))
        patch.setattr(CompiledCountSweep, "__call__", _nothing)
        yield


@pytest.fixture
def uncompiled():
    with nothing_compiled():
        yield


@pytest.fixture
def registry(monkeypatch):
    """Conjugate rules and priors that are registered are forgotten after the test."""
    monkeypatch.setattr(rules, "_pairs", {key: list(each) for key, each in rules._pairs.items()})
    monkeypatch.setattr(families, "_priors", dict(families._priors))


def _nothing(*arguments, **options):
    pass
