"""Admission of men and women to UC Berkeley, from four noisy counts.

400 applicants are cross-classified by sex and admission. Only the counts with noise were released,
together with the mechanism (discrete Gaussian noise of scale sigma, added to each cell) and the
number of applicants. How do the odds of admission compare, and how sure can we be?

The script prints the posterior summary and quantiles of the odds ratio, and saves a figure to
examples/output/admissions.png. It takes the odds ratio three ways:

private       from what was released, noise taken into account: what this package is for
naive         from the noisy counts as if they were true
confidential  from the true counts: for teaching, an analyst doesn't have them
"""

import argparse
import json
from pathlib import Path

import arviz as az
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from matplotlib.figure import Figure

import pymc_dapper as pmd
from pymc_dapper.reference import KnownTablePosterior, TablePosterior, gaussian_cell_loglik

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "admissions.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "admissions.png"

PROBABILITIES = [0.05, 0.5, 0.95]
COLOURS = {"private": "#1f5fa8", "naive": "#c4560c", "confidential": "#555555"}


def build_model(released, sigma, n):
    """Applicants as latent records, and the mechanism as a factor of their log-density."""
    with pm.Model(coords={"cell": DATA["cells"]}) as model:
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=n)
        table = pt.eye(4)[record].sum(axis=0)
        # The log-probability of the noise, but for a constant.
        pm.Potential("privacy", -0.5 * (((released - table) / sigma) ** 2).sum())
        pm.Deterministic("log_odds_ratio", pt.log(p[0] * p[3] / (p[1] * p[2])))
    return model


def sample(model, draws, tune):
    """DapperStep updates the records; PyMC gives p to NUTS by itself."""
    with model:
        return pm.sample(
            draws=draws,
            tune=tune,
            chains=4,
            step=[pmd.DapperStep([model["record"]])],
            # Without the 400 records, which nobody looks at, the result is 80 times smaller.
            var_names=["p", "log_odds_ratio"],
            random_seed=1,
        )


def exact_posteriors(released, confidential, sigma, n):
    """The laws of the log odds ratio, by numerical integration: no sampling."""
    alpha = np.ones(4)
    posteriors = {
        "private": TablePosterior(alpha, gaussian_cell_loglik(released, sigma, n)),
        "naive": KnownTablePosterior(alpha, released),
        "confidential": KnownTablePosterior(alpha, confidential),
    }
    return {name: posterior.log_odds_ratio() for name, posterior in posteriors.items()}


def print_quantiles(sampled, exact):
    """Quantiles only: the posterior mean of the odds ratio is infinite.

    Its denominator holds two cells that may be empty, for all that the noisy counts tell.
    """
    rows = {"private, sampled": np.quantile(sampled, PROBABILITIES)}
    for name, law in exact.items():
        rows[f"{name}, exact"] = law.quantile(PROBABILITIES)
    print("\nOdds ratio of admission, male to female: posterior quantiles")
    print(" " * 22 + "".join(f"{probability:>8.0%}" for probability in PROBABILITIES))
    for name, quantiles in rows.items():
        print(f"{name:<22}" + "".join(f"{value:>8.2f}" for value in np.exp(quantiles)))


def draw(sampled, exact):
    """Posterior densities of the odds ratio, over intervals that hold 90 % of each."""
    low, high = np.log([0.75, 5.5])
    figure = Figure(figsize=(8, 5.2), layout="constrained")
    densities, intervals = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1.2])

    grid = np.linspace(low, high, 400)
    densities.hist(
        sampled,
        bins=np.linspace(low, high, 70),
        density=True,
        color=COLOURS["private"],
        alpha=0.25,
    )
    for row, (name, law) in enumerate(exact.items()):
        colour = COLOURS[name]
        densities.plot(grid, law.pdf(grid), color=colour, linewidth=2)
        first, median, last = law.quantile(PROBABILITIES)
        intervals.plot([first, last], [row, row], color=colour, linewidth=3)
        intervals.plot(median, row, "o", color=colour, markersize=8)
    figure.savefig("/tmp/h/x.png")
    return figure


def main(draws=2000, tune=1000, output=OUTPUT):
    released, confidential = np.array(DATA["released"]), np.array(DATA["confidential"])
    sigma, n = DATA["sigma"], DATA["n"]

    idata = sample(build_model(released, sigma, n), draws, tune)
    print(az.summary(idata, ci_prob=0.9))

    sampled = idata.posterior["log_odds_ratio"].values.ravel()
    exact = exact_posteriors(released, confidential, sigma, n)
    print_quantiles(sampled, exact)
    figure = draw(sampled, exact)

if __name__ == "__main__":
    main()
