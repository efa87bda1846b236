"""Linear regression from nine noisy sums.

50 records (y, x1, x2) were clamped, scaled and added up to the nine sums that a regression needs;
only these were released, with Laplace noise (epsilon = 10). What do they say about the
coefficients? Records, outcome and covariates alike, are latent; given them, the coefficients are
jointly normal, and `pmd.sample` draws them directly.

The script prints the posterior summaries and saves a figure to examples/output/regression.png
(another place: --output PATH). It shows three analyses:

private       of the released sums, with clamping and noise taken into account
naive         of the released sums as if they were true, x'x being replaced by the nearest matrix
              that is positive semi-definite (Higham 1988): noise can make it indefinite
confidential  of the true records: for teaching, since an analyst doesn't have them
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pymc as pm
from matplotlib.figure import Figure
from scipy.stats import norm

import pymc_dapper as pmd

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "regression.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "regression.png"

COEFFICIENTS = ["intercept", "x1", "x2"]
X_MEAN = np.array([0.9, -1.17])
NOISE_VARIANCE = 2.0  # of y given x: the paper's text says sd 2, its code variance 2
PRIOR_SD = 2.0  # of each coefficient
COLOURS = {"confidential": "#595959", "naive": "#c1500a", "private": "#1b5fa6"}


def build_model(released, n, clamp, mechanism):
    """Records are latent variables; the statistic and its noise are written as released."""
    with pm.Model(coords={"coefficient": COEFFICIENTS}) as model:
        b = pm.Normal("b", 0, PRIOR_SD, dims="coefficient")
        x = pm.Normal("x", X_MEAN, 1, shape=(n, 2))
        y = pm.Normal("y", b[0] + x @ b[1:], np.sqrt(NOISE_VARIANCE), shape=n)
        sums = pmd.statistics.regression(x, y, clamp=clamp)
        mechanism.potential("privacy", sums, released=released)
    return model


def posterior_of_coefficients(xx, xy):
    """Mean and covariance of the coefficients given x'x and x'y: the textbook's normal."""
    covariance = np.linalg.inv(xx / NOISE_VARIANCE + np.eye(len(xx)) / PRIOR_SD**2)
    return covariance @ xy / NOISE_VARIANCE, covariance


def cross_products(sums, n, clamp):
    """x'x and x'y, with a column of ones, from the sums of records scaled to [-1, 1]."""
    width = (clamp[1] - clamp[0]) / 2
    y, x1y, x2y, _, x1, x11, x2, x12, x22 = sums
    xx = np.array([[n, x1, x2], [x1, x11, x12], [x2, x12, x22]])
    scale = np.array([1, width, width])
    return xx * np.outer(scale, scale), np.array([y, x1y, x2y]) * scale * width


def nearest_positive_semidefinite(matrix):
    """Nearest in the Frobenius norm: negative eigenvalues become zero (Higham 1988)."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def closed_forms(released, records, n, clamp):
    """What the two analyses say that need no sampling."""
    xx, xy = cross_products(released, n, clamp)
    y, x = records[:, 0], np.column_stack([np.ones(n), records[:, 1:]])
    return {
        "confidential": posterior_of_coefficients(x.T @ x, x.T @ y),
        "naive": posterior_of_coefficients(nearest_positive_semidefinite(xx), xy),
    }


def print_table(sampled, closed):
    """Print mean, standard deviation and 90 % interval of each coefficient, by each analysis."""
    print("\nPosterior of the coefficients\n")
    print(f"{'':26}{'mean':>8}{'sd':>8}{'5 %':>8}{'95 %':>8}")
    for k, coefficient in enumerate(COEFFICIENTS):
        for analysis, (mean, covariance) in closed.items():
            law = norm(mean[k], np.sqrt(covariance[k, k]))
            numbers = (law.mean(), law.std(), *law.ppf([0.05, 0.95]))
            _print_row(coefficient, analysis, numbers)
        draws = sampled[:, k]
        _print_row(
            coefficient, "private", (draws.mean(), draws.std(), *np.quantile(draws, [0.05, 0.95]))
        )


def _print_row(coefficient, analysis, numbers):
    print(f"{coefficient:12}{analysis:14}" + "".join(f"{number:8.2f}" for number in numbers))


def draw(sampled, closed):
    """Private against naive above, private against confidential below."""
    figure = Figure(figsize=(9, 5.2), layout="constrained")
    rows = figure.subplots(2, 3, sharex="col")
    for row, analysis in zip(rows, ("naive", "confidential"), strict=True):
        mean, covariance = closed[analysis]
        for k, axes in enumerate(row):
            law = norm(mean[k], np.sqrt(covariance[k, k]))
            low = min(law.ppf(1e-3), np.quantile(sampled[:, k], 1e-3))
            high = max(law.ppf(1 - 1e-3), np.quantile(sampled[:, k], 1 - 1e-3))
            grid = np.linspace(low, high, 400)
            axes.hist(
                sampled[:, k],
                np.linspace(low, high, 51),
                density=True,
                color=COLOURS["private"],
                alpha=0.35,
                label="private",
            )
            axes.plot(grid, law.pdf(grid), color=COLOURS[analysis], linewidth=2, label=analysis)
            axes.set_yticks([])
            axes.spines[["left", "top", "right"]].set_visible(False)
        row[0].legend(frameon=False, loc="upper left")
    for axes, coefficient in zip(rows[0], COEFFICIENTS, strict=True):
        axes.set_title(coefficient, loc="left")
    figure.suptitle("Posterior of regression coefficients, from nine noisy sums")
    return figure


def main(draws=10_000, tune=2_000, output=OUTPUT):
    """Sample, print the table, save the figure."""
    released, records = np.array(DATA["released"]), np.array(DATA["confidential"])
    n, clamp = DATA["n"], tuple(DATA["clamp"])
    mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(DATA["epsilon"]), sensitivity=15)
    model = build_model(released, n, clamp, mechanism)
    with model:
        idata = pmd.sample(draws, tune=tune, chains=4, random_seed=1)
    sampled = idata.posterior["b"].values.reshape(-1, len(COEFFICIENTS))
    closed = closed_forms(released, records, n, clamp)
    print_table(sampled, closed)
    figure = draw(sampled, closed)
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    print(f"\nFigure: {output}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
