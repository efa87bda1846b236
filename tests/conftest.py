"""What tests of any folder may ask for."""

import pytensor
import pytest

from pymc_dapper import DapperStep, InterweaveStep
from pymc_dapper.conjugacy import step as conjugate
from pymc_dapper.counts.compiled.sweep import CompiledCountSweep
from pymc_dapper.counts.kernels.sweep import Packed
from pymc_dapper.counts.step import CountStep
from pymc_dapper.steps import lean_nuts
from tests.evaluated_in_python import evaluated_in_python

# What isn't compiled with numba is evaluated in Python; but for graphs within graphs, for which
# PyTensor calls a C compiler if there is one. It takes half a second for each operation.
pytensor.config.cxx = ""


@pytest.fixture
def uncompiled():
    """Steps are built, but not compiled: for how models are read, and which step takes what.

    What is called all the same is evaluated in Python.
    """
    with evaluated_in_python(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(DapperStep, "_update", _nothing)
        patch.setattr(DapperStep, "_check_compiled", _nothing)
        patch.setattr(InterweaveStep, "_check_compiled", _nothing)
        patch.setattr(lean_nuts, "_compile", _nothing)
        patch.setattr(conjugate._Draw, "update", _nothing)
        patch.setattr(CountStep, "_check", lambda *_, **__: Packed(None, None))
        patch.setattr(CompiledCountSweep, "__call__", _nothing)
        yield


def _nothing(*arguments, **options):
    pass
