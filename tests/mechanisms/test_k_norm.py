"""K-norm noise: likelihood, releases, budget, guarantee, and use in a model."""

from math import factorial, pi

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.stats import gamma, kstest, laplace, uniform

from pymc_dapper import DapperStep
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.mechanisms.k_norm import KNormMechanism, LInfMechanism
from pymc_dapper.reading import SeparableFactor, read_model
from tests.enumerate_sweep import transition_matrix
from tests.enumeration import conditional_posterior
from tests.evaluated_in_python import REWRITTEN
from tests.sweep_parts import PythonFunction, parts_of

NORMS = [1, 2, np.inf]
SCALE = 1.7


def log_density(mechanism, released, statistic):
    return mechanism.logp(released, statistic).eval(mode="FAST_COMPILE")


def norm_of(x, norm):
    return np.linalg.norm(x, ord=norm, axis=-1)


# Likelihood -------------------------------------------------------------------------------------


@pytest.mark.parametrize("norm", NORMS)
def test_the_density_integrates_to_1_in_one_and_two_dimensions(norm):
    mechanism = KNormMechanism(SCALE, norm)
    nodes, weights = leggauss(100)
    x, x_weights = 30 * SCALE * (nodes + 1), 30 * SCALE * weights
    line = np.exp(log_density(mechanism, x[:, None], np.zeros(1)))
    assert 2 * (x_weights @ line) == pytest.approx(1.0, abs=1e-12)
    # The norms are smooth where 0 < y < x, an eighth of the plane. There y = t x.
    t, t_weights = (nodes + 1) / 2, weights / 2
    points = np.stack(np.broadcast_arrays(x[:, None], x[:, None] * t), axis=-1)
    plane = np.exp(log_density(mechanism, points, np.zeros(2)))
    assert 8 * ((x * x_weights) @ plane @ t_weights) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_the_density_integrates_to_1_in_three_dimensions(norm):
    # Importance sampling from a wider law, so that the weights are bounded.
    x = np.random.default_rng(2).laplace(scale=3 * SCALE, size=(400_000, 3))
    log_weights = log_density(KNormMechanism(SCALE, norm), x, np.zeros(3))
    log_weights -= laplace.logpdf(x, scale=3 * SCALE).sum(axis=1)
    weights = np.exp(log_weights)
    error = weights.std() / np.sqrt(len(x))
    assert error < 0.005
    assert abs(weights.mean() - 1) < 4 * error


@pytest.mark.parametrize("d", [1, 2, 5, 40])
@pytest.mark.parametrize(
    ("norm", "ball"),
    [
        (1, lambda d: 2.0**d / factorial(d)),
        (2, lambda d: pi ** (d / 2) / gamma_of_half(d + 2)),
        (np.inf, lambda d: 2.0**d),
    ],
)
def test_the_density_at_its_mode_is_one_over_the_volume_times_d_factorial(norm, ball, d):
    logp = log_density(KNormMechanism(SCALE, norm), np.ones(d), np.ones(d))
    expected = -np.log(factorial(d) * ball(d)) - d * np.log(SCALE)
    assert logp == pytest.approx(expected, rel=1e-13)


def gamma_of_half(k):
    """Gamma(k / 2) by its recursion."""
    if k <= 2:
        return np.sqrt(pi) if k == 1 else 1.0
    return (k / 2 - 1) * gamma_of_half(k - 2)


def test_the_l1_norm_gives_independent_laplace_noise():
    x = np.random.default_rng(3).normal(size=(6, 4))
    expected = laplace.logpdf(x, 0.5, SCALE).sum(axis=1)
    actual = log_density(KNormMechanism(SCALE, 1), x, np.full(4, 0.5))
    np.testing.assert_allclose(actual, expected, rtol=1e-13)


@pytest.mark.parametrize("norm", NORMS)
def test_one_value_for_each_vector_of_any_shape_known_or_not(norm):
    mechanism, rng = KNormMechanism(SCALE, norm), np.random.default_rng(4)
    released, statistic = rng.normal(size=(5, 2, 3)), rng.normal(size=(2, 3))
    together = log_density(mechanism, released, statistic)
    assert together.shape == (5, 2)
    apart = -norm_of(released - statistic, norm) / SCALE
    apart += log_density(mechanism, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(together, apart, rtol=1e-13)
    unknown = pt.tensor("unknown", shape=(None, None))
    logp = mechanism.logp(released, unknown).eval({unknown: statistic}, mode="FAST_COMPILE")
    np.testing.assert_allclose(logp, together, rtol=1e-13)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_tails_neither_underflow_nor_overflow(norm, scale):
    mechanism = KNormMechanism(scale, norm)
    far = np.array([[300.0, 0.0, 0.0], [0.0, -300.0, 0.0]]) * scale
    logp = log_density(mechanism, far, np.zeros(3))
    at_mode = log_density(mechanism, np.zeros(3), np.zeros(3))
    np.testing.assert_allclose(logp - at_mode, -300.0, rtol=1e-12)


# Releases ---------------------------------------------------------------------------------------

DRAWS = 20_000
STATISTIC = np.array([4.0, -2.0, 0.5])


def noise(mechanism, how="release"):
    statistic = np.tile(STATISTIC, (DRAWS, 1))
    if how == "release":
        return mechanism.release(statistic, random_seed=7) - STATISTIC
    released = mechanism._random(pt.as_tensor(statistic), None)
    return pm.draw(released, random_seed=7, mode="FAST_COMPILE") - STATISTIC


def z_of_radius(x, norm, scale):
    """Distance of the shares of noise below some radii from their probabilities, in their sd."""
    p = np.array([0.02, 0.2, 0.5, 0.8, 0.98])
    shares = np.mean(norm_of(x, norm)[:, None] <= gamma.ppf(p, 3, scale=scale), axis=0)
    return np.abs((shares - p) / np.sqrt(p * (1 - p) / DRAWS)).max()


def with_known_coordinates(x, norm):
    """Vectors made of the noise, the law of their coordinates, which are uncorrelated."""
    direction = x / norm_of(x, norm)[:, None]
    if norm == 1:
        return x, laplace(scale=SCALE)
    if norm == 2:
        return direction, uniform(-1, 2)  # on a sphere in three dimensions: Archimedes
    to_ball = np.random.default_rng(8).random((DRAWS, 1)) ** (1 / 3)
    return direction * to_ball, uniform(-1, 2)


@pytest.mark.parametrize("how", ["release", "predictive"])
@pytest.mark.parametrize("norm", NORMS)
def test_releases_follow_the_density(norm, how):
    x = noise(KNormMechanism(SCALE, norm), how)
    radius = norm_of(x, norm)
    assert z_of_radius(x, norm, SCALE) < 4
    for factor in (0.7, 1.3):
        assert z_of_radius(x, norm, factor * SCALE) > 20

    vectors, law = with_known_coordinates(x, norm)
    assert worst_p(vectors, law) > 1e-4
    assert largest_correlation(*vectors.T, *([] if norm == 1 else [radius])) < 4.5
    for other in NORMS:
        assert other == norm or worst_p(*with_known_coordinates(x, other)) < 1e-4
    # Each vector has noise of its own.
    assert largest_correlation(radius[1:], radius[:-1]) < 4.5


def largest_correlation(*columns):
    """In units of its standard error."""
    correlations = np.corrcoef(columns)[np.triu_indices(len(columns), k=1)]
    return np.abs(correlations).max() * np.sqrt(len(columns[0]))


def worst_p(x, law):
    return min(kstest(column, law.cdf).pvalue for column in x.T)


def test_a_radius_of_shape_d_plus_1_goes_with_the_ball_and_not_with_its_surface():
    rng, x = np.random.default_rng(9), noise(LInfMechanism(SCALE))
    in_ball = rng.uniform(-1, 1, size=(DRAWS, 3))
    on_surface = in_ball / norm_of(in_ball, np.inf)[:, None]
    radius = rng.gamma(4, SCALE, size=(DRAWS, 1))
    assert kstest(x[:, 0], (radius * in_ball)[:, 0]).pvalue > 1e-4
    assert kstest(x[:, 0], (radius * on_surface)[:, 0]).pvalue < 1e-10


def test_the_same_seed_gives_the_same_release():
    mechanism = LInfMechanism(SCALE)
    first, second, other = (mechanism.release(STATISTIC, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (3,)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("norm", NORMS)
def test_the_error_bound_is_kept_as_often_as_it_says(norm):
    mechanism, beta = KNormMechanism(SCALE, norm), 0.05
    outside = np.mean(norm_of(noise(mechanism), norm) > mechanism.error_bound(3, beta))
    assert abs(outside - beta) < 4 * np.sqrt(beta * (1 - beta) / DRAWS)


# Budgets ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "options"),
    [(KNormMechanism, {"norm": norm}) for norm in NORMS] + [(LInfMechanism, {})],
)
def test_calibration_and_loss_are_inverse(kind, options):
    budget = PureDP(0.7)
    mechanism = kind.calibrate(budget, sensitivity=3.5, **options)
    assert mechanism.scale == pytest.approx(5.0)
    assert mechanism.norm == options.get("norm", np.inf)
    assert mechanism.privacy_loss(sensitivity=3.5).epsilon == pytest.approx(0.7, rel=1e-14)
    assert mechanism.budget is budget
    assert str(budget) in repr(mechanism)


def largest_log_ratio(mechanism, sensitivity, sensitivity_norm):
    """Over releases, for statistics that far from zero in some norm."""
    rng = np.random.default_rng(5)
    directions = np.vstack([rng.normal(size=(200, 3)), np.eye(3), np.ones(3)])
    neighbours = sensitivity * directions / norm_of(directions, sensitivity_norm)[:, None]
    # Next to the statistics and far from them.
    released = np.vstack([rng.normal(scale=s, size=(200, 3)) for s in (0.1, 2.0, 50.0)])
    released = np.vstack([released, neighbours])[:, None]
    ratios = log_density(mechanism, released, neighbours)
    ratios -= log_density(mechanism, released, np.zeros(3))
    return np.abs(ratios).max()


@pytest.mark.parametrize("norm", NORMS)
def test_pure_privacy_bounds_the_ratio_of_densities(norm):
    mechanism = KNormMechanism.calibrate(PureDP(0.9), sensitivity=2.0, norm=norm)
    # Nearly attained, and at the statistic itself exactly: no noise is wasted.
    assert largest_log_ratio(mechanism, 2.0, norm) == pytest.approx(0.9, abs=1e-12)
    too_little = KNormMechanism(0.7 * mechanism.scale, norm)
    assert largest_log_ratio(too_little, 2.0, norm) > 1.25


@pytest.mark.parametrize(("norm", "larger"), [(np.inf, 1), (np.inf, 2), (2, 1)])
def test_a_sensitivity_in_a_larger_norm_is_enough_and_in_a_smaller_one_is_not(norm, larger):
    mechanism = KNormMechanism.calibrate(PureDP(0.9), sensitivity=2.0, norm=norm)
    assert largest_log_ratio(mechanism, 2.0, larger) <= 0.9 + 1e-12
    mechanism = KNormMechanism.calibrate(PureDP(0.9), sensitivity=2.0, norm=larger)
    assert largest_log_ratio(mechanism, 2.0, norm) > 1.25


@pytest.mark.parametrize(("budget", "enough"), [(ZCDP(0.02), "0.2"), (ApproxDP(1.5, 1e-6), "1.5")])
def test_weaker_budgets_are_refused_with_the_pure_one_that_is_enough(budget, enough):
    with pytest.raises(TypeError, match=f"LInfMechanism needs a PureDP .*{enough}"):
        LInfMechanism.calibrate(budget, sensitivity=1.0)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: LInfMechanism(0.0), ValueError, "scale must be positive"),
        (lambda: LInfMechanism(np.array([1.0, 2.0])), TypeError, "single number"),
        (lambda: KNormMechanism(1.0, 3), ValueError, "norm must be 1, 2 or np.inf, got 3"),
        (lambda: KNormMechanism(1.0, "inf"), ValueError, "norm must be 1, 2 or np.inf"),
        (lambda: KNormMechanism(1.0, [1, 2]), ValueError, "norm must be 1, 2 or np.inf"),
        (lambda: LInfMechanism(1.0).clamped(0, None), AttributeError, "LInf.* noise is joint"),
        (lambda: KNormMechanism(1.0, 2).rounded(), AttributeError, "is the LaplaceMechanism"),
        (lambda: LInfMechanism(1.0).logp(1.0, 2.0), ValueError, "use LaplaceMechanism"),
        (lambda: LInfMechanism(1.0).release(2.0), ValueError, "use LaplaceMechanism"),
        (
            lambda: LInfMechanism(1.0).error_bound(0),
            ValueError,
            "k must be a whole number of at least 1",
        ),
        (
            lambda: LInfMechanism(1.0).error_bound(3, 1.0),
            ValueError,
            "beta must be a finite number above 0 and below 1",
        ),
        (lambda: LInfMechanism(1.0).privacy_loss(sensitivity=-1), ValueError, "above 0"),
    ],
)
def test_nonsense_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


# In a model -------------------------------------------------------------------------------------

PRIOR = np.array([0.6, 0.4])
DESIGN = np.array([[1.0, 0.0, 2.0], [0.5, 1.0, -1.0]])
RELEASED = np.array([2.2, 0.1])


@pytest.mark.usefixtures("in_python")
def test_records_of_a_noisy_vector_have_their_exact_posterior():
    def log_mechanism(x, scale=1.5):
        return -norm_of(RELEASED - DESIGN @ np.array(x), np.inf) / scale

    with pm.Model() as model:
        record = pm.Bernoulli("record", PRIOR[1], shape=3)
        LInfMechanism(1.5).potential("privacy", pt.dot(DESIGN, record), released=RELEASED)
    step = DapperStep([record], model=model)
    assert "privacy (function of sums)" in repr(step)
    np.testing.assert_array_equal(model["privacy_released"].get_value(), RELEASED)

    posterior = conditional_posterior(PRIOR, log_mechanism, n_records=3)
    twin = conditional_posterior(PRIOR, lambda x: log_mechanism(x, 0.7 * 1.5), n_records=3)
    prior = PRIOR[posterior.states].prod(axis=1)
    matrix = transition_matrix(
        parts_of(step, PythonFunction).decide,
        posterior.states,
        prior,
        *step._given.data.values,
    )

    def invariance_error(probabilities):
        return np.abs(probabilities @ matrix - probabilities).max()

    assert invariance_error(posterior.probabilities) < 1e-10
    assert invariance_error(twin.probabilities) > 1e-3


def test_an_observed_release_can_be_predicted():
    with pm.Model() as model:
        record = pm.Categorical("record", np.ones(3) / 3, shape=30)
        table = pt.eye(3)[record].sum(axis=0)
        LInfMechanism(SCALE).observe("release", table, released=[10, 12, 8])
        pm.Deterministic("table", table)
        prior = pm.sample_prior_predictive(1_500, random_seed=1, compile_kwargs={"mode": REWRITTEN})
    released = prior.prior_predictive["release"].values[0]
    radius = norm_of(released - prior.prior["table"].values[0], np.inf)
    assert released.shape == (1_500, 3)
    assert kstest(radius, gamma(3, scale=SCALE).cdf).pvalue > 1e-4
    assert kstest(radius, gamma(3, scale=1.3 * SCALE).cdf).pvalue < 1e-20
    logp = model.compile_logp(vars=[model["release"]], mode="FAST_COMPILE")
    at = np.repeat([0, 1, 2], [9, 14, 7])
    expected = -2 / SCALE - np.log(factorial(3) * 2**3 * SCALE**3)
    assert logp({"record": at}) == pytest.approx(expected, rel=1e-13)


def test_noise_on_each_record_is_one_factor_per_record():
    with pm.Model() as model:
        record = pm.Normal("record", shape=(4, 2))
        LInfMechanism(SCALE).potential("privacy", record, released=np.zeros((4, 2)))
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    assert [type(factor) for factor in reading.factors] == [SeparableFactor]


@pytest.mark.parametrize(
    ("released", "message"),
    [
        (
            [10.0, 12.0],
            r"'privacy': the release has shape \(2,\), where the mechanism releases shape \(3,\)",
        ),
        ([np.nan, 12.0, 8.0], "finite numbers"),
    ],
)
@pytest.mark.parametrize("how", ["potential", "observe"])
def test_an_impossible_release_is_refused(how, released, message):
    with pm.Model():
        table = pt.eye(3)[pm.Categorical("record", np.ones(3) / 3, shape=30)].sum(axis=0)
        with pytest.raises(ValueError, match=message):
            getattr(LInfMechanism(1.0), how)("privacy", table, released=released)


@pytest.mark.parametrize("norm", [1, 2, np.inf])
def test_differences_of_unsigned_integers_do_not_wrap(norm):
    mechanism = KNormMechanism(2.0, norm)
    released, statistic = np.array([1, 5]), np.array([3, 2])
    unsigned = mechanism.logp(released.astype("uint8"), statistic.astype("uint64"))
    assert unsigned.eval(mode="FAST_COMPILE") == mechanism.logp(released, statistic).eval(
        mode="FAST_COMPILE"
    )


@pytest.mark.parametrize("norm", NORMS)
def test_a_release_without_noise_has_a_gradient(norm):
    """By chance, or where the noise is tiny: NUTS would follow nan."""
    statistic = pt.vector("statistic", shape=(3,))
    value = KNormMechanism(2.0, norm).logp(np.zeros(3), statistic)
    compiled = pytensor.function([statistic], pt.grad(value, statistic), mode="FAST_COMPILE")
    assert np.all(np.isfinite(compiled(np.zeros(3))))
