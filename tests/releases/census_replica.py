"""Noisy measurements, made as the Census Bureau's production run made them, of made-up people."""

import json
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np

import pymc_dapper as pmd

BUDGET = json.loads(
    (Path(__file__).parents[2] / "examples" / "data" / "census_2020_budget.json").read_text()
)
SHAPE = {"hhgq": 8, "votingage": 2, "hispanic": 2, "cenrace": 63}
LEVELS = {"State": 2, "County": 5, "Tract": 11}


def sigma(level, query):
    share = Fraction(BUDGET["level_share"][level]) * Fraction(BUDGET["query_share"][level][query])
    return float(Fraction(BUDGET["global_scale"])) / sqrt(share)


def noisy_rows(
    people, tracts, rng, queries=("total", "votingage", "hispanic", "hispanic * cenrace")
):
    """Columns of a noisy measurement file: of a table of tracts by all four attributes."""
    rows = {name: [] for name in ("geocode", "query_name", "query_shape", "value", "variance")}
    for level, length in LEVELS.items():
        for code in sorted({tract[:length] for tract in tracts}):
            table = people[[tract.startswith(code) for tract in tracts]].sum(axis=0)
            for query in queries:
                kept = SHAPE if query == "detailed" else query.split(" * ")
                over = tuple(k for k, name in enumerate(SHAPE) if name not in kept)
                true, scale = table.sum(axis=over, keepdims=True), sigma(level, query)
                noisy = pmd.DiscreteGaussianMechanism(scale).release(true, rng)
                cells = (code, f"{query}_dpq", [*true.shape], noisy.ravel().tolist(), scale**2)
                for column, cell in zip(rows.values(), cells, strict=True):
                    column.append(cell)
    return rows


def made_up(tracts, people_each, rng):
    """People of tracts by the four attributes; none under age in nursing facilities."""
    weights = rng.dirichlet(np.full(2016, 0.05)).reshape(*SHAPE.values())
    weights[2, 0] = 0
    weights /= weights.sum()
    drawn = rng.multinomial(people_each, weights.ravel(), size=len(tracts))
    return drawn.reshape(len(tracts), *SHAPE.values())
