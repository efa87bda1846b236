"""What tests of any folder may ask for, and in which order and surroundings they run."""

import gc
import os
from pathlib import Path

# There is a worker for each core: more threads than that would wait for each other. Read by what
# NumPy is built on, as soon as it is imported.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# What isn't compiled with numba is evaluated in Python; but for graphs within graphs, for which
# PyTensor calls a C compiler if there is one. It takes half a second for each operation, also in
# processes that tests start.
os.environ["PYTENSOR_FLAGS"] = f"{os.environ.get('PYTENSOR_FLAGS', '')},cxx=".lstrip(",")

import pytensor
import pytest
from pytensor.compile import mode

from pymc_dapper import DapperStep, InterweaveStep, SizeStep
from pymc_dapper.backend import second_process
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.collapsing.step import CollapsedStep
from pymc_dapper.conjugacy import step as conjugate
from pymc_dapper.counts.compiled.sweep import CompiledCountSweep
from pymc_dapper.counts.kernels.sweep import Packed
from pymc_dapper.counts.step import CountStep
from pymc_dapper.graphs.evaluation import AS_WRITTEN
from pymc_dapper.interweaving.compiled.counts import CountNoise, CountQuantile
from pymc_dapper.steps import lean_nuts
from tests.evaluated_in_python import evaluated_in_python

# To rewrite a graph takes longer than a few evaluations of it.
mode.FAST_COMPILE = mode.predefined_modes["FAST_COMPILE"] = AS_WRITTEN
for op in (CountNoise, CountQuantile):  # numba would take five seconds, in each process
    op.impl = staticmethod(in_python(op.kernel))

LONGEST = (
    "statistical/exactness/test_exactness.py",
    "studies/test_running.py",
    "conjugacy/test_conditional.py",
    "records/compiled/test_op.py",
    "distributions/test_discrete_gaussian.py",
    "mechanisms/test_additive.py",
    "test_malformed_inputs.py",
    "test_assignment.py",
    "statistical/test_transition_matrix.py",
    "interweaving/test_step.py",
    "statistical/test_counts.py",
    "test_sampling.py",
    "statistical/test_constrained_records.py",
    "statistical/test_known_totals.py",
    "statistical/test_separable.py",
    "test_caches.py",
    "statistical/test_collapsed.py",
    "statistical/test_interweave.py",
    "statistical/test_impossible_proposals.py",
)
"""Files that take longest, in that order."""


def pytest_collection_modifyitems(items):
    """Run what takes long first: else one worker would end with it, and the other wait."""
    rank = {Path(__file__).parent / name: k for k, name in enumerate(LONGEST)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))


def pytest_sessionstart(session):
    """Spend less on what tests don't look at.

    Cycles of garbage are looked for seldom: reading tests and compiling make objects by the
    million. To search a million at once takes half of what it takes to search them in tenths.
    What is there already isn't frozen: to count what is frozen, as our steps do, takes as long as
    to go through it. And variables of graphs don't note where they were made.
    """
    gc.set_threshold(1_000_000, 5, 100)
    pytensor.config.traceback__limit = 0


@pytest.fixture(scope="session", autouse=True)
def one_process():
    """Nothing is compiled in a second process: there is a worker for each core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(second_process, "can_be_shared", lambda: False)
        yield


@pytest.fixture
def in_python():
    """Steps are evaluated in Python: for what they are asked, say and keep."""
    with evaluated_in_python():
        yield


@pytest.fixture
def uncompiled():
    """Steps are built, but not compiled: for how models are read, and which step takes what.

    What is called all the same is evaluated in Python.
    """
    with evaluated_in_python(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(DapperStep, "_update", _nothing)
        patch.setattr(DapperStep, "_check_compiled", _nothing)
        patch.setattr(InterweaveStep, "_check_compiled", _nothing)
        patch.setattr(CollapsedStep, "_check_compiled", _nothing)
        patch.setattr(lean_nuts, "_compile", _nothing)
        patch.setattr(conjugate._Draw, "update", _nothing)
        patch.setattr(SizeStep, "_compile", _nothing)
        patch.setattr(CountStep, "_check", lambda *_, **__: Packed(None, None))
        patch.setattr(CompiledCountSweep, "__call__", _nothing)
        yield


def _nothing(*arguments, **options):
    pass
