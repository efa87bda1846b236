"""A prototype: tables of a tree's pairs as latent counts, in the place of people.

    python -m benchmarks.clique_tables ../shared/data/adult.csv.gz

Released are noisy counts of the pairs of a tree (as MST takes them) of ten columns of the Adult
data. `pmd.microdata.graphical` draws people. Given a tree, only the counts of its pairs matter:
with flat priors, and probabilities integrated out, every way in which a category's people may have
the next column's categories is equally likely (a uniform law of compositions, the
Dirichlet-multinomial one). So moves change counts, by as many people at once as noise leaves open:

- *swaps* within a pair keep the margins: two cells win, two lose;
- *shifts* move people from one category of a column to another, in each pair that has it.

Together they reach every set of tables that agree on their columns (Dobra 2003, whose moves for
decomposable graphs these are for a tree). Printed are effective draws of the counts of all released
cells by both ways (of their probabilities, where people are drawn), and CPU seconds, with compiling
and tuning.

Dobra, A. (2003). Markov bases for decomposable graphical models. Bernoulli 9.
"""

import argparse
from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from time import process_time

import numpy as np
from arviz_stats.base import array_stats
from numba import njit

import pymc_dapper as pmd
from benchmarks.class_modes import SIGMA, adult
from benchmarks.microdata_peers import release, strengths, tree

SIZES_OF_MOVES = np.array([2.0, 8.0, 30.0, 80.0])
"""Standard deviations of the number of people that a move takes; each is tried as often."""
MOVES = 3_000
"""Swaps, and shifts, in an iteration."""


@dataclass(frozen=True)
class Tree:
    """Noisy counts of the pairs of a tree; the first of a pair's columns is nearer to the root."""

    sizes: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]
    released: tuple[np.ndarray, ...]
    sigma: float = SIGMA

    @cached_property
    def layout(self):
        """Of each pair: its columns, their lengths, and where its cells begin."""
        shapes = [(self.sizes[j], self.sizes[k]) for j, k in self.pairs]
        starts = np.cumsum([0, *(a * b for a, b in shapes[:-1])])
        rows = zip(self.pairs, shapes, starts, strict=True)
        return np.array([(*pair, *shape, start) for pair, shape, start in rows])

    @cached_property
    def pairs_of(self):
        """The pairs that have a column, and in which place; filled up with -1."""
        found = np.full((len(self.sizes), len(self.pairs), 2), -1)
        for column in range(len(self.sizes)):
            places = [(e, at.index(column)) for e, at in enumerate(self.pairs) if column in at]
            found[column, : len(places)] = places
        return found

    def counts(self, people):
        """Cells of all pairs, and margins of all columns, of people."""
        cells = [np.zeros((self.sizes[j], self.sizes[k]), dtype=int) for j, k in self.pairs]
        for table, (j, k) in zip(cells, self.pairs, strict=True):
            np.add.at(table, (people[:, j], people[:, k]), 1)
        margins = np.zeros((len(self.sizes), max(self.sizes)), dtype=int)
        for column, size in enumerate(self.sizes):
            margins[column, :size] = np.bincount(people[:, column], minlength=size)
        return np.concatenate([x.ravel() for x in cells]), margins

    def draws(self, people, rng, iterations, moves=MOVES):
        """Draw counts of all cells, shape (iterations, cells), starting from those of people."""
        cells, margins = self.counts(people)
        released = np.concatenate([x.ravel() for x in self.released])
        known = released, self.sigma, self.layout, self.pairs_of, np.array(self.sizes)
        return chain(cells, margins, *known, SIZES_OF_MOVES, moves, iterations, rng)


@njit
def change(count, by, released, sigma):
    """Change of a cell's log-density, if its count changes."""
    before, after = released - count, released - count - by
    return (before * before - after * after) / (2 * sigma * sigma)


@njit
def log_compositions(total, parts):
    """Logarithm of the number of ways to divide people among categories."""
    return lgamma(total + parts) - lgamma(total + 1.0) - lgamma(float(parts))


@njit
def two_of(size, rng):
    first, second = rng.integers(0, size), rng.integers(0, size - 1)
    return first, second + (second >= first)


@njit
def swap(cells, released, sigma, layout, by, rng):
    """Two cells of a pair win, and two lose."""
    _, _, rows, columns, start = layout[rng.integers(0, len(layout))]
    i, other_row = two_of(rows, rng)
    j, other_column = two_of(columns, rng)
    at = np.array([i, i, other_row, other_row]) * columns + start
    at += np.array([j, other_column, j, other_column])
    signs, log_ratio = np.array([by, -by, -by, by]), 0.0
    for k in range(4):
        if cells[at[k]] + signs[k] < 0:
            return
        log_ratio += change(cells[at[k]], signs[k], released[at[k]], sigma)
    if np.log(rng.random()) < log_ratio:
        for k in range(4):
            cells[at[k]] += signs[k]


@njit
def shift(cells, margins, released, sigma, layout, pairs_of, sizes, by, rng):
    """People move from one category of a column to another, in each pair that has the column."""
    column, log_ratio, n_changed = rng.integers(0, len(sizes)), 0.0, 0
    old, new = two_of(sizes[column], rng)
    at = np.empty((len(layout), 2), dtype=np.int64)
    if margins[column, old] - by < 0 or margins[column, new] + by < 0:
        return
    for pair, place in pairs_of[column]:
        if pair < 0:
            break
        _, _, rows, columns, start = layout[pair]
        if place == 0:
            j = rng.integers(0, columns)
            leaves, comes = start + old * columns + j, start + new * columns + j
            for category, change_by in ((old, -by), (new, by)):
                total = margins[column, category]
                log_ratio += log_compositions(total, columns)
                log_ratio -= log_compositions(total + change_by, columns)
        else:
            i = rng.integers(0, rows)
            leaves, comes = start + i * columns + old, start + i * columns + new
        if cells[leaves] - by < 0 or cells[comes] + by < 0:
            return
        log_ratio += change(cells[leaves], -by, released[leaves], sigma)
        log_ratio += change(cells[comes], by, released[comes], sigma)
        at[n_changed] = leaves, comes
        n_changed += 1
    if np.log(rng.random()) < log_ratio:
        for k in range(n_changed):
            cells[at[k, 0]] -= by
            cells[at[k, 1]] += by
        margins[column, old] -= by
        margins[column, new] += by


@njit
def chain(
    cells, margins, released, sigma, layout, pairs_of, sizes, sizes_of_moves, moves, iterations, rng
):
    """Counts of all cells, after each iteration."""
    drawn = np.empty((iterations, len(cells)))
    for t in range(iterations):
        for k in range(2 * moves):
            scale = sizes_of_moves[rng.integers(0, len(sizes_of_moves))]
            by = np.int64(np.round(rng.normal(0, scale)))
            if by != 0 and k < moves:
                swap(cells, released, sigma, layout, by, rng)
            elif by != 0:
                shift(cells, margins, released, sigma, layout, pairs_of, sizes, by, rng)
        drawn[t] = cells
    return drawn


def rooted(pairs, root):
    """Pairs of a tree, from a root on; the column nearer to it comes first."""
    found, left, reached = [], list(pairs), {root}
    while left:
        pair = next(x for x in left if reached & {*x})
        left.remove(pair)
        found.append(pair if pair[0] in reached else pair[::-1])
        reached |= {*pair}
    return tuple(found)


def by_counts(problem, edges, iterations=6_000, chains=2):
    """Draws of released cells, and CPU seconds; half of the iterations is left out."""
    began, pairs = process_time(), rooted(edges, edges[0][0])
    tables = dict(zip(problem.pairs, problem.released, strict=True))
    released = tuple(tables[at] if at in tables else tables[at[::-1]].T for at in pairs)
    of_tree, found = Tree(problem.sizes, pairs, released, problem.sigma), []
    for seed in range(chains):
        rng = np.random.default_rng(seed)
        people = np.stack([rng.integers(size, size=problem.n) for size in problem.sizes], axis=1)
        found.append(of_tree.draws(people, rng, iterations)[iterations // 2 :])
    return np.stack(found), process_time() - began


def by_people(problem, edges, tune=700, draws=1_000, chains=2):
    """Draws of the probabilities of released cells, and CPU seconds."""
    began, tables = process_time(), dict(zip(problem.pairs, problem.released, strict=True))
    given = release(problem.sizes, {at: tables[at] for at in edges}, problem.sigma)
    options = {"chains": chains, "cores": 1, "random_seed": 1, "progressbar": False}
    with pmd.microdata.graphical(given, n=problem.n):
        drawn = pmd.sample(draws, tune=tune, **options)
    shares = [pmd.microdata.shares(drawn, [str(c) for c in at]).to_numpy() for at in edges]
    found = [x.reshape(chains, draws, -1) for x in shares]
    return np.concatenate(found, axis=2), process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path", help="the Adult data")
    problem = adult(parser.parse_args().path)
    edges = tree(strengths(problem), len(problem.sizes))
    for way, of in (("counts of pairs", by_counts), ("people", by_people)):
        drawn, seconds = of(problem, edges)
        worth = array_stats.ess(drawn, chain_axis=0, draw_axis=1)
        worst, low, median = np.quantile(worth, [0, 0.05, 0.5])
        print(
            f"{way}: {seconds:.0f} CPU seconds, effective draws of {worth.size} cells: worst "
            f"{worst:.0f}, one in twenty {low:.0f}, median {median:.0f}; a second: "
            f"{worst / seconds:.2g}, {low / seconds:.2g}, {median / seconds:.2g}",
            flush=True,
        )


if __name__ == "__main__":
    main()
