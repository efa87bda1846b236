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
from _figures import save
from _odds_ratio import draw, print_quantiles

import pymc_dapper as pmd
from pymc_dapper.reference import KnownTablePosterior, TablePosterior, gaussian_cell_loglik

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "admissions.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "admissions.png"

LABELS = {
    "confidential": (0.75, "confidential:\nthe true counts", "left"),
    "naive": (0.24, "naive: noisy counts\ntaken as true", "right"),
    "private": (0.12, "private: noise\naccounted for\n(line exact,\nbars sampled)", "right"),
}


def build_model(released, sigma, n):
    """Applicants are latent records; the mechanism is a factor of the log-density."""
    with pm.Model(coords={"cell": DATA["cells"]}) as model:
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=n)
        table = pmd.statistics.counts(record, 4)
        # The likelihood of the release.
        pmd.DiscreteGaussianMechanism(sigma).potential("privacy", table, released=released)
        pm.Deterministic("log_odds_ratio", pt.log(p[0] * p[3] / (p[1] * p[2])))
    return model


def sample(model, draws, tune):
    """Sample with the steps that pmd.sample chooses, and without the records in the result."""
    return pmd.sample(draws, tune=tune, chains=4, random_seed=1, model=model)


def exact_log_odds_ratios(released, confidential, sigma, n):
    """What each analysis says about the log odds ratio, computed without sampling."""
    alpha = np.ones(4)
    posteriors = {
        "confidential": KnownTablePosterior(alpha, confidential),
        "naive": KnownTablePosterior(alpha, released),
        "private": TablePosterior(alpha, gaussian_cell_loglik(released, sigma, n)),
    }
    return {analysis: posterior.log_odds_ratio() for analysis, posterior in posteriors.items()}


def main(draws=2000, tune=1000, output=OUTPUT):
    """Sample, print both tables, save the figure."""
    released, confidential = np.array(DATA["released"]), np.array(DATA["confidential"])
    sigma, n = DATA["sigma"], DATA["n"]

    idata = sample(build_model(released, sigma, n), draws, tune)
    sampled = idata.posterior["log_odds_ratio"].values.ravel()
    exact = exact_log_odds_ratios(released, confidential, sigma, n)

    print(az.summary(idata, ci_prob=0.9))
    print_quantiles(sampled, exact)
    figure = draw(sampled, exact, LABELS, limits=(0.7, 5.6), ticks=(0.75, 1, 1.5, 2, 3, 4, 5))
    save(figure, Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
