"""Standard deviations of noise, from its log-density."""

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.view import view_of
from pymc_dapper.plausibility.find import find_releases
from pymc_dapper.plausibility.noise_law import NoiseLaw
from tests.plausibility.ways import (
    RELEASED,
    applicants,
    by_hand,
    check,
    clamped,
    discrete,
    laplace,
)


def test_the_distance_is_in_standard_deviations_of_the_noise():
    expected = {by_hand: 4.0, laplace: 4 * 2**0.5, discrete: 4.0, clamped: 4.0}
    for way, sd in expected.items():
        model = applicants(way, RELEASED)
        [release] = find_releases(view_of(model), [model.rvs_to_values[model["record"]]])
        np.testing.assert_allclose(NoiseLaw(release.noise, (4,)).deviations, sd, rtol=0.02)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_any_scale_of_the_noise(scale):
    def way(table, released):
        pmd.GaussianMechanism(4.0 * scale).potential("privacy", scale * table, released=released)

    check(applicants(way, scale * RELEASED))
    with pytest.warns(UserWarning, match=r"is 22\d noise standard deviations"):
        check(applicants(way, 10 * scale * RELEASED))
