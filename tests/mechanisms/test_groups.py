"""Groups of records, each with a sensitivity of its own."""

from dataclasses import astuple

import numpy as np
import pytest

from pymc_dapper.budget import ZCDP, PureDP
from pymc_dapper.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from pymc_dapper.statistics import clamped_sum

_GAUSSIAN = (GaussianMechanism, DiscreteGaussianMechanism)


@pytest.mark.parametrize(
    ("kind", "budget"),
    [
        (LaplaceMechanism, PureDP(0.5)),
        (DiscreteLaplaceMechanism, PureDP(0.5)),
        (GaussianMechanism, ZCDP(0.5)),
        (DiscreteGaussianMechanism, ZCDP(0.5)),
    ],
)
def test_groups_of_records_have_noise_of_their_own_sensitivity(kind, budget):
    groups = [[clamped_sum([1, 2], 0, high).sensitivity] for high in (3, 50)]
    mechanism = kind.calibrate(budget, sensitivity=groups)
    noise = getattr(mechanism, "scale", getattr(mechanism, "sigma", None))
    alone = [kind.calibrate(budget, sensitivity=high) for high in (3, 50)]
    np.testing.assert_array_equal(
        noise, [[getattr(m, "scale", getattr(m, "sigma", None))] for m in alone]
    )
    assert mechanism.release(np.zeros((2, 3), dtype=int), random_seed=1).shape == (2, 3)
    spent = mechanism.privacy_loss(sensitivity=groups)
    assert astuple(spent) == pytest.approx(astuple(budget))
    # One group has twice the sensitivity: the budget spent is that of its records.
    more = mechanism.privacy_loss(sensitivity=[[3], [100]])
    assert astuple(more)[0] == pytest.approx(astuple(budget)[0] * (4 if kind in _GAUSSIAN else 2))
    with pytest.raises(ValueError, match="an array of their sensitivities"):
        mechanism.privacy_loss(sensitivity=3)
    with pytest.raises(ValueError, match="is empty"):
        kind.calibrate(budget, sensitivity=[])
    # Groups for one and the same neighbours.
    moved = clamped_sum([1, 2], 0, 3, neighbours="add_remove").sensitivity
    with pytest.raises(ValueError, match="sensitivity holds if one person joins or leaves"):
        kind.calibrate(budget, sensitivity=[[moved], [groups[1][0]]])
    with pytest.raises(ValueError, match="different neighbours"):
        mechanism.privacy_loss(sensitivity=[[moved], [groups[1][0]]])
    assert mechanism.privacy_loss(sensitivity=[[moved], [moved]]).neighbours == "add_remove"
