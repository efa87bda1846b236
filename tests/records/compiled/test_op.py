"""The change of log-density that the compiled sweep uses is the model's own, for every form."""

import numpy as np
import pytest
from pymc.pytensorf import compile as pymc_compile

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.steps.data import SharedData
from tests.long_cases import one_in_three
from tests.records.record_models import FORMS, checked
from tests.sweep_parts import PythonFunction, take_apart

NEVER, ALWAYS = np.inf, -np.inf


class Judge:
    """The model's own log-density, without that of the records' prior."""

    def __init__(self, model, records):
        full = model.logp() - model.logp(records)
        # Inlined, since einsum, for one, compiles with BLAS in Python mode.
        [full] = inline_symbolic_ops([full])
        self.function = model.compile_fn(full, inputs=model.value_vars, mode="FAST_COMPILE")

    def __call__(self, point, records):
        return float(self.function({**point, **records}))


# In every run, a third of the forms is swept in Python, and one is compiled. In long ones, all are
# swept, and as many compiled as it takes to have each operation that a form's sweep consists of,
# with each number of dimensions. The tests of exactness compile a form of each kind of loop.
COMPILED_IN_EVERY_RUN = "counted_by_incrementing"
COMPILED = (
    "array_of_records",
    "dirichlet_rows",
    "full_single_record_that_is_broadcast",
    "histogram_by_search",
    "latent_child",
    "matrix_of_records",
    "multivariate_noise_on_each_record",
    "noise_scale_that_depends_on_the_record",
    "outcome_with_looked_up_probabilities",
    "public_outcome_of_a_private_covariate",
    "regression_coefficient",
    "scatter_matrix",
    "several_releases_mixed",
    "single_precision_factor",
    "single_records",
    "uniform_records",
)


@pytest.mark.parametrize("name", one_in_three(FORMS))
def test_the_sweep_uses_the_models_own_change_of_log_density(name):
    check_decisions(name, PythonFunction)


@pytest.mark.parametrize(
    "name",
    [COMPILED_IN_EVERY_RUN, *(pytest.param(name, marks=pytest.mark.long) for name in COMPILED)],
)
def test_the_compiled_operation_does_the_same(name):
    check_decisions(name, JitFunction)


def check_decisions(name, function):
    model, point, reading, rng = checked(name)
    sweep = take_apart(reading, function=function)
    names = [x.name for x in reading.records]
    given = [np.asarray(point[x.name]) for x in reading.parameters] + SharedData(reading).values
    inputs = [*reading.randomness.inputs, *reading.parameters, *reading.data.values()]
    propose = pymc_compile(
        inputs, list(reading.proposals), mode="FAST_COMPILE", on_unused_input="ignore"
    )
    judge = Judge(model, rvs_named(model, names))
    n = reading.n_records

    def draw():
        # A generator of its own: the function leaves its input as it is.
        noise = reading.randomness.draw(rng.spawn(1)[0])
        return propose(*noise, *given)

    for _ in range(2):
        present, proposed = draw(), draw()
        assert all(np.any(a != b) for a, b in zip(present, proposed, strict=True))
        forced = np.where(rng.random(n) < 0.5, ALWAYS, NEVER)
        state = dict(zip(names, [x.copy() for x in present], strict=True))
        start = now = judge(point, state)
        for i in range(n):
            moved = {k: x.copy() for k, x in state.items()}
            for k, new in zip(names, proposed, strict=True):
                moved[k][i] = new[i]
            after = judge(point, moved)
            expected = after - now
            # Single precision keeps seven digits of a log-density of order ten.
            tolerance = 1e-6 if name.startswith("single_precision") else 1e-8
            tolerance *= 1 + abs(expected)

            log_uniforms = np.full(n, NEVER)
            log_uniforms[:i] = forced[:i]
            around = [expected - tolerance, expected + tolerance]
            if expected == 0:  # may be accepted unseen: the logarithm of a uniform variate is less
                forced[i], around = ALWAYS, around[:1]
            for log_uniform in around:
                log_uniforms[i] = log_uniform
                accepted = sweep.decide(*present, *proposed, log_uniforms, *given)[-2]
                assert accepted[i] == (log_uniform < expected), (i, expected)
            if forced[i] == ALWAYS:
                state, now = moved, after

        *records, accepted, logp = sweep.decide(*present, *proposed, forced, *given)
        np.testing.assert_array_equal(accepted, forced == ALWAYS)
        for k, new in zip(names, records, strict=True):
            np.testing.assert_array_equal(new, state[k])
        reported_at_start = sweep.decide(*present, *proposed, np.full(n, NEVER), *given)[-1]
        assert logp - reported_at_start == pytest.approx(now - start, abs=10 * tolerance)


def rvs_named(model, names):
    return [
        model[model.values_to_rvs[value].name] for value in model.value_vars if value.name in names
    ]
