"""Which statistics hold fractions, and can't get noise that is for whole numbers."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.mechanisms import DiscreteGaussianMechanism, DiscreteLaplaceMechanism
from pymc_dapper.mechanisms.whole import has_fractions

COUNTS, NUMBERS = pt.lvector("counts"), pt.dvector("numbers")


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        (COUNTS.sum(), False),
        (COUNTS.astype("float64").sum(), False),
        (COUNTS.mean(), True),
        (2 + (COUNTS / 3).sum(), True),
        (pt.stack([COUNTS.sum() / 2, pt.constant(1.0)]), True),
        (pm.Normal.dist(shape=3).sum(), True),
        (pm.Poisson.dist(3, shape=3).sum(), False),
        (pt.round(COUNTS / 3), False),
        # Not known: these may be whole.
        (NUMBERS.sum(), False),
        (np.arange(3.0) @ NUMBERS, False),
    ],
)
def test_quotients_and_real_draws_hold_fractions(statistic, expected):
    assert has_fractions(statistic) == expected


@pytest.mark.parametrize("kind", [DiscreteLaplaceMechanism, DiscreteGaussianMechanism])
@pytest.mark.parametrize("how", ["potential", "observe"])
def test_integer_noise_on_a_mean_is_refused(kind, how):
    with pm.Model():
        k = pm.Categorical("k", np.ones(3) / 3, shape=4)
        x = pm.Normal("x", 0.0, 1.0, shape=4)
        for name, statistic in {
            "mean": k.mean(),
            "share": pt.eye(3)[k].sum(axis=0)[:2] / 4,
            "sum": pt.clip(x, 0, 1).sum(),
            "both": pt.stack([k.sum().astype("float64"), x.sum()]),
        }.items():
            released = np.zeros(statistic.type.shape)
            with pytest.raises(ValueError, match=f"'{name}': .* adds integer noise to integers"):
                getattr(kind(1.0), how)(name, statistic, released=released)
        for name, statistic in {
            "counts": pt.eye(3)[k].sum(axis=0),
            "above": (x > 0).sum(),
            "whole": pt.round(x.sum()),
            "pairs": pt.round(k.sum() / 2).astype("int64"),
        }.items():
            getattr(kind(1.0), how)(name, statistic, released=np.zeros(statistic.type.shape))
