"""NoisyStats: likelihood of a private line, NA, releases, guarantee, and use in a model."""

import itertools
from functools import cache

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.integrate import quad

from pymc_dapper import DapperStep
from pymc_dapper.budget import ZCDP, PureDP
from pymc_dapper.mechanisms.noisy_stats import NoisyStats
from pymc_dapper.one_function.linker import ONE_FUNCTION
from pymc_dapper.reading import AdditiveFactor, read_model
from tests.as_written import AS_WRITTEN
from tests.evaluated_in_python import REWRITTEN, evaluated_in_python

RNG = np.random.default_rng(3)
X = RNG.uniform(size=12)
Y = np.clip(0.2 + 0.6 * X + 0.15 * RNG.normal(size=12), 0, 1)

# (n cov, n var, epsilon, n). Not all can come from data: the density must be right there, too.
CASES = [
    (0.6, 0.9, 1.0, 12),
    (-0.6, 0.9, 1.0, 12),
    (-4.0, 6.0, 20.0, 100),
    (3.0, 3.0, 5.0, 40),
    (0.01, 1e-8, 2.0, 5),
    (0.0, 0.0, 0.5, 2),
    (0.0, 2.0, 8.0, 30),
    (1e-9, 0.3, 0.1, 10),
]


@cache
def compiled(epsilon, n):
    released, statistic = pt.matrices("released", "statistic")
    value = NoisyStats(epsilon, n).logp(released, statistic)
    return pytensor.function([released, statistic], value, mode="FAST_COMPILE")


def logp(mechanism, released, statistic):
    """Log-density for releases (..., 2) and statistics (..., 4)."""
    released, statistic = np.asarray(released, dtype=float), np.asarray(statistic, dtype=float)
    batch = np.broadcast_shapes(released.shape[:-1], statistic.shape[:-1])
    rows = [np.broadcast_to(z, (*batch, z.shape[-1])) for z in (released, statistic)]
    flat = [z.reshape(-1, z.shape[-1]) for z in rows]
    return compiled(mechanism.epsilon, mechanism.n)(*flat).reshape(batch)


def sums(n_cov, n_var, n, mean_x=0.4, mean_y=0.7):
    return np.array(
        [n * mean_x, n * mean_y, n_cov + n * mean_x * mean_y, n_var + n * mean_x * mean_x]
    )


def log_slope_density(mechanism, slopes, statistic):
    """Log-density of the slope: the joint one where the intercept's noise is zero."""
    mean_x, mean_y = statistic[:2] / mechanism.n
    line = np.stack([slopes, mean_y - slopes * mean_x], axis=-1)
    scale = 3 * (1 + np.abs(slopes)) / (mechanism.n * mechanism.epsilon)
    return logp(mechanism, line, statistic) + np.log(2 * scale)


def log_na(mechanism, statistic):
    return float(logp(mechanism, NoisyStats.NA, statistic))


# Likelihood -------------------------------------------------------------------------------------


def log_defining_integral(b, num, den):
    """Log of the integral over w > 0 of w f(b w - num) f(w - den), f a standard Laplace density.

    The integrand has its kinks where a piece ends, and pieces grow geometrically from there.
    """
    kinks = {0.0, den, *([num / b] if b and num / b > 0 else [])}
    sizes = np.concatenate([[0.0], np.geomspace(1e-3, 64, 17)]) / (1 + abs(b))
    last = max(kinks) + sizes[-1]
    ends = {kink + sign * size for kink in kinks for size in sizes for sign in (1, -1)}
    ends = sorted(end for end in ends | kinks if 0 <= end <= last)

    def exponent(w):
        return -abs(b * w - num) - abs(w - den)

    peak = max(exponent(kink) for kink in kinks)
    least = np.square(1 / (1 + abs(b)))  # the whole is no smaller
    pieces = [
        quad(lambda w: w * np.exp(exponent(w) - peak), low, high, epsabs=1e-12 * least)[0]
        for low, high in itertools.pairwise(ends)
    ]
    return np.log(sum(pieces) / 4) + peak


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_slopes_density_is_the_defining_integral(case):
    n_cov, n_var, epsilon, n = case
    mechanism, scale = NoisyStats(epsilon, n), 3 * (1 - 1 / n) / epsilon
    statistic = sums(n_cov, n_var, n, mean_x=0.0)
    kink = n_cov / n_var if n_var else 0.3
    near = [kink, 1.0, -1.0, 0.0]  # where two kinks meet, or the two noises decay alike
    slopes = np.array([near, np.add(near, 1e-9), np.add(near, 1e-4), np.add(near, -1e-2)]).ravel()
    slopes = np.concatenate([slopes, [0.5, -0.5, 2, -2, 30, -30, 1e4, -1e4, 1e9, -1e9]])
    expected = [log_defining_integral(b, n_cov / scale, n_var / scale) for b in slopes]
    computed = log_slope_density(mechanism, slopes, statistic)
    np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-9)


def test_far_tails_neither_underflow_nor_lose_digits():
    # n cov and n var are 400 and 600 noise scales; the line's slope would be 2/3.
    mechanism = NoisyStats(30.0, 10_000)
    statistic, scale = sums(40.0, 60.0, 10_000, mean_x=0.0), mechanism.scale
    slopes = np.array([-1e12, -1e3, -2.0, 0.0, 1e-9, 1e-3, 3.0, 1e3, 1e12])
    expected = [log_defining_integral(b, 40.0 / scale, 60.0 / scale) for b in slopes]
    assert min(expected) < -900  # no float is that small
    np.testing.assert_allclose(log_slope_density(mechanism, slopes, statistic), expected, rtol=1e-9)


def nodes(cuts, centre, width, panels=40):
    """Gauss-Legendre nodes and weights for a slope in all of the real line, cut at kinks."""
    angles = np.arctan((np.array(cuts) - centre) / width)
    ends = np.unique(np.concatenate([np.linspace(-np.pi / 2, np.pi / 2, panels + 1), angles]))
    t, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(ends)[:, None] / 2
    angle = ((ends[1:] + ends[:-1])[:, None] / 2 + half * t).ravel()
    return centre + width * np.tan(angle), (half * weights).ravel() * width / np.cos(angle) ** 2


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_slopes_density_and_the_probability_of_na_add_up_to_one(case):
    n_cov, n_var, epsilon, n = case
    mechanism, statistic = NoisyStats(epsilon, n), sums(*case[:2], n)
    width = 1 / (1 + n_var / mechanism.scale)
    centre = n_cov / max(n_var, mechanism.scale)
    sizes = np.geomspace(1e-10, 1e10, 21)  # the density bends at n cov, and at 1 / (n var)
    cuts = [0.0, *sizes, *-sizes, *([n_cov / n_var] if n_var else [])]
    slopes, weights = nodes(cuts, centre, width)
    line = weights @ np.exp(log_slope_density(mechanism, slopes, statistic))
    na = np.exp(log_na(mechanism, statistic))
    assert na == pytest.approx(np.exp(-n_var / mechanism.scale) / 2, rel=1e-9)
    assert line == pytest.approx(1 - na, abs=1e-9)


def joint_quadrature(mechanism, statistic, slope_cuts=()):
    """Slopes, intercepts and probabilities of small cells."""
    n, (sum_x, sum_y, sum_xy, sum_xx) = mechanism.n, statistic
    n_cov, n_var = sum_xy - sum_x * sum_y / n, sum_xx - sum_x**2 / n
    slopes, weights = nodes([0.0, n_cov / n_var, *slope_cuts], n_cov / n_var, 1.0, panels=20)
    step = 0.02
    away = np.arange(-25, 25, step) + step / 2
    scale = 3 * (1 + np.abs(slopes)) / (n * mechanism.epsilon)
    intercepts = ((sum_y - slopes * sum_x) / n + np.outer(away, scale)).T
    released = np.stack(np.broadcast_arrays(slopes[:, None], intercepts), axis=-1)
    density = np.exp(logp(mechanism, released, statistic))
    return released, density * (weights * scale * step)[:, None]


def test_the_joint_density_and_the_probability_of_na_add_up_to_one():
    mechanism = NoisyStats(2.0, 12)
    statistic = mechanism.statistic(X, Y)
    _, probability = joint_quadrature(mechanism, statistic)
    na = np.exp(log_na(mechanism, statistic))
    assert 0.05 < na < 0.45
    assert probability.sum() + na == pytest.approx(1.0, abs=1e-4)  # midpoints in the intercept


@pytest.mark.parametrize("mode", [AS_WRITTEN, pytest.param(ONE_FUNCTION, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "released", [(1.0, 0.2), (-0.4, 0.9), (0.0, 0.0), (1e-40, 0.3), NoisyStats.NA], ids=str
)
def test_the_density_has_gradients(released, mode):
    mechanism, s = NoisyStats(3.0, 12), pt.vector("s")
    points = [mechanism.statistic(X, Y), mechanism.statistic(X, 1 - Y), [3.0, 4.0, 1.0, 0.75]]
    value = mechanism.logp(np.array(released), s)
    f = pytensor.function([s], [value, pt.grad(value, s)], mode=mode)
    for point in np.array(points):
        slope = f(point)[1]
        assert np.all(np.isfinite(slope))
        if point[3] * 12 == point[0] ** 2:
            continue  # no variance: one-sided
        steps = 1e-6 * np.eye(4)
        numeric = [(f(point + h)[0] - f(point - h)[0]) / 2e-6 for h in steps]
        np.testing.assert_allclose(slope, numeric, rtol=1e-5, atol=1e-5)


def test_shapes_broadcast():
    mechanism = NoisyStats(1.0, 12)
    s = mechanism.statistic(X, Y)
    assert mechanism.logp([1.0, 0.2], s).type.shape == ()
    values = mechanism.logp([[1.0, 0.2], NoisyStats.NA, [-3.0, 1.0]], np.stack([s, s / 2])[:, None])
    assert values.eval(mode="FAST_COMPILE").shape == (2, 3)


# The statistic and releases ---------------------------------------------------------------------


def test_without_noise_the_release_is_least_squares():
    slope, intercept = np.polyfit(X, Y, 1)
    mechanism = NoisyStats(1e12, 12)
    released = mechanism.release(mechanism.statistic(X, Y), random_seed=1)
    np.testing.assert_allclose(released, [slope, intercept], rtol=1e-6)


def test_records_are_clamped_and_scaled():
    mechanism = NoisyStats(1.0, 4)
    x, y = np.array([-5.0, 0.0, 5.0, 30.0]), np.array([0.0, 1.0, 3.0, 2.0])
    s = mechanism.statistic(x, y, clamp_x=(0, 10), clamp_y=(-1, 2))
    np.testing.assert_allclose(s, [1.5, (1 + 2 + 3 + 3) / 3, 0.5 + 1, 0.25 + 1])
    symbolic = mechanism.statistic(pt.as_tensor(x), y, clamp_x=(0, 10), clamp_y=(-1, 2))
    np.testing.assert_allclose(symbolic.eval(mode="FAST_COMPILE"), s)
    np.testing.assert_allclose(mechanism.statistic(x, y), [2, 3, 2, 2])


def largest_z(drawn, law, statistic):
    """Largest distance of a share of draws from its probability under a law, in its sd."""
    is_na = np.isinf(drawn[:, 0])
    assert np.array_equal(is_na, np.isinf(drawn[:, 1]))
    limits = [(-0.5, np.inf), (0.4, 0.3), (0.8, 0.5), (0.8, np.inf), (2.0, 0.0), (9.0, -1.0)]
    released, probability = joint_quadrature(law, statistic, [slope for slope, _ in limits])
    shares = [is_na.mean()]
    exact = [np.exp(log_na(law, statistic))]
    for limit in limits:
        shares.append(np.mean((drawn <= limit).all(axis=1)))
        exact.append(probability[(released <= limit).all(axis=-1)].sum())
    shares, exact = np.array(shares), np.array(exact)
    return np.abs((shares - exact) / np.sqrt(exact * (1 - exact) / len(drawn))).max()


def test_releases_follow_the_density():
    mechanism = NoisyStats(2.0, 12)
    s = mechanism.statistic(X, Y)
    drawn = mechanism.release(np.tile(s, (20_000, 1)), random_seed=5)
    assert largest_z(drawn, mechanism, s) < 4
    for factor in (1 / 1.3, 1.3):
        assert largest_z(drawn, NoisyStats(2.0 * factor, 12), s) > 6


def test_releases_are_those_of_the_algorithm_on_the_records():
    mechanism, rng = NoisyStats(2.0, 12), np.random.default_rng(8)
    delta, drawn = 1 - 1 / 12, []
    for _ in range(20_000):
        l1, l2 = rng.laplace(0, 3 * delta / 2.0, size=2)
        noisy_var = np.sum((X - X.mean()) ** 2) + l2
        if noisy_var <= 0:
            drawn.append(NoisyStats.NA)
            continue
        slope = (np.sum((X - X.mean()) * (Y - Y.mean())) + l1) / noisy_var
        l3 = rng.laplace(0, 3 * (1 + abs(slope)) / (12 * 2.0))
        drawn.append((slope, Y.mean() - slope * X.mean() + l3))
    assert largest_z(np.array(drawn), mechanism, mechanism.statistic(X, Y)) < 4


def test_the_same_seed_gives_the_same_release():
    mechanism = NoisyStats(2.0, 12)
    s = mechanism.statistic(X, Y)
    first, second, other = (mechanism.release(s, seed) for seed in (1, 1, 2))
    assert first.shape == (2,)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


# Privacy ----------------------------------------------------------------------------------------


def neighbours(n):
    """Pairs of data sets that differ in one record: corners of the unit square, and random."""
    rng = np.random.default_rng(2)
    corners = [np.array(c, dtype=float) for c in itertools.product([0, 1], repeat=2)]
    backgrounds = [np.tile(c, (n - 1, 1)) for c in corners]
    backgrounds += [np.tile([c, d], (n, 1))[: n - 1] for c, d in itertools.combinations(corners, 2)]
    backgrounds += [rng.uniform(size=(n - 1, 2)) for _ in range(4)]
    records = [*corners, *rng.uniform(size=(2, 2))]
    for others in backgrounds:
        for one, two in itertools.combinations(records, 2):
            yield np.vstack([others, one]), np.vstack([others, two])


def largest_log_ratio(n, epsilon):
    mechanism = NoisyStats(epsilon, n)
    pairs = np.array([[mechanism.statistic(*data.T) for data in pair] for pair in neighbours(n)])
    sizes = np.geomspace(1e-3, 1e5, 30)
    slopes = np.concatenate([-sizes, [0.0], sizes])
    # Intercepts on either side of all means, in units of 1 + |slope|.
    intercepts = np.linspace(-2, 2, 33) * (1 + np.abs(slopes))[:, None]
    lines = np.stack(np.broadcast_arrays(slopes[:, None], intercepts), axis=-1).reshape(-1, 2)
    released = np.vstack([lines, NoisyStats.NA])
    first, second = (logp(mechanism, released, pairs[:, k, None]) for k in range(2))
    return np.abs(first - second).max()


OTHERS = (2, 1.0), (5, 0.5), (40, 1.0)


@pytest.mark.parametrize(
    ("n", "epsilon"), [(5, 4.0), *(pytest.param(*x, marks=pytest.mark.long) for x in OTHERS)]
)
def test_one_record_changes_no_log_density_by_more_than_epsilon(n, epsilon):
    largest = largest_log_ratio(n, epsilon)
    assert 0.95 * epsilon < largest <= epsilon * (1 + 1e-9)
    assert largest_log_ratio(n, epsilon / 0.7) > 1.3 * epsilon  # 30 % less noise


def test_calibration_and_loss_are_inverse():
    mechanism = NoisyStats.calibrate(PureDP(0.7), n=50)
    assert mechanism.privacy_loss() == PureDP(0.7)
    assert mechanism.scale == pytest.approx(3 * 0.98 / 0.7)
    assert mechanism.intercept_scale(-2.0) == pytest.approx(3 * 3 / 50 / 0.7)
    assert (
        repr(mechanism)
        == "NoisyStats(epsilon=0.7, n=50, budget=PureDP(epsilon=0.7, one person changes))"
    )
    assert repr(NoisyStats(1, 9)) == "NoisyStats(epsilon=1, n=9)"


# In a model -------------------------------------------------------------------------------------

N = 30
CLAMPS = {"clamp_x": (-3.0, 3.0), "clamp_y": (-8.0, 8.0)}


def regression_model(how, released):
    mechanism = NoisyStats(3.0, N)
    with pm.Model() as model:
        alpha, beta, mu = (pm.Normal(name, 0, 2) for name in ("alpha", "beta", "mu_x"))
        log_sd = pm.Normal("log_sd", 0, 0.5, shape=2)
        x = pm.Normal("x", mu, pm.math.exp(log_sd[0]), shape=N)
        y = pm.Normal("y", alpha + beta * x, pm.math.exp(log_sd[1]), shape=N)
        add = getattr(mechanism, how)
        add("privacy", mechanism.statistic(x, y, **CLAMPS), released=released)
    return model


@pytest.mark.parametrize("how", ["potential", "observe"])
@pytest.mark.parametrize("released", [[0.6, 0.2], NoisyStats.NA], ids=["line", "NA"])
def test_a_model_is_read_as_a_function_of_four_sums(how, released):
    model = regression_model(how, released)
    records = [model.rvs_to_values[model[name]] for name in ("x", "y")]
    [factor] = read_model(model, records, model.initial_point()).factors
    assert isinstance(factor, AdditiveFactor)
    assert [sum_.total.type.shape for sum_ in factor.sums] == [(4,)]


@cache
def model_and_step(how):
    model = regression_model(how, [0.6, 0.2])
    with evaluated_in_python():
        return model, DapperStep([model["x"], model["y"]], model=model)  # checks its reading


@pytest.mark.parametrize("how", ["potential", "observe"])
def test_records_are_updated_given_a_line(how):
    model, step = model_and_step(how)
    step.setup_chain(np.random.default_rng(0), tune=0, draws=20)
    point, recorded = model.initial_point(), []
    mechanism = NoisyStats(3.0, N)
    for _ in range(20):
        point, [stats] = step.step(point)
        s = mechanism.statistic(point["x"], point["y"], **CLAMPS)
        recorded.append(stats["dapper_mechanism_logp"])
        assert recorded[-1] == pytest.approx(logp(mechanism, [0.6, 0.2], s))
    assert np.all(np.isfinite(recorded))
    assert len(np.unique(recorded)) > 10


def test_na_can_take_the_place_of_a_line_and_is_checked_when_a_chain_starts():
    model, step = model_and_step("potential")
    point, rng = model.initial_point(), np.random.default_rng(0)
    with model:
        for released in (NoisyStats.NA, [0.5, 0.1]):
            pm.set_data({"privacy_released": np.array(released)})
            step.setup_chain(rng, tune=0, draws=1)
            new, [stats] = step.step(point)
            mechanism = NoisyStats(3.0, N)
            s = mechanism.statistic(new["x"], new["y"], **CLAMPS)
            assert stats["dapper_mechanism_logp"] == pytest.approx(logp(mechanism, released, s))
        pm.set_data({"privacy_released": np.array([0.5, np.inf])})
        with pytest.raises(ValueError, match="'privacy': the release must be two finite numbers"):
            step.setup_chain(rng, tune=0, draws=1)
        pm.set_data({"privacy_released": np.array([0.6, 0.2])})


def test_predictive_draws_are_releases():
    mechanism = NoisyStats(2.0, 12)
    s = mechanism.statistic(X, Y)
    with pm.Model():
        mechanism.observe("release", s, released=[0.5, 0.2])
        prior = pm.sample_prior_predictive(4_000, random_seed=4, compile_kwargs={"mode": REWRITTEN})
    drawn = prior.prior_predictive["release"].values[0]
    assert drawn.shape == (4_000, 2)
    assert largest_z(drawn, mechanism, s) < 4


def test_a_batch_of_releases_can_be_observed_and_predicted():
    mechanism = NoisyStats(2.0, 12)
    s = np.stack([mechanism.statistic(X, Y), mechanism.statistic(X, 1 - Y)])
    with pm.Model() as model:
        release = mechanism.observe("release", s, released=[[0.5, 0.2], NoisyStats.NA])
        value = model.compile_logp(sum=False, mode="FAST_COMPILE")({})[0]
    np.testing.assert_allclose(value, logp(mechanism, [[0.5, 0.2], NoisyStats.NA], s))
    drawn = pm.draw(release, 200, random_seed=1, mode="FAST_COMPILE")
    assert drawn.shape == (200, 2, 2)
    slopes = np.ma.masked_invalid(drawn[..., 0])
    assert np.ma.median(slopes[:, 0]) > 0 > np.ma.median(slopes[:, 1])


# Refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("released", "message"),
    [
        ([np.nan, np.nan], r"NoisyStats\.NA where there was no line"),
        ([0.5, np.inf], "two finite numbers"),
        ([-np.inf, np.inf], "two finite numbers"),
        ([0.5, 0.1, 0.2], r"has shape \(3,\), where .* releases shape \(2,\)"),
        (0.5, r"has shape \(\), where .* releases shape \(2,\)"),
    ],
)
@pytest.mark.parametrize("how", ["potential", "observe"])
def test_an_impossible_release_is_refused(how, released, message):
    with pytest.raises(ValueError, match=message):
        regression_model(how, released)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda m: NoisyStats(0.0, 9), ValueError, "epsilon must be a finite number above 0"),
        (lambda m: NoisyStats("1", 9), TypeError, "epsilon must be a finite number"),
        (lambda m: NoisyStats(1.0, 1), ValueError, "n must be a whole number of at least 2"),
        (lambda m: NoisyStats.calibrate(ZCDP(0.1), n=9), TypeError, "PureDP"),
        (
            lambda m: NoisyStats.calibrate(PureDP(1, neighbours="add_remove"), n=9),
            ValueError,
            "NoisyStats keeps no budget if one person joins or leaves",
        ),
        (lambda m: m.statistic(X[:9], Y[:9]), ValueError, "for n=12 records, got 9"),
        (lambda m: m.statistic(pt.ones(9), pt.ones(9)), ValueError, "for n=12 records, got 9"),
        (lambda m: m.statistic(X, Y[:9]), ValueError, "x has 12 records, but y has 9"),
        (lambda m: m.statistic(X[:, None], Y), ValueError, "x must have one axis"),
        (
            lambda m: m.statistic(X, Y, clamp_x=(1, 0)),
            ValueError,
            "clamp_x must hold finite limits",
        ),
        (
            lambda m: m.statistic(X, Y, clamp_y=(0, np.inf)),
            ValueError,
            "clamp_y must hold finite limits",
        ),
        (
            lambda m: m.release(np.ones(3)),
            ValueError,
            r"must hold 4 entries.*sums.*shape is \(3,\)",
        ),
        (lambda m: m.release(1.0), ValueError, r"shape is \(\)"),
        (
            lambda m: m.potential("p", pt.ones(3), released=[0, 0]),
            ValueError,
            r"must hold 4 entries.*sums.*shape is \(3,\)",
        ),
    ],
)
def test_nonsense_is_refused(make, error, message):
    with pm.Model(), pytest.raises(error, match=message):
        make(NoisyStats(1.0, 12))
