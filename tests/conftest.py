"""What tests of any folder may ask for."""

import pytensor
import pytest

from pymc_dapper import DapperStep, InterweaveStep
from pymc_dapper.conjugacy import step as conjugate
from pymc_dapper.counts.compiled.sweep import CompiledCountSweep
from pymc_dapper.counts.kernels.sweep import Packed
from pymc_dapper.counts.step import CountStep
from pymc_dapper.steps import lean_nuts

# What isn't compiled with numba is evaluated in Python; but for graphs within graphs, for which
# PyTensor calls a C compiler if there is one. It takes half a second for each operation.
pytensor.config.cxx = ""


@pytest.fixture
def uncompiled(monkeypatch):
    """Steps are built, but not compiled: for how models are read, and which step takes what.

    PyTensor compiles a function when it is first called, so the first calls are left out.
    """
    monkeypatch.setattr(DapperStep, "_update", _nothing)
    monkeypatch.setattr(DapperStep, "_check_compiled", _nothing)
    monkeypatch.setattr(InterweaveStep, "_check_compiled", _nothing)
    monkeypatch.setattr(lean_nuts, "_compile", _nothing)
    monkeypatch.setattr(conjugate._Draw, "update", _nothing)
    monkeypatch.setattr(CountStep, "_check", lambda *_, **__: Packed(None, None))
    monkeypatch.setattr(CompiledCountSweep, "__call__", _nothing)


def _nothing(*arguments, **options):
    pass
