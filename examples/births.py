"""Was a birth in Paris more often a boy's? From two noisy counts of 493,472 births.

Between 1745 and 1770, 241,945 girls and 251,527 boys were born in Paris; Laplace asked how sure one
can be that boys are more likely (Memoire sur les probabilites, 1781). Suppose that the counts had
been released with noise N(0, 4000^2) on each, the total being known. The latent data are then one
table of two cells, not 493,472 records: CountStep moves people between the cells, at a cost that
doesn't depend on how many there are. Given the table, the probabilities are known far better than
the noise leaves the table, so that drawing one given the other in turn would crawl. The step
updates the table with the probabilities marginalised, and then draws these.

The script prints the posterior of the probability of a girl beside the answer by quadrature, and
saves a figure to examples/output/births.png (another place: --output PATH).
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import pymc as pm
from _figures import COLOURS, save
from matplotlib.figure import Figure
from scipy import stats
from scipy.special import logsumexp

import pymc_dapper as pmd
from pymc_dapper.counts.step import CountStep

GIRLS, BOYS, SIGMA = 241_945, 251_527, 4_000.0
OUTPUT = Path(__file__).parent / "output" / "births.png"
PROBABILITIES = (0.05, 0.5, 0.95)


def release(seed=1):
    """Add the noise, as a curator would have."""
    rng = np.random.default_rng(seed)
    return np.array([GIRLS, BOYS]) + rng.normal(0, SIGMA, size=2)


def build_model(released):
    """The births as a table with a known total; the mechanism sees the table."""
    with pm.Model(coords={"sex": ["girls", "boys"]}) as model:
        share = pm.Dirichlet("share", [1, 1], dims="sex")
        births = pm.Multinomial("births", n=GIRLS + BOYS, p=share, dims="sex")
        pmd.GaussianMechanism(SIGMA).potential("privacy", births, released=released)
    return model


def quadrature(released, points=2_001):
    """The posterior density of p on a grid: a sum over all counts of girls that matter."""
    n = GIRLS + BOYS
    # (noisy girls - noisy boys + n) / 2 is the number of girls, with less noise.
    centre, sd = (released[0] - released[1] + n) / 2, SIGMA / np.sqrt(2)
    girls = np.arange(int(centre - 9 * sd), int(centre + 9 * sd))
    log_noise = stats.norm.logpdf(girls, centre, sd)
    grid = np.linspace(centre / n - 6 * sd / n, centre / n + 6 * sd / n, points)
    log_density = np.array([logsumexp(stats.binom.logpmf(girls, n, p) + log_noise) for p in grid])
    density = np.exp(log_density - log_density.max())
    return grid, density / (density.sum() * (grid[1] - grid[0]))


def quantiles(grid, density):
    cdf = np.concatenate([[0.0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return np.interp(PROBABILITIES, cdf / cdf[-1], grid)


def sample(model, draws, tune):
    """Draw tables and probabilities; return that of a girl."""
    with model:
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=4,
            step=[CountStep([model["births"]], integrate=[model["share"]])],
            random_seed=1,
            progressbar=False,
        )
    return idata.posterior["share"].sel(sex="girls").values.ravel()


def draw(sampled, grid, density):
    """The three densities of p: of the true counts, exact given the noisy ones, and sampled."""
    figure = Figure(figsize=(8, 4), layout="constrained")
    axes = figure.subplots()
    private, confidential = COLOURS["private"], COLOURS["confidential"]
    axes.hist(sampled, 60, density=True, color=private, alpha=0.25, label="private, sampled")
    axes.plot(grid, density, color=private, linewidth=2.5, label="private, by quadrature")
    axes.axvline(0.5, color="#999999", linestyle=(0, (4, 3)), linewidth=1)
    axes.axvline(
        GIRLS / (GIRLS + BOYS), color=confidential, linewidth=2.5, label="true share of girls"
    )
    axes.set_title("Probability that a birth was a girl's, from noisy counts", loc="left")
    axes.set_xlabel("probability; 0.5 means that girls and boys are as likely")
    axes.set_yticks([])
    axes.spines[["left", "top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def main(draws=2000, tune=500, output=OUTPUT):
    """Sample, print the table, save the figure."""
    released = release()
    model = build_model(released)
    began = perf_counter()
    sampled = sample(model, draws, tune)
    seconds = perf_counter() - began
    grid, density = quadrature(released)

    print(f"Released: {released[0]:,.0f} girls, {released[1]:,.0f} boys; {seconds:.0f} s\n")
    print("Probability of a girl: posterior quantiles\n")
    print(" " * 22 + "".join(f"{probability:9.0%}" for probability in PROBABILITIES))
    rows = {
        "private, sampled": np.quantile(sampled, PROBABILITIES),
        "private, quadrature": quantiles(grid, density),
        "confidential": stats.beta(GIRLS + 1, BOYS + 1).ppf(PROBABILITIES),
    }
    for name, values in rows.items():
        print(f"{name:22}" + "".join(f"{value:9.4f}" for value in values))

    save(draw(sampled, grid, density), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
