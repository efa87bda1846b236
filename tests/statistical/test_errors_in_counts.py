"""What a naive fit of noisy counts does, the exact likelihood, and the posterior by DapperStep."""

import numpy as np
import pymc as pm
import pytest
from scipy.stats import binomtest, laplace, linregress, norm, poisson

import pymc_dapper as pmd
from examples._errors_in_counts import CountRegression, LeastSquares, attenuation
from tests.quadrature import marginals
from tests.statistical.agreement import assert_agrees, assert_disagrees, compare
from tests.statistical.twins import with_half_the_log_ratio

LINE = np.array([-5.0, 4.0])
EPSILONS = [0.5, 0.2, 0.1]


def regression(epsilon):
    return CountRegression(rate=10, sd=5, scale=1 / epsilon)


class TestAttenuation:
    @pytest.mark.parametrize("epsilon", EPSILONS)
    def test_the_mean_slope_of_many_fits(self, epsilon):
        model, rng = regression(epsilon), np.random.default_rng(1)
        fits = [
            LeastSquares.fit(*model.release(*model.simulate(LINE, 20_000, rng), rng)).estimate
            for _ in range(100)
        ]
        mean, error = np.mean(fits, axis=0), np.std(fits, axis=0, ddof=1) / 10
        shrunken = 4 * attenuation(10, 1 / epsilon)
        assert abs(mean[1] - shrunken) < 4 * error[1]
        # The line still goes through the means.
        assert abs(mean[0] - (-5 + 10 * (4 - shrunken))) < 4 * error[0]
        # The variance of Laplace noise is twice its scale squared. Once won't do.
        assert abs(mean[1] - 4 * 10 / (10 + epsilon**-2)) > 4 * error[1]

    def test_the_regions_miss_the_line(self):
        rng = np.random.default_rng(2)

        def covered(release):
            fits = []
            for _ in range(1_000):
                pairs = regression(0.2).simulate(LINE, 10, rng)
                fits.append(LeastSquares.fit(*release(*pairs)).covers(LINE))
            return binomtest(sum(fits), len(fits)).proportion_ci(0.9999)

        # Without noise the region is exact; with it, it isn't.
        without = covered(lambda x, y: (x, y))
        assert without.low < 0.95 < without.high
        naive = covered(lambda x, y: regression(0.2).release(x, y, rng))
        assert naive.high < 0.5


class TestLeastSquares:
    def test_the_line_is_scipys(self):
        rng = np.random.default_rng(3)
        x, y = regression(0.5).simulate(LINE, 10, rng)
        ours, theirs = LeastSquares.fit(x, y), linregress(x, y)
        np.testing.assert_allclose(ours.estimate, [theirs.intercept, theirs.slope])
        errors = [theirs.intercept_stderr, theirs.stderr]
        np.testing.assert_allclose(np.sqrt(np.diag(ours.covariance)), errors)
        assert ours.residual_df == 8

    def test_points_within_the_boundary_are_covered(self):
        fit = LeastSquares.fit(*regression(0.5).simulate(LINE, 10, np.random.default_rng(3)))
        for point in fit.region(0.9, points=20):
            step = point - fit.estimate
            assert fit.covers(fit.estimate + 0.999 * step, 0.9)
            assert not fit.covers(fit.estimate + 1.001 * step, 0.9)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def marginalised(scale, line, x, y):
    """Log-likelihood of noisy pairs by quadrature over y, in pieces, and a sum over x."""
    total = 0.0
    for noisy_x, noisy_y in zip(x, y, strict=True):
        likelihood = 0.0
        for count in range(60):
            mean = line[0] + line[1] * count
            kink = noisy_y + scale * np.array([-40, -10, -3, 0, 3, 10, 40])
            normal = mean + np.array([-60, -15, 0, 15, 60])
            edges = np.sort(np.append(kink.clip(mean - 60, mean + 60), normal))
            half = np.diff(edges)[:, None] / 2
            v = edges[:-1, None] + half * (1 + NODES)
            density = norm.pdf(v, mean, 5) * laplace.pdf(noisy_y, v, scale)
            area = (half * density) @ WEIGHTS
            likelihood += poisson.pmf(count, 10) * laplace.pdf(noisy_x, count, scale) * area.sum()
        total += np.log(likelihood)
    return total


class TestTheLikelihood:
    X, Y = np.array([3.3, -4.0, 19.0]), np.array([40.0, 3.0, 31.0])

    @pytest.mark.parametrize(
        ("scale", "line"),
        [(5.0, (-5, 4)), (2.0, (10, -3)), (10.0, (-5, 0)), (0.5, (-5, 4))],
    )
    def test_it_is_the_integral_over_what_is_confidential(self, scale, line):
        model = CountRegression(10, 5, scale)
        expected = marginalised(scale, line, self.X, self.Y)
        assert model.loglik(line, self.X, self.Y) == pytest.approx(expected, abs=1e-8)
        twin = CountRegression(10, 5, 1.01 * scale)
        assert twin.loglik(line, self.X, self.Y) != pytest.approx(expected, abs=1e-8)

    def test_lines_may_have_any_shape(self):
        model = CountRegression(10, 5, 5)
        lines = np.random.default_rng(1).normal(0, 10, (3, 2, 2))
        together = model.loglik(lines, self.X, self.Y)
        one_by_one = [[model.loglik(line, self.X, self.Y) for line in row] for row in lines]
        np.testing.assert_allclose(together, one_by_one, rtol=1e-13)

    def test_little_noise_and_no_slope_need_few_counts(self):
        model = CountRegression(10, 5, 0.1)
        assert model.loglik([-5, 0], self.X, self.Y) == pytest.approx(
            marginalised(0.1, (-5, 0), self.X, self.Y), abs=1e-8
        )
        assert model._largest_count(np.array([[-5.0, 0.0]]), self.X, self.Y) < 100


# The height of the line at x = 10, where the records are, and its slope.
PRIORS = {"height": norm(35, 10), "slope": norm(3, 1)}
GRIDS = np.linspace(0, 90, 106), np.linspace(-4, 10, 116)


@pytest.fixture(scope="module")
def pairs():
    rng = np.random.default_rng(4)
    return regression(0.2).release(*regression(0.2).simulate(LINE, 10, rng), rng)


@pytest.fixture(scope="module")
def exact(pairs):
    """Posterior by the exact likelihood on a grid."""
    height, slope = np.meshgrid(*GRIDS, indexing="ij")
    log_prior = PRIORS["height"].logpdf(height) + PRIORS["slope"].logpdf(slope)
    lines = np.stack([height - 10 * slope, slope], axis=-1)
    answers = marginals(GRIDS, log_prior + regression(0.2).loglik(lines, *pairs))
    return dict(zip(("height", "slope"), answers, strict=True))


@pytest.fixture(scope="module")
def sampled(pairs):
    mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(0.2), sensitivity=1)
    with pm.Model() as model:
        height, slope = (pm.Normal(name, *law.args) for name, law in PRIORS.items())
        x = pm.Poisson("x", 10, shape=10)
        residual = pm.Normal("residual", 0, 1, shape=10)
        mechanism.observe("noisy_x", x, released=pairs[0])
        y = height + slope * (x - 10) + 5 * residual
        mechanism.observe("noisy_y", y, released=pairs[1])
        # Records are proposed in pairs, and then x and residual by themselves: it mixes faster.
        steps = [pmd.DapperStep(records) for records in ([x, residual], [x], [residual])]
        return model, steps, pm.Slice([height, slope])


# Samplers are compared with such likelihoods in every run: `test_poisson_laplace.py`.
@pytest.mark.long
class TestThePosterior:
    def test_the_sampler_agrees(self, sampled, exact):
        model, steps, line = sampled
        assert_agrees(compare(model, [*steps, line], exact, draws=9_000))

    def test_a_sampler_with_half_the_log_ratio_is_detected(self, sampled, exact):
        model, steps, line = sampled
        twins = [with_half_the_log_ratio(step) for step in steps]
        assert_disagrees(compare(model, [*twins, line], exact, draws=9_000))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: attenuation(-1, 5), "variance must be a finite number above 0"),
        (lambda: attenuation(10, 0), "scale must be a finite number above 0"),
        (lambda: CountRegression(10, np.nan, 5), "sd must be a finite number above 0"),
        (lambda: CountRegression(0, 5, 5), "rate must be a finite number above 0"),
        (lambda: LeastSquares.fit([1, 2], [1, 2]), "at least 3 pairs"),
        (lambda: LeastSquares.fit([1, 1, 1], [1, 2, 3]), "not all x the same"),
        (lambda: LeastSquares.fit([1, 2, 3], [1, 2]), "vectors of one length"),
        (lambda: LeastSquares.fit([1, 2, np.nan], [1, 2, 3]), "must be finite"),
        (lambda: regression(0.2).loglik([1, 2, 3], [1], [2]), "last axis"),
        (lambda: regression(0.2).loglik([1, np.inf], [1], [2]), "lines must be finite"),
    ],
)
def test_bad_input_is_refused(build, message):
    with pytest.raises(ValueError, match=message):
        build()
