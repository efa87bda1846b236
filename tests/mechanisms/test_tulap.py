"""Tulap noise: what it is calibrated to. The rest is tested with other additive noise."""

import pytest

from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.mechanisms import TulapMechanism
from pymc_dapper.statistics import counts, histogram


def test_tulap_noise_takes_the_sensitivity_of_a_count():
    one = histogram([0.5], [0, 1]).sensitivity
    assert TulapMechanism.calibrate(PureDP(1), sensitivity=one).privacy_loss(sensitivity=one)
    with pytest.raises(ValueError, match="of sensitivity 1, got 2"):
        TulapMechanism.calibrate(
            PureDP(1), sensitivity=counts([0], 3, neighbours="replace").sensitivity
        )
    with pytest.raises(ValueError, match="needs the L1"):
        TulapMechanism.calibrate(PureDP(1), sensitivity=one.l2)


@pytest.mark.parametrize(
    ("budget", "error", "message"),
    [
        (ZCDP(1), TypeError, "TulapMechanism needs a PureDP budget, got ZCDP"),
        (0.5, TypeError, "TulapMechanism needs a PureDP budget, got 0.5"),
        (PureDP(1e-17), ValueError, "rounds to 1: use DiscreteLaplace"),
        (ApproxDP(1e-17, 1e-6), ValueError, "rounds to 1"),
        (PureDP(1000), ValueError, "rounds to 0"),
    ],
)
def test_budgets_that_tulap_noise_cannot_keep_are_refused(budget, error, message):
    with pytest.raises(error, match=message):
        TulapMechanism.calibrate(budget)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TulapMechanism(1.2), ValueError, r"b must be within \(0, 1\)"),
        (lambda: TulapMechanism(True), TypeError, "b must be a number"),
        (lambda: TulapMechanism(0.5, "0"), TypeError, "q must be a number"),
        (
            lambda: TulapMechanism.calibrate(PureDP(1.0), sensitivity=2),
            ValueError,
            "of sensitivity 1",
        ),
    ],
)
def test_nonsense_is_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()
