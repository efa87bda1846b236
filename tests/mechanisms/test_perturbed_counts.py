"""Counts that are published as others: likelihood with rules, draws, releases and refusals."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import PureDP
from pymc_dapper.mechanisms import CellKey, RandomRounding, TransitionMechanism

ROUNDING = RandomRounding(3)
CHANGED = CellKey([[0, 0, 1.0], [1, -1, 0.5], [1, 1, 0.5], [2, -1, 0.2], [2, 0, 0.5], [2, 2, 0.3]])
SMALL = TransitionMechanism([[1, 0, 0, 0], [0.6, 0, 0, 0.4], [0.3, 0, 0, 0.7], [0, 0, 0, 1]])
MECHANISMS = {
    "rounded": ROUNDING,
    "changed": CHANGED,
    "by a matrix": SMALL,
    "suppressed": ROUNDING.published_if(">=", 3),
    "10-5": CHANGED.rounded(5).published_if(">=", 5),
    "clamped": CHANGED.clamped(1, 4),
    "in ranges": ROUNDING.in_ranges([3, 7]),
    "rows": CHANGED.nonempty().published_if(">", 1),
    "suppressed if empty": ROUNDING.nonempty().published_if(">=", 0),
    "in per cent": ROUNDING.times(100),
}


def all_published(mechanism):
    """All that a mechanism may publish of small counts, suppressed entries included."""
    values = np.concatenate([[-np.inf], np.arange(-3, 30)])
    return 100 * values if mechanism.publication.factor == 100 else values


@pytest.mark.parametrize("kind", MECHANISMS)
def test_probabilities_add_up_to_one_and_are_those_of_draws(kind):
    mechanism, counts = MECHANISMS[kind], np.array([0, 1, 2, 3, 3])
    values = all_published(mechanism)
    logp = mechanism.logp(values, counts[:, None]).eval(mode="FAST_COMPILE")
    p = np.exp(logp)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-13)
    n_draws = 3000
    shape = (n_draws, len(counts))
    drawn = mechanism.release(np.broadcast_to(counts, shape), random_seed=3)
    statistic = pt.as_tensor(np.broadcast_to(counts, shape))
    predicted = pm.draw(mechanism._random(statistic, None), random_seed=4, mode="FAST_COMPILE")
    for releases in (np.ma.filled(drawn.astype(float), -np.inf), predicted):
        shares = np.mean(releases[..., None] == values, axis=0)
        error = np.sqrt(p * (1 - p) / n_draws)
        assert np.all(np.abs(shares - p) <= 5 * error)
        assert not np.all(np.abs(shares[::-1] - p) <= 5 * error)  # of other counts


@pytest.mark.parametrize("kind", MECHANISMS)
def test_a_release_is_refused_if_no_count_gives_it(kind):
    mechanism, counts = MECHANISMS[kind], np.arange(80 if kind != "by a matrix" else 4)
    values = all_published(mechanism)
    p = np.exp(mechanism.logp(values, counts[:, None]).eval(mode="FAST_COMPILE"))
    for value, possible in zip(values, p.any(axis=0), strict=True):
        published = np.array([values[p.any(axis=0)][-1], value])
        if possible:
            mechanism.check_released("n", published)
        else:
            with pytest.raises(ValueError, match="'n': "):
                mechanism.check_released("n", published)


def test_the_message_says_which_cell_and_by_what():
    with pytest.raises(ValueError, match=r"'n': 4 was released, which RandomRounding.*index 1"):
        ROUNDING.check_released("n", np.array([3, 4]))
    larger = TransitionMechanism([[0.5, 0.5], [0.5, 0.5]], differences=[0, 1])
    larger.check_released("n", np.array([1]))
    with pytest.raises(ValueError, match=r"2 was released.* above 1, the largest.*index 1"):
        larger.check_released("n", np.array([1, 2]))


def test_what_is_no_count_is_impossible():
    statistic = np.array([-1.0, 2.5, np.nan, np.inf, 3.0, 2.0**60])
    logp = ROUNDING.logp(3, statistic).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(np.isfinite(logp), [0, 0, 0, 0, 1, 0])
    logp = ROUNDING.logp(np.array([3.0, 2.5]), 3).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(np.isfinite(logp), [1, 0])
    logp = SMALL.logp(3, np.array([3, 4])).eval(mode="FAST_COMPILE")
    np.testing.assert_array_equal(np.isfinite(logp), [1, 0])
    with pytest.raises(ValueError, match=r"whole numbers from 0 up to 3"):
        SMALL.release([3, 4])
    with pytest.raises(ValueError, match=r"whole numbers from 0: 1 of 2 .*index 0"):
        ROUNDING.release([0.5, 4])
    released = SMALL._random(pt.as_tensor([4]), None)
    with pytest.raises(AssertionError, match="true counts must be whole numbers"):
        pm.draw(released, mode="FAST_COMPILE")
    with pm.Model(), pytest.raises(ValueError, match=r"the statistic is a mean"):
        ROUNDING.potential("rounded", pm.Normal("x", shape=3).sum(), released=3)


def test_large_counts_keep_their_remainder():
    counts = np.array([10**15, 10**15 + 1, 2**53 - 1])
    for dtype in (int, float):
        logp = ROUNDING.logp(3 * (counts // 3), counts.astype(dtype)).eval(mode="FAST_COMPILE")
        expected = np.array([1, 2 / 3, 1 / 3])[counts % 3]
        np.testing.assert_allclose(np.exp(logp), expected, rtol=1e-14)


def test_there_is_no_privacy_budget():
    assert repr(ROUNDING) == "RandomRounding(base=3, no privacy budget)"
    assert ROUNDING.budget is None
    with pytest.raises(ValueError, match="keeps no privacy budget"):
        RandomRounding(3, budget=PureDP(1.0))


@pytest.mark.parametrize("how", ["potential", "observe"])
def test_a_model_has_the_law_as_it_is(how):
    released = [0, 3, 6]
    with pm.Model() as model:
        n = pm.Poisson("n", 2.0, shape=3)
        getattr(ROUNDING, how)("rounded", n, released=released)
    log_density = model.compile_logp(mode="FAST_COMPILE")
    prior = pm.logp(pm.Poisson.dist(2.0), np.array([1, 2, 4])).eval(mode="FAST_COMPILE").sum()
    at = log_density({"n": np.array([1, 2, 4])})
    assert at == pytest.approx(prior + np.log([2 / 3, 2 / 3, 1 / 3]).sum(), rel=1e-13)
