"""In which order and surroundings tests of any folder run."""

import gc
import os
import sys
from pathlib import Path

import pytest

# There is a worker for each core: more threads than that would wait for each other. Read by what
# NumPy is built on, as soon as it is imported.
os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
# What isn't compiled with numba is evaluated in Python; but for graphs within graphs, for which
# PyTensor calls a C compiler if there is one. It takes half a second for each operation, also in
# processes that tests start.
os.environ["PYTENSOR_FLAGS"] = f"{os.environ.get('PYTENSOR_FLAGS', '')},cxx=".lstrip(",")

LONGEST = (
    "test_docs.py",
    "test_taken_away.py",
    "table_trees/test_kernels.py",
    "statistical/test_noisy_stats_analysis.py",
    "statistical/test_unknown_number.py",
    "test_libraries.py",
    "test_examples.py",
    "statistical/test_affine_moves.py",
    "test_tables.py",
    "test_benchmarks.py",
    "statistical/test_rules_sampled.py",
    "releases/test_census.py",
    "statistical/test_opendp.py",
    "statistical/test_walks_with_parameters.py",
    "statistical/exactness/test_exactness.py",
    "studies/test_running.py",
    "statistical/test_counts.py",
    "statistical/test_constrained_records.py",
    "counts/test_step.py",
    "statistical/test_interweave.py",
    "interweaving/test_step.py",
    "distributions/test_discrete_gaussian.py",
    "test_sampling.py",
    "test_caches.py",
    "statistical/test_marginalised.py",
    "assignment/test_latent.py",
    "statistical/test_separable.py",
    "statistical/test_known_totals.py",
    "statistical/test_clipped_sum.py",
    "diagnostics/test_missing_information.py",
    "statistical/test_transition_matrix.py",
    "records/test_step.py",
    "records/compiled/test_op.py",
    "tabulation/test_model.py",
    "statistical/test_linked_tables.py",
    "statistical/test_groups_of_people.py",
    "statistical/test_full_evaluation.py",
    "test_malformed_inputs.py",
    "test_nothing_changed.py",
    "test_packaging.py",
    # They would be among the last, where one worker would wait for the other.
    "test_resumption.py",
    "test_states.py",
    "test_public_names.py",
    "test_size.py",
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
    """
    gc.set_threshold(1_000_000, 5, 100)
    if not session.config.pluginmanager.hasplugin("dsession"):  # which only hands tests to workers
        session.config.pluginmanager.import_plugin("tests.surroundings")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item, nextitem):
    """Let go of what the tests of a file leave behind, and never look at the rest again.

    Else pytest goes through all of it in the end, for ten seconds.
    """
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def accelerations_do_not_fail():
    """Otherwise models are compiled the plain way, several times as slowly, and only a log says so.

    Tests that have them fail put the switch back.
    """
    yield
    switch = sys.modules.get("pymc_dapper.backend.accelerate.switch")
    if switch is not None and switch.failed:
        switch.failed = False
        pytest.fail("a model couldn't be compiled with accelerations; PyMC's log says why")
