"""Fatal injuries by age and year, rounded at random to base 3: rates, naive and with the rounding.

Statistics New Zealand publishes counts of fatal injuries as multiples of 3: a count of 4 as 3 with
probability 2/3, and as 6 with 1/3. Rounding adds no bias, but noise of variance 4/3 on average,
which is much beside counts of 0 to 10. Who takes published counts for true ones sees rates that
differ more than they do, and is too sure of each.

The model has the form that the R package bage documents for these data: rates are a product of
effects of age by sex and of the year, each a random walk, and vary around it by a Gamma
distribution. (bage itself, which approximates the likelihood, isn't run here.) It is fitted to the
real table, and to made tables of the same size, of which the true counts are known. Three analyses
see one of them: the true counts, the published ones as if true, and the published ones with
`RandomRounding(3)`, which sums over the counts that may be behind each.

It prints tables and saves a figure to examples/output/injuries.png (another place: --output PATH).
Where the data are from is in examples/data/injuries.md.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
from _figures import COLOURS, save
from _markdown import fill_file, numbers, table
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import pymc_dapper as pmd

DATA = Path(__file__).parent / "data" / "injuries.csv"
OUTPUT = Path(__file__).parent / "output" / "injuries.png"
ROUNDING = pmd.RandomRounding(3)
PER = 100_000
INTERVAL = (0.1, 0.9)
ANALYSES = ("confidential", "naive", "private")


@dataclass(frozen=True)
class Injuries:
    """Counts and population by age, sex and year."""

    coords: dict
    published: np.ndarray
    population: np.ndarray


def load(ethnicity="Maori"):
    """Read the table of one ethnicity."""
    rows = pd.read_csv(DATA)
    rows = rows[rows.ethnicity == ethnicity]
    coords = {name: list(rows[name].unique()) for name in ("age", "sex", "year")}
    shape = [len(coords[name]) for name in ("year", "sex", "age")]
    arrays = (rows[name].to_numpy().reshape(shape) for name in ("injuries", "population"))
    return Injuries(coords, *(np.moveaxis(x, 0, -1) for x in arrays))


def build_model(data, counts, analysis):
    """Rates by age, sex and year; each analysis observes the counts in its own way."""
    with pm.Model(coords=data.coords) as model:
        level = pm.Normal("level", np.log(20 / PER), 2)
        by_age = pm.HalfNormal("by_age", 1)
        by_year = pm.HalfNormal("by_year", 0.2)
        age = pm.Normal("age_step", 0, 1, dims=("sex", "age"))
        year = pm.Normal("year_step", 0, 1, dims="year")
        age_effect = by_age * pt.cumsum(age, axis=1)
        year_effect = by_year * pt.cumsum(year)
        expected = pt.exp(level + age_effect[..., None] + year_effect)
        pm.Deterministic("rate", PER * expected, dims=("sex", "age", "year"))
        spread = pm.HalfNormal("spread", 0.5)
        law = {"mu": data.population * expected, "alpha": spread**-2}
        if analysis == "private":
            count = pm.NegativeBinomial("count", **law, shape=counts.shape)
            ROUNDING.potential("published", count, released=counts)
        else:
            pm.NegativeBinomial("count", **law, observed=counts)
    return model


def fit(data, counts, analysis, draws, tune):
    sample = pmd.sample if analysis == "private" else pm.sample
    with build_model(data, counts, analysis):
        return sample(
            draws=draws,
            tune=tune,
            chains=2,
            cores=1,
            var_names=["rate", "spread"],
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior


def made(data, rate, spread, seed):
    """A table like the real one, with known true counts."""
    rng = np.random.default_rng(seed)
    shape = 1 / spread**2
    truth = rng.poisson(data.population * rate / PER * rng.gamma(shape, 1 / shape, rate.shape))
    return truth, np.asarray(ROUNDING.release(truth, random_seed=rng))


def interval(draws):
    return np.quantile(draws, INTERVAL, axis=(0, 1))


def main(draws=500, tune=500, tables=1, output=OUTPUT, page=None):
    data = load()
    real = {x: fit(data, data.published, x, draws, tune) for x in ANALYSES[1:]}
    rows = [
        [
            "published as true" if x == "naive" else "with the rounding",
            *numbers([real[x]["spread"].values.mean(), *interval(real[x]["spread"].values)], 2),
        ]
        for x in real
    ]
    of_real = table(["Analysis of the real table", "Spread of rates", "10 %", "90 %"], rows)
    print(of_real)

    rate = real["private"]["rate"].values.mean(axis=(0, 1))
    spread = 0.1
    small = data.population * rate / PER < 5
    found = {x: [] for x in ANALYSES}
    for seed in range(1, tables + 1):
        truth, published = made(data, rate, spread, seed)
        for x in ANALYSES:
            counts = truth if x == "confidential" else published
            fitted = fit(data, counts, x, draws, tune)
            low, high = interval(fitted["rate"].values)
            inside = (low <= rate) & (rate <= high)
            found[x].append(
                (
                    fitted["spread"].values.mean(),
                    inside[small].mean(),
                    inside[~small].mean(),
                    (high - low)[small].mean(),
                )
            )
    names = {"confidential": "true counts", "naive": "published as true"}
    rows = [
        [names.get(x, "with the rounding"), *numbers(np.mean(found[x], axis=0), 2)]
        for x in ANALYSES
    ]
    of_made = table(
        [
            f"Analysis of made tables ({tables}, spread {spread})",
            "Spread, mean",
            "Rates of small counts held by 80 % intervals",
            "Other rates held",
            "Width, small counts",
        ],
        rows,
    )
    print(of_made)
    draw(data, real, output)
    if page is not None:
        fill_file(page, {"injuries real": of_real, "injuries made": of_made})


def draw(data, real, output):
    """Rates of Maori women by year, at two ages: published, naive and with the rounding."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    years = data.coords["year"]
    for axes, age in zip(figure.subplots(1, 2), ("10-14", "20-24"), strict=True):
        place = data.coords["age"].index(age)
        published = PER * data.published[0, place] / data.population[0, place]
        axes.plot(years, published, "o", color="#777777", markersize=4, label="published")
        for x in real:
            draws = real[x]["rate"].values[:, :, 0, place]
            axes.plot(years, draws.mean(axis=(0, 1)), color=COLOURS[x], linewidth=2, label=x)
            axes.fill_between(years, *interval(draws), color=COLOURS[x], alpha=0.2, linewidth=0)
        axes.set_title(f"Women of {age}")
        axes.set_ylabel(f"fatal injuries per {PER:,}")
        axes.set_ylim(0, None)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    figure.axes[0].legend(frameon=False)
    save(figure, output)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=500)
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--tables", type=int, default=1)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--page", type=Path)
    main(**vars(parser.parse_args()))
