"""CountStep: time per sweep against people and cells; how well tables and parameters mix.

Without options, two tables of times. A sweep's time doesn't depend on the number of people, and
grows in proportion to that of the cells (of three levels: states, counties, tracts, all noisy).

With --mixing, effective draws per sweep, of the quantity that has the fewest: a cell, a released
sum, the total, or a random linear combination. First of tables given the parameters, where releases
are nested or overlap; then of parameters above the counts.

Run it alone on the machine: .venv/bin/python benchmarks/counts.py [--mixing]
"""

import argparse
from pathlib import Path
from time import perf_counter

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from _models import example
from arviz_stats.base import array_stats
from pymc.step_methods import CompoundStep

import pymc_dapper as pmd
from pymc_dapper.counts.step import CountStep

markdown = example("_markdown")

# Time per sweep ----------------------------------------------------------------------------------


def table(n, cells):
    """One multinomial with noise on each cell."""
    with pm.Model() as model:
        x = pm.Multinomial("x", n=n, p=np.full(cells, 1 / cells))
        released = np.full(cells, n // cells)
        pmd.DiscreteGaussianMechanism(6.0).potential("privacy", x, released=released)
    return model


def geography(tracts):
    """Tracts in 10 counties each, of 10 states; noise at every level."""
    shape = (10, 10, tracts // 100)
    with pm.Model() as model:
        x = pm.Poisson("x", 100.0, shape=shape)
        for level, axes in {"tract": (), "county": (2,), "state": (1, 2)}.items():
            statistic = x.sum(axis=axes) if axes else x
            released = np.full(shape[: 3 - len(axes)], 100 * int(np.prod(shape[3 - len(axes) :])))
            mechanism = pmd.DiscreteGaussianMechanism(10.0)
            mechanism.potential(level, statistic, released=released)
    return model


def seconds_per_sweep(model, sweeps):
    with model:
        step = CountStep([model["x"]], tree=False)
    step.setup_chain(np.random.default_rng(1), tune=10, draws=sweeps)
    point = model.initial_point()
    for _ in range(10):
        point, _ = step.step(point)
    began = perf_counter()
    for _ in range(sweeps):
        point, _ = step.step(point)
    return (perf_counter() - began) / sweeps


def time_sweeps(sweeps, people=(10**3, 10**5, 10**7, 3 * 10**8), cells=(100, 1_000, 10_000)):
    """Tables of times, by name."""
    by_people = [[f"{n:,}", f"{1e3 * seconds_per_sweep(table(n, 50), sweeps):.3f}"] for n in people]
    by_cells = [
        [
            f"{k:,}",
            f"{1e3 * seconds_per_sweep(geography(k), max(5, sweeps // 10)):#.2g}".rstrip("."),
        ]
        for k in cells
    ]
    return {
        "people": markdown.table(["people in 50 cells", "ms per sweep"], by_people),
        "tracts": markdown.table(["tracts", "ms per sweep"], by_cells),
    }


# Mixing of tables, given the parameters ----------------------------------------------------------


def indicator(groups):
    """A row for each group: which cells are in it."""
    groups = np.ravel(groups)
    return np.equal.outer(np.unique(groups), groups).astype(float)


def nested(states, counties, tracts):
    """Sums over states and over their counties."""
    state, county, _ = np.indices((states, counties, tracts))
    return [indicator(state), indicator(state * counties + county)]


def margins(*shape):
    """Sums over each axis of a table, one axis at a time."""
    cells = np.arange(np.prod(shape)).reshape(shape)
    # A group is named after its first cell.
    first = [np.broadcast_to(cells.min(axis=k, keepdims=True), shape) for k in range(len(shape))]
    return [indicator(groups) for groups in first]


def bands(cells, *lengths):
    """Sums over bands of several lengths, such as age groups of two publications."""
    return [indicator(np.arange(cells) // length) for length in lengths]


def windows(cells, length):
    """Sums over all windows of a length."""
    starts = np.arange(cells - length + 1)[:, None]
    return [((starts <= np.arange(cells)) & (np.arange(cells) < starts + length)).astype(float)]


RELEASES = {
    "states and counties, 2 x 4 x 6": nested(2, 4, 6),
    "both margins, 8 x 10": margins(8, 10),
    "bands of 4 and of 6, 24 cells": bands(24, 4, 6),
    "windows of 4, 20 cells": windows(20, 4),
    "three margins, 3 x 4 x 5": margins(3, 4, 5),
}
LARGE_RELEASES = {
    "states and counties, 5 x 10 x 20": nested(5, 10, 20),
    "both margins, 30 x 30": margins(30, 30),
    "windows of 6, 150 cells": windows(150, 6),
    "three margins, 5 x 6 x 6": margins(5, 6, 6),
}
FAMILIES = ("Poisson", "Multinomial", "DirichletMultinomial")
NOISE = ((0.5, 0.5), (0.5, 10), (0.5, 1_000), (10, 10), (10, 1_000), (1_000, 0.5), (1_000, 1_000))
"""Standard deviations of the noise on the largest sums and on the cells; in between, in between."""
PEOPLE = (50, 5_000)


def released_table(sums, family):
    """A table with noise on its cells and on sums of them; all numbers are shared data."""
    n_cells = sums[0].shape[1]
    weights = np.random.default_rng(1).gamma(3, size=n_cells)
    weights /= weights.sum()
    with pm.Model() as model:
        people = pm.Data("people", 1_000)
        if family == "Poisson":
            x = pm.Poisson("x", people * weights)
        elif family == "Multinomial":
            x = pm.Multinomial("x", n=people, p=weights)
        else:
            x = pm.DirichletMultinomial("x", n=people, a=2 * n_cells * weights)
        for k, matrix in enumerate([*sums, np.eye(n_cells)]):
            statistic = x if k == len(sums) else pt.dot(matrix, x)
            sigma, released = pm.Data(f"sigma{k}", 1.0), pm.Data(f"released{k}", matrix[:, 0])
            pm.Potential(f"privacy{k}", -0.5 * (((released - statistic) / sigma) ** 2).sum())
        step = CountStep([x], tree=False)
    return model, step, weights


def release(model, sums, weights, people, noise, rng):
    """Draw a table and its release."""
    truth = rng.multinomial(people, weights)
    data = {"people": people}
    matrices = [*sums, np.eye(len(truth))]
    for k, (matrix, sigma) in enumerate(
        zip(matrices, np.geomspace(*noise, len(matrices)), strict=True)
    ):
        data |= {
            f"sigma{k}": sigma,
            f"released{k}": matrix @ truth + rng.normal(0, sigma, len(matrix)),
        }
    pm.set_data(data, model=model)
    return truth


def sweep(step, point, names, draws, rng, tune=200):
    """Make sweeps; return the draws of some variables, a row each."""
    step.setup_chain(rng, tune=tune, draws=draws)
    kept = []
    for k in range(tune + draws):
        point, _ = step.step(point)
        if k >= tune:
            kept.append(np.concatenate([np.ravel(point[name]) for name in names]))
    return np.array(kept, dtype=float)


def fewest(draws):
    """Effective draws per sweep of the column that has the fewest."""
    moving = draws[:, draws.std(axis=0) > 1e-9].T
    return min(
        float(array_stats.ess(x[None], chain_axis=0, draw_axis=1, method="mean")) for x in moving
    ) / len(draws)


def fewest_of_table(tables, sums, most=60):
    """The same of cells, sums of them, and random combinations: at most so many of each."""
    n_cells = tables.shape[1]
    combinations = np.random.default_rng(0).normal(size=(5, n_cells))
    seen = []
    for matrix in (*sums, np.eye(n_cells), np.ones((1, n_cells)), combinations):
        values = tables @ matrix.T
        values = values[:, values.std(axis=0) > 1e-9]
        every = max(1, values.shape[1] // most)
        seen.append(values[:, ::every])
    return fewest(np.hstack(seen))


def mix_tables(releases, families, draws):
    """A table of how tables mix, the worse of few and of many people in a cell."""
    rows = []
    for name, sums in releases.items():
        for family in families:
            model, step, weights = released_table(sums, family)
            shown = []
            for noise in NOISE:
                found = []
                for people in PEOPLE:
                    rng = np.random.default_rng(3)
                    truth = release(model, sums, weights, people * len(weights), noise, rng)
                    tables = sweep(step, {"x": truth}, ["x"], draws, rng)
                    found.append(fewest_of_table(tables, sums))
                shown.append(f"{min(found):.2f}")
            rows.append([f"{name}; {family}", *shown])
    return markdown.table(["releases, counts", *(f"{a:g}, {b:g}" for a, b in NOISE)], rows)


# Mixing of parameters above the counts -----------------------------------------------------------


def one_table(n):
    """A table of four cells, and its probabilities."""
    p = pm.Dirichlet("p", np.ones(4))
    return p, pm.Multinomial("x", n=n, p=p)


def shared_share(n):
    """20 counts with a probability in common."""
    p = pm.Beta("p", 1, 1)
    return p, pm.Binomial("x", n=n, p=p, shape=20)


def shared_rate(n):
    """20 counts with a rate in common."""
    p = pm.Gamma("p", 1, 1e-5)
    return p, pm.Poisson("x", p * np.linspace(0.5, 1.5, 20))


PARAMETERS = {
    "Dirichlet above a Multinomial of 4 cells": one_table,
    "Beta above 20 Binomials": shared_share,
    "Gamma above 20 Poissons": shared_rate,
}
PARAMETER_NOISE = (10.0, 100.0, 1_000.0, 10_000.0)


def mix_parameters(draws, sizes=(10**4, 10**6)):
    """A table of how parameters mix, drawn given the counts and marginalised."""
    rows = []
    for name, write in PARAMETERS.items():
        with pm.Model() as model:
            n, sigma = pm.Data("n", 1_000), pm.Data("sigma", 1.0)
            p, x = write(n)
            released = pm.Data("released", np.zeros(x.shape.eval()))
            pm.Potential("privacy", -0.5 * (((released - x) / sigma) ** 2).sum())
            steps = {
                "by itself": CompoundStep([CountStep([x]), pmd.ConjugateStep([p])]),
                "marginalised": CountStep([x], integrate=[p]),
            }
        value = model.rvs_to_values[p].name
        for people in sizes:
            for label, step in steps.items():
                shown = []
                for noise in PARAMETER_NOISE:
                    rng = np.random.default_rng(5)
                    size = x.shape.eval()[0]
                    truth = (
                        rng.multinomial(people, np.ones(4) / 4)
                        if size == 4
                        else rng.binomial(people, 0.3, size)
                    )
                    values = truth + rng.normal(0, noise, size)
                    pm.set_data({"n": people, "sigma": noise, "released": values}, model=model)
                    point = {**model.initial_point(), "x": truth}
                    shown.append(f"{fewest(sweep(step, point, [value], draws, rng)):.3f}")
                rows.append([f"{name}, {people:,}, {label}", *shown])
    header = ["parameter, people, step", *(f"{sigma:g}" for sigma in PARAMETER_NOISE)]
    return markdown.table(header, rows)


def main(*, mixing, sweeps, page):
    """Measure and print; write what stands there into a page if one is given."""
    if not mixing:
        tables = time_sweeps(sweeps or 200)
        shown = list(tables.values())
    else:
        draws = sweeps or 2_000
        tables = {"tables": mix_tables(RELEASES, FAMILIES, draws)}
        shown = [*tables.values(), mix_tables(LARGE_RELEASES, ("Poisson",), draws)]
        shown.append(mix_parameters(draws))
    print("\n\n".join(shown))
    markdown.fill_file(page, tables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mixing", action="store_true", help="effective draws, not times")
    parser.add_argument("--sweeps", type=int, help="how many to measure at")
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    main(**vars(parser.parse_args()))
