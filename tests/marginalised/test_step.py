"""MarginalisedStep, evaluated in Python: what it moves parameters by, and what it draws."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pytensor.tensor.random.basic import BinomialRV
from scipy import special

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import NotMarginalisableError, ReadingError
from pymc_dapper.marginalised.reading import model as reading
from pymc_dapper.marginalised.step import MarginalisedStep
from tests.evaluated_in_python import evaluated_in_python
from tests.marginalised.count_models import COUNTS, MODELS, Chosen, joint, parameters_of


@pytest.fixture(autouse=True)
def _in_python():
    with evaluated_in_python():
        yield


def marginalised(name):
    model = MODELS[name]()
    counts = [model[each] for each in COUNTS[name]]
    return model, MarginalisedStep(parameters_of(name, model), counts=counts, model=model)


def points(model, step, n=4):
    """Points at some distance of each other, far from what was released among them."""
    start, rng = model.initial_point(), np.random.default_rng(1)
    for k in range(n):
        moved = {
            x.name: start[x.name] + 1.5 * k * rng.normal(size=start[x.name].shape)
            for x in step._reading.moved
        }
        yield start | moved


@pytest.mark.parametrize("name", MODELS)
def test_the_log_density_is_the_sum_over_all_counts(name):
    model, step = marginalised(name)
    log_densities = joint(name, model)
    differences = [
        step._log_density(point) - special.logsumexp(log_densities(point)[1])
        for point in points(model, step)
    ]
    # Weights are relative to the noise's, which are all tabulated.
    np.testing.assert_allclose(differences, 0, atol=1e-10)


def test_the_gradient_is_that_of_finite_differences():
    model, step = marginalised("poisson")
    step_size = 1e-5
    for point in points(model, step):
        value = point["rate_log__"]
        up, down = (
            step._log_density(point | {"rate_log__": value + x}) for x in (step_size, -step_size)
        )
        function = step.nuts._logp_dlogp_func
        _, gradient = function([np.ravel(value)], extra_vars=point)
        np.testing.assert_allclose((up - down) / (2 * step_size), gradient[0], rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["binomial", "poisson"])
def test_counts_are_drawn_from_their_conditional(name):
    model, step = marginalised(name)
    for point in points(model, step, n=2):
        tables, logs = joint(name, model)(point)
        logs -= special.logsumexp(logs)
        each = [
            np.array(
                [special.logsumexp(logs[tables[:, j] == k]) for k in range(tables[:, j].max() + 1)]
            )
            for j in range(tables.shape[1])
        ]
        for uniform in (0.02, 0.3, 0.77, 0.98):
            drawn, log_probability = step._sums.draw(
                Chosen(np.full(tables.shape[1], uniform)), step._given(point)
            )
            expected = [np.searchsorted(np.cumsum(np.exp(x)), uniform, side="right") for x in each]
            assert drawn.tolist() == expected
            [at] = np.flatnonzero((tables == drawn).all(axis=1))
            assert log_probability == pytest.approx(logs[at], abs=1e-10)


def test_a_draw_moves_parameters_and_counts():
    model, step = marginalised("binomial")
    step.setup_chain(np.random.default_rng(3), tune=5, draws=5)
    point, seen = model.initial_point(), []
    for k in range(8):
        if k == 5:
            step.stop_tuning()
        point, [stats] = step.step(point)
        assert set(stats) == set(step.stats_dtypes_shapes)
        assert set(point) == set(model.initial_point())
        seen.append(np.concatenate([point["effect"], point["x"]]))
    assert not step.nuts.tune
    assert (np.ptp(seen, axis=0) > 0).all()
    assert point["x"].dtype == model.initial_point()["x"].dtype


def test_a_state_restores_a_chain():
    model, step = marginalised("binomial")
    step.setup_chain(np.random.default_rng(3), tune=5, draws=5)
    point, _ = step.step(model.initial_point())
    state = step.sampling_state
    expected, _ = step.step(point)
    step.setup_chain(np.random.default_rng(4), tune=5, draws=5)
    step.sampling_state = state
    again, _ = step.step(point)
    for name in expected:
        np.testing.assert_array_equal(again[name], expected[name])


def test_data_are_read_anew_by_each_chain():
    model, step = marginalised("binomial")
    pm.set_data({"n": [40, 9], "yes_released": [30, 2], "no_released": [11, 8]}, model=model)
    step.setup_chain(np.random.default_rng(3), tune=5, draws=5)
    point, _ = step.step(model.initial_point())
    assert 20 <= point["x"][0] <= 40
    with model:
        model.set_data("n", [40, 9, 9])
    with pytest.raises(
        ValueError, match=r"'n' had shape \(2,\).*MarginalisedStep for the counts x|'x'"
    ):
        step.setup_chain(np.random.default_rng(3), tune=5, draws=5)


def test_noise_that_is_not_log_concave_is_refused():
    with pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Binomial("x", n=90, p=pm.math.sigmoid(effect), shape=2)
        pm.StudentT("released", nu=3, mu=x, sigma=1.0, observed=[9.0, 30.0])
    with pytest.raises(
        NotMarginalisableError, match=r"log-density of 'released' isn't concave in them"
    ):
        MarginalisedStep([effect], counts=[x], model=model)


@pytest.mark.usefixtures("in_python")
def test_noise_that_leaves_too_much_open_is_refused():
    with pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Poisson("x", pm.math.exp(effect), shape=2)
        mechanism = pmd.GaussianMechanism(2.0).clamped(None, 9)
        mechanism.potential("released", x, released=[2.0, 9.0])
    with pytest.raises(
        NotMarginalisableError, match=r"counts 'x' at \[1\] can't.*leaves too many of"
    ):
        MarginalisedStep([effect], counts=[x], model=model)


def within_three(n, released):
    with pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Binomial("x", n=n, p=pm.math.sigmoid(effect), initval=4)
        pm.Uniform("released", x - 3.0, x + 3.0, observed=released)
    return model, MarginalisedStep([effect], counts=[x], model=model)


def test_chains_start_where_what_was_released_is_possible():
    model, step = within_three(n=90, released=50.0)
    step.setup_chain(np.random.default_rng(3), tune=2, draws=2)
    point, _ = step.step(model.initial_point())
    assert 47 <= point["x"] <= 53


def test_impossible_starts_are_refused():
    with pytest.raises(
        NotMarginalisableError, match=r"-inf or nan where the chain starts.*initval="
    ):
        within_three(n=40, released=50.0)


def test_other_wrong_calls_are_refused():
    model = MODELS["binomial"]()
    with model, pytest.raises(ValueError, match="blocked=False: the parameters are moved together"):
        MarginalisedStep([model["effect"]], counts=[model["x"]], blocked=False)
    with model, pytest.raises(pmd.ReadingError, match="'x' isn't continuous, and NUTS can't move"):
        MarginalisedStep([model["x"]], counts=[model["x"]])


BINOMIAL = reading.LAWS[BinomialRV]
TWINS = {
    "another natural parameter": lambda k, n, p: (2 * p, *BINOMIAL(k, n, p)[1:]),
    "the total ignored": lambda k, n, p: (
        BINOMIAL(k, n, p)[0],
        pt.constant(np.inf, dtype="float64"),
        BINOMIAL(k, n, p)[2],
    ),
    "another prior": lambda k, n, p: (*BINOMIAL(k, n, p)[:2], BINOMIAL(k, n - 1, p)[2]),
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_prior_that_is_read_wrongly_shows(twin, monkeypatch):
    monkeypatch.setitem(reading.LAWS, BinomialRV, TWINS[twin])
    with pytest.raises(
        pmd.ReadingError, match=r"with the counts marginalised.* where the model has"
    ):
        marginalised("binomial")
    # Without that check, by what it is tested with above.
    monkeypatch.setattr(MarginalisedStep, "_check_compiled", lambda *_: None)
    model, step = marginalised("binomial")
    log_densities = joint("binomial", model)
    point, other = list(points(model, step, n=2))
    differences = [
        step._log_density(at) - special.logsumexp(log_densities(at)[1]) for at in (point, other)
    ]
    assert np.abs(differences).max() > 0.01


def test_what_a_step_says_of_itself():
    _, step = marginalised("in a grid")
    assert step.describe() == (
        "NUTS moves 'effect', 'share', with the counts 'x', 'y' marginalised one by one.\n"
        "The counts are then drawn from their conditional distribution.\n"
        "Factors of the counts: 'released', 'other'"
    )
    assert repr(step) == "<MarginalisedStep: effect, share; x, y marginalised>"


def exploding():
    """The rates of an epidemic outgrow all bounds where a parameter is a little larger."""
    with pm.Model() as model:
        growth = pm.Normal("growth", initval=0.1)
        rates = [pt.exp(growth)]
        for _ in range(3):
            rates.append(rates[-1] * (1 + rates[-1]))
        x = pm.Poisson("x", pt.stack(rates))
        pmd.DiscreteLaplaceMechanism(5).potential("noisy", x, released=[2, 5, 20, 300])
    return model


@pytest.mark.long
@pytest.mark.usefixtures("in_python")
def test_no_parameter_value_ends_a_chain():
    model = exploding()
    long_steps = {"step_scale": 40.0, "adapt_step_size": False}
    step = MarginalisedStep([model["growth"]], counts=[model["x"]], model=model, nuts=long_steps)
    point = model.initial_point()
    for growth, possible in ((0.3, True), (20.0, False), (80.0, False), (800.0, False)):
        log_density = step._log_density(point | {"growth": np.array(growth)})
        assert np.isfinite(log_density) == possible
    # NUTS reports a divergence there and goes on from its last point; once tuned, by shorter steps.
    step.setup_chain(np.random.default_rng(3), tune=5, draws=5)
    step.nuts.iter_count = 1  # the first step is from a jittered point
    for tuned in (False, True):
        if tuned:
            step.stop_tuning()
        for _ in range(2):
            point, [stats] = step.step(point)
            assert stats["diverging"] is not tuned
            assert (point["growth"] == 0.1) is not tuned


@pytest.mark.usefixtures("in_python")
def test_a_start_too_far_from_the_release_is_reported():
    model = exploding()
    far = {"growth": np.array(20.0)}
    with pytest.raises(
        ReadingError, match=r"'x' can't be marginalised where the chain starts.*init"
    ):
        MarginalisedStep([model["growth"]], counts=[model["x"]], model=model, initial_point=far)
