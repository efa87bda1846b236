"""Noisy measurements, made as the Census Bureau's production run made them, of made-up people."""

import json
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pymc as pm

import pymc_dapper as pmd

BUDGET = json.loads(
    (Path(__file__).parents[2] / "examples" / "data" / "census_2020_budget.json").read_text()
)
SHAPE = {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63}
LEVELS = {"State": 2, "County": 5, "Tract": 11}
QUERIES = ("total", "votingage", "hispanic", "hispanic * cenrace")


def sigma(level, query):
    share = Fraction(BUDGET["level_share"][level]) * Fraction(BUDGET["query_share"][level][query])
    return float(Fraction(BUDGET["global_scale"])) / sqrt(share)


def noisy_rows(people, tracts, rng, queries=QUERIES, times=1):
    """Columns of a noisy measurement file: of a table of tracts by all four attributes.

    Noise can be some times that of the standard deviation that the rows tell.
    """
    rows = {name: [] for name in ("geocode", "query_name", "query_shape", "value", "variance")}
    for level, length in LEVELS.items():
        for code in sorted({tract[:length] for tract in tracts}):
            table = people[[tract.startswith(code) for tract in tracts]].sum(axis=0)
            for query in queries:
                kept = SHAPE if query == "detailed" else query.split(" * ")
                over = tuple(k for k, name in enumerate(SHAPE) if name not in kept)
                true, scale = table.sum(axis=over, keepdims=True), sigma(level, query)
                noisy = pmd.DiscreteGaussianMechanism(scale).release(true, rng)
                noisy = true + times * (noisy - true)
                cells = (code, f"{query}_dpq", [*true.shape], noisy.ravel().tolist(), scale**2)
                for column, cell in zip(rows.values(), cells, strict=True):
                    column.append(cell)
    return rows


def made_up(tracts, people_each, rng):
    """People of tracts by the four attributes; none under age in one kind of group quarters."""
    weights = rng.dirichlet(np.full(2016, 0.05)).reshape(*SHAPE.values())
    weights[2, 0] = 0
    weights /= weights.sum()
    drawn = rng.multinomial(people_each, weights.ravel(), size=len(tracts))
    return drawn.reshape(len(tracts), *SHAPE.values())


def state(n_counties, n_tracts):
    """Geocodes of a state's tracts, in counties of about the same number of tracts."""
    numbers = [divmod(k, n_counties) for k in range(n_tracts)]
    return sorted(f"56{2 * county + 1:03d}{100 * (k + 1):06d}" for k, county in numbers)


def drawn(tracts, people_each, rng, by_quarters=True):
    """Rates of cells, the same in all tracts, and people drawn by them; by group quarters or not.

    Cells of rate zero are empty for sure: many races have nobody, and so has one kind of
    group quarters under age.
    """
    weights = rng.dirichlet(np.full(2016, 0.05)).reshape(*SHAPE.values())
    weights[2, 0] = 0
    rate = people_each * weights / weights.sum()
    rate[rate < 0.1] = 0
    rate = rate if by_quarters else rate.sum(axis=0, keepdims=True)
    return rate, rng.poisson(rate, (len(tracts), *rate.shape))


def model_of(release, tracts, rate, population):
    """The model of a state: tables of its tracts, of known rates; its population is exact."""
    within = {
        level: ("tract", [tract[:length] for tract in tracts])
        for level, length in (("state", 2), ("county", 5))
    }
    with pm.Model(coords=release.coords) as model:
        table = pm.Poisson("table", rate, shape=(len(tracts), *rate.shape))
        pmd.invariant("state population", table.sum(), population)
        release.potential(release.margins(table, ("tract", *SHAPE), within=within))
    return model
