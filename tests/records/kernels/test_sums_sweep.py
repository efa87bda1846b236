"""The pure kernel: decisions on records, and impossible states.

Sums keep their digits, when they are formed and while records change, under fast arithmetic.
Contributions may be computed for some records at a time.
"""

from dataclasses import replace
from functools import partial
from math import fsum

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba import njit
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.kernels import entry_sweep, sums_sweep
from pymc_dapper.records.kernels.sums_sweep import (
    Sums,
    add_rows,
    decide_by_sums,
    log_gain,
    no_sums,
    sweep_by_blocks,
)
from pymc_dapper.records.reading.contributions import RowsAtOnce, by_block
from pymc_dapper.records.reading.plan import BySums
from pymc_dapper.steps.data import SharedData
from tests import broken
from tests.admissions_and_tiny import (
    TABLE_PRIOR,
    TABLE_RELEASED,
    TINY_PRIOR,
    WEIGHTS,
    tiny_log_mechanism,
    tiny_log_table_mechanism,
    tiny_model,
    tiny_table_model,
)
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.records.record_models import FORMS
from tests.sweep_parts import PythonFunction, broken_parts, take_apart

N = 200_000
NO_CONTEXT = np.zeros((1, 0))


@pytest.fixture(scope="module")
def contributions():
    """From 1e-9 to 1e8; present, and proposed."""
    return 10 ** np.random.default_rng(0).uniform(-9, 8, size=(2, N, 1))


@njit
def the_sum(total, context):
    """A log-density that shows the sum, and accepts every other change."""
    return total[0]


@njit
def the_entry(entry, values):
    return entry


@njit
def part(arrays, start, stop):
    return arrays[0][start:stop]


@njit
def other_part(arrays, start, stop):
    return arrays[1][start:stop]


def as_it_is(kernel):
    return kernel


def plainly(kernel):
    """Go on with one run for all records, as a plain sum does."""
    return _with(kernel, RUN=10**9, add_rows=_with(sums_sweep.add_rows, RUN=10**9))


def _with(kernel, **instead):
    function = kernel.py_func
    return njit(inline="always")(
        type(function)(function.__code__, {**function.__globals__, **instead})
    )


def in_blocks(records_in_block, decide, density, context, patch=as_it_is):
    kernel, decide = patch(sums_sweep.sweep_by_blocks), patch(decide)

    @numba_njit(final_function=True)
    def sweep(removed, added, log_uniforms):
        return kernel(
            decide, density, context, part, other_part, (removed, added), 1, records_in_block,
            log_uniforms,
        )  # fmt: skip

    return sweep


BY_SUMS = sums_sweep.decide_by_sums, the_sum, ()
BY_ENTRIES = entry_sweep.decide_by_entries, the_entry, NO_CONTEXT


def worst_error(sweep, contributions):
    """Error of the sum before and after a sweep, in roundings of the total of absolute values."""
    removed, added = contributions
    never, mostly = np.full(N, np.inf), np.log(np.random.default_rng(1).random(N))
    errors = []
    for log_uniforms in (never, mostly):
        accepted, found = sweep(removed, added, log_uniforms)
        after = np.where(accepted[:, None], added, removed)
        size = fsum(removed.ravel()) + fsum(after.ravel())
        errors.append(abs(found - fsum(after.ravel())) / (np.finfo(float).eps * size))
    assert 0.2 * N < accepted.sum() < N
    return errors


SUMS_OR_ENTRIES = [
    pytest.param(BY_SUMS, id="by sums"),
    pytest.param(BY_ENTRIES, id="by entries", marks=pytest.mark.long),
]


@pytest.mark.parametrize("of", SUMS_OR_ENTRIES)
@pytest.mark.parametrize("records_in_block", [1_000, pytest.param(N, marks=pytest.mark.long)])
def test_sums_keep_their_digits(of, records_in_block, contributions):
    assert max(worst_error(in_blocks(records_in_block, *of), contributions)) < 2


@pytest.mark.parametrize("of", SUMS_OR_ENTRIES)
def test_a_plain_sum_loses_them(of, contributions):
    assert max(worst_error(in_blocks(N, *of, plainly), contributions)) > 20


def many_ones(kernel):
    """Add rounding errors one by one, within a function of fast arithmetic."""

    @numba_njit(final_function=True)
    def add(n):
        total, lost = 1e16, 0.0
        for _ in range(n):
            total, lost = kernel(total, lost, 1.0)
        return total

    return add(1_000) - 1e16


def test_what_rounding_cuts_off_is_kept_under_fast_arithmetic():
    assert many_ones(sums_sweep.add_term) == 1_000


def test_a_function_with_its_callers_arithmetic_does_not_keep_it():
    assert many_ones(njit(sums_sweep.add_term.py_func)) != 1_000


@pytest.mark.parametrize("infinite", [np.inf, -np.inf, np.nan])
def test_infinite_sums_stay_as_they_are(infinite):
    state = no_sums(2)
    table = np.ones((400, 2))
    table[150, 0] = infinite
    njit(add_rows.py_func)(state, table, table.shape[1])
    np.testing.assert_array_equal(state.total, [infinite, 400.0])
    np.testing.assert_array_equal(state.lost, [0.0, 0.0])


def test_short_sums_are_those_of_a_loop():
    table = np.random.default_rng(0).normal(size=(sums_sweep.RUN, 1))
    state = no_sums(1)
    njit(add_rows.py_func)(state, table, table.shape[1])
    plain = 0.0
    for value in table[:, 0]:
        plain += value
    assert state.total[0] == plain


def gaussian(sums, context):
    return -0.5 * ((sums - context[0]) ** 2).sum()


def hard_bounds(sums, context):
    """Uniform noise: possible within a distance, impossible elsewhere."""
    return 0.0 if np.abs(sums - context[0]).max() <= 1.0 else -np.inf


def nan_when_negative(sums, context):
    return np.log(sums[0]) if sums[0] >= 0 else np.nan


def present(arrays, start, stop):
    return arrays[0][start:stop]


def proposed(arrays, start, stop):
    return arrays[1][start:stop]


def sweep(log_density, context, removed, added, thresholds):
    """One sweep, in Python."""
    n_records, n_sums = removed.shape
    return in_python(sweep_by_blocks)(
        in_python(decide_by_sums), log_density, context, present, proposed, (removed, added),
        n_sums, n_records, thresholds,
    )  # fmt: skip


TARGET = (np.array([1.0, -2.0]),)


def test_acceptance_is_the_metropolis_ratio():
    before, after = np.array([0.25, -1.0]), np.array([1.25, -2.25])
    log_ratio = gaussian(after, TARGET) - gaussian(before, TARGET)
    for log_uniform in (log_ratio - 1e-9, log_ratio + 1e-9):
        [accepted], log_density = sweep(
            gaussian, TARGET, before[None], after[None], np.array([log_uniform])
        )
        assert accepted == (log_uniform < log_ratio)
        assert log_density == gaussian(after if accepted else before, TARGET)


def test_a_proposal_that_leaves_the_sums_alone_costs_no_evaluation():
    evaluated = []

    def counted(sums, context):
        evaluated.append(sums.copy())
        return 0.0

    rows = np.ones((5, 2))
    deciding = (np.full(5, -0.1), np.empty(5, dtype=bool))
    sums = Sums(np.full(2, 5.0), np.zeros(2), np.zeros(2))
    in_python(decide_by_sums)(counted, (), sums, rows, rows, 2, 0, *deciding)
    assert len(evaluated) == 1


@pytest.mark.parametrize("impossible", [-np.inf, np.nan, np.inf])
def test_an_impossible_state_takes_what_the_prior_proposes(impossible):
    assert log_gain(impossible, -3.0) == 0.0
    assert log_gain(impossible, impossible) == 0.0


@pytest.mark.parametrize("impossible", [-np.inf, np.nan, np.inf])
def test_a_possible_state_never_becomes_impossible(impossible):
    assert log_gain(-3.0, impossible) == -np.inf


def test_a_sweep_walks_from_an_impossible_start_into_the_support_and_stays():
    rng = np.random.default_rng(1)
    context = (np.array([60.0]),)
    records = np.zeros((100, 1))
    for _ in range(20):
        proposals = rng.integers(0, 2, size=(100, 1)).astype(float)
        accepted, logp = sweep(
            hard_bounds, context, records, proposals, -rng.standard_exponential(100)
        )
        was_possible = abs(records.sum() - 60.0) <= 1.0
        records = np.where(accepted[:, None], proposals, records)
        assert np.isfinite(logp) or not was_possible
    assert logp == 0.0
    assert abs(records.sum() - 60.0) <= 1.0


def test_nan_is_never_accepted():
    rng = np.random.default_rng(2)
    records = np.ones((50, 1))
    for _ in range(20):
        proposals = rng.normal(size=(50, 1))
        accepted, logp = sweep(
            nan_when_negative, (), records, proposals, -rng.standard_exponential(50)
        )
        records = np.where(accepted[:, None], proposals, records)
        assert np.isfinite(logp)


def test_a_sweep_reports_the_log_density_of_the_records_it_leaves():
    rng = np.random.default_rng(3)
    removed, added = rng.normal(size=(2, 30, 2))
    accepted, logp = sweep(gaussian, TARGET, removed, added, -rng.standard_exponential(30))
    assert 0 < accepted.sum() < 30
    after = np.where(accepted[:, None], added, removed)
    assert logp == pytest.approx(gaussian(after.sum(axis=0), TARGET), rel=1e-10)


def read(model):
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    return read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())


def in_blocks_of(n, reading):
    """The reading with a plan by which contributions are made for so many records at a time."""
    made = by_block(reading.records, reading.sums)
    assert made is not None
    return replace(reading, plan=replace(reading.plan, rows=replace(made, records_in_block=n)))


@pytest.mark.parametrize(
    "name",
    [
        "ratio",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in (
                "dims_and_shared_data",
                "matrix_of_records",
                "cross_product_of_records",
                "non_centred",
                "clipped_and_weighted",
                "records_that_depend_on_records",
                "einsum",
            )
        ),
    ],
)
def test_blocks_decide_as_the_whole_does(name):
    model = FORMS[name]()
    reading, point = read(model), model.initial_point()
    # In Python, and not entry by entry: another loop than that of the blocks, where these are.
    whole = take_apart(replace(reading, plan=BySums(RowsAtOnce())), function=PythonFunction)
    blocks = take_apart(in_blocks_of(3, reading))
    given = [np.asarray(point[x.name]) for x in reading.parameters] + SharedData(reading).values
    rng = np.random.default_rng(1)
    outcomes = []
    for _ in range(30):
        present, proposed = whole.propose(rng, *given), whole.propose(rng, *given)
        log_uniforms = -rng.standard_exponential(reading.n_records)
        a, b = (each.decide(*present, *proposed, log_uniforms, *given) for each in (whole, blocks))
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
        outcomes.append(a[-2])
    assert 0 < np.mean(outcomes) < 1


def counted_by_comparing():
    """As the table model, but the counts are compared."""
    with pm.Model() as model:
        record = pm.Categorical("record", p=TABLE_PRIOR, shape=2)
        table = (WEIGHTS[:2, None] * pt.eq(record[:, None], np.arange(3))).sum(axis=0)
        pm.Potential("privacy", -pt.abs(TABLE_RELEASED - table).sum() / 1.5)
    return model


def counted_by_looking_up():
    return tiny_table_model(WEIGHTS[:2], n_records=2)


def log_table_mechanism(records):
    return tiny_log_table_mechanism(records, WEIGHTS[:2])


OF_TINY_MODEL = np.array([1 - TINY_PRIOR, TINY_PRIOR])
MODELS = {
    "one sum": (tiny_model, 3, OF_TINY_MODEL, tiny_log_mechanism),
    "a table": (counted_by_comparing, 2, TABLE_PRIOR, log_table_mechanism),
    "a table looked up": (counted_by_looking_up, 2, TABLE_PRIOR, log_table_mechanism),
}


def invariance_error(name, decide_of):
    """Largest change that one sweep makes to the exact conditional posterior."""
    build, n, prior, log_mechanism = MODELS[name]
    decide = decide_of(in_blocks_of(n - 1, read(build()))).decide
    posterior = conditional_posterior(prior, log_mechanism, n_records=n)
    proposal_probabilities = prior[posterior.states].prod(axis=1)
    matrix = transition_matrix(decide, posterior.states, proposal_probabilities)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0, atol=1e-12)
    return np.abs(posterior.probabilities @ matrix - posterior.probabilities).max()


@pytest.mark.parametrize("name", MODELS)
def test_blocks_leave_the_exact_conditional_posterior_invariant(name):
    # In Python: that it does the same compiled is shown above.
    assert invariance_error(name, partial(take_apart, function=PythonFunction)) < 1e-10


@pytest.mark.parametrize(
    "fault", [broken.FORGETFUL_BLOCKS, broken.UNCHANGED_BLOCKS], ids=["forgetful", "unchanged"]
)
def test_broken_blocks_do_not(fault):
    assert invariance_error("one sum", lambda reading: broken_parts(reading, fault)) > 1e-4
