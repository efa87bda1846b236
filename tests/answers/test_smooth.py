"""The smooth prior: its two parameters marginalised, against dense quadrature."""

import numpy as np
import pytest
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.answers import smooth
from pymc_dapper.answers.law import law_of
from pymc_dapper.answers.sharing import SharingCells
from pymc_dapper.answers.smooth import grid_of, log_marginal, log_pmf
from pymc_dapper.answers.windows import LARGEST, Support, tabulate

RELEASED = np.array([14.0, 22.0, 9.0, 31.0, 18.0, 40.0])
SCALE = 4.0
COUNTS = np.arange(150)
CLOSE = 1e-3 * np.sqrt(2) * SCALE
"""A thousandth of the noise's standard deviation."""


def tables():
    query = pmd.Query("cases", RELEASED, pmd.LaplaceMechanism(SCALE))
    return tabulate(law_of(query, whole=True), Support(0, LARGEST, True), pieces=None)


def means_given(alpha, mu):
    """Log-evidence, and the mean of each cell, by SciPy's laws."""
    law = np.exp(-np.abs(RELEASED[:, None] - COUNTS) / SCALE)
    joint = law * stats.nbinom.pmf(COUNTS, alpha, alpha / (alpha + mu))
    total = joint.sum(axis=1)
    return np.log(total).sum(), joint @ COUNTS / total


DENSE = [(a, m) for a in np.linspace(-6, 23, 59) for m in np.linspace(np.log(3), np.log(150), 45)]


@pytest.fixture(scope="module")
def dense():
    """Log-evidence and means of cells, on a fine grid over everything."""
    evidence, means = zip(*(means_given(*np.exp(point)) for point in DENSE), strict=True)
    return np.array(evidence), np.array(means)


def means_under(density, dense):
    """Posterior means of all cells, by their log-density of log alpha."""
    logs = dense[0] + np.array([density(a) for a, _ in DENSE])
    weights = np.exp(logs - logs.max())
    return weights @ dense[1] / weights.sum()


def half_cauchy(a):
    """Log-density of log alpha, where 1 / sqrt(alpha) is half-Cauchy."""
    return stats.halfcauchy.logpdf(np.exp(-a / 2)) - a / 2


def means_by_grid():
    grid = grid_of(SharingCells(tables()).log_evidence, (0.5, np.log(20.0)))
    points = zip(grid.alpha, grid.mu, strict=True)
    return grid.weights @ np.array([means_given(*point)[1] for point in points])


def test_the_grid_is_as_good_as_dense_quadrature(dense):
    found = means_by_grid()
    assert np.abs(found - means_under(half_cauchy, dense)).max() < CLOSE
    # Another prior of the spread is seen, such as that without the Jacobian.
    wrong = means_under(lambda a: half_cauchy(a) + a / 2, dense)
    assert np.abs(found - wrong).max() > CLOSE


def test_steps_of_the_grid_are_halved_until_they_are_short_enough(dense, monkeypatch):
    exact = means_under(half_cauchy, dense)
    monkeypatch.setattr(smooth, "_lengths", lambda log_density, mode: np.array([9.0, 2.0]))
    assert np.abs(means_by_grid() - exact).max() < CLOSE
    monkeypatch.setattr(smooth, "ALIKE", np.inf)
    assert np.abs(means_by_grid() - exact).max() > CLOSE


@pytest.mark.parametrize(
    "released", [(3.2, -5.1, 0.4), (0.3, -0.2, 41.0)], ids=["all near zero", "but one"]
)
def test_counts_near_zero_leave_a_ridge_that_the_grid_holds(released, monkeypatch):
    released, counts = np.array(released), np.arange(160)
    query = pmd.Query("cases", released, pmd.LaplaceMechanism(SCALE))
    found = tabulate(law_of(query, whole=True), Support(0, LARGEST, True), pieces=None)
    law = np.exp(-np.abs(released[:, None] - counts) / SCALE)

    def means_over(log_alpha, mu):
        """Log-density and means over an axis of mu, by SciPy's law."""
        alpha = np.exp(log_alpha)
        pmf = stats.nbinom.pmf(counts[:, None], alpha, alpha / (alpha + mu))
        seen = law @ pmf
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(seen).sum(axis=0) + half_cauchy(log_alpha), (law * counts) @ pmf / seen

    mu = np.exp(np.linspace(np.log(0.1), np.log(1e12), 250))
    logs, means = zip(*(means_over(a, mu) for a in np.linspace(-12, 23, 120)), strict=True)
    weights = np.exp(np.array(logs) - np.max(logs))
    weights[[0, -1]] /= 2
    weights[:, [0, -1]] /= 2
    exact = np.einsum("am,acm->c", weights, np.nan_to_num(means)) / weights.sum()

    def error():
        grid = grid_of(SharingCells(found).log_evidence, (0.5, 0.0))
        of_points = [
            means_over(np.log(a), np.array([m]))[1][:, 0] for a, m in np.transpose(grid[:2])
        ]
        return np.abs(grid.weights @ np.array(of_points) - exact).max()

    assert error() < CLOSE
    # A grid that ends too soon is seen.
    monkeypatch.setattr(smooth, "DROP", 1.0)
    assert error() > 5 * CLOSE


@pytest.mark.parametrize("alpha", [1e-4, 0.7, 30.0, 1e5, 1e7, 1e9])
def test_the_law_of_counts_keeps_its_digits(alpha):
    counts = np.array([0, 1, 2, 10, 150, 4000])
    import mpmath

    def exact(k):
        with mpmath.workdps(50):
            p = mpmath.mpf(alpha) / (mpmath.mpf(alpha) + 150)
            return float(
                mpmath.loggamma(k + mpmath.mpf(alpha))
                - mpmath.loggamma(mpmath.mpf(alpha))
                - mpmath.loggamma(k + 1)
                + alpha * mpmath.log(p)
                + k * mpmath.log1p(-p)
            )

    np.testing.assert_allclose(
        log_pmf(counts, np.array(alpha), np.array(150.0)),
        [exact(int(k)) for k in counts],
        rtol=1e-8,
        atol=1e-8,
    )


def test_the_mean_stays_unchanged_if_it_does_not_matter():
    grid = grid_of(lambda alpha, mu: -((np.log(alpha) - 1) ** 2), (0.5, 3.0), free_mean=False)
    assert np.allclose(grid.mu, np.exp(3.0))
    assert len(grid.alpha) > 5


@pytest.mark.parametrize("total", [None, 12])
def test_the_probability_of_tables_has_both_parameters_marginalised(total):
    tables = np.array([[4, 12, 0], [4, 0, 6], [4, 0, 6]])
    axes = np.linspace(-12, 23, 300), np.linspace(np.log(0.1), np.log(1e12), 300)
    a, mu = np.exp(np.meshgrid(*axes, indexing="ij"))
    exact = []
    for table in tables.T:
        with np.errstate(divide="ignore"):
            if total is None:
                logs = sum(stats.nbinom.logpmf(x, a, a / (a + mu)) for x in table)
            else:
                alpha = np.exp(axes[0])[:, None]
                logs = stats.dirichlet_multinomial(alpha * np.ones(3), 12).logpmf(table)[:, None]
        exact.append(np.logaddexp.reduce(logs + half_cauchy(axes[0])[:, None], axis=None))
    found = np.diff(log_marginal(tables, total))
    np.testing.assert_allclose(found, np.diff(exact), atol=0.01)
    # Without the prior of the concentration it would be another one.
    assert np.abs(found - np.diff(exact)).max() < 0.1 * np.abs(np.diff(exact)).max()
