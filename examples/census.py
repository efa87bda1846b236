"""Tracts of a synthetic census, from noisy counts at three levels.

A state has counties, and these have tracts. In each tract some people belong to a group; how many
is released with discrete Gaussian noise at every level: tract, county and state, each with its own
share of the privacy budget (rho, zero-concentrated), as in the 2020 Census Noisy Measurement Files.
How many people live in each tract is taken as public, and the state's total of the group is
published exactly. Small tracts get negative noisy counts.

Tracts' proportions are partially pooled. CountStep updates the latent counts: it exchanges people
between tracts, so that the state's total stays what it is.

The script prints how often 90 % intervals of the tracts' counts hold the simulated truth, beside
those of a naive analysis (the noisy count of the tract alone, with the noise's standard deviation),
and saves a figure to examples/output/census.png (another place: --output PATH).
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
import pymc as pm
from _figures import COLOURS, save
from _markdown import fill_file, numbers, table
from matplotlib.figure import Figure
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.counts.step import CountStep

OUTPUT = Path(__file__).parent / "output" / "census.png"
COUNTIES, TRACTS = 8, 25
RHO = {"tract": 0.002, "county": 0.01, "state": 0.01}
COVERAGE = 0.9


@dataclass(frozen=True)
class Census:
    """What is public, and the truth."""

    people: np.ndarray
    truth: np.ndarray
    released: dict
    sigma: dict


def simulate(seed=1):
    """Draw a state and its release."""
    rng = np.random.default_rng(seed)
    people = np.round(rng.lognormal(np.log(300), 0.7, (COUNTIES, TRACTS))).astype(int)
    share = rng.beta(2, 18, (COUNTIES, TRACTS))
    truth = rng.binomial(people, share)
    # A person counts once at each level: the sensitivity is 1, and rho = 1 / (2 sigma^2).
    sigma = {level: float(np.sqrt(1 / (2 * rho))) for level, rho in RHO.items()}
    levels = {"tract": truth, "county": truth.sum(axis=1), "state": truth.sum()}
    released = {
        level: pmd.DiscreteGaussianMechanism(sigma[level]).release(value, random_seed=rng)
        for level, value in levels.items()
    }
    return Census(people, truth, released, sigma)


def build_model(census):
    """Partially pooled proportions; counts beta-binomial given them."""
    coords = {"county": np.arange(COUNTIES), "tract": np.arange(TRACTS)}
    with pm.Model(coords=coords) as model:
        share = pm.Beta("share", 1, 1)
        concentration = pm.HalfNormal("concentration", 50)
        group = pm.BetaBinomial(
            "group",
            n=census.people,
            alpha=share * concentration,
            beta=(1 - share) * concentration,
            dims=("county", "tract"),
        )
        levels = {"tract": group, "county": group.sum(axis=1), "state": group.sum()}
        for level, statistic in levels.items():
            mechanism = pmd.DiscreteGaussianMechanism(census.sigma[level])
            mechanism.potential(level + "_noise", statistic, released=census.released[level])
        pmd.invariant("state_total", group.sum(), census.truth.sum())
    return model


def sample(model, draws, tune):
    with model:
        return pm.sample(
            draws=draws,
            tune=tune,
            chains=2,
            step=[CountStep([model["group"]])],
            random_seed=1,
            progressbar=False,
        )


def intervals(census, counts):
    """90 % intervals of each tract's count, by both analyses."""
    tails = ((1 - COVERAGE) / 2, (1 + COVERAGE) / 2)
    noisy, half = census.released["tract"], stats.norm.ppf(tails[1]) * census.sigma["tract"]
    return {
        "naive": (noisy - half, noisy + half),
        "private": tuple(np.quantile(counts, tails, axis=0)),
    }


def draw(census, bounds):
    """Intervals of the smallest tracts, and the truth."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    axes = figure.subplots()
    shown = np.argsort(census.people.ravel())[:: census.people.size // 40]
    place = np.arange(len(shown))
    for offset, name in ((-0.18, "naive"), (0.18, "private")):
        low, high = (bound.ravel()[shown] for bound in bounds[name])
        axes.vlines(place + offset, low, high, color=COLOURS[name], linewidth=2.5, label=name)
    truth = census.truth.ravel()[shown]
    axes.plot(place, truth, "o", color="#222222", markersize=4, label="truth")
    axes.axhline(0, color="#999999", linewidth=1)
    axes.set_title("Members of the group in 40 tracts: 90 % intervals and the truth", loc="left")
    axes.set_xlabel("tracts, the smallest on the left")
    axes.set_xticks([])
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    return figure


def main(draws=1000, tune=500, output=OUTPUT, page=None):
    """Simulate, sample, print the table, save the figure; write the table into a page if given."""
    census = simulate()
    model = build_model(census)
    began = perf_counter()
    idata = sample(model, draws, tune)
    seconds = perf_counter() - began
    counts = idata.posterior["group"].values.reshape(-1, COUNTIES, TRACTS)
    bounds = intervals(census, counts)

    noisy = census.released["tract"]
    print(
        f"{census.truth.size} tracts, {census.people.sum():,} people, "
        f"{(noisy < 0).sum()} negative noisy counts; {seconds:.0f} s\n"
    )
    rows = []
    for name, (low, high) in bounds.items():
        inside = np.mean((low <= census.truth) & (census.truth <= high))
        centre = noisy if name == "naive" else counts.mean(axis=0)
        rmse = np.sqrt(np.mean((centre - census.truth) ** 2))
        rows.append([name, f"{100 * inside:.0f} %", *numbers([np.mean(high - low), rmse], 1)])
    found = table(["analysis", "holds the truth", "mean width", "root mean square error"], rows)
    print(found)
    fill_file(page, {"census": found})
    assert np.all(counts.sum(axis=(1, 2)) == census.truth.sum())
    save(draw(census, bounds), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    arguments = parser.parse_args()
    main(output=arguments.output, page=arguments.page)
