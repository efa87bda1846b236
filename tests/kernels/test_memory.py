"""What kernels return doesn't depend on what was in memory: run in Python, over left-overs."""

import importlib
import sys
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from pymc_dapper.counts.kernels.draws import Draws
from pymc_dapper.interweaving.kernels.moves import Fit, draw_variates
from tests.counts_enumeration import Model, schedule
from tests.memory import whatever_was_in_memory
from tests.records.changes import row_by_row

PACKAGE = "pymc_dapper"
MODULES = {
    "entry_sweep": "records.kernels.entry_sweep",
    "record_sweep": "records.kernels.record_sweep",
    "full_sweep": "records.kernels.full_sweep",
    "block_sweep": "records.kernels.block_sweep",
    "parameter_moves": "interweaving.kernels.moves",
    "count_sweep": "counts.kernels.sweep",
}
N, D = 40, 3


@pytest.fixture(scope="module")
def kernels():
    """The kernels as they are written, without compiling them."""
    compiled = {name: sys.modules.pop(name) for name in list(sys.modules) if _is_kernel(name)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numba.config, "DISABLE_JIT", True)
        modules = {
            name: importlib.import_module(f"{PACKAGE}.{path}") for name, path in MODULES.items()
        }
    for name in [name for name in sys.modules if _is_kernel(name)]:
        del sys.modules[name]
    sys.modules.update(compiled)
    return SimpleNamespace(**modules)


def _is_kernel(name):
    return name.startswith(PACKAGE) and ".kernels." in name


def of_sums(sums, context):
    return -0.05 * float(np.sum(sums**2)) if sums[0] > -40 else -np.inf


def of_entry(entry, values):
    return -0.05 * (entry - values[0]) ** 2 if entry > -40 else -np.inf


@pytest.fixture(scope="module")
def changes():
    rng = np.random.default_rng(0)
    removed, added = rng.normal(size=(2, N, D))
    added[::3] = removed[::3]
    return row_by_row(removed, added), np.log(rng.random(N))


NONE = np.zeros(0)


def by_blocks(kernels, go_on, log_density, context, changes, log_uniforms):
    def rows(table):
        return lambda arrays, start, stop: table[start:stop]

    present, proposed = rows(changes.removed), rows(changes.added)
    return kernels.block_sweep.sweep_by_blocks(
        go_on, log_density, context, present, proposed, (changes.removed,), D, 16, NONE, NONE,
        log_uniforms,
    )  # fmt: skip


SWEEPS = {
    "by sums": lambda k, *of: k.record_sweep.sweep_records(of_sums, (), *of),
    "by entries": lambda k, *of: k.entry_sweep.sweep_by_entries(of_entry, np.zeros((D, 1)), *of),
    "full": lambda k, *of: k.full_sweep.sweep_by_full_evaluation(
        lambda records, context: of_sums(records.sum(axis=0), context), (), *of
    ),
    "blocks by sums": lambda k, changes, _, __, log_uniforms: by_blocks(
        k, k.record_sweep.go_on_with_records, of_sums, (), changes, log_uniforms
    ),
    "blocks by entries": lambda k, changes, _, __, log_uniforms: by_blocks(
        k, k.entry_sweep.go_on_by_rows, of_entry, np.zeros((D, 1)), changes, log_uniforms
    ),
}


@pytest.mark.parametrize("name", SWEEPS)
def test_sweeps_over_records(kernels, changes, name):
    changes, log_uniforms = changes
    one, other = whatever_was_in_memory(
        lambda: SWEEPS[name](kernels, changes, NONE, NONE, log_uniforms)
    )
    assert 0 < one[0].sum() < N
    np.testing.assert_array_equal(one[0], other[0])
    assert one[1] == other[1]


@pytest.mark.parametrize("movable", [True, False])
def test_moves_of_parameters(kernels, movable):
    fit = Fit(np.zeros(2), np.eye(2))
    variates = draw_variates(np.random.default_rng(0), 5, 2)
    start = np.array([0.3, 1.0])
    one, other = whatever_was_in_memory(
        lambda: kernels.parameter_moves.move_parameters(of_sums, (), start, movable, fit, variates)
    )
    for before, after in zip(one, other, strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("curvatures", [np.zeros(0), np.ones(4)], ids=["measured", "known"])
def test_sweeps_over_counts(kernels, curvatures):
    density = -0.5 * (np.arange(9) - 3.0) ** 2
    model = Model([*np.eye(3), [1, 1, 0]], [density] * 4)
    directions = [[1, -1, 0], [0, 1, -1]]
    factor = np.linalg.cholesky(np.array([[2.0, -1.0], [-1.0, 2.0]]))
    moves = schedule(single=[0, 2], directions=directions, factor=factor)

    def log_density(context, kinds, first, contexts, values, slopes, terms, n_terms, whole, t):
        total = 0.0
        for term in terms[:n_terms]:
            place = int(values[first[term]] + t * slopes[first[term]])
            total += density[place] if 0 <= place < 9 else -np.inf
        return total

    def sweep():
        draws = Draws(np.random.default_rng(4).random(1_000), np.zeros(1, dtype=np.int64))
        return kernels.count_sweep.sweep_counts(
            log_density, (), model.structure, moves, np.array([2, 3, 1]), curvatures, draws
        )

    one, other = whatever_was_in_memory(sweep)
    for before, after in zip(one, other, strict=True):
        np.testing.assert_array_equal(before, after)
