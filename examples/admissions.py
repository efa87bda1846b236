"""Admission of men and women to UC Berkeley, from four noisy counts.

400 applicants are cross-classified by sex and admission. Only the counts with noise were released,
together with the mechanism (discrete Gaussian noise of scale sigma, added to each cell) and the
number of applicants. How do the odds of admission compare, and how sure can we be?

The script prints the posterior summary and the quantiles of the odds ratio, male to female, and
saves a figure to examples/output/admissions.png (another place: --output PATH). It shows three
analyses side by side:

private       of the released counts, with their noise taken into account
naive         of the released counts, as if they were true
confidential  of the true counts: for teaching, since an analyst doesn't have them
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

PROBABILITIES = (0.05, 0.5, 0.95)
COLOURS = {"confidential": "#595959", "naive": "#c1500a", "private": "#1b5fa6"}


def build_model(released, sigma, n):
    """Applicants are latent records; the mechanism is a factor of the log-density."""
    with pm.Model(coords={"cell": DATA["cells"]}) as model:
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=n)
        table = pt.eye(4)[record].sum(axis=0)
        # Log-probability of the noise, but for a constant.
        pm.Potential("privacy", -0.5 * (((released - table) / sigma) ** 2).sum())
        pm.Deterministic("log_odds_ratio", pt.log(p[0] * p[3] / (p[1] * p[2])))
    return model


def sample(model, draws, tune):
    """DapperStep updates the records; PyMC finds a step for p by itself, which is NUTS."""
    with model:
        return pm.sample(
            draws=draws,
            tune=tune,
            chains=4,
            step=[pmd.DapperStep([model["record"]])],
            # Leaves out the 400 records of every draw: they are latent, and of no interest.
            var_names=["p", "log_odds_ratio"],
            random_seed=1,
        )


def exact_log_odds_ratios(released, confidential, sigma, n):
    """What each analysis says about the log odds ratio, computed without sampling."""
    alpha = np.ones(4)
    posteriors = {
        "confidential": KnownTablePosterior(alpha, confidential),
        "naive": KnownTablePosterior(alpha, released),
        "private": TablePosterior(alpha, gaussian_cell_loglik(released, sigma, n)),
    }
    return {analysis: posterior.log_odds_ratio() for analysis, posterior in posteriors.items()}


def print_quantiles(sampled, exact):
    """Print quantiles, and no mean: the odds ratio has no finite posterior mean.

    Given noisy counts, either of the cells it divides by could be empty.
    """
    rows = {f"{analysis}, exact": law.quantile(PROBABILITIES) for analysis, law in exact.items()}
    rows["private, sampled"] = np.quantile(sampled, PROBABILITIES)
    print("\nOdds ratio of admission, male to female: posterior quantiles\n")
    print(" " * 20 + "".join(f"{probability:8.0%}" for probability in PROBABILITIES))
    for name, log_quantiles in rows.items():
        print(f"{name:20}" + "".join(f"{value:8.2f}" for value in np.exp(log_quantiles)))


def draw(sampled, exact):
    """Densities of the odds ratio on a log axis, above the intervals that hold 90 % of each."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])

    # All is drawn over the log odds ratio; only the tick labels are odds ratios.
    low, high = np.log([0.7, 5.6])
    grid = np.linspace(low, high, 400)
    bins = np.linspace(low, high, 41)
    above.hist(sampled, bins, density=True, color=COLOURS["private"], alpha=0.2)
    for row, (analysis, law) in enumerate(exact.items()):
        style = {"color": COLOURS[analysis], "linewidth": 2.5}
        above.plot(grid, law.pdf(grid), **style)
        first, median, last = law.quantile(PROBABILITIES)
        below.plot([first, last], [-row, -row], **style)
        below.plot(median, -row, "o", markersize=7, **style)
        numbers = "{1:.2f}  ({0:.2f} to {2:.2f})".format(*np.exp([first, median, last]))
        below.text(np.log(3.4), -row, numbers, color=COLOURS[analysis], va="center")
        below.text(low, -row, analysis, color=COLOURS[analysis], va="center")
    label(above, exact, "confidential", 0.75, "confidential:\nthe true counts")
    label(above, exact, "naive", 0.24, "naive: noisy counts\ntaken as true", ha="right")
    label(
        above,
        exact,
        "private",
        0.12,
        "private: noise\naccounted for\n(line exact,\nbars sampled)",
        ha="right",
    )

    above.set_title("Posterior of the odds ratio of admission, men to women", loc="left")
    below.set_title("Median, and the 90 % interval", loc="left", fontsize="medium")
    below.set_xlabel("odds ratio (log scale); 1 means equal odds")
    below.set_ylim(-2.6, 0.6)
    ticks = [0.75, 1, 1.5, 2, 3, 4, 5]
    below.set_xticks(np.log(ticks), [f"{tick:g}" for tick in ticks])
    for axes in (above, below):
        axes.axvline(0, color="#999999", linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        axes.set_xlim(low, high)
        axes.set_yticks([])
        axes.spines[["left", "top", "right"]].set_visible(False)
    above.set_ylim(bottom=0)
    return figure


def label(axes, exact, analysis, probability, text, ha="left"):
    """Write beside a density, upwards from the height it has at one of its quantiles."""
    x = exact[analysis].quantile(probability)
    axes.annotate(
        text,
        (x, exact[analysis].pdf(x)),
        xytext=(9 if ha == "left" else -9, 0),
        textcoords="offset points",
        ha=ha,
        va="bottom",
        color=COLOURS[analysis],
    )


def main(draws=2000, tune=1000, output=OUTPUT):
    """Sample, print both tables, save the figure."""
    released, confidential = np.array(DATA["released"]), np.array(DATA["confidential"])
    sigma, n = DATA["sigma"], DATA["n"]

    idata = sample(build_model(released, sigma, n), draws, tune)
    sampled = idata.posterior["log_odds_ratio"].values.ravel()
    exact = exact_log_odds_ratios(released, confidential, sigma, n)

    print(az.summary(idata, ci_prob=0.9))
    print_quantiles(sampled, exact)
    output = Path(output)
    output.parent.mkdir(parents=True, exist_ok=True)
    draw(sampled, exact).savefig(output, dpi=150)
    print(f"\nFigure: {output}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
