"""Linear regression from nine noisy sums.

50 records (y, x1, x2) were clamped, scaled and added up to the nine sums that a regression needs;
only these were released, with Laplace noise (epsilon = 10). What do they say about the
coefficients? Records, outcome and covariates alike, are latent; given them, the coefficients are
jointly normal, and `pmd.sample` draws them directly.

The script prints the posterior summaries and saves a figure to examples/output/regression.png
(another place: --output PATH). It shows three analyses:

private       of the released sums, with clamping and noise taken into account
naive         of the released sums as if they were true. Noise made x'x indefinite, so its inverse
              is replaced by the nearest matrix that is positive semi-definite (Higham 1988)
confidential  of the true records: for teaching, since an analyst doesn't have them
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pymc as pm
from _figures import COLOURS, save
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde, norm

import pymc_dapper as pmd

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "regression.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "regression.png"

COEFFICIENTS = ["intercept", "x1", "x2"]
TRUE = [-1.79, -2.89, -0.66]  # what the records were simulated with
X_MEAN = np.array([0.9, -1.17])
NOISE_VARIANCE = 2.0  # of y given x: the paper's text says sd 2, its code variance 2
PRIOR_SD = 2.0  # of each coefficient
RELEASED, RECORDS = np.array(DATA["released"]), np.array(DATA["confidential"])
N, CLAMP = DATA["n"], tuple(DATA["clamp"])
WIDTH = (CLAMP[1] - CLAMP[0]) / 2  # of the clamped range, which is scaled to [-1, 1]


def build_model():
    """Records are latent variables; the statistic and its noise are written as released."""
    mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(DATA["epsilon"]), sensitivity=15)
    with pm.Model(coords={"coefficient": COEFFICIENTS}) as model:
        b = pm.Normal("b", 0, PRIOR_SD, dims="coefficient")
        x = pm.Normal("x", X_MEAN, 1, shape=(N, 2))
        y = pm.Normal("y", b[0] + x @ b[1:], np.sqrt(NOISE_VARIANCE), shape=N)
        sums = pmd.statistics.regression(x, y, clamp=CLAMP)
        mechanism.potential("privacy", sums, released=RELEASED)
    return model


def sample(draws, tune, chains):
    """DapperStep for the records, one joint normal draw for the coefficients."""
    with build_model():
        return pmd.sample(
            draws,
            tune=tune,
            chains=chains,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )


def cross_products(sums):
    """x'x and x'y, with a column of ones, of the scaled records."""
    y, x1y, x2y, _, x1, x11, x2, x12, x22 = sums
    return np.array([[N, x1, x2], [x1, x11, x12], [x2, x12, x22]]), np.array([y, x1y, x2y])


def nearest_positive_semidefinite(matrix):
    """Nearest in the Frobenius norm: negative eigenvalues become zero (Higham 1988)."""
    values, vectors = np.linalg.eigh(matrix)
    return (vectors * np.maximum(values, 0)) @ vectors.T


def in_units_of_records(mean, inverse):
    """Coefficients, and their covariance given the inverse of x'x, from those of scaled records.

    With y and x scaled alike the slopes stay as they are; the intercept is a length.
    """
    units = np.array([WIDTH, 1, 1])
    return mean * units, NOISE_VARIANCE * inverse * np.outer(units, units) / WIDTH**2


def naive(released=RELEASED):
    """Mean and covariance of the coefficients under a flat prior, the sums taken as true."""
    xx, xy = cross_products(released)
    inverse = nearest_positive_semidefinite(np.linalg.inv(xx))
    return in_units_of_records(inverse @ xy, inverse)


def confidential():
    """The same, from the records."""
    y, x = RECORDS[:, 0], np.column_stack([np.ones(N), RECORDS[:, 1:]])
    inverse = np.linalg.inv(x.T @ x)
    return inverse @ x.T @ y, NOISE_VARIANCE * inverse


def summary_of_normal(mean, covariance):
    """Mean, sd, 5 % and 95 % quantile of each coefficient."""
    law = norm(mean, np.sqrt(np.diag(covariance)))
    return np.transpose([law.mean(), law.std(), law.ppf(0.05), law.ppf(0.95)])


def print_table(sampled):
    """Print mean, standard deviation and 90 % interval of each coefficient, by each analysis."""
    print("\nPosterior of the coefficients\n")
    print(f"{'':26}{'mean':>8}{'sd':>8}{'5 %':>8}{'95 %':>8}")
    private = [sampled.mean(axis=0), sampled.std(axis=0), *np.quantile(sampled, [0.05, 0.95], 0)]
    rows = {
        "confidential": summary_of_normal(*confidential()),
        "naive": summary_of_normal(*naive()),
        "private": np.transpose(private),
    }
    for k, coefficient in enumerate(COEFFICIENTS):
        for analysis, summaries in rows.items():
            cells = "".join(f"{number:8.2f}" for number in summaries[k])
            print(f"{coefficient:12}{analysis:14}{cells}")


def draw(sampled):
    """Private, naive and confidential, one panel per coefficient; dashed: the simulation's truth.

    Each density is drawn at the same height: the naive ones would be many times as high as the
    others, so sure are they of the wrong numbers. What they say is where they are, and how wide.
    """
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels = figure.subplots(1, len(COEFFICIENTS), sharey=True)
    laws = {"confidential": confidential(), "naive": naive()}
    for k, (axes, coefficient) in enumerate(zip(panels, COEFFICIENTS, strict=True)):
        densities = {}
        for name, (mean, covariance) in laws.items():
            law = norm(mean[k], np.sqrt(covariance[k, k]))
            grid = np.linspace(*law.ppf([1e-4, 1 - 1e-4]), 200)
            densities[name] = grid, law.pdf(grid)
        grid = np.linspace(*np.quantile(sampled[:, k], [0.001, 0.999]), 200)
        densities["private"] = grid, gaussian_kde(sampled[:, k])(grid)
        for name, (grid, density) in densities.items():
            height = density / density.max()
            axes.fill_between(grid, height, color=COLOURS[name], alpha=0.2, linewidth=0)
            axes.plot(grid, height, color=COLOURS[name], linewidth=2, label=name)
        axes.axvline(
            TRUE[k], color="black", linewidth=1, linestyle=(0, (4, 3)), label="simulated with"
        )
        axes.set(ylim=(0, 1.05), yticks=[])
        axes.set_xlabel("intercept" if k == 0 else f"coefficient of {coefficient}")
        axes.spines[["left", "top", "right"]].set_visible(False)
    panels[0].set_ylabel("posterior density,\neach to the same height")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
    return figure


def main(draws=10_000, tune=2_000, output=OUTPUT):
    """Sample, print the table, save the figure."""
    idata = sample(draws, tune, chains=4)
    sampled = idata.posterior["b"].values.reshape(-1, len(COEFFICIENTS))
    print_table(sampled)
    save(draw(sampled), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
