"""DapperStep as a step of PyMC's: protocol, seeds, shared data, impossible starts."""

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.exceptions import SamplingError
from pymc.sampling.parallel import ParallelSamplingError

import pymc_dapper as pmd
from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.records.compiled.start import RecordStart
from pymc_dapper.records.step import MOST_SEARCHES
from tests.admissions_and_tiny import RELEASED, admissions_model
from tests.evaluated_in_python import evaluated_in_python
from tests.preloaded import preloaded
from tests.records.refusals import refuse, with_mechanism
from tests.states import same_states


@pytest.fixture(scope="module")
def model():
    return admissions_model(shared=True)


@pytest.fixture(scope="module")
def step(model):
    return DapperStep([model["record"]], model=model)


@pytensor.config.change_flags(mode="FAST_COMPILE")  # of PyMC's own: our steps are compiled
def sample(model, step, **kwargs):
    options = {"draws": 20, "tune": 10, "chains": 2, "cores": 1, "random_seed": 5} | kwargs
    with model:
        return pm.sample(
            step=[step, pm.Metropolis([model["p"]])],
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        )


def same_draws(a, b):
    return all(np.array_equal(a.posterior[name], b.posterior[name]) for name in ("p", "record"))


@pytest.fixture(scope="module")
def sequential(model, step):
    return sample(model, step)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, id="here"),
        pytest.param({"cores": 2}, id="forked"),
        pytest.param(
            {"cores": 2, "mp_ctx": preloaded()},
            id="in processes of their own",
            marks=pytest.mark.long,
        ),
    ],
)
def test_the_same_seed_gives_the_same_draws(model, step, sequential, options):
    assert same_draws(sample(model, step, **options), sequential)


def test_another_seed_gives_other_draws(model, step, sequential):
    assert not same_draws(sample(model, step, random_seed=6), sequential)


def test_chains_differ(sequential):
    first, second = sequential.posterior["record"].values
    assert not np.array_equal(first, second)


def test_statistics_describe_the_sweep(sequential):
    stats, posterior = sequential.sample_stats, sequential.posterior
    assert stats["dapper_accept"].dims == ("chain", "draw")
    assert np.all((stats["dapper_accept"] > 0) & (stats["dapper_accept"] < 1))
    counts = np.stack([(posterior["record"] == k).sum("record_dim_0") for k in range(4)], axis=-1)
    mechanism = -0.5 * (((RELEASED - counts) / 6.32) ** 2).sum(axis=-1)
    np.testing.assert_allclose(stats["dapper_mechanism_logp"], mechanism, rtol=1e-9)


def test_sampling_state_restores_a_draw_exactly(model, step):
    step.setup_chain(np.random.default_rng(7), tune=0, draws=10)
    point = model.initial_point()
    for _ in range(3):
        point, _ = step.step(point)
    saved = step.sampling_state
    first, first_stats = step.step(point)
    elsewhere, _ = step.step(first)
    assert not np.array_equal(elsewhere["record"], first["record"])

    other = DapperStep([model["record"]], model=model)
    for restored in (step, other):
        restored.sampling_state = saved
        assert same_states(restored.sampling_state, saved)
        again, again_stats = restored.step(point)
        np.testing.assert_array_equal(again["record"], first["record"])
        assert again_stats == first_stats


def test_a_step_does_not_change_the_point_it_is_given(model, step):
    point = model.initial_point()
    before = point["record"].copy()
    step.setup_chain(np.random.default_rng(7), tune=0, draws=10)
    new, _ = step.step(point)
    np.testing.assert_array_equal(point["record"], before)
    assert new["record"].dtype == point["record"].dtype
    assert new["record"].shape == point["record"].shape


def test_a_pickled_step_draws_the_same(model, step):
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    point = model.initial_point()
    results = []
    for each in (step, copy):
        each.setup_chain(np.random.default_rng(8), tune=0, draws=10)
        results.append(each.step(point)[0]["record"])
    np.testing.assert_array_equal(*results)


@pytest.mark.usefixtures("uncompiled")
def test_value_variables_and_a_single_variable_are_accepted(model):
    with model:
        step = DapperStep(model.rvs_to_values[model["record"]])
    assert [value.name for value in step.vars] == ["record"]


def test_the_progress_bar_shows_acceptance(step):
    columns, stats = step._progressbar_config(n_chains=3)
    column = columns[0].get_table_column()
    assert column.header == "Accepted"
    assert column.min_width == len("Accepted")  # not cut off in a terminal of 80 columns
    assert stats == {"dapper_accept": [0.0] * 3}
    [update] = step._make_progressbar_update_functions()
    assert update({"dapper_accept": 0.5, "dapper_mechanism_logp": -1.0}) == {"dapper_accept": 0.5}


@pytensor.config.change_flags(mode="FAST_COMPILE")
def test_the_progress_bar_works_in_a_run(model, step, capsys):
    with model:
        pm.sample(
            draws=3,
            tune=0,
            chains=1,
            cores=1,
            step=[step, pm.Metropolis([model["p"]])],
            compute_convergence_checks=False,
            progressbar=True,
        )


@pytest.mark.usefixtures("uncompiled")
def test_compilation_options_reach_pymc_and_only_numba_modes_are_taken(model):
    DapperStep([model["record"]], model=model, compile_kwargs={"mode": "NUMBA"})
    with pytest.raises(ValueError, match="mode 'FAST_COMPILE' doesn't compile with numba"):
        DapperStep([model["record"]], model=model, compile_kwargs={"mode": "FAST_COMPILE"})


@pytest.mark.usefixtures("uncompiled")
def test_variables_can_get_a_step_each():
    with pm.Model():
        x = pm.Normal("x", 0, 1, shape=5)
        y = pm.Normal("y", x, 1, shape=5)
        pm.Normal("s_dp", y.sum(), 1, observed=3.0)
        steps = DapperStep([x, y], blocked=False)
        together = DapperStep([x, y])
    assert [[v.name for v in step.vars] for step in steps.methods] == [["x"], ["y"]]
    # To the step for x alone, the prior of y is a factor like any other.
    assert "y (separable)" in repr(steps.methods[0])
    assert "y (separable)" not in repr(together)


# Shared data ----------------------------------------------------------------------------------


def people_model(n):
    with pm.Model(coords={"person": np.arange(n)}) as m:
        public = pm.Data("public", np.linspace(-1, 1, n), dims="person")
        released = pm.Data("released", 3.0)
        mu = pm.Normal("mu")
        record = pm.Normal("record", mu + public, 1, dims="person")
        pm.Normal("s_dp", record.sum(), 0.5, observed=released)
    return m


@pytest.fixture
def people(in_python):
    m = people_model(30)
    return m, DapperStep([m["record"]], model=m)


def test_new_data_take_effect_without_recompiling(people):
    model, step = people
    compiled = step.sweep
    sums = []
    for value in (-40.0, 40.0):
        with model:
            pm.set_data({"released": value})
        step.setup_chain(np.random.default_rng(0), tune=0, draws=1)
        point = model.initial_point()
        for _ in range(15):
            point, _ = step.step(point)
        sums.append(point["record"].sum())
    assert step.sweep is compiled
    assert sums[0] < -10 < 10 < sums[1]


def test_a_changed_number_of_records_is_refused_by_name(people):
    model, step = people
    with model:
        pm.set_data({"public": np.zeros(20)}, coords={"person": np.arange(20)})
    with pytest.raises(
        ValueError, match=r"the dim 'person' had length 30 .* 'record' .* length 20"
    ):
        step.setup_chain(np.random.default_rng(0), tune=0, draws=1)
    with model:
        pm.set_data({"public": np.zeros(30)}, coords={"person": np.arange(30)})
    step.setup_chain(np.random.default_rng(0), tune=0, draws=1)


# Impossible starts ----------------------------------------------------------------------------


def bounded_model(released, half_width=0.5):
    """Uniform noise: the density is zero wherever the sum is too far from the release."""
    with pm.Model() as m:
        p = pm.Beta("p", 2, 2)
        record = pm.Bernoulli("record", p, shape=40)
        distance = pt.abs(released - record.sum())
        pm.Potential("privacy", pt.switch(distance < half_width, 0.0, -np.inf))
    return m


@pytest.mark.usefixtures("in_python")
def test_the_first_step_repeats_sweeps_until_the_state_is_possible():
    model = bounded_model(26.0)
    with model:
        step = DapperStep([model["record"]])
        # NUTS stops at once where the log-density is -inf.
        idata = pm.sample(
            draws=10,
            tune=10,
            chains=2,
            cores=1,
            step=[step],
            initvals={"record": np.zeros(40, dtype=int)},
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )
    assert np.all(idata.posterior["record"].sum("record_dim_0") == 26)
    assert np.all(idata.sample_stats["dapper_mechanism_logp"] == 0)


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("cores", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_start_that_stays_impossible_is_explained(cores):
    model = bounded_model(41.5)  # of 40 people
    step = DapperStep([model["record"]], model=model, max_start_sweeps=5)
    with pytest.raises(
        SamplingError if cores == 1 else ParallelSamplingError,
        match=r"records 'record': after 5 sweeps the log-density of 'privacy'.*initvals={'record'",
    ):
        sample_bounded(model, step, cores)


@pytensor.config.change_flags(mode="FAST_COMPILE")
def sample_bounded(model, step, cores):
    with model:
        pm.sample(
            draws=5,
            tune=5,
            chains=2,
            cores=cores,
            step=[step, pm.Metropolis([model["p"]])],
            progressbar=False,
            random_seed=1,
        )


@pytest.mark.usefixtures("in_python")
def test_totals_that_contradict_each_other_are_searched_for_a_few_times(monkeypatch):
    """Six people in a cell, and five: a search takes long, and there is nothing to find."""
    searched = []
    monkeypatch.setattr(RecordStart, "__call__", lambda *x: searched.append(x) or x[2])
    with pm.Model() as model:
        record = pm.Categorical("record", p=[0.5, 0.5], shape=10)
        pmd.invariant("cells", pmd.statistics.counts(record, 2), [6, 4])
        pmd.invariant("first", pt.eq(record, 0).sum(), 5)
    step = DapperStep([record], model=model, max_start_sweeps=20)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=1)
    before = len(searched)
    with pytest.raises(SamplingError, match="'cells', 'first' is still -inf or nan"):
        step.step(model.initial_point())
    assert len(searched) - before == MOST_SEARCHES


@pytest.mark.usefixtures("in_python")
def test_a_mechanism_that_is_nan_everywhere_never_stalls():
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=10)
        pm.Potential("privacy", pt.sqrt(-1.0 - record.sum() ** 2))
    step = DapperStep([record], model=model, max_start_sweeps=3)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=1)
    with pytest.raises(SamplingError, match="'privacy' is still -inf or nan"):
        step.step(model.initial_point())


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize("answers", [[0, 1, 2], [0, 1, 3]])
def test_answers_that_no_possible_record_gives_are_refused(answers):
    """The prior of value 2 is zero, and no record answers 3: parameters would follow neither."""
    with pm.Model() as model:
        q = pm.Beta("q", 1, 1)
        record = pm.Categorical("record", pt.stack([q, 1 - q, 0.0 * q]), shape=3)
        pm.Categorical("answer", pt.constant(np.eye(3, 4))[record], observed=answers)
        step, *_ = pmd.assign_steps([record])
    step.max_start_sweeps = 3
    step.setup_chain(np.random.default_rng(0), tune=0, draws=1)
    with pytest.raises(SamplingError, match="'answer' is still -inf or nan, or their prior is"):
        step.step(model.initial_point())


@pytest.mark.usefixtures("in_python")
def test_a_start_that_the_prior_excludes_is_left_or_refused():
    """A person of the first group is never in category 2, which the release would prefer."""
    with pm.Model() as model:
        p = np.array([[0.5, 0.5, 0.0], [0.3, 0.3, 0.4]])
        record = pm.Categorical("record", p[[0, 1, 1]], shape=3)
        pm.Normal("number", pt.eq(record, 2).sum(), 0.1, observed=3.0)
    step = DapperStep([record], model=model, max_start_sweeps=20)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=1)
    with pytest.raises(SamplingError, match="or their prior is"):
        step.step({"record": np.array([2, 2, 2])})
    point, _ = step.step({"record": np.array([0, 2, 2])})
    assert point["record"][0] < 2


# Refusals -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refused():
    with pm.Model() as m:
        mu = pm.Normal("mu")
        record = pm.Normal("record", mu, 1, shape=5)
        pm.Deterministic("total", record.sum())
        pm.Normal("answers", record, 1, observed=np.zeros(5))
        pm.Potential("largest", -record.max())
        pm.Normal("bystander", 0, 1, shape=3)
    return m


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mu", "'mu' is a scalar and has no record axis"),
        ("total", "'total' is computed from other variables"),
        ("largest", "'largest' is computed from other variables"),
        ("answers", "'answers' is observed"),
        ("bystander", "nothing in the model depends on the records 'bystander'"),
    ],
)
def test_what_cannot_be_a_record_is_refused_by_name(refused, name, message):
    with pytest.raises(ReadingError, match=message):
        DapperStep([refused[name]], model=refused)


def test_a_variable_of_another_model_is_refused(refused):
    with pytest.raises(ReadingError, match="'record' passed belongs to another model"):
        DapperStep([tiny_foreign_record()], model=refused)


def tiny_foreign_record():
    with pm.Model():
        return pm.Normal("record", 0, 1, shape=5)


def test_the_start_limit_must_be_positive(model):
    with pytest.raises(ValueError, match="max_start_sweeps must be a whole number of at least 1"):
        DapperStep([model["record"]], model=model, max_start_sweeps=0)


# Digits ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def spread():
    with pm.Model() as m:
        mu = pm.Normal("mu", 0, 1e8)
        record = pm.Normal("record", mu, 1, shape=20)
        pm.Laplace("variance", record.var(), 0.1, observed=1.0)
    with evaluated_in_python():
        return m, DapperStep([record], model=m)


def test_digits_that_are_lost_in_a_chain_are_noticed_once_they_matter(spread):
    _, step = spread
    far = {"mu": np.asarray(3e7), "record": 3e7 + np.linspace(-1.6, 1.6, 20)}
    step.setup_chain(np.random.default_rng(0), tune=1, draws=1)
    point, _ = step.step(far)
    with pytest.raises(SamplingError, match=r"has lost digits in 'variance'.*a public constant"):
        step.step(point)


def test_a_chain_that_stays_near_loses_no_digits(spread):
    model, step = spread
    step.setup_chain(np.random.default_rng(0), tune=0, draws=100)
    point = model.initial_point() | {"mu": np.asarray(300.0)}
    for _ in range(100):
        point, _ = step.step(point)


@pytest.mark.usefixtures("in_python")
def test_digits_lost_in_plain_sums_are_noticed_too():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1e18)
        record = pm.Normal("record", mu, 1, shape=20)
        pm.Laplace("total", record.sum(), 0.1, observed=6e18)
    step = DapperStep([record], model=model)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=10)
    far = {"mu": np.asarray(3e17), "record": 3e17 + np.linspace(-900, 900, 20)}
    with pytest.raises(SamplingError, match=r"has lost digits in 'total'.*or with the noise"):
        step.step(far)


def test_only_expanded_powers_are_compared_with_the_model(spread, step):
    assert spread[1].sweep.as_written is not None
    assert step.sweep.as_written is None


# Other options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mean": 1.0}, "there is no value variable 'mean', but mu, x"),
        ({"x": 0.0}, r"'x' must have shape \(5,\), got \(\)"),
        ({"mu": "one"}, "'mu' is of type <U3"),
    ],
)
def test_a_malformed_initial_point(given, message):
    refuse(normal_with_a_mean, f"initial_point: {message}", ValueError, initial_point=given)


def normal_with_a_mean():
    return with_mechanism(pm.Normal("x", pm.Normal("mu"), 1, shape=5))


@pytest.mark.usefixtures("uncompiled")
def test_an_initial_point_of_some_variables_is_completed():
    with pm.Model() as model:
        x = normal_with_a_mean()
    DapperStep([x], model=model, initial_point={"mu": 3})


def test_a_compilation_option_that_does_not_exist():
    refuse(
        normal_with_a_mean,
        "compile_kwargs: PyMC's compile has no option 'foo'",
        TypeError,
        compile_kwargs={"foo": 1},
    )
