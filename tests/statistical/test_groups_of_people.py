"""Two groups of people of different numbers, in releases of their own or in one total.

Everything is normal: the exact posterior of parameters is, too.
"""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from tests import broken
from tests.quadrature import linear_gaussian, normals
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare

pytestmark = pytest.mark.long

N = 4, 7
PRIOR_SD, NOISE = 1.5, 2.0
APART, TOGETHER = np.eye(2), np.ones((1, 2))
RELEASED = {"apart": [6.1, -3.2], "together": [4.4]}
SEEN = {"apart": APART, "together": TOGETHER}


def model_of(way):
    """The second group's mean differs by an effect."""
    with pm.Model() as model:
        mu, effect = pm.Normal("mu", 0, PRIOR_SD), pm.Normal("effect", 0, PRIOR_SD)
        x = [pm.Normal(f"x{k}", mu + k * effect, 1, shape=n) for k, n in enumerate(N)]
        totals = [each.sum() for each in x]
        mechanism = pmd.GaussianMechanism(NOISE)
        for k, (seen, released) in enumerate(zip(SEEN[way], RELEASED[way], strict=True)):
            total = sum(each for each, is_seen in zip(totals, seen, strict=True) if is_seen)
            mechanism.potential(f"release{k}", total, released=released)
    return model


def exact_of(way):
    # The state is (mu, effect); a total of n people has their own spread, too.
    sees = SEEN[way] @ np.array([[N[0], 0.0], [N[1], N[1]]])
    spread = SEEN[way] @ np.diag(N) @ SEEN[way].T + NOISE**2 * np.eye(len(sees))
    mean, cov, _ = linear_gaussian(
        np.zeros(2), PRIOR_SD**2 * np.eye(2), sees, spread, np.array(RELEASED[way])
    )
    return dict(zip(("mu", "effect"), normals(mean, cov), strict=True))


@pytest.mark.parametrize(
    ("way", "interweave"),
    [
        # Both groups are moved with their parameters as those are that one total is of.
        ("apart", True),
        ("apart", False),
        ("together", True),
        ("together", False),
    ],
)
def test_parameters_given_two_groups(way, interweave):
    model = model_of(way)
    given = None if way == "apart" else [model["x0"], model["x1"]]
    steps = pmd.assign_steps(given, model=model, interweave=interweave, progressbar=False)
    records = [x.name for step in steps if isinstance(step, pmd.DapperStep) for x in step.vars]
    assert records == ["x0", "x1"]
    assert_agrees(compare(model, steps, exact_of(way), draws=12_000))


@pytest.mark.parametrize("way", RELEASED)
def test_a_sweep_without_the_release_is_detected(way):
    model = model_of(way)
    broken_step = broken.broken_step(broken.SEPARABLE_ONLY)
    steps = [
        pmd.DapperStep([model["x0"]], model=model),
        broken_step([model["x1"]], model=model),
    ]
    assert_disagrees(compare(model, steps, exact_of(way), draws=FEW))
