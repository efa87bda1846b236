"""The compiled sweep: what it computes, and that PyTensor's cache never mixes models up."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.backend import accelerate
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.compiled.sweep import NEVER, compile_sweep, density_of_sums, lowered
from tests import broken
from tests.evaluated_in_python import evaluated_in_python
from tests.long_cases import one_in_three
from tests.sizes.unknown_numbers import bernoulli


def model_with_scale(scale):
    """Models of the same shapes and dtypes, that differ in a constant of the mechanism only."""
    with pm.Model() as m:
        record = pm.Normal("record", 0, 1, shape=4)
        pm.Potential("privacy", -scale * pt.abs(record.sum() - 1.0))
    return m


RECORDS = np.array([1.0, 2.0, 3.0, 4.0])


def after_nothing(sweep, *given, records=RECORDS):
    """Records and log-density after a sweep in which every proposal ought to be rejected."""
    new, (_, logp) = sweep.update(np.random.default_rng(0), [records], given, by=NEVER)
    return new, logp


# In every run, in processes of their own: test_caches.py.
@pytest.mark.long
def test_models_of_the_same_shapes_do_not_share_code():
    for scale in (1.0, 2.0, 1.0):
        model = model_with_scale(scale)
        sweep = compile_sweep(read_model(model, model.value_vars, model.initial_point()), {})
        assert after_nothing(sweep)[1] == pytest.approx(-9.0 * scale)


# In every run, keys differ: `backend/test_kernel_key.py`.
@pytest.mark.long
def test_another_kernel_does_not_share_code():
    model = model_with_scale(1.0)
    reading = read_model(model, model.value_vars, model.initial_point())
    with broken.in_place(broken.ACCEPT_ALL):
        assert np.all(after_nothing(compile_sweep(reading, {}))[0] != RECORDS)
    assert np.all(after_nothing(compile_sweep(reading, {}))[0] == RECORDS)


def test_a_sweep_is_kept_on_disk_where_numba_knows_no_type_of_a_function(monkeypatch):
    """If it couldn't be, numba would warn."""
    monkeypatch.setattr(accelerate, "_passed_by_type", lambda: False)
    model = model_with_scale(1.0)
    sweep = compile_sweep(read_model(model, model.value_vars, model.initial_point()), {})
    assert after_nothing(sweep)[1] == pytest.approx(-9.0)


@pytest.mark.long
def test_an_invalid_parameter_of_the_mechanism_makes_the_state_impossible():
    # PyMC's own compiled log-density gives -inf here; without care, the inner graph would raise.
    with pm.Model() as model:
        scale = pm.Normal("scale", 1, 1)
        record = pm.Normal("record", 0, 1, shape=4)
        pm.Laplace("s_dp", record.sum(), b=scale, observed=1.0)
    point = model.initial_point()
    sweep = compile_sweep(read_model(model, [model.rvs_to_values[record]], point), {})
    for value, possible in ((1.0, True), (-1.0, False)):
        _, logp = after_nothing(sweep, np.asarray(value), records=np.zeros(4))
        assert np.isfinite(logp) == possible


def _logarithms_of_counts():
    x = pm.Poisson("record", 3.0, shape=10, initval=np.zeros(10, dtype=int))
    return -pt.abs(pt.log(x).sum() - 14.0) / 2


def _logarithms_of_a_table():
    record = pm.Categorical("record", np.full(3, 1 / 3), shape=10, initval=np.zeros(10, dtype=int))
    return -pt.abs(pt.log(pt.eye(3)[record].sum(axis=0)) - 1.0).sum() / 2


def _product_of_logarithms():
    x = pm.Poisson("record", 3.0, shape=10, initval=np.zeros(10, dtype=int))
    return -((pt.log(x).sum() * x.sum() - 300.0) ** 2) / 1e4


@pytest.mark.parametrize(
    "log_density",
    one_in_three([_product_of_logarithms, _logarithms_of_counts, _logarithms_of_a_table]),
)
def test_arithmetic_that_gives_no_number_is_an_impossible_state(log_density):
    """Compiled, where fast arithmetic takes it for granted that x - x is zero.

    Halved above, since it did so in products.
    """
    with pm.Model() as model:
        pm.Potential("privacy", log_density())
    step = pmd.DapperStep([model["record"]], model=model)
    step.setup_chain(np.random.default_rng(1), 0, 1)
    point = model.initial_point()
    assert not np.isfinite(model.compile_logp(mode="FAST_COMPILE")(point))
    _, [stats] = step.step(point)
    assert np.isfinite(stats["dapper_mechanism_logp"])


@pytest.mark.usefixtures("in_python")
def test_an_infinite_density_is_never_taken():
    with pm.Model() as model:
        x = pm.Poisson("record", 2.0, shape=2)
        pm.Potential("privacy", -pt.log(pt.abs(x.sum() - 4.0)))
    step = pmd.DapperStep([x], model=model)
    step.setup_chain(np.random.default_rng(1), 0, 300)
    point, sums = {"record": np.array([1, 1])}, set()
    for _ in range(300):
        point, _ = step.step(point)
        sums.add(point["record"].sum())
    assert {2, 3, 5, 6} <= sums
    assert 4 not in sums


def test_sums_with_the_same_noise_have_one_compiled_term():
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=4)
        a, b, c = record.sum(), (record**2).sum(), pt.clip(record, 0, 1).sum()
        pmd.LaplaceMechanism(2.0).potential("alike", pt.stack([a, b]), released=[1.0, 2.0])
        pmd.GaussianMechanism(2.0).potential("other", c, released=1.0)
    reading = read_model(model, model.value_vars, model.initial_point())
    density = density_of_sums(reading, numba_mode(None))
    assert len(reading.sums) == 3
    assert len(density.graph.graphs) == 2
    [context] = density.context
    assert compile_in_python(model, [], [context[:, 0]])()[0].tolist() == [0, 0, 1]


def sums_and_answers(room):
    """Present rows are seen by a sum as a whole, and one by one."""
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, room)
        x = pm.Normal("x", 0, 1, shape=room)
        there = pmd.present(n, room)
        pm.Potential("norm", -(((there * x).sum() ** 2 + (there * x**2).sum()) ** 0.5))
        pm.Potential("answers", pt.switch(there, -pt.abs(x), 0))
    return model


def middle(room):
    """No function of sums."""
    with pm.Model() as model:
        n = pm.DiscreteUniform("n", 0, room)
        x = pm.Normal("x", 0, 1, shape=room)
        pm.Potential("most", -pt.max(pmd.present(n, room) * x))
    return model


@pytest.mark.filterwarnings("ignore:DapperStep has to evaluate the model from all")
@pytest.mark.parametrize("build", [bernoulli, sums_and_answers, middle])
def test_records_that_are_not_there_are_not_decided_on(build):
    """They add nothing, so that a sweep over all does the same: it takes their proposals."""
    room = 5
    model = build(room)
    with evaluated_in_python():
        step = pmd.DapperStep([model["x"]], model=model, track_records=True)
    agree = []
    for n in range(room + 1):
        point = model.initial_point(random_seed=n) | {"n": np.array(n)}
        given = step._given(point)

        def swept(decided, point=point, given=given, seed=n):
            rng = np.random.default_rng(seed)
            return step.sweep.update(rng, [point["x"]], given, decided)

        x, (share, logp), accepted = swept(n)
        all_x, (_, all_logp), all_accepted = swept(room)
        np.testing.assert_array_equal(x, all_x)
        np.testing.assert_array_equal(accepted, all_accepted)
        assert accepted[n:].all()
        assert share == accepted[:n].sum() / max(n, 1)
        assert logp == pytest.approx(all_logp, rel=1e-12)
        # With one record fewer, what the last one adds is missing.
        agree.append(n == 0 or np.isclose(swept(n - 1)[1][1], logp, rtol=1e-12))
    assert not all(agree)


def test_separable_densities_decide_record_by_record():
    present, proposed, thresholds = (pt.vector(x, dtype="float64") for x in ("a", "b", "c"))
    inputs, outputs = [thresholds, present, proposed], lowered(thresholds, present, proposed)
    # Compiled, since fast arithmetic may take an infinite number for any other.
    decide = pytensor.function(inputs, outputs, mode=numba_mode(None))
    before = np.array([0.0, 0.0, -np.inf, -np.inf, 0.0, np.nan, -0.5])
    after = np.array([-5.0, 5.0, 0.0, -np.inf, np.nan, -np.inf, -2.0])
    found = decide(np.full(7, -1.0), before, after)
    assert (found < 0).tolist() == [False, True, True, True, False, True, False]
    np.testing.assert_allclose(found[[0, 1, 2, 3, 5, 6]], [4.0, -6.0, -1.0, -1.0, -1.0, 0.5])
    assert found[4] > 1e200
    # Of absent records nothing decides.
    assert len(decide(np.full(2, -1.0), before, after)) == 2
