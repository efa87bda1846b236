"""A line through confidential pairs, from its privately released slope and intercept.

100 pairs (x, y) were clamped and scaled, and the least-squares line was released by NoisyStats
(Alabi et al. 2022). What do its two numbers say about the pairs' true line? Five parameters are
unknown: intercept and slope, mean and sd of x, and the sd of y around the line. The pairs were
simulated, x uniform on (0, 1) and y = -2 + 3 x + N(0, 3^2), so that the answer is known.

The script prints posterior quantiles and saves a figure to examples/output/noisy_stats.png
(another place: --output PATH). It shows three analyses, at two privacy budgets:

private       of the released line, with clamping and noise taken into account
naive         of the released line as if it were the least-squares line of the pairs themselves
confidential  of the true pairs: for teaching, since an analyst doesn't have them

and the private one of a release that has no line (NA), where a naive analyst can say nothing.
With --mixing it measures instead how fast chains mix with fewer steps.
"""

import argparse
from pathlib import Path
from time import perf_counter

import arviz as az
import numpy as np
import pymc as pm
from _figures import COLOURS, save
from _markdown import fill_file, numbers, table
from matplotlib.figure import Figure

import pymc_dapper as pmd
from pymc_dapper.mechanisms import NoisyStats

OUTPUT = Path(__file__).parent / "output" / "noisy_stats.png"

N = 100
LIMITS = {"clamp_x": (0.0, 1.0), "clamp_y": (-10.0, 10.0)}
EPSILONS = (10.0, 1.0)
NO_LINE_EPSILON = 1.0
TRUTH = {"alpha": -2.0, "beta": 3.0}
SD_Y = 3.0

# Normal priors, as mean and sd: the analyst knows no more than that the limits make sense.
PRIORS = {
    "alpha": (0.0, 5.0),
    "beta": (0.0, 5.0),
    "mu_x": (0.5, 0.25),
    "log_sd_x": (np.log(0.3), 0.5),
    "log_sd_y": (np.log(3.0), 0.5),
}
PROBABILITIES = (0.05, 0.5, 0.95)


def simulate_pairs(n, rng):
    """Draw the confidential pairs. They aren't quite the analyst's: x is uniform, not normal."""
    x = rng.uniform(0, 1, n)
    return x, TRUTH["alpha"] + TRUTH["beta"] * x + rng.normal(0, SD_Y, n)


def build_model(mechanism, released, limits=LIMITS, priors=PRIORS):
    """Pairs are latent variables; the statistic is that of the clamped pairs, as released."""
    n = mechanism.n
    with pm.Model() as model:
        parameter = {name: pm.Normal(name, *prior) for name, prior in priors.items()}
        x = pm.Normal("x", parameter["mu_x"], pm.math.exp(parameter["log_sd_x"]), shape=n)
        line = parameter["alpha"] + parameter["beta"] * x
        y = pm.Normal("y", line, pm.math.exp(parameter["log_sd_y"]), shape=n)
        mechanism.potential("line", mechanism.statistic(x, y, **limits), released=released)
    return model


def assign_steps(model):
    """Records one by one, the line and mu_x from their conditionals, the sds by NUTS.

    Given 100 records all five parameters are known far better than from two noisy numbers, so that
    these steps alone creep. The last one, InterweaveStep, moves the parameters and lets the records
    follow.
    """
    return pmd.assign_steps([model["x"], model["y"]], model)


def sample_private(model, steps, draws, tune):
    """Posterior of the parameters, given what was released."""
    with model:
        return pm.sample(
            draws,
            tune=tune,
            chains=4,
            step=steps,
            var_names=list(PRIORS),
            random_seed=1,
            progressbar=False,
        ).posterior


def sample_confidential(model, x, y, draws, tune):
    """Posterior of the parameters, given the pairs. What was released adds nothing to them."""
    with pm.observe(model, {"x": x, "y": y}):
        return pm.sample(draws, tune=tune, chains=4, random_seed=1, progressbar=False).posterior


def in_units_of_the_data(released, limits=LIMITS):
    """Intercept and slope of a released line, whose units are those of clamped, scaled pairs."""
    (a, b), (c, d) = limits["clamp_x"], limits["clamp_y"]
    slope = released[0] * (d - c) / (b - a)
    return np.array([c + (d - c) * released[1] - slope * a, slope])


def sample_naive(line, n, draws, rng, simulations=200_000):
    """Draws of the parameters, if the line were the least-squares line of n pairs.

    Given x and the sd of y, least squares has a normal law, and so has the line in the posterior;
    x matters by its mean and its sum of squares. These and the other parameters are drawn from
    their prior, and weighted by the probability that they give to the line: importance sampling.
    """
    theta = {name: rng.normal(*PRIORS[name], simulations) for name in list(PRIORS)[2:]}
    sd_x, sd_y = np.exp(theta["log_sd_x"]), np.exp(theta["log_sd_y"])
    mean = rng.normal(theta["mu_x"], sd_x / np.sqrt(n))
    squares = sd_x**2 * rng.chisquare(n - 1, simulations)
    variance_of_slope = sd_y**2 / squares
    # Covariance of least squares: mean height is independent of the slope.
    fit = np.empty((simulations, 2, 2))
    fit[:, 0, 0] = sd_y**2 / n + mean**2 * variance_of_slope
    fit[:, 0, 1] = fit[:, 1, 0] = -mean * variance_of_slope
    fit[:, 1, 1] = variance_of_slope

    prior_mean, prior_sd = np.array([PRIORS["alpha"], PRIORS["beta"]]).T
    prior = np.diag(prior_sd**2)
    inverse = np.linalg.inv(prior + fit)
    error = line - prior_mean
    log_weight = -0.5 * np.einsum("i,kij,j->k", error, inverse, error)
    log_weight += 0.5 * np.linalg.slogdet(inverse)[1]
    weight = np.exp(log_weight - log_weight.max())
    chosen = rng.choice(simulations, draws, p=weight / weight.sum())

    gain = prior @ inverse[chosen]
    covariance = prior - gain @ prior
    root = np.linalg.cholesky((covariance + covariance.swapaxes(1, 2)) / 2)
    drawn = prior_mean + gain @ error + np.einsum("kij,kj->ki", root, rng.normal(size=(draws, 2)))
    kept = {name: values[chosen] for name, values in theta.items()}
    return {"alpha": drawn[:, 0], "beta": drawn[:, 1], **kept}


def title_of(epsilon, line):
    """What was released, in a few words."""
    released = "no line" if line is None else f"slope {line[1]:.2f}"
    return f"ε = {epsilon:g}: {released} released"


def smallest_ess(posterior):
    """Fewest effective draws of any parameter, of the bulk or of the tails of its posterior."""
    sizes = [az.ess(posterior, method=method) for method in ("bulk", "tail")]
    return min(float(size[name]) for size in sizes for name in PRIORS)


def analyse(draws, tune, epsilons):
    """Draws by each analysis, under the release's title."""
    rng = np.random.default_rng(1)
    x, y = simulate_pairs(N, rng)
    slope, intercept = np.polyfit(x, y, 1)
    print("Intercept and slope, in units of the data\n")
    print(f"{'without privacy':24}{intercept:8.2f}{slope:8.2f}")

    found, confidential = {}, None
    for epsilon in epsilons:
        mechanism = NoisyStats.calibrate(pmd.PureDP(epsilon), n=N)
        statistic = mechanism.statistic(x, y, **LIMITS)
        released = mechanism.release(statistic, random_seed=rng.integers(2**32))
        model = build_model(mechanism, released)
        if confidential is None:
            confidential = sample_confidential(model, x, y, draws, tune)
        steps = assign_steps(model)
        line = in_units_of_the_data(released) if np.isfinite(released).all() else None
        title = title_of(epsilon, line)
        found[title] = {"confidential": confidential}
        if line is not None:
            print(f"{f'released at ε = {epsilon:g}':24}{line[0]:8.2f}{line[1]:8.2f}")
            found[title]["naive"] = sample_naive(line, N, 4 * draws, rng)
        found[title]["private"] = sample_private(model, steps, draws, tune)
        if epsilon == NO_LINE_EPSILON:
            # The same model, with another release: nothing is compiled again.
            with model:
                pm.set_data({"line_released": np.array(NoisyStats.NA)})
            found[title_of(epsilon, None)] = {
                "confidential": confidential,
                "private": sample_private(model, steps, draws, tune),
            }
    return found


def print_table(found):
    """Print the posterior quantiles of each parameter by each analysis."""
    for title, analyses in found.items():
        print(f"\nPosterior quantiles: {title}\n")
        print(f"{'':26}" + "".join(f"{probability:8.0%}" for probability in PROBABILITIES))
        for name in PRIORS:
            for analysis, sampled in analyses.items():
                quantiles = np.quantile(sampled[name], PROBABILITIES)
                print(f"{name:12}{analysis:14}" + "".join(f"{value:8.2f}" for value in quantiles))
        print(
            f"At least {smallest_ess(analyses['private']):.0f} effective draws of the private one"
        )


def quantiles_table(found):
    """Posterior quantiles of the slope, as a table of a page."""
    rows = []
    for title, analyses in found.items():
        for analysis, sampled in analyses.items():
            # The pairs are the same in all releases.
            if analysis == "confidential" and rows:
                continue
            quantiles = np.quantile(sampled["beta"], PROBABILITIES)
            of_release = "" if analysis == "confidential" else title
            rows.append([of_release, analysis, *numbers(quantiles, 2)])
    header = ["release", "analysis", *(f"{100 * p:g} %" for p in PROBABILITIES)]
    return table(header, rows)


def draw(found):
    """Posteriors of the slope: a panel for each release."""
    figure = Figure(figsize=(7.5, 3.4), layout="constrained")
    panels = figure.subplots(1, len(found), squeeze=False)[0]
    mean, sd = PRIORS["beta"]
    bins = np.linspace(mean - 3.2 * sd, mean + 3.2 * sd, 91)
    for axes, (title, analyses) in zip(panels, found.items(), strict=True):
        for analysis, sampled in analyses.items():
            filled = analysis == "private"
            axes.hist(
                np.ravel(sampled["beta"]),
                bins,
                density=True,
                histtype="stepfilled" if filled else "step",
                color=COLOURS[analysis],
                alpha=0.35 if filled else 1.0,
                linewidth=1.5,
                label=analysis,
            )
        prior = np.exp(-0.5 * ((bins - mean) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        axes.plot(bins, prior, color="#999999", linewidth=1, linestyle="--", label="prior")
        axes.axvline(TRUTH["beta"], color="black", linewidth=1, label="true slope")
        axes.set_xlim(bins[0], bins[-1])
        axes.set_yticks([])
        axes.set_xlabel("slope")
        axes.set_title(title.replace(": ", ":\n"), loc="left", fontsize=10)
        axes.spines[["top", "right", "left"]].set_visible(False)
    panels[0].set_ylabel("posterior density")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
    return figure


def measure_mixing(draws, tune, page=None):
    """Print what the steps achieve, and what less would; write it into a page if one is given."""
    rng = np.random.default_rng(1)
    x, y = simulate_pairs(N, rng)
    rows = {}
    for epsilon in EPSILONS:
        mechanism = NoisyStats.calibrate(pmd.PureDP(epsilon), n=N)
        released = mechanism.release(
            mechanism.statistic(x, y, **LIMITS), random_seed=rng.integers(2**32)
        )
        model = build_model(mechanism, released)
        records = [model["x"], model["y"]]
        choices = {
            "NUTS": pmd.assign_steps(records, model, conjugate=False, interweave=False),
            "conjugate, NUTS": pmd.assign_steps(records, model, interweave=False),
            "conjugate, NUTS, interweave": assign_steps(model),
        }
        for name, steps in choices.items():
            start = perf_counter()
            posterior = sample_private(model, steps, draws, tune)
            seconds = perf_counter() - start
            ess = smallest_ess(posterior)
            per_1000 = 1000 * ess / posterior["alpha"].size
            rows.setdefault(name, [name]).extend(
                f"{float(f'{x:.2g}'):g}" for x in (per_1000, ess / seconds)
            )
    columns = [f"ε = {e:g}, {per}" for e in EPSILONS for per in ("per 1,000 draws", "per second")]
    mixing = table(["steps for the parameters", *columns], list(rows.values()))
    print(f"Effective draws of the parameter that has fewest\n\n{mixing}")
    fill_file(page, {"mixing": mixing})


def main(draws=2_500, tune=1_000, output=OUTPUT, epsilons=EPSILONS, page=None):
    """Analyse the releases, print the table, save the figure; fill the table of a page if given."""
    found = analyse(draws, tune, epsilons)
    print_table(found)
    fill_file(page, {"slope": quantiles_table(found)})
    save(draw(found), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the slope's quantiles into")
    parser.add_argument("--mixing", action="store_true", help="compare steps instead")
    arguments = parser.parse_args()
    if arguments.mixing:
        measure_mixing(draws=2_000, tune=1_000, page=arguments.page)
    else:
        main(output=arguments.output, page=arguments.page)
