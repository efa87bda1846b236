"""Three methods from the literature on private data, beside the sampler.

Gong (arXiv:1909.12237) gives two exact methods for private releases, rejection ABC and Monte Carlo
EM, and shows what becomes of analyses that leave the noise out. This script works her examples:

1. a count, s | theta ~ Poisson(theta), released with Laplace noise as 37.4, at epsilon = 0.2.
   Posterior with the prior theta ~ Gamma(25, 1) by rejection ABC, by DapperStep and in closed
   form; maximum likelihood by Monte Carlo EM and exactly.
2. a line through ten pairs, x ~ Poisson(10), y = -5 + 4 x + N(0, 5^2), each x and each y
   released with Laplace noise. Least squares on noisy pairs, Monte Carlo EM, and posteriors.

It prints what it finds and saves four figures to examples/output (another folder: --output PATH).
It takes a minute or two.
"""

import argparse
from pathlib import Path

import numpy as np
import pymc as pm
from _errors_in_counts import CountRegression, LeastSquares, attenuation, ellipse
from _figures import COLOURS, save
from _poisson_laplace import PoissonLaplace, PoissonLaplacePosterior
from matplotlib.figure import Figure
from scipy.optimize import minimize
from scipy.stats import chi2, norm

import pymc_dapper as pmd
from pymc_dapper.reference.monte_carlo_em import monte_carlo_em
from pymc_dapper.reference.rejection_abc import rejection_abc_model

OUTPUT = Path(__file__).parent / "output"

RELEASED, EPSILON = 37.4, 0.2
PRIOR = {"shape": 25, "rate": 1}

LINE = np.array([-5.0, 4.0])
RATE, SD, N_PAIRS = 10, 5, 10


def poisson_model():
    """One confidential count, and its release."""
    mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(EPSILON), sensitivity=1)
    with pm.Model() as model:
        theta = pm.Gamma("theta", PRIOR["shape"], PRIOR["rate"])
        count = pm.Poisson("count", theta, shape=1)
        mechanism.potential("release", count.sum(), released=RELEASED)
    return model, mechanism


def analyse_poisson(draws, tune, final_draws):
    """Print estimates and posterior quantiles by each method; return what the figure needs."""
    likelihood = PoissonLaplace(RELEASED, scale=1 / EPSILON)
    exact, information = likelihood.maximum()
    estimate = monte_carlo_em(
        lambda theta, size, rng: rng.poisson(theta[0], size),
        lambda count: -EPSILON * np.abs(RELEASED - count),
        lambda theta, count: count * np.log(theta[0]) - theta[0],
        start=RELEASED,
        maximise=lambda count, weights: weights @ count,
        final_draws=final_draws,
        random_seed=1,
        progressbar=False,
    )
    print("A Poisson mean, from one noisy count: maximum likelihood\n")
    print(f"{'':16}{'estimate':>9}{'information':>13}{'standard error':>16}")
    rows = {
        "published": (37.237, 1.582e-2),
        "exact": (exact, information),
        "Monte Carlo EM": (estimate.estimate[0], estimate.information[0, 0]),
        "naive": (RELEASED, 1 / RELEASED),
    }
    for name, (theta, info) in rows.items():
        print(f"{name:16}{theta:9.3f}{info:13.3e}{info**-0.5:16.2f}")
    print(
        f"Monte Carlo error of EM: {estimate.estimate_mc_se[0]:.3f} and "
        f"{estimate.information_mc_se[0, 0]:.0e}"
    )

    posterior = PoissonLaplacePosterior(RELEASED, 1 / EPSILON, **PRIOR)
    model, mechanism = poisson_model()
    abc = rejection_abc_model(
        model, {"release": mechanism}, draws=4 * draws, random_seed=1, progressbar=False
    )
    with model:
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=4,
            step=[pmd.DapperStep([model["count"]])],
            var_names=["theta"],
            random_seed=1,
            progressbar=False,
        )
    sampled = {
        "rejection ABC": abc.draws["theta"],
        "DapperStep": idata.posterior["theta"].values.ravel(),
    }
    probabilities = (0.05, 0.5, 0.95)
    print("\nPosterior quantiles\n")
    print(" " * 16 + "".join(f"{probability:9.0%}" for probability in probabilities))
    quantiles = {name: np.quantile(values, probabilities) for name, values in sampled.items()}
    for name, row in {"exact": posterior.quantile(probabilities), **quantiles}.items():
        print(f"{name:16}" + "".join(f"{value:9.2f}" for value in row))
    print(f"ABC accepted {abc.acceptance:.1%} of {abc.simulations} simulations")
    return likelihood, posterior, sampled


def draw_poisson(likelihood, posterior, sampled):
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    theta = np.linspace(10, 75, 400)

    bins = np.linspace(10, 75, 66)
    styles = {
        "rejection ABC": {"color": COLOURS["private"], "alpha": 0.25},
        "DapperStep": {"color": "black", "histtype": "step", "linewidth": 1},
    }
    for name, values in sampled.items():
        above.hist(values, bins, density=True, label=name, **styles[name])
    above.plot(theta, posterior.pdf(theta), color=COLOURS["private"], lw=2.5, label="closed form")
    above.set_title("Posterior of a Poisson mean given a noisy count of 37.4", loc="left")
    above.legend(frameon=False)

    estimate, information = likelihood.maximum()
    below.plot(
        theta,
        np.exp(likelihood.loglik(theta) - likelihood.loglik(estimate)),
        color=COLOURS["private"],
        lw=2.5,
        label="likelihood, noise accounted for",
    )
    naive = RELEASED * np.log(theta / RELEASED) - (theta - RELEASED)
    below.plot(theta, np.exp(naive), color=COLOURS["naive"], lw=2.5, label="likelihood, naive")
    below.plot(
        theta,
        np.exp(-0.5 * information * (theta - estimate) ** 2),
        color=COLOURS["private"],
        lw=1,
        ls="--",
        label="normal, by Louis' information",
    )
    below.set_title("Likelihood, relative to its maximum", loc="left", fontsize="medium")
    below.set_xlabel("Poisson mean")
    below.legend(frameon=False)
    for axes in (above, below):
        tidy(axes)
        axes.set_xlim(10, 75)
        axes.set_ylim(bottom=0)
        axes.set_yticks([])
    return figure


def regression(epsilon):
    return CountRegression(RATE, SD, scale=1 / epsilon)


def noisy_pairs(epsilon, count, seed):
    """Releases of `count` data sets; nothing is chosen but the seed."""
    model, rng = regression(epsilon), np.random.default_rng(seed)
    return [model.release(*model.simulate(LINE, N_PAIRS, rng), rng) for _ in range(count)]


def draw_naive_regions():
    """Twenty naive fits at each of three budgets."""
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    print("\nTwenty naive fits at each budget\n")
    print(f"{'epsilon':>8}{'slope goes to':>15}{'mean slope':>12}{'regions that hold truth':>25}")
    for axes, epsilon in zip(panels, (0.5, 0.2, 0.1), strict=True):
        fits = [LeastSquares.fit(*pairs) for pairs in noisy_pairs(epsilon, 20, seed=1)]
        shrunken = LINE[1] * attenuation(RATE, 1 / epsilon)
        covered = sum(fit.covers(LINE) for fit in fits)
        mean = np.mean([fit.estimate[1] for fit in fits])
        print(f"{epsilon:8}{shrunken:15.2f}{mean:12.2f}{covered:19} of 20")
        for fit in fits:
            axes.plot(*fit.region().T, color=COLOURS["naive"], lw=0.8, alpha=0.7)
        limit = [LINE[0] + RATE * (LINE[1] - shrunken), shrunken]
        axes.plot(*limit, "x", color="black", ms=9, mew=2, label="limit of the naive fit")
        axes.plot(*LINE, "o", color=COLOURS["private"], ms=8, label="truth")
        axes.set_title(f"ε = {epsilon}: {covered} of 20 hold the truth", loc="left", fontsize=10)
        axes.set_xlabel("intercept")
        tidy(axes)
    panels[0].set_ylabel("slope")
    panels[2].legend(frameon=False, loc="upper right")
    panels[0].set_xlim(-70, 100)
    panels[0].set_ylim(-4, 10)
    return figure


def exact_maximum(model, pairs):
    """The line of largest exact likelihood: the best of a grid, then improved."""
    grid = np.stack(np.meshgrid(np.linspace(-90, 110, 81), np.linspace(-8, 12, 81)), axis=-1)
    values = model.loglik(grid, *pairs)
    start = grid[np.unravel_index(values.argmax(), values.shape)]
    return minimize(lambda line: -model.loglik(line, *pairs), start, method="Nelder-Mead").x


def draw_em_regions(final_draws, count=6):
    """95 % regions by Monte Carlo EM beside the naive ones, for six data sets.

    The likelihood is flat, so it takes many draws to find the maximum.
    """
    model = regression(EPSILON)
    figure = Figure(figsize=(9, 5.5), layout="constrained")
    panels = figure.subplots(2, 3, sharex=True, sharey=True).ravel()
    print(f"\nSix data sets at epsilon = {EPSILON}: slopes\n")
    print(f"{'naive':>13}{'Monte Carlo EM':>22}{'exact maximum':>16}")
    for axes, pairs in zip(panels, noisy_pairs(EPSILON, count, seed=1), strict=False):
        naive = LeastSquares.fit(*pairs)
        private = model.monte_carlo_em(
            *pairs, final_draws=final_draws, random_seed=1, progressbar=False
        )
        maximum = exact_maximum(model, pairs)
        print(
            f"{naive.estimate[1]:6.2f} ± {naive.covariance[1, 1] ** 0.5:4.2f}"
            f"{private.estimate[1]:15.2f} ± {private.standard_errors[1]:4.2f}{maximum[1]:16.2f}"
        )
        axes.plot(*naive.region().T, color=COLOURS["naive"], lw=2, label="naive")
        region = ellipse(private.estimate, private.covariance, chi2.ppf(0.95, 2) ** 0.5)
        axes.plot(*region.T, color=COLOURS["private"], lw=2, label="Monte Carlo EM")
        axes.plot(*maximum, "+", color=COLOURS["private"], ms=9, mew=2, label="exact maximum")
        axes.plot(*LINE, "o", color="black", ms=6, label="truth")
        tidy(axes)
    for axes in panels[3:]:
        axes.set_xlabel("intercept")
    for axes in panels[::3]:
        axes.set_ylabel("slope")
    panels[0].legend(frameon=False, loc="lower left", fontsize=8)
    figure.suptitle(
        f"95 % confidence regions of a line through ten noisy pairs, ε = {EPSILON}",
        x=0.01,
        ha="left",
    )
    return figure


def regression_model(pairs):
    """Ten confidential pairs.

    The residuals are records, not y, and the line is given by its height where the data are: so
    the chain moves faster.
    """
    mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(EPSILON), sensitivity=1)
    with pm.Model() as model:
        height, slope = pm.Normal("height", 0, 50), pm.Normal("slope", 0, 5)
        pm.Deterministic("intercept", height - RATE * slope)
        x = pm.Poisson("x", RATE, shape=N_PAIRS)
        residual = pm.Normal("residual", 0, 1, shape=N_PAIRS)
        mechanism.observe("noisy_x", x, released=pairs[0])
        mechanism.observe("noisy_y", height + slope * (x - RATE) + SD * residual, released=pairs[1])
    return model


def draw_posteriors(draws, tune, count=2):
    """Posteriors of the line for the first data sets, sampled and exact, with the naive region."""
    height, slope = np.meshgrid(np.linspace(0, 90, 121), np.linspace(-15, 20, 141))
    lines = np.stack([height - RATE * slope, slope], axis=-1)
    log_prior = norm.logpdf(height, 0, 50) + norm.logpdf(slope, 0, 5)
    figure = Figure(figsize=(9, 4.2), layout="constrained")
    panels = figure.subplots(1, count, sharex=True, sharey=True)
    print("\nPosterior mean and standard deviation of the slope\n")
    print(f"{'DapperStep':>13}{'exact':>15}")
    for axes, pairs in zip(panels, noisy_pairs(EPSILON, count, seed=1), strict=True):
        log_density = log_prior + regression(EPSILON).loglik(lines, *pairs)
        weights = np.exp(log_density - log_density.max())
        weights /= weights.sum()
        # The smallest region that holds 95 %.
        ordered = np.sort(weights.ravel())[::-1]
        level = ordered[np.searchsorted(np.cumsum(ordered), 0.95)]

        model = regression_model(pairs)
        with model:
            steps = [
                pmd.DapperStep([model["x"], model["residual"]]),
                # The line's density has kinks, given the records: cheap steps do as well as NUTS.
                pm.Slice([model["height"], model["slope"]]),
            ]
            posterior = pm.sample(
                draws=draws,
                tune=tune,
                chains=4,
                step=steps,
                var_names=["intercept", "slope"],
                random_seed=1,
                progressbar=False,
            ).posterior
        sampled = {name: posterior[name].values.ravel() for name in ("intercept", "slope")}
        mean = (weights * slope).sum()
        sd = np.sqrt((weights * (slope - mean) ** 2).sum())
        chain = sampled["slope"]
        print(f"{chain.mean():6.2f} ± {chain.std():4.2f}{mean:8.2f} ± {sd:4.2f}")

        every = max(1, chain.size // 1_500)
        thinned = {name: values[::every] for name, values in sampled.items()}
        axes.plot(
            thinned["intercept"],
            thinned["slope"],
            ".",
            color=COLOURS["private"],
            ms=2,
            alpha=0.5,
            label="posterior, DapperStep",
        )
        axes.contour(*np.moveaxis(lines, -1, 0), weights, [level], colors=COLOURS["private"])
        axes.plot([], [], color=COLOURS["private"], label="posterior, exact: 95 %")
        naive = LeastSquares.fit(*pairs)
        axes.plot(*naive.region().T, color=COLOURS["naive"], lw=2, label="naive: 95 %")
        axes.plot(*LINE, "o", color="black", ms=6, label="truth")
        axes.set_xlabel("intercept")
        tidy(axes)
    panels[0].set_ylabel("slope")
    panels[0].set_xlim(-100, 100)
    panels[0].set_ylim(-6, 12)
    panels[0].legend(frameon=False, loc="lower left", fontsize=8)
    figure.suptitle(
        f"A line through ten noisy pairs, ε = {EPSILON}: two data sets", x=0.01, ha="left"
    )
    return figure


def tidy(axes):
    axes.spines[["top", "right"]].set_visible(False)


def main(draws=20_000, tune=1_000, final_draws=200_000, output=OUTPUT):
    """Work the examples, save the figures in the folder `output`."""
    folder = Path(output)
    save(draw_poisson(*analyse_poisson(draws, tune, final_draws)), folder / "methods_poisson.png")
    save(draw_naive_regions(), folder / "methods_naive_fits.png")
    save(draw_em_regions(final_draws), folder / "methods_em_regions.png")
    save(draw_posteriors(draws, tune), folder / "methods_posteriors.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="folder for the figures")
    main(output=parser.parse_args().output)
