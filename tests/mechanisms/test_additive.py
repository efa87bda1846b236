"""Additive noise: likelihood, calibration, releases, guarantees, and use in a model."""

import doctest
import re
from dataclasses import astuple, dataclass, replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.mechanisms import (
    CustomMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    KNormMechanism,
    LaplaceMechanism,
    LInfMechanism,
    NoisyMaxMechanism,
    TulapMechanism,
    additive,
    tulap,
)
from pymc_dapper.mechanisms.additive import AdditiveNoise
from pymc_dapper.mechanisms.rules import Clamping
from pymc_dapper.statistics import counts, histogram
from tests.long_cases import one_in_three

MECHANISMS = [
    LaplaceMechanism(2.5),
    GaussianMechanism(2.5),
    DiscreteLaplaceMechanism(2.5),
    DiscreteGaussianMechanism(2.5),
    TulapMechanism(0.6, 0.05),
]
PUBLISHED = [
    LaplaceMechanism(2.5).rounded(),
    GaussianMechanism(2.5).rounded(),
    LaplaceMechanism(2.5).rounded().clamped(0, 9),
    GaussianMechanism(2.5).rounded().clamped(0, None),
    DiscreteLaplaceMechanism(2.5).clamped(0, 9),
    DiscreteGaussianMechanism(2.5).clamped(None, 9),
]


def density(mechanism, released, statistic):
    return np.exp(mechanism.logp(released, statistic).eval(mode="FAST_COMPILE"))


def integers(mechanism):
    limits = [r for r in mechanism.publication.rules if isinstance(r, Clamping)]
    lower, upper = (limits[0].lower, limits[0].upper) if limits else (None, None)
    return np.arange(-150 if lower is None else lower, 151 if upper is None else upper + 1)


# Likelihood -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", MECHANISMS + PUBLISHED, ids=str)
def test_the_density_is_normalised(mechanism):
    if mechanism.integer:
        statistic = 4 if mechanism._discrete else 4.3
        total = density(mechanism, integers(mechanism), statistic).sum()
        assert total == pytest.approx(1.0, abs=1e-12)
        return
    # Midpoints, so that the kinks of Laplace and Tulap noise lie between them.
    step = 1e-3
    x = np.arange(-120, 120, step) + step / 2
    values = density(mechanism, x, 0.0)
    # Truncated noise ends within a step, on either side, where its density isn't zero.
    ends = values[values > 0][[0, -1]].sum() if isinstance(mechanism, TulapMechanism) else 0.0
    assert values.sum() * step == pytest.approx(1.0, abs=1e-6 + step * ends)


def test_clamping_without_rounding_leaves_a_density_between_two_point_masses():
    mechanism = GaussianMechanism(2.0).clamped(0.0, 5.0)
    step = 1e-3
    inside = density(mechanism, np.arange(0, 5, step) + step / 2, 1.0).sum() * step
    ends = density(mechanism, np.array([0.0, 5.0]), 1.0)
    assert inside + ends.sum() == pytest.approx(1.0, abs=1e-6)
    assert np.all(density(mechanism, np.array([-0.1, 5.1]), 1.0) == 0)


@pytest.mark.parametrize("mechanism", MECHANISMS[:4] + PUBLISHED[:2], ids=str)
def test_tails_neither_underflow_nor_overflow(mechanism):
    scale = float(getattr(mechanism, "scale", getattr(mechanism, "sigma", None)))
    far = np.array([-300.0, 300.0]) * scale
    logp = mechanism.logp(far, np.zeros(2)).eval(mode="FAST_COMPILE")
    exponent = 300.0 if hasattr(mechanism, "scale") else 300.0**2 / 2
    assert np.all(np.isfinite(logp))
    np.testing.assert_allclose(logp, -exponent, rtol=0.02)
    assert logp[0] == pytest.approx(logp[1], rel=1e-12)


def test_point_masses_are_right_far_out_in_the_tail():
    mechanism = GaussianMechanism(1.0).clamped(0.0, 300.0)
    logp = mechanism.logp(np.array([0.0, 300.0]), np.array([300.0, 0.0])).eval(mode="FAST_COMPILE")
    # log Phi(-300), by its asymptotic series.
    expected = -(300.0**2) / 2 - np.log(300 * np.sqrt(2 * np.pi)) + np.log1p(-1 / 300**2)
    np.testing.assert_allclose(logp, expected, rtol=1e-9)


def test_small_scales_do_not_overflow():
    for mechanism in (LaplaceMechanism(1e-4), GaussianMechanism(1e-4)):
        assert np.all(
            np.isfinite(mechanism.logp(np.array([0.0, 1.0]), np.zeros(2)).eval(mode="FAST_COMPILE"))
        )


def test_shapes_and_scales_broadcast():
    mechanism = GaussianMechanism(np.array([1.0, 10.0]))
    logp = mechanism.logp(np.zeros((3, 2)), np.ones((3, 1))).eval(mode="FAST_COMPILE")
    assert logp.shape == (3, 2)
    np.testing.assert_allclose(logp[:, 0] - logp[:, 1], -0.5 + 0.005 + np.log(10))


# Releases ---------------------------------------------------------------------------------------


def z_of_release(mechanism, law, draws=20_000):
    """Distance of the share of releases below a limit from a law's probability, in its sd."""
    released = mechanism.release(np.full(draws, 5), random_seed=11)
    z = []
    for limit in (2, 4, 6, 8):
        p = exact_cdf(law, limit)
        z.append((np.mean(released <= limit) - p) / np.sqrt(p * (1 - p) / draws))
    return np.abs(z).max()


def exact_cdf(mechanism, limit):
    """P(release <= limit | 5), by summing or integrating the density."""
    if mechanism.integer:
        grid = integers(mechanism)
        return density(mechanism, grid[grid <= limit], 5).sum()
    step = 1e-3
    return density(mechanism, np.arange(-120, limit, step) + step / 2, 5.0).sum() * step


def widened(mechanism, by):
    if isinstance(mechanism, TulapMechanism):
        return TulapMechanism(mechanism.b ** (1 / by), mechanism.q)
    name = "scale" if hasattr(mechanism, "scale") else "sigma"
    wider = type(mechanism)(getattr(mechanism, name) * by)
    return wider._published(mechanism.publication)


@pytest.mark.parametrize("mechanism", one_in_three(MECHANISMS + PUBLISHED), ids=str)
def test_releases_follow_the_density(mechanism):
    assert z_of_release(mechanism, mechanism) < 4
    assert z_of_release(mechanism, widened(mechanism, 1.3)) > 6


def test_integer_noise_is_added_to_integers_only():
    with pytest.raises(ValueError, match="adds integer noise to integers"):
        DiscreteLaplaceMechanism(1.0).release(np.array([0.5]))


@pytest.mark.parametrize("sigma", [1e-300, 1e-160, 1e-20, 0.01])
def test_noise_of_a_tiny_scale_is_none(sigma):
    for mechanism in (DiscreteGaussianMechanism(sigma), DiscreteLaplaceMechanism(sigma)):
        np.testing.assert_array_equal(mechanism.release(np.full(50, 5), random_seed=1), 5)


@pytest.mark.parametrize(
    ("mechanism", "statistic", "message"),
    [
        (DiscreteGaussianMechanism(1.0), 2**63, "within 2.62 in size: it is wrong"),
        (DiscreteLaplaceMechanism(1.0), [1, -(2**63)], "1 of 2 is wrong, at index 1"),
        (DiscreteGaussianMechanism(1.0), 1e300, "within 2.62"),
        (DiscreteGaussianMechanism(1.0), np.inf, "must hold finite numbers: it is wrong"),
        (LaplaceMechanism(1.0), [[0.0, np.nan]], r"1 of 2 is wrong, at index \(0, 1\)"),
        (GaussianMechanism(1e300).rounded(), 0, "Release real numbers"),
        (GaussianMechanism(1.0).rounded(), 1e30, "within 2.62"),
        (KNormMechanism(1.0, 2), [np.inf, 0.0], "finite numbers"),
        (CustomMechanism(np.add, draw=lambda s, rng: s), np.nan, "finite numbers"),
    ],
)
def test_what_does_not_fit_into_a_release_is_refused(mechanism, statistic, message):
    with pytest.raises(ValueError, match=message):
        mechanism.release(statistic, random_seed=1)


def test_predicted_releases_do_not_wrap_around():
    released = GaussianMechanism(1e300).rounded()._random(pt.zeros(3), None)
    with pytest.raises(AssertionError, match="rounded releases must be within"):
        pm.draw(released, random_seed=1, mode="FAST_COMPILE")


# Budgets ----------------------------------------------------------------------------------------


def test_the_papers_noise_follows_from_its_footnote():
    mechanism = DiscreteGaussianMechanism.calibrate(ApproxDP(2 * np.log(3), 1e-10), sensitivity=2)
    assert round(mechanism.sigma, 2) == 6.32


@pytest.mark.parametrize(
    ("kind", "budget", "sensitivity"),
    [
        (LaplaceMechanism, PureDP(0.7), 3.0),
        (DiscreteLaplaceMechanism, PureDP(0.7), 2),
        (TulapMechanism, PureDP(0.7), 1),
        (GaussianMechanism, ZCDP(0.1), 1.5),
        (DiscreteGaussianMechanism, ZCDP(0.1), 1.5),
    ],
)
def test_calibration_and_loss_are_inverse(kind, budget, sensitivity):
    mechanism = kind.calibrate(budget, sensitivity=sensitivity)
    spent = mechanism.privacy_loss(sensitivity=sensitivity)
    assert type(spent) is type(budget)
    for name in budget.__dataclass_fields__:
        assert getattr(spent, name) == pytest.approx(getattr(budget, name))
    assert mechanism.budget is budget
    assert str(budget) in repr(mechanism)


@pytest.mark.parametrize(
    ("kind", "budget", "norm", "options"),
    [
        (LaplaceMechanism, PureDP(0.5), "l1", {}),
        (DiscreteLaplaceMechanism, PureDP(0.5), "l1", {}),
        (GaussianMechanism, ZCDP(0.5), "l2", {}),
        (DiscreteGaussianMechanism, ZCDP(0.5), "l2", {}),
        (KNormMechanism, PureDP(0.5), "l1", {"norm": 1}),
        (KNormMechanism, PureDP(0.5), "l2", {"norm": 2}),
        (KNormMechanism, PureDP(0.5), "linf", {"norm": np.inf}),
        (LInfMechanism, PureDP(0.5), "linf", {}),
    ],
)
def test_a_mechanism_picks_the_norm_it_needs(kind, budget, norm, options):
    sensitivity = counts([0, 1, 2], 4, neighbours="replace").sensitivity
    right = getattr(sensitivity, norm)
    mechanism = kind.calibrate(budget, sensitivity=sensitivity, **options)
    assert repr(mechanism) == repr(kind.calibrate(budget, sensitivity=float(right), **options))
    assert repr(mechanism) == repr(kind.calibrate(budget, sensitivity=right, **options))
    spent = mechanism.privacy_loss(sensitivity=sensitivity)
    assert astuple(spent) == pytest.approx(astuple(budget))
    for other in {"l1", "l2", "linf"} - {norm}:
        for call in (kind.calibrate, lambda _, **given: mechanism.privacy_loss(**given)):
            given = options if call == kind.calibrate else {}
            with pytest.raises(ValueError, match=r"needs the .* sensitivity, got the"):
                call(budget, sensitivity=getattr(sensitivity, other), **given)


@pytest.mark.parametrize(
    ("kind", "budget", "options"),
    [
        (LaplaceMechanism, PureDP(0.5), {}),
        (DiscreteLaplaceMechanism, PureDP(0.5), {}),
        (GaussianMechanism, ZCDP(0.5), {}),
        (DiscreteGaussianMechanism, ApproxDP(0.5, 1e-6), {}),
        (TulapMechanism, PureDP(0.5), {}),
        (TulapMechanism, ApproxDP(0.5, 1e-6), {}),
        (KNormMechanism, PureDP(0.5), {"norm": 2}),
        (LInfMechanism, PureDP(0.5), {}),
        (NoisyMaxMechanism, PureDP(0.5), {"candidates": 2}),
    ],
)
def test_a_mechanism_keeps_to_the_neighbours_of_its_budget(kind, budget, options):
    bins = [0, 1] if kind is TulapMechanism else [0, 1, 2]
    of = {n: histogram([0.5], bins, neighbours=n).sensitivity for n in ("replace", "add_remove")}
    moved = replace(budget, neighbours="add_remove")
    mechanism = kind.calibrate(moved, sensitivity=of["add_remove"], **options)
    assert mechanism.budget == moved
    assert mechanism.privacy_loss(sensitivity=of["add_remove"]).neighbours == "add_remove"
    assert mechanism.privacy_loss(sensitivity=of["replace"]).neighbours == "replace"
    for other, sensitivity in [(budget, of["add_remove"]), (moved, of["replace"])]:
        with pytest.raises(ValueError, match="Use the same neighbours for both"):
            kind.calibrate(other, sensitivity=sensitivity, **options)


@pytest.mark.parametrize("bound", ["simple", "tight"])
def test_an_approximate_budget_is_recovered_by_the_same_bound(bound):
    budget = ApproxDP(1.3, 1e-6)
    mechanism = GaussianMechanism.calibrate(budget, sensitivity=2.0, bound=bound)
    spent = mechanism.privacy_loss(sensitivity=2.0, delta=1e-6, bound=bound)
    assert spent.epsilon == pytest.approx(1.3)


@pytest.mark.parametrize("kind", [LaplaceMechanism, DiscreteLaplaceMechanism, TulapMechanism])
def test_pure_privacy_bounds_the_ratio_of_densities(kind):
    def largest_ratio(mechanism):
        x = np.arange(-30, 31) if mechanism.integer else np.linspace(-30, 30, 6007)
        logp = [mechanism.logp(x, s).eval(mode="FAST_COMPILE") for s in (0, 1)]
        return np.abs(logp[0] - logp[1]).max()

    mechanism = kind.calibrate(PureDP(0.7), sensitivity=1)
    assert largest_ratio(mechanism) <= 0.7 + 1e-9
    assert largest_ratio(widened(mechanism, 0.7)) > 0.75


@pytest.mark.parametrize("kind", [GaussianMechanism, DiscreteGaussianMechanism])
def test_zcdp_bounds_the_renyi_divergence(kind):
    def divergence(mechanism, alpha):
        step = 1 if mechanism.integer else 0.01
        x = np.arange(-60, 61, step)
        p, q = (mechanism.logp(x, s).eval(mode="FAST_COMPILE") for s in (1, 0))
        return np.log(np.sum(np.exp(alpha * p + (1 - alpha) * q)) * step) / (alpha - 1)

    rho = 0.2
    mechanism = kind.calibrate(ZCDP(rho), sensitivity=1)
    for alpha in (1.5, 2.0, 8.0):
        assert divergence(mechanism, alpha) <= rho * alpha * (1 + 1e-6)
        assert divergence(widened(mechanism, 0.7), alpha) > rho * alpha * 1.3


@pytest.mark.parametrize("kind", [GaussianMechanism, DiscreteGaussianMechanism, TulapMechanism])
def test_approximate_privacy_bounds_the_hockey_stick_divergence(kind):
    budget = ApproxDP(1.0, 1e-3)

    def excess(mechanism):
        step = 1 if mechanism.integer else 0.001
        x = np.arange(-30, 31, step) + (0 if mechanism.integer else step / 2)
        p, q = (density(mechanism, x, s) for s in (1, 0))
        return np.maximum(p - np.exp(budget.epsilon) * q, 0).sum() * step

    # By the tight bound: the simple one leaves more than 30 % of slack.
    options = {} if kind is TulapMechanism else {"bound": "tight"}
    mechanism = kind.calibrate(budget, sensitivity=1, **options)
    assert excess(mechanism) <= budget.delta * (1 + 1e-3)
    assert excess(widened(mechanism, 0.7)) > budget.delta * 1.2


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_error_bound_holds(mechanism):
    k, beta = 7, 0.05
    bound = float(mechanism.error_bound(k, beta))
    step = 1 if mechanism.integer else 1e-3
    x = np.arange(-100, 101, step) + (0 if mechanism.integer else step / 2)
    outside = density(mechanism, x[np.abs(x) > bound], 0).sum() * step
    assert 1 - (1 - outside) ** k <= beta
    assert density(mechanism, x[np.abs(x) > 0.6 * bound], 0).sum() * step * k > beta


@pytest.mark.parametrize("kind", [LaplaceMechanism, GaussianMechanism])
def test_the_scale_follows_from_a_published_error_bound(kind):
    bound = np.array([3.0, 40.0])
    mechanism = kind.from_error_bound(bound, beta=0.1)
    np.testing.assert_allclose(mechanism.error_bound(1, 0.1), bound, rtol=1e-14)
    # The noise of a statistic at the bound is below minus the bound: clamped to 0.
    below = density(mechanism.clamped(0, None), 0, bound)
    np.testing.assert_allclose(below, 0.05, rtol=1e-12)
    assert str(kind.from_error_bound(3)).startswith(f"{kind.__name__}(s")
    with pytest.raises(ValueError, match="bound must be positive"):
        kind.from_error_bound(0)
    with pytest.raises(ValueError, match="beta must be"):
        kind.from_error_bound(1, beta=1)


# In a model -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LaplaceMechanism(0.0), "scale must be positive"),
        (lambda: GaussianMechanism(np.array([1.0, np.nan])), "sigma must be positive"),
        (lambda: LaplaceMechanism(1.0).error_bound(0), "k must be a whole number of at least 1"),
        (lambda: LaplaceMechanism(np.ones(2) * [1, 2]).privacy_loss(sensitivity=1), "different"),
    ],
)
def test_nonsense_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LaplaceMechanism(True), "scale must be a number"),
        (lambda: LaplaceMechanism([]), "scale must be .* empty"),
        (lambda: GaussianMechanism("1"), "sigma must be a number"),
        (lambda: GaussianMechanism([1.0, [2.0]]), "sigma must be a number"),
        (lambda: DiscreteLaplaceMechanism(1j), "scale must be a number"),
        (lambda: KNormMechanism(1.0, True), "norm must be 1, 2 or"),
        (lambda: KNormMechanism(1.0, "2"), "norm must be 1, 2 or"),
        (lambda: CustomMechanism(3), "log_density must be a function"),
        (lambda: CustomMechanism(np.add, draw=3), "draw must be a function"),
        (lambda: CustomMechanism(np.add, whole_numbers=1), "whole_numbers must be True or False"),
    ],
)
def test_arguments_of_a_wrong_kind_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_each_entry_of_a_prediction_has_noise_of_its_own():
    released = LaplaceMechanism(2.0)._random(pt.zeros(3), None)
    drawn = pm.draw(released, random_seed=1, mode="FAST_COMPILE")
    assert len(set(drawn)) == 3


# Types and shapes that would change the likelihood ------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "uint64", "bool"])
@pytest.mark.parametrize("mechanism", [*MECHANISMS, *PUBLISHED], ids=str)
def test_differences_of_unsigned_integers_do_not_wrap(mechanism, dtype):
    released, statistic = np.array([0, 1], dtype=dtype), np.array([1, 0], dtype=dtype)
    signed = mechanism.logp(released.astype("int64"), statistic.astype("int64"))
    unsigned = mechanism.logp(released, statistic)
    np.testing.assert_array_equal(*pytensor.function([], [unsigned, signed], mode="FAST_COMPILE")())


@pytest.mark.parametrize(
    ("mechanism", "shape"),
    [
        (LaplaceMechanism(np.ones((3, 1))), (3,)),
        (GaussianMechanism(np.ones(3)), ()),
        (DiscreteLaplaceMechanism(np.ones(2)), (1,)),
        (DiscreteGaussianMechanism(np.ones(2)), (3,)),
    ],
    ids=str,
)
@pytest.mark.parametrize("how", ["potential", "observe", "logp", "release"])
def test_more_noise_scales_than_entries_are_refused(mechanism, shape, how):
    statistic = np.zeros(shape, dtype=int)
    calls = {
        "potential": lambda: mechanism.potential("s_dp", statistic, released=statistic),
        "observe": lambda: mechanism.observe("s_dp", statistic, released=statistic),
        "logp": lambda: mechanism.logp(statistic, statistic),
        "release": lambda: mechanism.release(statistic, random_seed=1),
    }
    scale = getattr(mechanism, "scale", getattr(mechanism, "sigma", None))
    message = f"has shape {np.shape(scale)}, which doesn't fit a statistic of shape {shape}"
    with pm.Model(), pytest.raises(ValueError, match=re.escape(message)):
        calls[how]()


def test_a_law_is_all_that_noise_of_another_kind_needs():
    @dataclass(frozen=True, eq=False, repr=False)
    class LogisticMechanism(AdditiveNoise):
        s: float
        _law = pm.Logistic

        def _two_sided_quantile(self, p):
            return self.s * np.log(2 / p - 1)

    mechanism = LogisticMechanism(2.0).clamped(0, None)
    released = np.arange(0.0, 120, 1e-3)
    below, *above = density(mechanism, released, 1.3)
    assert below + np.trapezoid(above, dx=1e-3) == pytest.approx(1, abs=1e-3)
    drawn = LogisticMechanism(2.0).release(np.zeros(4000), random_seed=1)
    assert np.mean(np.abs(drawn) > mechanism.error_bound(beta=0.2)) == pytest.approx(0.2, abs=0.03)
    with pytest.raises(ValueError, match="s must be positive and finite, got -1"):
        LogisticMechanism(-1)
    with pytest.raises(ValueError, match="has no likelihood of rounded releases"):
        LogisticMechanism(2.0).rounded()


def test_examples_of_the_docstrings_print_what_they_say():
    found = [doctest.testmod(module) for module in (additive, tulap)]
    assert sum(each.attempted for each in found) > 10
    assert sum(each.failed for each in found) == 0
