"""Whether people can be drawn anew with new parameters, an exact ratio deciding on both.

    python -m benchmarks.drawn_anew ../shared/data/adult.csv.gz

The candidate: parameters are moved by a normal approximation of the tables' law, people are drawn
anew from them, and the exact ratio decides (delayed acceptance). Here the parameters are as good as
can be: people are drawn from the data themselves. So this is about the most that can be accepted.
"""

import argparse
from itertools import combinations

import numpy as np

from benchmarks.class_modes import SIGMA, people_of


class Tables:
    """Noisy counts of all pairs of columns, with so much noise a cell."""

    def __init__(self, people, sigma, rng):
        self.people, self.sigma, sizes = people, sigma, people.max(axis=0) + 1
        pairs = list(combinations(range(len(sizes)), 2))
        lengths = np.cumsum([0] + [sizes[j] * sizes[k] for j, k in pairs])
        # A person's cell in each table, in one vector of all cells.
        self.cells = np.column_stack(
            [
                at + people[:, j] * sizes[k] + people[:, k]
                for at, (j, k) in zip(lengths, pairs, strict=False)
            ]
        )
        self.n_cells = lengths[-1]
        self.noise = rng.normal(0, sigma, self.n_cells)

    def log_ratio(self, replaced, by):
        """Log ratio of the release's densities, if these people are replaced by those."""
        change = np.bincount(self.cells[by].ravel(), minlength=self.n_cells)
        change -= np.bincount(self.cells[replaced].ravel(), minlength=self.n_cells)
        return ((2 * self.noise - change) * change).sum() / (2 * self.sigma**2)


def accepted(tables, share, rng, times=200):
    """Log ratios of drawing a share of people anew, and how many are accepted on average."""
    n = len(tables.people)
    ratios = np.array(
        [
            tables.log_ratio(
                rng.choice(n, round(share * n), replace=False),
                rng.integers(n, size=round(share * n)),
            )
            for _ in range(times)
        ]
    )
    return ratios, np.exp(np.minimum(ratios, 0)).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("path")
    parser.add_argument("--noise", type=float, nargs="+", default=[SIGMA, 10 * SIGMA])
    given = parser.parse_args()
    for sigma in given.noise:
        rng = np.random.default_rng(1)
        tables = Tables(people_of(given.path), sigma, rng)
        print(f"noise of {sigma:g} a cell: {len(tables.people):,} people, {tables.n_cells:,} cells")
        for share in (1, 0.1, 0.01, 0.001):
            ratios, chance = accepted(tables, share, rng)
            low, middle, high = np.quantile(ratios, (0.05, 0.5, 0.95))
            print(
                f"  drawn anew: {share:.1%} of people; log ratio {middle:.1f} "
                f"({low:.1f} to {high:.1f}); accepted {chance:.2g}"
            )


if __name__ == "__main__":
    main()
