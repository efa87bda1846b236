"""InterweaveStep as a step of PyMC's: protocol, seeds, shared data, what tuning leads to."""

import logging
import warnings
from itertools import islice

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.step_methods.state import equal_dataclass_values

from pymc_dapper import DapperStep, ReadingError
from pymc_dapper.interweaving import tuner
from pymc_dapper.interweaving.kernels.tuning import DEFAULT_MOVES, MIN_MEASURED, MOVES_IN_TUNING
from pymc_dapper.interweaving.step import InterweaveStep
from tests.against_python import assert_same_in_python
from tests.evaluated_in_python import REWRITTEN, evaluated_in_python
from tests.long_cases import one_in_three
from tests.states import same_states

N = 20


def make_model():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau")
        mu = pm.Normal("mu", 0, tau)
        sigma = pm.HalfNormal("sigma")
        x = pm.LogNormal("x", mu, sigma, shape=N)
        k = pm.Poisson("k", sigma, shape=N)
        released = pm.Data("released", np.array([30.0, 12.0]))
        sums = pt.stack([pt.clip(x, 0, 5).sum(), k.sum()])
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, 20.0), released))
    return model


@pytest.fixture(scope="module")
def model():
    return make_model()


@pytest.fixture(scope="module")
def dapper(model):
    with evaluated_in_python():
        return DapperStep([model["x"], model["k"]], model=model)


@pytest.fixture(scope="module")
def steps(model, dapper):
    with model:
        return [
            dapper,
            InterweaveStep([model["mu"], model["sigma"]], records=[model["x"], model["k"]]),
        ]


@pytest.fixture
def step(steps):
    return steps[1]


@pytensor.config.change_flags(mode=REWRITTEN)  # of PyMC's own: our steps are compiled
def sample(model, steps, **kwargs):
    options = {"draws": 20, "tune": 30, "chains": 2, "cores": 1, "random_seed": 5} | kwargs
    with model:
        others = [pm.Metropolis([model["mu"], model["tau"]]), pm.Metropolis([model["sigma"]])]
        return pm.sample(
            step=[*steps, *others],
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        )


@pytest.fixture(scope="module")
def sequential(model, steps):
    return sample(model, steps)


@pytest.mark.parametrize("options", [{}, {"cores": 2}], ids=str)
def test_the_same_seed_gives_the_same_draws(model, steps, sequential, options):
    again = sample(model, steps, **options).posterior
    for name in ("mu", "sigma", "x", "k"):
        np.testing.assert_array_equal(again[name], sequential.posterior[name])


def test_another_seed_gives_other_draws(model, steps, sequential):
    other = sample(model, steps, random_seed=6).posterior
    assert not np.array_equal(other["mu"], sequential.posterior["mu"])


@pytest.mark.filterwarnings("ignore:InterweaveStep alone has moved")
def test_the_kernel_does_the_same_in_python(model, step):
    assert_same_in_python(step, step._compiled[0].move, model.initial_point())


def test_statistics_describe_the_moves(sequential):
    stats = sequential.sample_stats
    assert stats["interweave_accept"].dims == ("chain", "draw")
    moved = stats["interweave_moves"] > 0
    assert np.all(stats["interweave_accept"].where(moved, 1) > 0)
    assert np.all(stats["interweave_accept"].where(moved, 1) <= 1)


def test_dapper_step_sees_records_that_were_changed_elsewhere(model, steps):
    """Its statistic, formed from its sums, is that of the point it leaves."""
    dapper, interweave = steps
    mechanism = model.compile_logp([model["privacy"]], mode="FAST_COMPILE")
    point = model.initial_point()
    for each, rng in zip((dapper, interweave), np.random.default_rng(3).spawn(2), strict=True):
        each.setup_chain(rng, tune=100, draws=100)
    for _ in range(30):
        before = point
        point, _ = interweave.step(point)
        assert not np.array_equal(point["x_log__"], before["x_log__"])
        point, [stat] = dapper.step(point)
        assert stat["dapper_mechanism_logp"] == pytest.approx(mechanism(point), rel=1e-9)


def walk(step, point, rng, iterations, tune):
    """A chain of this step alone; yields the points."""
    step.setup_chain(rng, tune=tune, draws=iterations)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="InterweaveStep alone has moved")
        for _ in range(tune + iterations):
            point, [stat] = step.step(point)
            yield point, stat


def started(model):
    """A point where something can move."""
    rng = np.random.default_rng(0)
    return {
        **model.initial_point(),
        "x_log__": rng.normal(size=N),
        "k": rng.poisson(1.0, size=N),
    }


@pytest.mark.parametrize("stop", [30, 90])
def test_sampling_state_restores_a_draw_exactly(model, step, stop):
    """Amid tuning, and after it."""
    *_, (point, _) = zip(
        walk(step, started(model), np.random.default_rng(7), 60, tune=80), range(stop), strict=False
    )
    point, _ = point
    saved = step.sampling_state
    first, first_stats = step.step(point)
    with model:
        other = InterweaveStep([model["mu"], model["sigma"]], records=[model["x"], model["k"]])
    for restored in (step, other):
        restored.sampling_state = saved
        assert same_states(restored.sampling_state, saved)
        again, again_stats = restored.step(point)
        assert all(np.array_equal(again[name], first[name]) for name in first)
        assert again_stats == first_stats


def test_what_was_learnt_is_frozen_after_tuning_and_forgotten_by_the_next_chain(model, step):
    points = walk(step, started(model), np.random.default_rng(7), 40, tune=100)
    for _ in range(100):
        next(points)
    learnt = step.tuner.fits[0]
    assert not np.array_equal(learnt.factor, np.eye(2))
    assert [stat["interweave_moves"] for _, stat in points] == step.tuner.numbers * 40
    assert equal_dataclass_values(step.tuner.fits[0], learnt)
    assert step.tuner.paths == [[]]
    step.setup_chain(np.random.default_rng(8), tune=0, draws=5)
    np.testing.assert_array_equal(step.tuner.fits[0].factor, np.eye(2))
    assert step.tuner.numbers == [DEFAULT_MOVES]


def test_a_step_does_not_change_the_point_it_is_given(model, step):
    point = started(model)
    before = {name: value.copy() for name, value in point.items()}
    new, _ = next(walk(step, point, np.random.default_rng(7), 10, tune=0))
    for name, value in before.items():
        np.testing.assert_array_equal(point[name], value)
        assert new[name].dtype == value.dtype
        assert new[name].shape == value.shape


def test_a_pickled_step_draws_the_same(model, step):
    copy = cloudpickle.loads(cloudpickle.dumps(step))
    results = [
        next(walk(each, started(model), np.random.default_rng(8), 10, tune=0))[0]["mu"]
        for each in (step, copy)
    ]
    np.testing.assert_array_equal(*results)


def test_shared_data_are_read_again(model, step):
    def first_point():
        return next(walk(step, started(model), np.random.default_rng(8), 10, tune=0))[0]

    first = first_point()
    with model:
        pm.set_data({"released": np.array([90.0, 60.0])})
        changed = first_point()
        pm.set_data({"released": np.array([30.0, 12.0])})
    assert not np.array_equal(changed["mu"], first["mu"])
    assert np.array_equal(first_point()["mu"], first["mu"])


def test_shared_data_of_another_shape_are_refused(model, step):
    with model:
        pm.set_data({"released": np.array([[30.0, 12.0]] * 2)[0:1, 0]})
        with pytest.raises(
            ValueError, match=r"'released' had shape \(2,\) when the InterweaveStep"
        ):
            step.setup_chain(np.random.default_rng(8), tune=0, draws=1)
        pm.set_data({"released": np.array([30.0, 12.0])})


def test_from_an_impossible_state_nothing_moves(model, step):
    point = {**started(model), "k": np.full(N, -1)}
    new, stat = next(walk(step, point, np.random.default_rng(8), 10, tune=0))
    assert all(new[name] is point[name] for name in point)
    assert np.isnan(stat["interweave_accept"])


def test_records_that_do_not_come_back_from_their_noise_are_left_alone(model, step):
    """So far in the tail that their cdf is 1."""
    point = {**started(model), "k": np.append(np.ones(N - 1, dtype=int), 400)}
    new, _ = next(walk(step, point, np.random.default_rng(8), 10, tune=0))
    assert all(new[name] is point[name] for name in point)


@pytensor.config.change_flags(mode="FAST_COMPILE")
def test_it_warns_where_it_is_alone(model, steps):
    with model:
        others = [pm.Metropolis([model["tau"], model["sigma"]])]
        with pytest.warns(UserWarning, match=r"alone has moved 'mu'\. The draws are right"):
            pm.sample(
                tune=50,  # Metropolis may refuse a few times in a row
                draws=5,
                chains=1,
                random_seed=1,
                step=[*steps, *others],
                progressbar=False,
                compute_convergence_checks=False,
            )


def test_the_reading_is_described(step):
    assert repr(step) == "<InterweaveStep: mu, sigma; x, k follow>"
    assert step.describe() == (
        "Moves 'mu', 'sigma' with the noise of the records held fixed.\n"
        "Records that follow: 'x', 'k'\n"
        "Factors that decide on a move: 'mu', 'sigma', 'privacy'\n"
        "Moved with their mean and covariance, too, if tuning mixes poorly: 'x'"
    )


def test_parameters_left_alone_get_another_step(model):
    with model, evaluated_in_python():
        step = InterweaveStep(
            [model["tau"], model["mu"]], records=[model["x"], model["k"]], moves=0
        )
    assert [x.name for x in step.vars] == ["mu"]
    assert "Left to other steps, since the records' prior doesn't depend on it: 'tau'" in (
        step.describe()
    )
    point = started(model)
    for _, stat in walk(step, point, np.random.default_rng(1), 3, tune=0):
        assert stat["interweave_moves"] == 0


def test_without_records_the_parameters_are_moved_alone():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        b = pm.Normal("b", 0, scale, shape=2)
        pm.Normal("y", b, 0.5, observed=[1.0, 2.0])
    with evaluated_in_python():
        step = InterweaveStep([b, scale], model=model)
        start = model.initial_point()
        moved = np.array([x["b"] for x, _ in walk(step, start, np.random.default_rng(1), 40, 20)])
    assert np.all(np.diff(moved[20:], axis=0).any(axis=1))
    assert repr(step) == "<InterweaveStep: b, scale; no records follow>"
    assert step.describe().splitlines() == [
        "Moves 'b', 'scale', which no records follow.",
        "Factors that decide on a move: 'scale', 'b', 'y'",
    ]


def test_where_nothing_else_moves_parameters_some_moves_are_made(monkeypatch):
    with pm.Model() as model:
        b = pm.Normal("b")
    monkeypatch.setattr(tuner, "best_numbers_of_moves", lambda *arguments: ([0], 1.0))
    with evaluated_in_python():
        step = InterweaveStep([b], model=model)
        list(walk(step, model.initial_point(), np.random.default_rng(1), 1, tune=MIN_MEASURED))
    assert step.tuner.numbers == [MOVES_IN_TUNING]


def test_what_is_wrong_with_the_arguments_is_said(model):
    x, mu = model["x"], model["mu"]
    with model:
        with pytest.raises(ReadingError, match="no variables: pass the parameters"):
            InterweaveStep([], records=[x])
        with pytest.raises(TypeError, match="only the parameters by position"):
            InterweaveStep([mu], [x])
        with pytest.raises(ValueError, match="moves must be a whole number of at least 0"):
            InterweaveStep([mu], records=[x], moves=-1)
        with pytest.raises(ReadingError, match="'mu' is a name"):
            InterweaveStep("mu", records=[x])
        with pytest.raises(ReadingError, match="'privacy' is computed from other variables"):
            InterweaveStep([mu], records=[model["privacy"]])
        with pytest.raises(ValueError, match="the mode 'FAST_COMPILE' doesn't compile with numba"):
            InterweaveStep([mu], records=[x], compile_kwargs={"mode": "FAST_COMPILE"})


def test_the_progress_bar_has_room_for_what_people_look_at(step):
    assert step._progressbar_config(n_chains=3) == ([], {})
    [update] = step._make_progressbar_update_functions()
    assert update({"interweave_moves": 2, "x": 1}) == {}


@pytest.fixture
def moving_affinely(monkeypatch):
    """A model with records that move affinely as soon as can be, in Python."""
    monkeypatch.setattr(tuner, "forgets_slowly", lambda parameters: True)
    monkeypatch.setattr(tuner, "best_numbers_of_moves", lambda paths, *_: ([1] * len(paths), 1.0))
    monkeypatch.setattr(tuner, "MIN_MEASURED", 6)
    with pm.Model() as model, evaluated_in_python():
        mu = pm.Normal("mu", 0, 1)
        x = pm.LogNormal("x", mu, 1, shape=6)
        pm.Normal("y", 0, 1, shape=6)
        released = pm.Data("released", 3.0)
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(x.sum() + model["y"].sum(), 1), released))

        def build():
            return InterweaveStep([mu], records=[x, model["y"]])

        yield model, build


def several(model):
    rng = np.random.default_rng(0)
    return {**model.initial_point(), "x_log__": rng.normal(size=6), "y": rng.normal(size=6)}


@pytest.fixture
def waiting(moving_affinely, monkeypatch):
    """The same model's step, which asks after 8 iterations, and again after twice as many."""
    monkeypatch.setattr(tuner, "MIN_MEASURED", 8)
    model, _ = moving_affinely
    records = [model["x"], model["y"]]
    return model, lambda: InterweaveStep([model["mu"]], records=records, when_needed=True)


def asked(monkeypatch, answers):
    """Answer whether the parameters forget slowly; return how many iterations were looked at."""
    looked, answers = [], iter(answers)

    def answer(parameters):
        looked.append(len(parameters))
        return next(answers)

    monkeypatch.setattr(tuner, "forgets_slowly", answer)
    return looked


def test_moves_begin_in_tuning_if_a_parameter_crawls(waiting, monkeypatch):
    model, build = waiting
    looked = asked(monkeypatch, [False, True, False])
    step, point = build(), several(model)
    made, told = [], []
    for after, stat in walk(step, point, np.random.default_rng(3), 4, tune=48):
        made.append(stat["interweave_moves"])
        told.append(stat["warning"])
        if not any(made):
            assert step._compiled == [] or told[-1]
            assert after is point
    # Three quarters of what was seen, also before affine moves: a quarter of the 32 that are left.
    assert looked == [6, 12, 6]
    assert made == [0] * 16 + [MOVES_IN_TUNING] * 32 + [1] * 4
    [said] = [x for x in told if x is not None]
    assert told[15] is said
    assert said.level == "info"
    assert said.message.startswith("InterweaveStep: draws of 'mu' have a long memory")
    assert "Begins if tuning mixes poorly without" in step.describe()


@pytest.mark.long
def test_moves_that_begin_in_tuning_are_the_same_in_other_processes(waiting, caplog):
    caplog.set_level(logging.INFO, logger="pymc")
    model, build = waiting
    drawn = []
    for cores in (1, 2):
        with model:
            idata = pm.sample(
                6,
                tune=20,
                chains=2,
                cores=cores,
                step=[build(), *(pm.Metropolis([model[name]]) for name in ("mu", "x", "y"))],
                random_seed=4,
                progressbar=False,
                compute_convergence_checks=False,
            )
        assert idata.sample_stats["interweave_moves"].values.all()
        drawn.append(idata.posterior.to_dataset())
    assert drawn[0].equals(drawn[1])
    told = [x for x in caplog.messages if "The rest of tuning also moves them" in x]
    assert len(told) == 4  # by each chain: `pmd.sample` tells it once


def test_moves_that_are_not_needed_are_never_compiled(waiting, monkeypatch):
    model, build = waiting
    looked = asked(monkeypatch, [False, False])
    step, point = build(), several(model)
    for tune in (20, 7, 0):
        for after, stat in walk(step, point, np.random.default_rng(3), 4, tune=tune):
            assert after is point
            assert stat["interweave_moves"] == 0
            assert np.isnan(stat["interweave_accept"])
        assert step.tuner.seen == []
    assert looked == [6, 12]
    assert step._compiled == []


def test_a_given_number_of_moves_is_made_from_the_start(waiting):
    model, _ = waiting
    with model:
        step = InterweaveStep([model["mu"]], records=[model["x"]], moves=1, when_needed=True)
    assert not step.when_needed
    with model, pytest.raises(TypeError, match="when_needed must be True or False"):
        InterweaveStep([model["mu"]], records=[model["x"]], when_needed=1)


@pytest.mark.parametrize("stop", one_in_three([8, 5, 20, 30]))
def test_a_state_of_a_step_that_waits_restores_a_draw_exactly(waiting, monkeypatch, stop):
    """Before the moves are compiled, as they begin, and after that."""
    model, build = waiting

    def rest(step, point):
        monkeypatch.setattr(tuner, "forgets_slowly", lambda parameters: len(parameters) == 6)
        for _ in range(3):
            point, stats = step.step(point)
        return point, stats[0]["interweave_moves"]

    monkeypatch.setattr(tuner, "forgets_slowly", lambda parameters: len(parameters) == 6)
    step = build()
    *_, (point, _) = islice(walk(step, several(model), np.random.default_rng(7), 9, tune=28), stop)
    saved = cloudpickle.dumps(step.sampling_state)
    first, made = rest(step, point)
    assert (made > 0) == (stop > 5)
    other = build()  # of which nothing is compiled yet
    other.sampling_state = cloudpickle.loads(saved)
    again, made_again = rest(other, point)
    assert made_again == made
    assert all(np.array_equal(again[name], first[name]) for name in first)


@pytest.mark.filterwarnings("ignore:No safe default transform")
def test_records_with_point_masses_do_not_move_affinely():
    with pm.Model(), evaluated_in_python():
        mu = pm.Normal("mu", 0, 1)
        records = [
            pm.Normal("x", mu, 1, shape=6),
            pm.Censored("y", pm.Normal.dist(mu, 1), lower=0, upper=None, shape=6),
            pm.Mixture("z", [0.5, 0.5], [pm.DiracDelta.dist(0.0), pm.Exponential.dist(1)], shape=6),
        ]
        pm.Normal("release", sum(x.sum() for x in records), 1, observed=0.3)
        step = InterweaveStep([mu], records=records)
    assert [x.name for x in step._affine] == ["x"]
    assert step.describe().endswith("if tuning mixes poorly: 'x'")


def test_affine_moves_begin_after_a_quarter_of_tuning(moving_affinely):
    """Fits come in the first half of tuning and at its end."""
    model, build = moving_affinely
    step, point = build(), several(model)
    made, fitted = [], []
    logps = model.compile_logp([model["mu"], model["privacy"]], mode="FAST_COMPILE")
    for after, stat in walk(step, point, np.random.default_rng(3), 6, tune=24):
        made.append(stat["interweave_moves"])
        fitted.append([fit.location for fit in step.tuner.fits])
        # It has no parameters: only by affine moves does it move.
        assert np.array_equal(after["y"], point["y"]) == (len(made) <= 6)
        assert np.isfinite(logps(after))
        point = after
    assert made == [MOVES_IN_TUNING] * 6 + [3 * MOVES_IN_TUNING] * 18 + [3] * 6
    for which, expected in enumerate([[6, 12, 24], [12, 24], [12, 24]]):
        seen = [fits[which] if len(fits) > which else None for fits in fitted]
        first = next(k for k, x in enumerate(seen) if x is not None)
        changed = [k + 1 for k in range(first + 1, 30) if not np.array_equal(seen[k - 1], seen[k])]
        assert changed == expected
    step.setup_chain(np.random.default_rng(3), tune=24, draws=5)
    assert step.tuner.numbers == [DEFAULT_MOVES]


def test_a_given_number_of_moves_counts_those_with_the_noise_held_fixed(moving_affinely):
    model, _ = moving_affinely
    with model:
        step = InterweaveStep([model["mu"]], records=[model["x"], model["y"]], moves=1)
    for _, stat in walk(step, several(model), np.random.default_rng(3), 2, tune=30):
        assert stat["interweave_moves"] in (1, MOVES_IN_TUNING)


@pytest.mark.parametrize("stop", [12, pytest.param(26, marks=pytest.mark.long)])
def test_a_state_with_affine_moves_restores_a_draw_exactly(moving_affinely, stop):
    model, build = moving_affinely
    step = build()
    *_, (point, _) = islice(walk(step, several(model), np.random.default_rng(7), 9, tune=24), stop)
    saved = step.sampling_state
    first, first_stats = step.step(point)
    other = build()  # which has made no affine moves yet
    other.sampling_state = saved
    again, again_stats = other.step(point)
    assert all(np.array_equal(again[name], first[name]) for name in first)
    assert again_stats == first_stats


@pytest.mark.long
def test_affine_moves_see_shared_data_that_were_set_between_chains(moving_affinely):
    model, build = moving_affinely
    step = build()

    def last():
        *_, (point, _) = walk(step, several(model), np.random.default_rng(7), 3, tune=24)
        return point["y"]

    before = last()
    model.set_data("released", 30.0)
    assert not np.array_equal(last(), before)
    model.set_data("released", 3.0)
    np.testing.assert_array_equal(last(), before)
