import mbi
import numpy as np
import pytest
from scipy import stats

from pymc_dapper import Query
from pymc_dapper.releases import read_measurements
from tests.libraries.compared import RECORDS, assert_posterior

DOMAIN = mbi.Domain(("ill", "sex"), (2, 2), (("no", "yes"), ("f", "m")))
SEX = np.arange(RECORDS.size) % 2
DATA = mbi.Dataset({"ill": RECORDS, "sex": SEX}, DOMAIN)
SIGMA = 3.0


def measured(clique, rng):
    marginal = np.asarray(DATA.project(clique).datavector(), dtype=float)
    return mbi.LinearMeasurement(marginal + rng.normal(0, SIGMA, marginal.size), clique, SIGMA)


def test_marginals_are_those_of_the_data():
    rng = np.random.default_rng(1)
    given = [measured(clique, rng) for clique in (("ill", "sex"), ("sex",), ("sex", "ill"), ())]
    release = read_measurements(given, DOMAIN)
    assert release.names == ("ill * sex", "sex", "sex * ill", "total")
    assert release.coords == {"ill": ("no", "yes"), "sex": ("f", "m")}
    table = np.zeros((2, 2))
    np.add.at(table, (RECORDS, SEX), 1)
    margins = release.margins(table, ("ill", "sex"))
    for query in release:
        assert query.mechanism.sigma == SIGMA
        assert np.all(np.abs(query.values - margins[query.name]) < 5 * SIGMA)
        assert query.values.shape == margins[query.name].shape
    # private-pgm's own loss, of the same measurements and at the same table, is the log-density.
    factor = mbi.Factor(DOMAIN, table)
    for query, each in zip(release, given, strict=True):
        residual = np.asarray(each.query(factor.project(each.clique))) - each.noisy_measurement
        np.testing.assert_allclose(
            np.ravel(margins[query.name] - query.values), residual, atol=1e-4
        )


def test_other_functions_of_a_marginal_are_refused():
    given = measured(("ill",), np.random.default_rng(1)).compress({"ill": np.array([0, 0])}, DOMAIN)
    with pytest.raises(ValueError, match="'ill': its query is another function"):
        read_measurements([given], {"ill": 1})


def test_a_release_becomes_its_posterior():
    given = measured(("ill",), np.random.default_rng(2))
    [query] = read_measurements([given], DOMAIN)
    value = float(query.values[1])
    assert_posterior(
        Query("released", value, query.mechanism),
        lambda counts, sigma: stats.norm(counts, sigma).pdf(value),
        SIGMA,
    )
