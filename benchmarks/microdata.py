"""Sweeps over people of several columns in latent classes, beside a loop written by hand.

    python -m benchmarks.microdata --columns 4 --people 12000 48000

All pairs of columns were counted, with Gaussian noise. Parameters are held at equal probabilities,
so both sides propose and decide alike. Times are CPU seconds, the least of some sweeps.

With ``--draws``, chains are compared instead, with and without moves of boundaries.
"""

import argparse
from functools import partial
from itertools import combinations
from time import process_time

import numpy as np
from numba import njit

import pymc_dapper as pmd
from pymc_dapper.kernels.effective_draws import effective_draws

SIZES = (9, 9, 16, 7, 15, 6, 5, 2, 10, 2)
"""Categories of ten columns of the Adult data, age and hours in steps of ten."""
CLASSES, SIGMA, SWEEPS = 20, 50.0, 8


def release(people, n_columns, seed=1):
    """Noisy counts of all pairs of columns, of people of three classes."""
    rng = np.random.default_rng(seed)
    sizes = SIZES[:n_columns]
    of = rng.integers(0, 3, people)
    columns = []
    for k in sizes:
        limits = np.cumsum(rng.dirichlet(np.ones(k), 3), axis=1)[:, :-1]
        columns.append((rng.random((people, 1)) > limits[of]).sum(axis=1))
    noise, queries = pmd.GaussianMechanism(SIGMA), []
    for j, k in combinations(range(n_columns), 2):
        table = pmd.statistics.cross_counts(columns[j], columns[k], sizes[j], sizes[k]).value
        values = table + rng.normal(0, SIGMA, table.shape)
        queries.append(pmd.Query(f"{j} * {k}", values, noise, (f"c{j}", f"c{k}")))
    return pmd.Release(queries)


@njit
def draw(rng, limits):
    u, k = rng.random(), 0
    while u > limits[k]:
        k += 1
    return k


@njit
def sweep(rng, sizes, limits, starts, released, sigma, people):
    """Propose each person anew, class and columns, and decide by what changes.

    Cumulated probabilities are by class and category: of classes first, then of each column.
    """
    n, d = people.shape
    total = np.zeros(len(released))
    for i in range(n):
        t = 0
        for j in range(d):
            for k in range(j + 1, d):
                total[starts[t] + people[i, j] * sizes[k] + people[i, k]] += 1
                t += 1
    accepted, new = 0, np.empty(d, dtype=np.int64)
    for i in range(n):
        of = draw(rng, limits[0, 0])
        for j in range(d):
            new[j] = draw(rng, limits[j + 1, of])
        gain, t = 0.0, 0
        for j in range(d):
            for k in range(j + 1, d):
                a = starts[t] + people[i, j] * sizes[k] + people[i, k]
                b = starts[t] + new[j] * sizes[k] + new[k]
                t += 1
                if a != b:
                    off_a, off_b = released[a] - total[a], released[b] - total[b]
                    gain += off_a**2 - (off_a + 1) ** 2 + off_b**2 - (off_b - 1) ** 2
        if -rng.standard_exponential() < gain / (2 * sigma**2):
            accepted, t = accepted + 1, 0
            for j in range(d):
                for k in range(j + 1, d):
                    total[starts[t] + people[i, j] * sizes[k] + people[i, k]] -= 1
                    total[starts[t] + new[j] * sizes[k] + new[k]] += 1
                    t += 1
            people[i] = new
    return accepted / n


def by_hand(given, people, n_columns, sweeps, sigma=SIGMA):
    """CPU seconds of a sweep by hand, and the share of proposals taken in the last."""
    sizes = np.array(SIZES[:n_columns])
    cells = [query.values.size for query in given]
    released = np.concatenate([query.values.ravel() for query in given])
    records = np.zeros((people, n_columns), dtype=np.int64)
    limits = np.ones((1 + n_columns, CLASSES, CLASSES))
    for j, size in enumerate((CLASSES, *sizes)):
        limits[j, :, :size] = np.minimum(np.arange(1, size + 1) / size, 1)
    arguments = (sizes, limits, np.cumsum([0, *cells[:-1]]), released, sigma, records)
    rng = np.random.default_rng(1)
    return timed(lambda: sweep(rng, *arguments), sweeps)


def ours(given, people, sweeps):
    """The same of DapperStep."""
    model = pmd.microdata.latent_classes(given, n=people, classes=CLASSES)
    step = pmd.DapperStep([x for x in model.free_RVs if x.name.startswith("person")], model=model)
    step.setup_chain(np.random.default_rng(1), tune=0, draws=1)
    point = model.initial_point()
    point |= {x: np.zeros_like(value) for x, value in point.items() if x.startswith("p_")}
    parameters, records = step._given(point), step._records(point)

    def once():
        nonlocal records
        *records, outcome = step.sweep.update(step.rng, records, parameters)
        return float(outcome[0])

    return timed(once, sweeps)


def told_time(times, **_):
    times.append(process_time())


def mixing(given, people, draws):
    """Effective draws of the pairs' probabilities, of one chain with moves of boundaries or not."""
    for interweave in (False, True):
        times = []
        options = {"interweave": interweave, "callback": partial(told_time, times)}
        with pmd.microdata.latent_classes(given, n=people, classes=CLASSES):
            idata = pmd.sample(
                draws, tune=draws, chains=1, random_seed=1, progressbar=False, **options
            )
        shares = [pmd.microdata.shares(idata, query.dims).values for query in given]
        each = np.concatenate([x.reshape(draws, -1) for x in shares], axis=1)
        found = [effective_draws(x[:, None])[0] for x in each.T]
        seconds = times[-1] - times[draws]
        print(
            f"moves of boundaries: {interweave}; {1e3 * seconds / draws:.1f} ms a draw; effective "
            f"draws of {draws}: worst {min(found):.0f}, median {np.median(found):.0f}"
        )


def timed(once, sweeps):
    seconds = []
    for _ in range(sweeps):
        began = process_time()
        share = once()
        seconds.append(process_time() - began)
    return min(seconds), share


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, default=4)
    parser.add_argument("--people", type=int, nargs="+", default=[12_000, 48_000])
    parser.add_argument("--draws", type=int)
    given = parser.parse_args()
    for people in given.people:
        tables = release(people, given.columns)
        if given.draws:
            mixing(tables, people, given.draws)
            continue
        (own, own_share), (hand, hand_share) = (
            ours(tables, people, SWEEPS),
            by_hand(tables, people, given.columns, SWEEPS),
        )
        print(
            f"{given.columns} columns, {people:,} people: {1e3 * own:.2f} ms a sweep, by hand "
            f"{1e3 * hand:.2f} ms ({own / hand:.2f} times); {100 * own_share:.0f} and "
            f"{100 * hand_share:.0f} of 100 proposals taken in the last"
        )


if __name__ == "__main__":
    main()
