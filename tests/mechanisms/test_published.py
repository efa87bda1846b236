"""Rules of publication on noise: laws, releases, posteriors of each rule and of its broken twin."""

from functools import cache

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.stats import laplace, poisson

import pymc_dapper as pmd
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.graphs.dependence import records_seen
from pymc_dapper.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TulapMechanism,
)
from pymc_dapper.plausibility.check import check_releases
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.plan import ByEntries

HIDDEN = np.nan
SCALE = 2.5
FROM, TO = -200, 200


def probabilities(mechanism, released, statistic):
    return np.exp(mechanism.logp(released, statistic).eval(mode="FAST_COMPILE"))


# Rules as a curator would write them, for one noisy number. None isn't published.


def half_even(x, step):
    return step * np.round(x / step)


def half_up(x, step):
    return step * np.floor(x / step + 0.5)


def down(x, step):
    return step * np.floor(x / step)


def toward_zero(x, step):
    return step * np.trunc(x / step)


RULES = {
    "to fives": (lambda m: m.rounded(5), lambda x: half_even(x, 5)),
    "to fours": (lambda m: m.rounded(4), lambda x: half_even(x, 4)),
    "half up": (lambda m: m.rounded(4, ties="half up"), lambda x: half_up(x, 4)),
    "down": (lambda m: m.rounded(4, ties="down"), lambda x: down(x, 4)),
    "toward zero": (lambda m: m.rounded(4, ties="toward zero"), lambda x: toward_zero(x, 4)),
    "from 3 on": (lambda m: m.published_if(">=", 3), lambda x: x if x >= 3 else None),
    "above 3": (lambda m: m.published_if(">", 3), lambda x: x if x > 3 else None),
    "clamped, then rounded": (
        lambda m: m.clamped(-2, 7).rounded(4),
        lambda x: half_even(min(max(x, -2), 7), 4),
    ),
    "rounded, then clamped": (
        lambda m: m.rounded(4).clamped(-4, 8),
        lambda x: min(max(half_even(x, 4), -4), 8),
    ),
    "from 2 on, then rounded": (
        lambda m: m.published_if(">=", 2).rounded(4),
        lambda x: half_even(x, 4) if x >= 2 else None,
    ),
    "rounded, from 2 on": (
        lambda m: m.rounded(4).published_if(">=", 2),
        lambda x: half_even(x, 4) if half_even(x, 4) >= 2 else None,
    ),
    "clamped, above 0": (
        lambda m: m.clamped(0, None).published_if(">", 0),
        lambda x: x if x > 0 else None,
    ),
    "above 1, then clamped": (
        lambda m: m.published_if(">", 1).clamped(4, 6),
        lambda x: min(max(x, 4), 6) if x > 1 else None,
    ),
    "two thresholds": (
        lambda m: m.published_if(">=", 1).rounded(4).published_if(">", 4).clamped(0, 12),
        lambda x: min(half_even(x, 4), 12) if x >= 1 and half_even(x, 4) > 4 else None,
    ),
    "clamped between thresholds": (
        lambda m: m.published_if(">=", -1).clamped(3, 8).published_if(">", 0),
        lambda x: min(max(x, 3), 8) if x >= -1 else None,
    ),
    "clamped to below the threshold": (
        lambda m: m.published_if(">", 3).clamped(None, 2),
        lambda x: 2 if x > 3 else None,
    ),
    "never published": (
        lambda m: m.published_if(">=", 1).clamped(None, 5).published_if(">", 7),
        lambda x: None,
    ),
    "per cent to two hundreds": (
        lambda m: m.clamped(0, 5).times(100).rounded(200, ties="half up"),
        lambda x: half_up(100 * min(max(x, 0), 5), 200),
    ),
    "in ranges": (
        lambda m: m.in_ranges([-1, 0, 2.5, 7]),
        lambda x: sum(x >= e for e in (-1, 0, 2.5, 7)),
    ),
    "in ranges from 1 on": (
        lambda m: m.published_if(">=", 1).in_ranges([0, 3, 5]),
        lambda x: sum(x >= e for e in (0, 3, 5)) if x >= 1 else None,
    ),
    "rounded twice": (
        lambda m: m.rounded(2).rounded(4, ties="half up"),
        lambda x: half_up(half_even(x, 2), 4),
    ),
}
TWINS = {
    "to fives": "to fours",
    "to fours": "half up",
    "half up": "to fours",
    "down": "half up",
    "toward zero": "down",
    "from 3 on": "above 3",
    "above 3": "from 3 on",
    "clamped, then rounded": "rounded, then clamped",
    "from 2 on, then rounded": "rounded, from 2 on",
    "rounded, from 2 on": "from 2 on, then rounded",
}
"""What a rule is easily taken for."""

LAW = DiscreteLaplaceMechanism(SCALE)
NOISE = np.arange(FROM, TO + 1)
NOISE_P = np.exp(-np.abs(NOISE) / SCALE) * np.tanh(0.5 / SCALE)
STATISTICS = np.arange(8)
PRIOR = 0.7**STATISTICS / np.sum(0.7**STATISTICS)


def enumerated(rule, nonempty=False):
    """Probability of each release, given each statistic: by going through all noise."""
    table = {}
    for s in STATISTICS:
        for x, p in zip(s + NOISE, NOISE_P, strict=True):
            y = rule(float(x)) if s or not nonempty else None
            table.setdefault(HIDDEN if y is None else float(y), np.zeros(len(STATISTICS)))[s] += p
    return np.array(list(table)), np.array(list(table.values()))


@pytest.mark.parametrize("name", RULES)
def test_the_law_of_a_rule_is_that_of_published_noise(name):
    make, rule = RULES[name]
    released, expected = enumerated(rule)
    law = law_of(make, released)
    np.testing.assert_allclose(law, expected, rtol=1e-9, atol=1e-15)


@cache
def law_by_name(make, released):
    return probabilities(make(LAW), np.array(released)[:, None], STATISTICS)


def law_of(make, released):
    return law_by_name(make, tuple(released))


def far_from_calibrated(make, released, truth):
    """How far posteriors, averaged over data sets of the model, are from the prior."""
    if not make(LAW).publication.suppresses:
        released = np.nan_to_num(released)
    with np.errstate(all="ignore"):
        joint = np.nan_to_num(law_of(make, released) * PRIOR)
        posterior = joint / joint.sum(axis=1, keepdims=True)
        impossible = ~np.isfinite(posterior).all(axis=1)
    posterior[impossible] = PRIOR  # as nobody would notice
    return np.abs((truth @ PRIOR) @ posterior - PRIOR).max()


@pytest.mark.parametrize("name", TWINS)
def test_posteriors_are_calibrated_and_those_of_a_broken_twin_are_not(name):
    released, truth = enumerated(RULES[name][1])
    assert far_from_calibrated(RULES[name][0], released, truth) < 1e-12
    twin = RULES[TWINS[name]][0]
    assert far_from_calibrated(twin, released, truth) > 1e-4


def test_leaving_suppressed_rows_out_is_not_calibrated():
    released, truth = enumerated(RULES["from 3 on"][1])
    known = ~np.isnan(released)
    law = probabilities(LAW, released[known][:, None].astype(int), STATISTICS)
    posterior = law * PRIOR / (law * PRIOR).sum(axis=1, keepdims=True)
    averaged = (truth[known] @ PRIOR) @ posterior / (truth[known] @ PRIOR).sum()
    assert np.abs(averaged - PRIOR).max() > 0.05


# Another noisy value decides, and ratios: several releases ----------------------------------------


def test_a_noisy_count_that_is_not_published_decides_on_a_total():
    """A total is published if another noisy value, a count, is 3 or more: by all noise of both."""
    decides, total = LAW.in_ranges([3]), DiscreteLaplaceMechanism(4.0)
    n, t = STATISTICS, 3 * STATISTICS
    passed = np.array([NOISE_P[NOISE + k >= 3].sum() for k in n])
    y = np.arange(-150, 250)
    noise = np.exp(-np.abs(y[:, None] - t) / 4) * np.tanh(0.5 / 4)
    truth = np.vstack([1 - passed, passed * noise])
    is_there = probabilities(decides, np.array([[0], [1]]), n)
    law = np.vstack([is_there[0], is_there[1] * probabilities(total, y[:, None], t)])
    np.testing.assert_allclose(law, truth, rtol=1e-9, atol=1e-15)

    def off(law):
        posterior = law * PRIOR / (law * PRIOR).sum(axis=1, keepdims=True)
        return np.abs((truth @ PRIOR) @ posterior - PRIOR).max()

    assert off(law) < 1e-12
    assert off(np.vstack([np.ones(len(n)), law[1:] / is_there[1]])) > 0.01


def test_a_share_of_a_published_noisy_count_is_a_statistic_in_its_units():
    total, noisy_count, scale = np.array([3.0, 8.0]), np.array([11.0, 16.5]), 2.0
    mechanism = LaplaceMechanism(scale / noisy_count).clamped(0, 1).rounded(0.1)
    shares = np.linspace(0, 1, 11).round(1)

    def cdf(share):
        return laplace.cdf(share * noisy_count - total, scale=scale)

    ends = np.array([cdf(x) for x in np.linspace(0.05, 0.95, 10)])
    expected = np.diff(np.vstack([np.zeros(2), ends, np.ones(2)]), axis=0)
    law = probabilities(mechanism, shares[:, None], total / noisy_count)
    np.testing.assert_allclose(law, expected, rtol=1e-9)


def test_a_ratio_to_a_noisy_number_that_was_not_published():
    """Given the number, a share is noise in its units; over all that it can be, the ratio's law."""
    total, count, scale, n = 3.0, 4.0, 2.0, 400_000
    rng = np.random.default_rng(8)
    below = count + rng.laplace(scale=scale, size=n)  # often negative
    ratio = (total + rng.laplace(scale=scale, size=n)) / below
    shares = np.linspace(0, 1, 6).round(1)
    drawn = np.clip(ratio, 0, 1)
    observed = np.array([np.mean(np.round(drawn * 5) == k) for k in range(6)])
    noisy = np.linspace(-60, 70, 26_001) + 1e-4  # never zero
    weights = laplace.pdf(noisy - count, scale=scale) * (noisy[1] - noisy[0])

    def off(scale_of, statistic_of):
        mechanism = LaplaceMechanism(scale_of(noisy)).clamped(0, 1).rounded(0.2)
        p = probabilities(mechanism, shares[:, None], statistic_of(noisy)) @ weights
        return np.abs((observed - p) / np.sqrt(p * (1 - p) / n)).max()

    assert off(lambda y: scale / np.abs(y), lambda y: total / y) < 4
    # The true number in its place; noise below zero mistaken for noise above.
    assert off(lambda y: scale / count, lambda y: np.full(y.shape, total / count)) > 6
    assert off(lambda y: scale / np.abs(y), lambda y: total / np.abs(y)) > 6


def test_a_noisy_total_that_is_not_published_chose_the_level_of_detail():
    """Two cells where a noisy total is 6 or more, else their total: by all noise of all three."""
    decides, cell, whole = LAW.in_ranges([6]), LAW, DiscreteLaplaceMechanism(1.5)
    prior = np.outer(PRIOR, PRIOR).ravel()
    first, second = (x.ravel() for x in np.meshgrid(STATISTICS, STATISTICS, indexing="ij"))
    passed = np.array([NOISE_P[NOISE + t >= 6].sum() for t in first + second])
    y = np.arange(-40, 60)
    noise = {t: np.exp(-np.abs(y - t) / SCALE) * np.tanh(0.5 / SCALE) for t in range(8)}
    cells = np.array(
        [np.outer(noise[a], noise[b]).ravel() for a, b in zip(first, second, strict=True)]
    ).T
    coarse = np.exp(-np.abs(y[:, None] - first - second) / 1.5) * np.tanh(0.5 / 1.5)
    truth = np.vstack([(1 - passed) * coarse, passed * cells])

    level = probabilities(decides, np.array([[0], [1]]), first + second)
    of_total = probabilities(whole, y[:, None], first + second)
    one, other = (probabilities(cell, y[:, None], x) for x in (first, second))
    fine = (one[:, None] * other[None]).reshape(-1, len(prior))
    law = np.vstack([level[0] * of_total, level[1] * fine])
    np.testing.assert_allclose(law, truth, rtol=1e-9, atol=1e-15)

    def off(law):
        posterior = law * prior / (law * prior).sum(axis=1, keepdims=True)
        return np.abs((truth @ prior) @ posterior - prior).max()

    assert off(law) < 1e-6
    assert off(np.vstack([of_total, fine])) > 1e-3


# A scale that isn't known -------------------------------------------------------------------------

KINDS = [LaplaceMechanism, GaussianMechanism, DiscreteLaplaceMechanism, DiscreteGaussianMechanism]


def with_rules(mechanism):
    return mechanism.rounded(5).published_if(">=", 10).clamped(0, 30)


@pytest.mark.parametrize(
    "kind", [KINDS[0], *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS[1:])]
)
def test_a_scale_that_is_a_variable_is_that_number(kind):
    scale, statistic = pt.dscalar("scale"), np.array([3, 0, 12])
    ways = [
        (with_rules, [10, np.nan, 30]),
        (lambda m: m.nonempty().published_if(">", 3), [4, np.nan, np.nan]),
    ]
    unknown = [make(kind(scale)).logp(released, statistic) for make, released in ways]
    for number in (0.3, 40.0):
        values = [x.eval({scale: number}, mode="FAST_COMPILE") for x in unknown]
        for (make, released), value in zip(ways, values, strict=True):
            known = make(kind(number)).logp(released, statistic).eval(mode="FAST_COMPILE")
            np.testing.assert_allclose(value, known, rtol=1e-12)
            np.testing.assert_array_equal(np.isinf(value), np.isinf(known))


def test_a_scale_in_a_model_is_a_parameter():
    with pm.Model() as model:
        scale = pm.Normal("scale", 3.0, 1.0, initval=2.0)
        record = pm.Categorical("record", p=pm.Dirichlet("p", np.ones(4)), shape=30)
        n = pm.Poisson("n", 8, shape=4)
        mechanism = with_rules(LaplaceMechanism(scale))
        table = pmd.statistics.counts(record, 4)
        mechanism.observe("records", table, released=[10, np.nan, 15, np.nan])
        mechanism.observe("counts", n, released=[10, np.nan, 15, np.nan])
    assert repr(mechanism).startswith("LaplaceMechanism(scale=scale).rounded(5)")
    assert records_seen(model) == [record, n]
    point = model.initial_point()
    assert isinstance(read_model(model, [model.rvs_to_values[record]], point).plan, ByEntries)
    assert read_counts(model, [model.rvs_to_values[n]]).wholes == ()
    in_python = {"mode": "FAST_COMPILE"}
    prior = pm.sample_prior_predictive(
        300, model=model, var_names=["counts"], random_seed=1, compile_kwargs=in_python
    )
    drawn = prior.prior_predictive["counts"].values
    assert set(np.unique(drawn)) == {-np.inf, 10, 15, 20, 25, 30} or drawn.max() <= 30
    logp = model.compile_logp(vars=[model["counts"]], **in_python)
    assert np.isfinite(logp(point))
    assert logp({**point, "scale": np.array(-2.0)}) == -np.inf


def test_a_release_of_an_unknown_scale_is_not_compared_with_the_model():
    with pm.Model() as model:
        n = pm.Poisson("n", 8, shape=2)
        LaplaceMechanism(pm.HalfNormal("scale", 5)).observe("counts", n, released=[400.0, 5.0])
    check_releases(model, [model.rvs_to_values[n]], "2 counts")


def test_a_scale_stays_a_parameter_where_records_become_a_table():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 5)
        record = pm.Categorical("record", p=pm.Dirichlet("p", np.ones(4)), shape=6)
        mechanism = with_rules(LaplaceMechanism(scale))
        table = pmd.statistics.counts(record, 4)
        mechanism.potential("release", table, released=[10, np.nan, 10, np.nan])
    tabulated = pmd.tabulate(model)
    [counted] = records_seen(tabulated)
    assert counted is not tabulated["scale"]
    one, other = model.initial_point(), tabulated.initial_point()
    one["record"] = np.array([0, 0, 1, 2, 3, 3])
    other[tabulated.rvs_to_values[counted].name] = np.array([2, 1, 1, 2])
    values = [
        m.compile_logp(vars=[m["release"]], mode="FAST_COMPILE")(point)
        for m, point in ((model, one), (tabulated, other))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-12)


def test_what_needs_a_scale_that_is_known():
    mechanism = LaplaceMechanism(pt.dscalar("scale"))
    for ask in (
        lambda: mechanism.release(np.ones(2)),
        lambda: mechanism.privacy_loss(sensitivity=1),
        lambda: mechanism.error_bound(),
        lambda: GaussianMechanism(pt.dscalar("sigma")).privacy_loss(sensitivity=1),
    ):
        with pytest.raises(TypeError, match="needs a noise scale that is a number"):
            ask()
    with pytest.raises(ValueError, match="noise scale of LaplaceMechanism has shape"):
        LaplaceMechanism(pt.dvector("scale")).logp(1.0, 2.0)
    with pytest.raises(TypeError, match="scale must be a tensor"):
        LaplaceMechanism(pt.zvector("scale"))


@pytest.mark.long
def test_a_scale_and_counts_sampled_together():
    released = np.array([10, np.nan, 25, np.nan, 15, np.nan])
    with pm.Model():
        scale = pm.HalfNormal("scale", 6)
        count = pm.Poisson("count", 9, shape=6)
        mechanism = LaplaceMechanism(scale).rounded(5).published_if(">=", 10)
        mechanism.observe("table", count, released=released)
        drawn = pmd.sample(
            20_000,
            tune=500,
            chains=1,
            cores=1,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior
    grid, whole = np.linspace(0.005, 36, 1500), np.arange(60)
    flat = [
        probabilities(
            LaplaceMechanism(grid[:, None]).rounded(5).published_if(">=", 10),
            y,
            np.broadcast_to(whole, (len(grid), len(whole))),
        )
        * poisson.pmf(whole, 9)
        for y in released
    ]

    def posterior(entries):
        evidence = np.prod([flat[i].sum(axis=1) for i in entries], axis=0)
        weights = evidence * np.exp(-0.5 * (grid / 6) ** 2)
        weights /= weights.sum()
        each = [(flat[i] / flat[i].sum(axis=1, keepdims=True)).T @ weights for i in range(6)]
        return np.array([grid @ weights, *(whole @ p for p in each)])

    expected = posterior(range(6))
    draws = np.column_stack([drawn["scale"].values[0], drawn["count"].values[0]])
    size = np.array([float(az.ess(column[None])) for column in draws.T])
    error = draws.std(axis=0) / np.sqrt(size)
    assert np.abs((draws.mean(axis=0) - expected) / error).max() < 4
    # Suppressed rows ignored in learning the scale; a scale that isn't learnt at all.
    for entries in ([0, 2, 4], []):
        assert np.abs((draws.mean(axis=0) - posterior(entries)) / error).max() > 6


# Unknown domain -----------------------------------------------------------------------------------


def of_rows(m):
    return m.nonempty().published_if(">=", 3)


def test_rows_without_records_are_never_there():
    released, truth = enumerated(RULES["from 3 on"][1], nonempty=True)
    np.testing.assert_allclose(
        probabilities(of_rows(LAW), released[:, None], STATISTICS), truth, rtol=1e-9, atol=1e-15
    )
    assert far_from_calibrated(of_rows, released, truth) < 1e-12
    assert far_from_calibrated(RULES["from 3 on"][0], released, truth) > 0.01
    assert of_rows(LAW).release(np.zeros(50), random_seed=1).mask.all()
    assert LAW.nonempty().logp(np.nan, np.arange(3)).eval(mode="FAST_COMPILE").tolist() == [
        0,
        -np.inf,
        -np.inf,
    ]


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_from_a_threshold_on_keep_an_approximate_budget(rows):
    mechanism = of_rows(DiscreteLaplaceMechanism(1.5))
    spent = mechanism.privacy_loss(sensitivity=rows, rows=rows)
    # All rows of one record, against none: the hockey-stick divergence of the worst case.
    p_hidden = probabilities(mechanism, np.nan, 1)
    assert spent.delta == pytest.approx(1 - p_hidden**rows, rel=1e-12)
    assert spent.epsilon == pytest.approx(rows / 1.5)
    released = np.array([np.nan, *np.arange(3, 120)])
    for one, other in [(1, 2), (2, 1), (0, 1), (1, 0)]:
        p, q = (probabilities(mechanism, released, s) for s in (one, other))
        excess = np.maximum(p - np.exp(spent.epsilon / rows) * q, 0).sum()
        assert excess <= -np.expm1(np.log1p(-spent.delta) / rows) * (1 + 1e-12)
    assert mechanism.budget is None


def test_what_a_release_of_rows_spends_is_asked_for_in_full():
    calibrated = LaplaceMechanism.calibrate(pmd.PureDP(1), sensitivity=1)
    assert calibrated.published_if(">", 3).rounded().budget == pmd.PureDP(1)
    assert calibrated.nonempty().budget is None
    loss = calibrated.nonempty().published_if(">=", 10).privacy_loss(sensitivity=1, rows=1)
    assert loss.delta == pytest.approx(np.exp(-9) / 2, rel=1e-12)
    with pytest.raises(ValueError, match="without a threshold keeps no budget"):
        calibrated.nonempty().privacy_loss(sensitivity=1, rows=1)
    with pytest.raises(TypeError, match="needs rows="):
        of_rows(calibrated).privacy_loss(sensitivity=1)
    with pytest.raises(ValueError, match="leave it out"):
        calibrated.privacy_loss(sensitivity=1, rows=1)
    with pytest.raises(ValueError, match="give delta="):
        of_rows(GaussianMechanism(1.0)).privacy_loss(sensitivity=1, rows=1)
    both = of_rows(GaussianMechanism(1.0)).privacy_loss(sensitivity=1, rows=1, delta=1e-6)
    assert both.delta > 0.02


def test_a_threshold_that_nothing_is_below_is_none():
    mechanism = LAW.clamped(3, None).published_if(">=", 1)
    with pm.Model(), pytest.raises(ValueError, match="never suppress: 1 of 2"):
        mechanism.potential("s", np.zeros(2, dtype=int), released=[4, np.nan])
    rows = LAW.nonempty().clamped(3, None).published_if(">=", 1)
    rows.check_released("s", np.array([4, -np.inf]))
    with pytest.raises(ValueError, match="above the smallest possible noisy value"):
        rows.privacy_loss(sensitivity=1, rows=1)


# Continuous noise ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RULES)
def test_continuous_noise_keeps_its_mass(name):
    mechanism = RULES[name][0](GaussianMechanism(SCALE))
    step = 1e-3
    noisy = 1.3 + np.arange(-60, 60, step) + step / 2
    y = mechanism.publication.publish(noisy, np.full(noisy.shape, 1.3))
    values, times = np.unique(np.where(np.isneginf(y), np.nan, y), return_counts=True)
    mass = times > 1  # of the noisy values that were gone through, others have a density
    p = probabilities(
        mechanism,
        values.astype(int)
        if mechanism.integer and not mechanism.publication.suppresses
        else values,
        1.3,
    )
    density = p[~mass].sum() * step
    assert p[mass].sum() + density == pytest.approx(1, abs=1e-9 if mass.all() else 1e-3)


def test_other_units_of_a_density():
    y, s = np.array([30.0, 55.0]), 0.4
    per_cent = probabilities(LaplaceMechanism(0.1).times(100), y, s)
    np.testing.assert_allclose(per_cent, probabilities(LaplaceMechanism(10.0), y, 40.0), rtol=1e-14)


def test_steps_that_floats_do_not_hold():
    mechanism = GaussianMechanism(0.01).rounded(0.001).clamped(0, 1)
    shares = np.linspace(0, 1, 1001).round(3)
    mechanism.check_released("shares", shares)
    assert set(mechanism.release(np.full(500, 0.5), random_seed=1)) <= set(shares)
    assert probabilities(mechanism, shares, 0.98).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", ["to fours", "from 2 on, then rounded", "from 3 on"])
def test_releases_follow_the_rules(name):
    make, rule = RULES[name]
    drawn = make(LAW).release(np.full(20_000, 4), random_seed=3)
    drawn = np.where(np.ma.getmaskarray(drawn), -99, np.ma.getdata(drawn))

    def z(rule):
        released, p = enumerated(rule)
        p = dict(zip(np.nan_to_num(released, nan=-99), p[:, 4], strict=True))
        share = np.array([np.mean(drawn == y) for y in p])
        p = np.array(list(p.values()))
        likely = p > 0.005
        return np.max(np.abs(share - p)[likely] / np.sqrt(p * (1 - p) / 20_000)[likely])

    assert z(rule) < 4
    assert z(RULES[TWINS[name]][1]) > 6


# Releases -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "released", "message"),
    [
        (
            lambda m: m.published_if(">=", 10),
            [12, 9],
            "'s': values are published only if >= 10, "
            "but 9 was released: 1 of 2 is wrong, at index 1",
        ),
        (lambda m: m.published_if(">", 10), [12, 10], "only if > 10, but 10 was released"),
        (lambda m: m.published_if(">=", 10), [np.nan, np.nan], "all 2 entries are suppressed"),
        (lambda m: m.rounded(5), [10, 12], "multiples of 5, to which they were rounded, but 12"),
        (lambda m: m.rounded(0.001), [0.5, 0.1234], "multiples of 0.001, .* but 0.1234 was"),
        (lambda m: m.clamped(0, 9), [3, 10], "from 0 to 9, to which they were clamped, but 10"),
        (lambda m: m.clamped(0, 9).rounded(5), [5, 15], "clamped, but 15 was released"),
        (lambda m: m.published_if(">=", 9).rounded(5), [10, 5], "only if >= 9, but 5 was released"),
        (lambda m: m.in_ranges([0, 10]), [0, 3], "ranges have the numbers 0 to 2, but 3"),
        (lambda m: m.rounded(5), [10, np.nan], "must be finite"),
        (lambda m: m.rounded(5), np.ma.masked_equal([5, 10], 5), "published_if"),
        (
            lambda m: m.published_if(">=", 4),
            np.ma.masked_array([5.0, np.nan, 7.0], [True, False, False]),
            "others that are nan, which may have been forgotten: 1 of 3",
        ),
    ],
)
def test_what_cannot_have_been_published_is_refused(make, released, message):
    with pm.Model(), pytest.raises(ValueError, match=message):
        make(LaplaceMechanism(2.0)).potential("s", np.zeros(len(released)), released=released)


def test_nan_in_shared_data_is_not_taken_for_suppressed():
    mechanism = LaplaceMechanism(2.0).published_if(">=", 4)
    with pm.Model():
        data = pm.Data("table", [5.0, -np.inf])
        factor = mechanism.potential("s", np.zeros(2), released=data)
        factor.tag.check_data()
        for value, message in [
            (np.nan, r"must be -np\.inf, but there is nan"),
            (3.0, "published only if >= 4, but 3 was"),
        ]:
            data.set_value(np.array([5.0, value]))
            with pytest.raises(ValueError, match=message):
                factor.tag.check_data()


def test_suppressed_entries_are_masked_or_nan_or_rows_that_are_not_there():
    mechanism = LaplaceMechanism(2.0).published_if(">=", 4)
    rows = pmd.published_rows([7.5, 5.0], rows=[3, 1], length=4)
    ways = [
        rows,
        [np.nan, 5.0, np.nan, 7.5],
        np.ma.masked_array([0, 5.0, 4.5, 7.5], [True, False, True, False]),
        [-np.inf, 5.0, -np.inf, 7.5],
    ]
    first, *others = (mechanism.logp(way, np.arange(4.0)).eval(mode="FAST_COMPILE") for way in ways)
    assert np.isfinite(first).all()
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda m: m.rounded(0), "step must be"),
        (lambda m: m.rounded(2, ties="up"), "ties must be"),
        (lambda m: m.clamped(3, 1), "lower < upper"),
        (lambda m: m.clamped(None, None), "clamped needs a limit"),
        (lambda m: m.clamped(0, np.inf), "upper must be .* finite"),
        (lambda m: m.clamped(False, None), "lower must be .* got False"),
        (lambda m: m.clamped(0, 1e300), "within 2"),
        (lambda m: m.clamped(0.5, None), "lower must be a multiple of 1"),
        (lambda m: m.rounded(2.5), "step must be a multiple of 1"),
        (lambda m: m.published_if("<", 3), "relation must be"),
        (lambda m: m.in_ranges([3, 1]), "edges must increase, each above the one before"),
        (lambda m: m.in_ranges([1, 3]).rounded(), "in_ranges must be the last rule"),
        (lambda m: m.rounded().nonempty(), "say nonempty"),
        (lambda m: m.times(-1), "factor must be"),
        (
            lambda m: TulapMechanism(0.5).rounded(5),
            "rounded to whole numbers, step=1",
        ),
    ],
)
def test_rules_that_make_no_sense_are_refused(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(DiscreteLaplaceMechanism(2.0))


def test_a_mechanism_shows_its_rules_in_their_order():
    mechanism = LaplaceMechanism(2.0).rounded(5, ties="down").published_if(">", 10).clamped(0, None)
    shown = (
        "LaplaceMechanism(scale=2).rounded(5, ties='down').published_if('>', 10).clamped(0, None)"
    )
    assert repr(mechanism) == shown
    assert mechanism.integer
    assert not LaplaceMechanism(2.0).rounded(0.5).integer
    assert repr(LaplaceMechanism(2.0)) == "LaplaceMechanism(scale=2)"


# In a model ---------------------------------------------------------------------------------------

IN_MODELS = [
    lambda m: m.rounded(5),
    lambda m: m.rounded(5).published_if(">", 5),
    lambda m: m.clamped(0, 12).rounded(5),
    of_rows,
    lambda m: m.published_if(">=", 4).in_ranges([5, 12]),
]
TABLES = [
    [10, 5, 10, 5],
    [10, np.nan, 10, np.nan],
    [10, 5, 10, 0],
    [9.5, np.nan, 12.5, 4.0],
    [1, np.nan, 2, 0],
]


@pytest.mark.parametrize(("make", "table"), list(zip(IN_MODELS, TABLES, strict=True)))
def test_steps_see_entries_one_by_one(make, table):
    mechanism = make(LaplaceMechanism(2.0))
    with pm.Model() as model:
        record = pm.Categorical("record", p=pm.Dirichlet("p", np.ones(4)), shape=30)
        n = pm.Poisson("n", 8, shape=4)
        mechanism.observe("records", pmd.statistics.counts(record, 4), released=table)
        mechanism.potential("counts", n, released=table)
    point = model.initial_point()
    reading = read_model(model, [model.rvs_to_values[record]], point)
    assert isinstance(reading.plan, ByEntries)
    assert read_counts(model, [model.rvs_to_values[n]]).wholes == ()


def test_tails_of_discrete_gaussian_noise_are_seen_one_by_one_too():
    mechanism = DiscreteGaussianMechanism(2.0).published_if(">=", 4)
    with pm.Model() as model:
        n = pm.Poisson("n", 8, shape=4)
        mechanism.potential("counts", n, released=[10, np.nan, 10, np.nan])
    reading = read_counts(model, [model.rvs_to_values[n]])
    assert reading.wholes == ()


@pytest.mark.parametrize("kind", [LaplaceMechanism, GaussianMechanism])
def test_gradients_in_latent_totals_are_finite(kind):
    total = pt.dvector("total")
    released = np.array([np.nan, 5.0, 10, 15, 20])
    point = np.array([0.0, 3.0, 12.5, 40.0, 1e4])
    for make in (
        lambda m: m.rounded(5).published_if(">=", 5),
        lambda m: m.published_if(">=", 3.5).rounded(5),
        lambda m: m.published_if(">=", 3.5),
        lambda m: m.nonempty().published_if(">=", 3.5).clamped(None, 20),
    ):
        logp = make(kind(2.0)).logp(released, total).sum()
        gradient = pt.grad(logp, total).eval({total: point}, mode="FAST_COMPILE")
        assert np.isfinite(gradient).all()


@pytest.mark.usefixtures("uncompiled")
def test_predicted_releases_are_suppressed_too():
    mechanism = LaplaceMechanism(3.0).rounded(5).published_if(">=", 10)
    with pm.Model():
        n = pm.Poisson("n", 10, shape=3)
        mechanism.observe("release", n, released=[15, np.nan, 10])
        prior = pm.sample_prior_predictive(200, random_seed=1)
    drawn = prior.prior_predictive["release"].values
    assert np.isneginf(drawn).any()
    assert set(drawn[np.isfinite(drawn)] % 5) == {0}
    assert drawn[np.isfinite(drawn)].min() == 10
    np.testing.assert_array_equal(prior.observed_data["release"], [15, -np.inf, 10])


def test_releases_far_from_the_model_are_noticed():
    def check(table, make):
        with pm.Model() as model:
            record = pm.Categorical("record", p=pm.Dirichlet("p", np.ones(4)), shape=30)
            make(LaplaceMechanism(1.0)).potential(
                "table", pmd.statistics.counts(record, 4), released=table
            )
        check_releases(model, [model.rvs_to_values[record]], "30 records")

    check([10, np.nan, 15, np.nan], lambda m: m.rounded(5).published_if(">", 5))
    with pytest.warns(UserWarning, match="'table': released 100 is 49 noise standard deviations"):
        check([100, np.nan, 15, np.nan], lambda m: m.rounded(5).published_if(">", 5))


# Many suppressed rows -----------------------------------------------------------------------------


def test_intervals_hold_where_most_rows_are_suppressed():
    """Latent totals of a Gamma law with unknown scale; a fifth of them is published.

    All is by quadrature: over the scale, and over each row's total given that.
    """
    rng = np.random.default_rng(5)
    mechanism, rows = LaplaceMechanism(3.0).rounded().published_if(">=", 15), 20_000
    grid = np.linspace(0.05, 120, 1200)
    totals = rng.gamma(1.0, 8.0, size=rows)
    released = mechanism.release(totals, random_seed=rng)
    assert 0.75 < np.ma.getmaskarray(released).mean() < 0.85
    values, which = np.unique(np.where(released.mask, -np.inf, released.data), return_inverse=True)
    likelihood = probabilities(mechanism, values[:, None], grid)
    scales = np.linspace(7, 26, 381)
    prior = np.exp(-grid / scales[:, None])
    prior /= prior.sum(axis=1, keepdims=True)

    def coverage(likelihood):
        log_evidence = np.log(likelihood @ prior.T).T @ np.bincount(which)
        weights = np.exp(log_evidence - log_evidence.max())
        joint = likelihood * (weights @ prior)
        cdf = np.cumsum(joint, axis=1) / joint.sum(axis=1, keepdims=True)
        low, high = (grid[np.argmax(cdf >= p, axis=1)] for p in (0.05, 0.95))
        inside = (totals >= low[which]) & (totals <= high[which])
        return inside[released.mask].mean(), inside.mean()

    assert coverage(likelihood) == pytest.approx((0.9, 0.9), abs=0.01)
    # Naive: rows that were left out are missing at random.
    naive = likelihood.copy()
    naive[values == -np.inf] = 1.0
    assert max(coverage(naive)) < 0.86
