"""Rounded and clamped releases keep their digits, at any scale: against mpmath."""

from functools import cached_property

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from scipy.stats import norm

from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TulapMechanism,
)
from tests.long_cases import one_in_three
from tests.mechanisms import exact_noise as exact

SCALES = [1e-300, 1e-20, 0.01, 0.3, 1.0, 1.999, 2.0, 6.32, 50.0, 1e3, 1e6, 1e8, 1e17, 1e100, 1e300]
AWAY = [0.0, 0.2, 0.4999, 0.5, 0.7, 1.0, 1.5, 2.0, 1e3, 1e6, 1e8, 1e17]
IN_SCALES = [1e-3, 0.3, 1.0, 5.0, 20.0, 300.0, 1e4]
WHOLE = [0, 1, 2, 3, 10, 1000, 10**6, 10**8, 10**17]
B = [1e-300, 1e-8, 0.3, 0.6, 0.999, 1 - 1e-9, 1 - 2**-53]


def points(scales, away, in_scales, whole=False):
    """All scales, each with distances that are large and small beside it."""
    pairs = []
    for scale in scales:
        distances = {float(d) for d in away} | {d * scale for d in in_scales}
        if whole:
            distances = {float(round(d)) for d in distances if d < 2.0**60}
        pairs += [(scale, sign * d) for d in sorted(distances) for sign in (1.0, -1.0)]
    return np.array(pairs).T


class Case:
    """Releases of 0, given statistics and a noise scale for each; and the exact answer."""

    def __init__(self, make, law, grid, answer):
        self.scale, self.statistic = grid
        self.mechanism, self.law, self.answer = make(self.scale), law, answer

    def graph(self, statistic):
        return self.mechanism.logp(np.zeros(self.statistic.size, dtype="int64"), statistic)

    @cached_property
    def exact(self):
        laws = {scale: self.law(scale) for scale in np.unique(self.scale)}
        pairs = zip(self.scale, self.statistic, strict=True)
        return np.array([self.answer(laws[scale], exact.mpf(x)) for scale, x in pairs])


def cell(law, statistic):
    return law.log_cell(statistic)


def at_most(limit):
    """Log-probability that the noisy statistic is at most a limit, where clamping moves it to 0."""
    return lambda law, statistic: law.log_tail(limit - statistic)


def between(first, last):
    """Log-probability that the noisy statistic is between two ends, which are released as 0."""
    return lambda law, statistic: law.log_between(first - statistic, last - statistic)


FEW = [1e-20, 0.3, 1.0, 6.32, 50.0, 1e3, 1e8, 1e300]
FEW_REAL = points(FEW, [0.0, 0.2, 2.5, 7.0, 1e6], [0.3, 5.0, 20.0, 1e4])
FEW_INTEGERS = points(FEW, [0, 1, 3, 4, 1000, 10**6], [0.3, 5.0, 20.0, 1e4], whole=True)
REAL = points(SCALES, AWAY, IN_SCALES)
INTEGERS = points(SCALES, WHOLE, IN_SCALES, whole=True)
TULAP = points(B, [*AWAY[:-4], 37.3, 1e3], [])
CUT = points(B, AWAY[:-4], [])
FROM_0 = (0, None)
CASES = {
    "Laplace, rounded": Case(lambda s: LaplaceMechanism(s).rounded(), exact.Laplace, REAL, cell),
    "Laplace, clamped": Case(
        lambda s: LaplaceMechanism(s).clamped(*FROM_0), exact.Laplace, REAL, at_most(0)
    ),
    "Laplace, rounded and clamped": Case(
        lambda s: LaplaceMechanism(s).rounded().clamped(*FROM_0),
        exact.Laplace,
        REAL,
        at_most(exact.HALF),
    ),
    "Gaussian, rounded": Case(lambda s: GaussianMechanism(s).rounded(), exact.Gaussian, REAL, cell),
    "Gaussian, clamped": Case(
        lambda s: GaussianMechanism(s).clamped(*FROM_0), exact.Gaussian, REAL, at_most(0)
    ),
    "Gaussian, rounded and clamped": Case(
        lambda s: GaussianMechanism(s).rounded().clamped(*FROM_0),
        exact.Gaussian,
        REAL,
        at_most(exact.HALF),
    ),
    "Tulap, rounded": Case(lambda b: TulapMechanism(b).rounded(), exact.Tulap, TULAP, cell),
    "Tulap, clamped": Case(
        lambda b: TulapMechanism(b).clamped(*FROM_0), exact.Tulap, TULAP, at_most(0)
    ),
    "Tulap, rounded and clamped": Case(
        lambda b: TulapMechanism(b).rounded().clamped(*FROM_0),
        exact.Tulap,
        TULAP,
        at_most(exact.HALF),
    ),
    "cut Tulap, rounded": Case(
        lambda b: TulapMechanism(b, 0.05).rounded(),
        lambda b: exact.Tulap(b, 0.05),
        CUT,
        cell,
    ),
    "discrete Laplace, clamped": Case(
        lambda s: DiscreteLaplaceMechanism(s).clamped(*FROM_0),
        exact.DiscreteLaplace,
        INTEGERS,
        at_most(0),
    ),
    "discrete Gaussian, clamped": Case(
        lambda s: DiscreteGaussianMechanism(s).clamped(*FROM_0),
        exact.DiscreteGaussian,
        INTEGERS,
        at_most(0),
    ),
}
for noise in ("Laplace", "Gaussian"):
    kind, law = globals()[f"{noise}Mechanism"], getattr(exact, noise)
    CASES |= {
        f"{noise}, {what}": Case(lambda s, f=rule, k=kind: f(k(s)), law, FEW_REAL, between(*ends))
        for what, rule, ends in [
            ("to fives", lambda m: m.rounded(5), (-2.5, 2.5)),
            ("down to fives", lambda m: m.rounded(5, ties="down"), (0, 5)),
            ("to fives, from 1", lambda m: m.published_if(">=", 1).rounded(5), (1, 2.5)),
            ("to fives of 1/4", lambda m: m.times(4).rounded(5), (-0.625, 0.625)),
        ]
    }
    kind, law = globals()[f"Discrete{noise}Mechanism"], getattr(exact, f"Discrete{noise}")
    CASES |= {
        f"discrete {noise}, {what}": Case(
            lambda s, f=rule, k=kind: f(k(s)), law, FEW_INTEGERS, between(*ends)
        )
        for what, rule, ends in [
            ("to fives", lambda m: m.rounded(5), (-2, 2)),
            ("to fours", lambda m: m.rounded(4), (-2, 2)),
            ("down to hundreds", lambda m: m.rounded(100, ties="down"), (0, 99)),
            ("to fives, from 1", lambda m: m.published_if(">", 0).rounded(5), (1, 2)),
        ]
    }


# In long runs, of each noise: the form with most formulas, and the one between any two ends. One
# function each, as numba takes far longer for one that is as long as all of them. For PyMC's own
# mode: `test_discrete_gaussian.py`.
COMPILED = [
    *(f"{noise}, rounded and clamped" for noise in ("Laplace", "Gaussian", "Tulap")),
    "cut Tulap, rounded",
    *(f"discrete {noise}, clamped" for noise in ("Laplace", "Gaussian")),
    *(name for name in CASES if name.endswith("to fives, from 1")),
]
MODES = [
    *one_in_three([(name, "FAST_COMPILE") for name in CASES]),
    *(pytest.param(name, numba_mode(None), marks=pytest.mark.long) for name in COMPILED),
]


def keeps_digits(values, answer):
    with np.errstate(invalid="ignore"):
        return (np.abs(values - answer) <= 1e-12 * np.abs(answer) + 1e-300) | (values == answer)


@pytest.mark.parametrize(("name", "mode"), MODES)
def test_log_probabilities_keep_their_digits(name, mode):
    case, statistic = CASES[name], pt.dvector("statistic")
    evaluate = pytensor.function([statistic], case.graph(statistic), mode=mode)
    with np.errstate(all="ignore"):
        computed = evaluate(case.statistic)
    assert keeps_digits(computed, case.exact).all()


def test_a_difference_of_cdfs_would_be_noticed():
    case = CASES["Gaussian, rounded"]
    distance, sigma = np.abs(case.statistic), case.scale
    with np.errstate(all="ignore"):
        mass = norm.sf((distance - 0.5) / sigma) - norm.sf((distance + 0.5) / sigma)
        kept = keeps_digits(np.log(mass), case.exact)
    assert np.any(~kept & (sigma == 1e6))
    assert np.all(kept[(sigma == 0.3) & (distance == 1.0)])


@pytest.mark.parametrize(
    ("released", "statistic", "scale", "clamp"),
    [
        (10**8, 0, 1e8, None),
        (10**17, 0, 1e17, None),
        (10**18 + 3, 10**18, 2.0, None),
        (10**17, 10**17 + 3, 5.0, (10**17, None)),
        (10**17, 10**17 - 3, 5.0, (None, 10**17)),
    ],
)
@pytest.mark.parametrize(
    ("kind", "law"), [(LaplaceMechanism, exact.Laplace), (GaussianMechanism, exact.Gaussian)]
)
def test_large_whole_numbers_keep_theirs(kind, law, released, statistic, scale, clamp):
    mechanism = kind(scale).rounded()
    mechanism = mechanism.clamped(*clamp) if clamp else mechanism
    logp = mechanism.logp(released, statistic).eval(mode="FAST_COMPILE")
    distance = exact.mpf(abs(released - statistic))
    answer = law(scale).log_tail(exact.HALF - distance) if clamp else law(scale).log_cell(distance)
    assert keeps_digits(logp, answer)


@pytest.mark.parametrize(
    "make",
    [
        lambda s: LaplaceMechanism(s).rounded().clamped(0, None),
        lambda s: GaussianMechanism(s).rounded().clamped(0, None),
        lambda s: GaussianMechanism(s).rounded(),
    ],
)
def test_derivatives_are_finite_whichever_formula_is_chosen(make):
    scale, statistic = points([0.01, 1.999, 2.0, 1e8], AWAY[:-3], IN_SCALES[:-1])
    x = pt.dvector("x")
    logp = make(scale).logp(np.zeros(scale.size, dtype="int64"), x)
    gradient = pt.grad(logp.sum(), x).eval({x: statistic}, mode="FAST_COMPILE")
    assert np.isfinite(gradient).all()
