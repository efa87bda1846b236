"""The table posterior against brute force over records, over splits, and against quadrature."""

import math
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.special import betainc, digamma, expit, gammaln, loggamma, polygamma, xlogy
from scipy.stats import beta

from pymc_dapper.reference import KnownTablePosterior, TablePosterior, gaussian_cell_loglik
from tests.enumeration import dirichlet_posterior

LOG_ODDS_RATIO = np.array([1.0, -1.0, -1.0, 1.0])
ADMISSIONS = {"released": np.array([110, 131, 47, 110]), "sigma": 6.32, "n_records": 400}


def with_ruled_out_counts(cell_loglik):
    """Forbid an empty first cell and exactly two records in the last."""
    forbidden = cell_loglik.copy()
    forbidden[0, 0] = forbidden[-1, 2] = -np.inf
    return forbidden


THREE_CELLS = gaussian_cell_loglik((2.5, 4.1, -0.8), 1.3, 6)
FOUR_CELLS = gaussian_cell_loglik((0.4, 3.2, 1.9, 0.1), (0.8, 1.5, 2.0, 1.1), 5)
TINY_TABLES = [
    pytest.param((0.5, 1.0, 2.5), THREE_CELLS, id="3 cells, 6 records"),
    pytest.param((0.3, 1.0, 2.0, 0.7), FOUR_CELLS, id="4 cells, 5 records"),
    pytest.param((0.5, 1.0, 2.5), with_ruled_out_counts(THREE_CELLS), id="3 cells, some ruled out"),
    pytest.param(
        (0.3, 1.0, 2.0, 0.7), with_ruled_out_counts(FOUR_CELLS), id="4 cells, some ruled out"
    ),
]


def by_brute_force(alpha, cell_loglik):
    """Posterior by enumeration of every record vector."""
    cells = range(len(alpha))

    def log_mechanism(records):
        return sum(cell_loglik[k, records.count(k)] for k in cells)

    return dirichlet_posterior(alpha, cell_loglik.shape[1] - 1, log_mechanism)


def all_splits(alpha, cell_loglik):
    """Every split of N records into the cells and its posterior probability."""
    alpha = np.asarray(alpha)
    n_cells, n_records = len(alpha), cell_loglik.shape[1] - 1
    bars = combinations_with_replacement(range(n_records + 1), n_cells - 1)
    edges = np.array([(0, *inner, n_records) for inner in bars])
    splits = np.diff(edges, axis=1)
    log_weight = gammaln(alpha + splits).sum(1) - gammaln(1 + splits).sum(1)
    log_weight += cell_loglik[np.arange(n_cells), splits].sum(1)
    weight = np.exp(log_weight - log_weight.max())
    return splits, weight / weight.sum()


# The cells


@pytest.mark.parametrize(("alpha", "cell_loglik"), TINY_TABLES)
def test_counts_and_moments_agree_with_brute_force(alpha, cell_loglik):
    posterior, brute = TablePosterior(alpha, cell_loglik), by_brute_force(alpha, cell_loglik)

    np.testing.assert_allclose(posterior.count_pmf, brute.count_pmf, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(posterior.mean, brute.mean, rtol=1e-12)
    np.testing.assert_allclose(posterior.sd, brute.sd, rtol=1e-12)


@pytest.mark.parametrize(("alpha", "cell_loglik"), TINY_TABLES)
def test_cdf_and_quantiles_of_cells_agree_with_brute_force(alpha, cell_loglik):
    posterior, brute = TablePosterior(alpha, cell_loglik), by_brute_force(alpha, cell_loglik)

    for k in range(len(alpha)):
        for x in (0.0, 1e-3, 0.2, 0.9, 1.0):
            assert posterior.cell(k).cdf(x) == pytest.approx(brute.cdf(k, x), abs=1e-13)
        for q in (0.05, 0.5, 0.95):
            by_bisection = brentq(lambda x, k=k, q=q: brute.cdf(k, x) - q, 0, 1, xtol=1e-14)
            assert posterior.cell(k).quantile(q) == pytest.approx(by_bisection, rel=1e-10)


def test_brute_force_would_catch_weights_without_the_multinomial_multiplicity():
    alpha, cell_loglik = (0.5, 1.0, 2.5), THREE_CELLS
    multiplicity_cancelled = cell_loglik + gammaln(np.arange(7) + 1)

    broken = TablePosterior(alpha, multiplicity_cancelled)

    assert np.abs(broken.mean - by_brute_force(alpha, cell_loglik).mean).max() > 0.01


def test_flat_likelihood_gives_the_prior_back():
    alpha = np.array([0.3, 1.0, 2.0, 0.7])
    prior = beta(alpha, alpha.sum() - alpha)

    posterior = TablePosterior(alpha, np.zeros((4, 50)))

    np.testing.assert_allclose(posterior.mean, prior.mean(), rtol=1e-12)
    np.testing.assert_allclose(posterior.sd, prior.std(), rtol=1e-12)
    quantiles = [posterior.cell(k).quantile(0.9) for k in range(4)]
    np.testing.assert_allclose(quantiles, prior.ppf(0.9), rtol=1e-10)


def test_constants_in_the_likelihood_do_not_matter():
    posterior = TablePosterior(np.ones(3), THREE_CELLS)
    shifted = TablePosterior(np.ones(3), THREE_CELLS + np.array([[-4000.0], [2000.0], [7.0]]))

    np.testing.assert_allclose(shifted.count_pmf, posterior.count_pmf, rtol=1e-9)


def test_release_far_from_the_total_does_not_underflow():
    # Every split has a likelihood below exp(-50000): in plain floating point all are 0.
    cell_loglik = gaussian_cell_loglik((400, 400, -300, 600), 1.0, 60)

    posterior = TablePosterior(np.ones(4), cell_loglik)

    splits, probability = all_splits(np.ones(4), cell_loglik)
    np.testing.assert_allclose(posterior.count_pmf.sum(axis=1), 1, rtol=1e-9)
    np.testing.assert_allclose(
        posterior.count_pmf @ np.arange(61), probability @ splits, rtol=1e-9, atol=1e-12
    )


def test_density_of_a_cell_is_the_derivative_of_its_cdf():
    cell = TablePosterior((0.5, 1.0, 2.5), THREE_CELLS).cell(1)
    x, step = np.array([[0.05, 0.2], [0.5, 0.8]]), 1e-5

    np.testing.assert_allclose(
        cell.pdf(x), (cell.cdf(x + step) - cell.cdf(x - step)) / (2 * step), rtol=1e-6
    )
    np.testing.assert_array_equal(cell.pdf([-0.1, 1.1]), 0)


# Log-contrasts


def logit_difference_cdf(x, shapes):
    """Compute the cdf of logit(U) - logit(V) for independent Betas, by quadrature over V.

    For p ~ Dirichlet(shapes), log(p1/p2) and log(p3/p4) are just that.
    """
    a1, a2, a3, a4 = shapes

    def integrand(y):
        log_density = gammaln(a3 + a4) - gammaln(a3) - gammaln(a4) + a3 * y
        return np.exp(log_density - (a3 + a4) * np.logaddexp(0, y)) * betainc(a1, a2, expit(x + y))

    centre = digamma(a3) - digamma(a4)
    sd = math.sqrt(polygamma(1, a3) + polygamma(1, a4))
    ends = centre + sd * np.array([-40, -8, -2, 0, 2, 8, 40])
    return sum(
        quad(integrand, *piece, epsabs=1e-14, epsrel=1e-12, limit=200)[0]
        for piece in pairwise(ends)
    )


def logit_cdf(x, a, b):
    """Closed-form cdf of logit(U) for U ~ Beta(a, b), without rounding U to 1."""
    return np.where(x < 0, betainc(a, b, expit(x)), 1 - betainc(b, a, expit(-x)))


@pytest.mark.parametrize("shapes", [(1.0, 0.4), (4.0, 0.05), (0.1, 0.1), (111.5, 47.4), (3e5, 7e5)])
def test_log_odds_of_two_known_cells_have_their_closed_form(shapes):
    a, b = shapes

    odds = KnownTablePosterior((0.8 * a, 0.8 * b), (0.2 * a, 0.2 * b)).log_contrast((1, -1))

    assert odds.mean == pytest.approx(digamma(a) - digamma(b), rel=1e-12)
    assert odds.sd == pytest.approx(math.sqrt(polygamma(1, a) + polygamma(1, b)), rel=1e-12)
    x = odds.mean + odds.sd * np.linspace(-8, 8, 81)
    rounding = 4e-16 * (a + b) * math.log(2 + a + b)
    np.testing.assert_allclose(odds.cdf(x), logit_cdf(x, a, b), rtol=0, atol=1.5e-12 + rounding)


def test_log_odds_of_two_latent_cells_are_a_mixture_in_closed_form():
    alpha, cell_loglik = np.array([0.5, 2.0]), gaussian_cell_loglik((4.0, 9.0), 2.5, 15)
    splits, probability = all_splits(alpha, cell_loglik)
    a, b = (alpha + splits).T

    def closed_form(x):
        return logit_cdf(x, a, b) @ probability

    odds = TablePosterior(alpha, cell_loglik).log_contrast((1, -1))

    for x in np.linspace(-8, 4, 25):
        assert odds.cdf(x) == pytest.approx(closed_form(x), abs=3e-12)
    for q in (0.001, 0.05, 0.5, 0.95, 0.999):
        by_bisection = brentq(lambda x, q=q: closed_form(x) - q, -50, 50, xtol=1e-13)
        assert odds.quantile(q) == pytest.approx(by_bisection, abs=1e-8)


@pytest.mark.parametrize("counts", [(110, 131, 47, 110), (3, 0.5, 2, 8)])
def test_log_odds_ratio_of_known_counts_agrees_with_quadrature(counts):
    contrast = KnownTablePosterior(np.ones(4), counts).log_odds_ratio()

    for x in contrast.mean + contrast.sd * np.array([-4, -1, 0, 0.5, 3]):
        expected = logit_difference_cdf(x, 1.0 + np.array(counts))
        assert contrast.cdf(x) == pytest.approx(expected, abs=1e-11)


def test_log_odds_ratio_of_latent_counts_agrees_with_quadrature_over_every_split():
    alpha = np.array([0.6, 1.0, 2.0, 0.9])
    splits, probability = all_splits(alpha, FOUR_CELLS)

    contrast = TablePosterior(alpha, FOUR_CELLS).log_odds_ratio()

    for x in (contrast.mean - 2 * contrast.sd, contrast.mean + contrast.sd):
        expected = probability @ [logit_difference_cdf(x, alpha + n) for n in splits]
        assert contrast.cdf(x) == pytest.approx(expected, abs=1e-10)


def test_moments_and_characteristic_function_of_a_contrast_agree_with_every_split():
    alpha, c, t = np.array([0.3, 1.0, 2.0, 0.7]), np.array([2.0, -0.5, 0.0, -1.5]), 0.37
    splits, probability = all_splits(alpha, FOUR_CELLS)
    shape = alpha + splits
    means = digamma(shape) @ c
    variance = probability @ (polygamma(1, shape) @ c**2 + (means - probability @ means) ** 2)
    transform = np.exp((loggamma(shape + 1j * c * t) - gammaln(shape)).sum(axis=1))

    contrast = TablePosterior(alpha, FOUR_CELLS).log_contrast(c)

    assert contrast.mean == pytest.approx(probability @ means, rel=1e-12)
    assert contrast.sd == pytest.approx(math.sqrt(variance), rel=1e-12)
    assert contrast.characteristic_function(t) == pytest.approx(probability @ transform, abs=1e-13)


def test_sd_of_a_contrast_feels_the_covariance_of_the_counts():
    posterior = TablePosterior(np.ones(2), np.zeros((2, 11)))
    # One cell's records are missing from the other, which widens the log odds.
    term = digamma(1 + np.arange(11))
    variance_of_term = posterior.count_pmf[0] @ term**2 - (posterior.count_pmf[0] @ term) ** 2
    within = 2 * posterior.count_pmf[0] @ polygamma(1, 1 + np.arange(11))
    without_covariance = math.sqrt(within + 2 * variance_of_term)

    contrast = posterior.log_contrast((1, -1))

    assert contrast.sd == pytest.approx(math.pi / math.sqrt(3), rel=1e-12)  # a logistic law
    assert abs(without_covariance - contrast.sd) > 0.05


@pytest.mark.parametrize(
    "posterior",
    [
        pytest.param(TablePosterior([0.05] * 4, FOUR_CELLS), id="heavy tails"),
        pytest.param(TablePosterior((1.0, 2.0, 3.0, 0.5), np.zeros((4, 80))), id="no data"),
        pytest.param(KnownTablePosterior(np.ones(4), (1e4, 2e4, 1e4, 5e4)), id="90,000 records"),
    ],
)
def test_inverted_law_reproduces_the_moments_that_need_no_inversion(posterior):
    contrast = posterior.log_odds_ratio()
    x = np.linspace(*contrast.quantile((1.1e-9, 1 - 1.1e-9)), 20_001)
    density = contrast.pdf(x)

    assert np.diff(contrast.cdf(x)).min() > -1e-11
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-8)
    assert np.trapezoid(density * x, x) == pytest.approx(contrast.mean, abs=1e-6 * contrast.sd)
    variance = np.trapezoid(density * (x - contrast.mean) ** 2, x)
    assert math.sqrt(variance) == pytest.approx(contrast.sd, rel=1e-6)


def test_quantiles_of_the_odds_ratio_are_exponentials_of_those_of_its_log():
    posterior = TablePosterior(np.ones(4), FOUR_CELLS)

    np.testing.assert_allclose(
        np.log(posterior.odds_ratio_quantile((0.05, 0.95))),
        posterior.log_odds_ratio().quantile((0.05, 0.95)),
        rtol=1e-12,
    )


# The admissions example: 400 records, 10,827,401 splits


@pytest.fixture(scope="module")
def admissions():
    return TablePosterior(np.ones(4), gaussian_cell_loglik(**ADMISSIONS))


@pytest.fixture(scope="module")
def admissions_cell_weights():
    """w_k(c); products over cells are the weights of the splits, since alpha is 1."""
    errors = ADMISSIONS["released"][:, None] - np.arange(401)
    return np.exp(-(errors**2) / (2 * 6.32**2))


def test_admissions_posterior_agrees_with_the_sum_over_every_split(
    admissions, admissions_cell_weights
):
    n_records, w = 400, admissions_cell_weights
    term = digamma(1 + np.arange(n_records + 1))
    n2, n3 = np.meshgrid(np.arange(n_records + 1), np.arange(n_records + 1), indexing="ij")
    n_splits, count_weight, first, second = 0, np.zeros((4, n_records + 1)), 0.0, 0.0
    for n1 in range(n_records + 1):
        rest = n_records - n1
        b, c = (grid[: rest + 1, : rest + 1] for grid in (n2, n3))
        d = rest - b - c
        possible = d >= 0
        b, c, d = b[possible], c[possible], d[possible]
        weight = w[0, n1] * w[1, b] * w[2, c] * w[3, d]
        contrast = term[n1] - term[b] - term[c] + term[d]
        n_splits += weight.size
        count_weight[0, n1] = weight.sum()
        for k, count in ((1, b), (2, c), (3, d)):
            count_weight[k] += np.bincount(count, weight, n_records + 1)
        first += weight @ contrast
        second += weight @ contrast**2
    assert n_splits == math.comb(403, 3)

    total = count_weight[0].sum()
    pmf = count_weight / total
    np.testing.assert_allclose(admissions.count_pmf, pmf, rtol=1e-10, atol=1e-250)
    p = (1 + np.arange(n_records + 1)) / 404
    np.testing.assert_allclose(admissions.mean, pmf @ p, rtol=1e-12)
    second_moment = pmf @ (p * (404 * p + 1) / 405)
    np.testing.assert_allclose(admissions.sd, np.sqrt(second_moment - (pmf @ p) ** 2), rtol=1e-11)
    mean = first / total
    within = (pmf @ polygamma(1, 1 + np.arange(n_records + 1))).sum()
    variance = within + second / total - mean**2
    assert admissions.log_odds_ratio().mean == pytest.approx(mean, rel=1e-11)
    assert admissions.log_odds_ratio().sd == pytest.approx(math.sqrt(variance), rel=1e-11)


def test_admissions_log_odds_ratio_agrees_with_quadrature_given_the_number_of_men(
    admissions, admissions_cell_weights
):
    # Given how many of the 400 are men, the odds of men and of women are independent.
    w, everyone = admissions_cell_weights, np.arange(401)
    x = np.array([0.2348638, 0.6660663, 1.1190149])
    y = np.linspace(-4, 2, 61)
    total, below = 0.0, np.zeros(3)
    for men in everyone:
        n1, n3 = everyone[: men + 1], everyone[: 401 - men]
        weight1, weight3 = w[0, n1] * w[1, men - n1], w[2, n3] * w[3, 400 - men - n3]
        probability = weight1.sum() * weight3.sum()
        total += probability
        if probability < 1e-20:
            continue
        n1, weight1 = n1[weight1 > 1e-18 * weight1.sum()], weight1[weight1 > 1e-18 * weight1.sum()]
        women = beta_logit_density(y, 1 + n3, 401 - men - n3) @ weight3
        for i, point in enumerate(x):
            men_below = betainc(1 + n1, 1 + men - n1, expit(point + y)[:, None]) @ weight1
            below[i] += women @ men_below * (y[1] - y[0])

    np.testing.assert_allclose(
        admissions.log_odds_ratio().cdf(x), below / total, rtol=0, atol=1e-11
    )
    np.testing.assert_allclose(
        admissions.log_odds_ratio().quantile((0.05, 0.5, 0.95)), x, rtol=0, atol=1e-7
    )


def beta_logit_density(y, a, b):
    """Density of logit(V) at y, V ~ Beta(a, b); shape (len(y), len(a))."""
    v = expit(y)[:, None]
    return np.exp(gammaln(a + b) - gammaln(a) - gammaln(b) + xlogy(a, v) + xlogy(b, 1 - v))


def test_naive_and_private_posteriors_of_the_admissions_differ_in_spread(admissions):
    naive = KnownTablePosterior(np.ones(4), ADMISSIONS["released"])

    np.testing.assert_allclose(naive.mean, (1 + ADMISSIONS["released"]) / 402)
    assert (admissions.sd > naive.sd).all()
    assert admissions.log_odds_ratio().sd > 1.2 * naive.log_odds_ratio().sd


# Draws


def standardised_errors(draws, posterior):
    """Errors of the draws' means and variances in Monte Carlo standard errors."""

    def error(values, expected):
        return (values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))

    contrast = posterior.log_odds_ratio()
    log_odds_ratio = np.log(draws.p) @ LOG_ODDS_RATIO
    return np.concatenate(
        [
            error(draws.p, posterior.mean),
            error((draws.p - posterior.mean) ** 2, posterior.sd**2),
            [error(log_odds_ratio, contrast.mean)],
            [error((log_odds_ratio - contrast.mean) ** 2, contrast.sd**2)],
            [error(log_odds_ratio <= contrast.quantile(q), q) for q in (0.05, 0.5, 0.95)],
        ]
    )


def test_draws_have_the_exact_moments(admissions):
    draws = admissions.draws(100_000, np.random.default_rng(20221))

    assert draws.counts.shape == draws.p.shape == (100_000, 4)
    assert (draws.counts.sum(axis=1) == 400).all()
    assert np.issubdtype(draws.counts.dtype, np.integer)
    assert np.abs(standardised_errors(draws, admissions)).max() < 4


def test_draws_of_a_known_table_have_the_exact_moments():
    posterior = KnownTablePosterior(np.ones(4), ADMISSIONS["released"])

    draws = posterior.draws(100_000, np.random.default_rng(20222))

    np.testing.assert_array_equal(draws.counts, np.tile(posterior.counts, (100_000, 1)))
    assert np.abs(standardised_errors(draws, posterior)).max() < 4


def test_moments_would_catch_draws_that_take_the_noisy_counts_as_exact(admissions):
    naive = KnownTablePosterior(np.ones(4), ADMISSIONS["released"])

    draws = naive.draws(100_000, np.random.default_rng(20223))

    assert np.abs(standardised_errors(draws, admissions)).max() > 20


def test_frequencies_of_drawn_splits_are_their_probabilities():
    alpha, n_draws = np.array([0.3, 1.0, 2.0, 0.7]), 200_000
    cell_loglik = with_ruled_out_counts(FOUR_CELLS)
    splits, probability = all_splits(alpha, cell_loglik)

    draws = TablePosterior(alpha, cell_loglik).draws(n_draws, np.random.default_rng(20224))

    seen = {tuple(split): 0 for split in splits.tolist()}
    for split, times in zip(*np.unique(draws.counts, axis=0, return_counts=True), strict=True):
        seen[tuple(split.tolist())] += times
    frequency = np.array(list(seen.values())) / n_draws
    assert (frequency[probability == 0] == 0).all()
    error = np.sqrt(probability * (1 - probability) / n_draws)
    often = probability > 1e-4
    assert (np.abs(frequency - probability)[often] < 4 * error[often]).all()


def test_draws_stay_probabilities_when_every_gamma_variable_underflows():
    draws = KnownTablePosterior([1e-4] * 3, (0, 0, 0)).draws(1000, np.random.default_rng(20225))

    np.testing.assert_allclose(draws.p.sum(axis=1), 1)


# What is refused


ONES = np.ones(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TablePosterior((1.0,), np.zeros((1, 5))), "alpha must be a vector of at least 2"),
        (lambda: TablePosterior((1.0, 0.0), np.zeros((2, 5))), "alpha must be positive"),
        (lambda: TablePosterior(ONES, np.zeros((3, 5))), r"shape \(4, N \+ 1\).*Got \(3, 5\)"),
        (lambda: TablePosterior(ONES, np.zeros((4, 1))), "N >= 1"),
        (lambda: TablePosterior(ONES, np.full((4, 3), np.nan)), r"cell_loglik\[0, 0\] is nan"),
        (lambda: TablePosterior(ONES, np.diag([1, 1, np.inf, 1])), r"\[2, 2\] is inf"),
        (lambda: TablePosterior(ONES, np.full((4, 3), -np.inf)), "every count of cell 0"),
        (
            lambda: TablePosterior(ONES, np.where(np.arange(4) == 2, 0, np.full((4, 4), -np.inf))),
            "every split of 3 records impossible",
        ),
        (lambda: KnownTablePosterior(ONES, (1, 2, 3)), r"counts must have shape \(4,\)"),
        (lambda: KnownTablePosterior(ONES, (1, 2, -3, 1)), "counts must be finite and not neg"),
        (lambda: KnownTablePosterior(ONES, ONES).cell(4), "a cell from 0 to 3, got 4"),
        (lambda: KnownTablePosterior(ONES, ONES).log_contrast((1, -1)), r"shape \(4,\)"),
        (lambda: KnownTablePosterior(ONES, ONES).log_contrast((1, 1, -1, 0)), "add up to 0"),
        (lambda: KnownTablePosterior(ONES, ONES).log_contrast(0 * ONES), "not all 0"),
        (lambda: KnownTablePosterior((1, 1), (1, 1)).log_odds_ratio(), "one of 4 cells"),
        (lambda: KnownTablePosterior(ONES, ONES).cell(0).quantile(1.0), "between 0 and 1"),
        (lambda: KnownTablePosterior(ONES, ONES).odds_ratio_quantile(1e-10), "between 1e-09"),
        (
            lambda: KnownTablePosterior((1e-6, 9, 9, 9), 0 * ONES).odds_ratio_quantile(0.5),
            "too wide.*raise alpha",
        ),
        (lambda: gaussian_cell_loglik(((1, 2),), 1.0, 5), "released must be a vector"),
        (lambda: gaussian_cell_loglik((1, 2), 0.0, 5), "sigma must be positive"),
        (
            lambda: gaussian_cell_loglik((1, 2), (1, 1, 1), 5),
            r"shape \(\) or \(2,\), one for each cell",
        ),
        (
            lambda: gaussian_cell_loglik((1, 2), 1.0, 0),
            "n_records must be a whole number of at least 1",
        ),
    ],
)
def test_senseless_tables_are_refused_with_the_reason(call, message):
    with pytest.raises(ValueError, match=message):
        call()
