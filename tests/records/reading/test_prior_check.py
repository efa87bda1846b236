"""Priors that tie records together are refused, and those that only look so are read."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper import ReadingError
from tests.records.priors import N, made_of_normals, normal, read


def cumulative_sum():
    return made_of_normals(pt.cumsum)


def cumulative_sum_of_gammas():
    def dist(rate, size):
        return pt.cumsum(pm.Gamma.dist(2, rate, size=size))

    return [pm.CustomDist("x", pm.HalfNormal("rate"), dist=dist, shape=N)]


def cumulative_sum_of_another_record():
    def dist(x, size):
        return pm.Normal.dist(pt.cumsum(x), 1, size=size)

    x = pm.Normal("x", shape=N)
    return [x, pm.CustomDist("y", x, dist=dist, shape=N)]


def density_of_deviations():
    return made_of_normals(lambda z: z, logp=lambda value, mu: normal(value - value.mean(), mu))


def one_density_of_all():
    return made_of_normals(lambda z: z, logp=lambda value, mu: -(((value - mu).sum()) ** 2))


def draws_with_a_mean_of_zero():
    return made_of_normals(lambda z: z - z.mean(), logp=normal)


def draws_in_order():
    return made_of_normals(lambda z: pt.sort(pt.atleast_1d(z)).reshape(z.shape), logp=normal)


def draws_with_a_number_in_common():
    return made_of_normals(lambda z: z + pm.Normal.dist(0, 1), logp=normal)


TIED_BY_DENSITY = [
    cumulative_sum,
    cumulative_sum_of_gammas,
    cumulative_sum_of_another_record,
    density_of_deviations,
    one_density_of_all,
]
TIED_BY_DRAWS = [draws_with_a_mean_of_zero, draws_in_order, draws_with_a_number_in_common]


@pytest.mark.parametrize("build", TIED_BY_DENSITY)
def test_a_density_that_ties_records_is_refused(build):
    name = "y" if build is cumulative_sum_of_another_record else "x"
    with pytest.raises(ReadingError, match=f"prior of '{name}' ties records together: the density"):
        read(build)


@pytest.mark.parametrize("build", TIED_BY_DRAWS)
def test_draws_that_are_tied_are_refused(build):
    with pytest.raises(ReadingError, match="the prior of 'x' ties records together: the draw"):
        read(build)


def one_number_as_density():
    return made_of_normals(lambda z: z, logp=lambda value, mu: normal(value, mu).sum())


def series_of_each_record():
    init = pm.Normal.dist(0, 1)
    return [pm.GaussianRandomWalk("x", pm.Normal("mu"), 1, init_dist=init, shape=(N, 3))]


def rows_that_add_up_to_zero():
    return [pm.ZeroSumNormal("x", sigma=pm.HalfNormal("sigma"), shape=(N, 3))]


def correlated_rows():
    cov = np.array([[1.0, 0.6], [0.6, 2.0]])
    return [pm.MvNormal("x", pm.Normal("mu", shape=2), cov=cov, shape=(N, 2))]


def a_record_made_of_two_numbers():
    return made_of_normals(lambda z: z + pm.Normal.dist(0, 1, size=z.shape), logp=normal)


@pytest.mark.parametrize(
    "build",
    [
        one_number_as_density,
        series_of_each_record,
        rows_that_add_up_to_zero,
        correlated_rows,
        a_record_made_of_two_numbers,
    ],
)
def test_records_that_only_look_tied_are_read(build):
    assert read(build).n_records == N


@pytest.mark.parametrize("kept", ["a constant", "shared data"])
@pytest.mark.parametrize("mended", [False, True])
def test_a_missing_covariate_is_told(kept, mended):
    def build():
        missing = np.where(np.arange(N) == 2, np.nan, 0.5)
        if kept == "a constant":
            z = pt.constant(missing)
        else:
            z = pm.Data("z", np.ones(N))
            z.set_value(missing)
        at = pt.switch(pt.isnan(z), 0.0, z) if mended else z
        return [pm.Bernoulli("x", logit_p=pm.Normal("slope") * at, shape=N)]

    if mended:
        read(build)
    else:
        with pytest.raises(ReadingError, match=r"'x' has no value.* nan, the first at \(2,\)"):
            read(build)


@pytest.mark.parametrize("kept", ["a constant", "shared data"])
@pytest.mark.parametrize("mended", [False, True])
def test_a_missing_number_that_a_record_may_pick_is_told(kept, mended):
    def build():
        numbers = np.array([[1.0, 2.0], [np.nan, 1.0], [2.0, 3.0]])
        if kept == "a constant":
            table = pt.constant(numbers)
        else:
            table = pm.Data("table", np.ones((3, 2)))
            table.set_value(numbers)
        if mended:
            table = pt.switch(pt.isnan(table), 0.0, table)
        x = pm.Categorical("x", pm.Dirichlet("p", np.ones(3)), shape=N)
        return [x, pm.Normal("y", table[x][:, 0], 1, shape=N)]

    if mended:
        read(build)
    else:
        with pytest.raises(ReadingError, match=r"'x', 'y' pick from .* nan, the first at \(1, 0\)"):
            read(build)
