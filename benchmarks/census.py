"""A replica of the 2020 redistricting release: what all blocks cost, and whether intervals hold.

Total populations of blocks and of all levels above are released with the noise of 2020's production
settings, and each state's total exactly. Measured are seconds, by the clock and of CPU, and the
largest memory; coverage of 95 % intervals beside those of generalised least squares, and widths.
Intervals of integers hold more than they promise where they are short, so that coverage is also
told with ends counted in part, as often as 95 % needs them (by a random number).

    python -m benchmarks.census                        400,000 blocks, a twentieth
    python -m benchmarks.census --page docs/evidence/measured.md  and write what is found there
    python -m benchmarks.census --tracts 3 --blocks 2400000 --page docs/evidence/measured.md
                                                       coverage of many small counties
    python -m benchmarks.census --blocks 8132968       the whole: some gigabytes
    python -m benchmarks.census --draws 100            draws in the place of marginals
    python -m benchmarks.census --growth               cost from 10,000 blocks on, tenfold each time
    python -m benchmarks.census --growth --blocks 8132968 --page docs/evidence/measured.md
                                                       up to the whole, and write what it takes
    python -m benchmarks.census --files --blocks 80000 --page docs/evidence/measured.md
                                                       1,000 draws of all, written to disk
"""

import argparse
import os
import resource
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from itertools import count, takewhile
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import stats

import pymc_dapper as pmd
from benchmarks._models import example
from pymc_dapper.reference import tree_least_squares

SHARES = (0.025, 0.975)

markdown = example("_markdown")


class Clock:
    """Seconds of a part, by the clock and of CPU."""

    def __init__(self):
        self.told("")

    def told(self, what):
        now = time.perf_counter(), time.process_time()
        if what:
            wall, cpu = (a - b for a, b in zip(now, self.at, strict=True))
            print(f"{what:34}{wall:9.1f} s{cpu:9.1f} s CPU{peak_gib():7.1f} GiB", flush=True)
        self.at = now
        return self.at


def marginals(census, module, executor, rng, page, table):
    """Time the marginals, and print how often intervals hold the truth and how wide they are."""
    clock = Clock()
    tree = pmd.CountTree(census.parent, census.released, census.sigma, prior=module.log_prior())
    clock.told("tree made")
    tree.log_evidence(executor=executor)
    clock.told("messages up, log-evidence")
    found = tree.marginals(SHARES, at=census.truth, executor=executor)
    clock.told("marginal quantiles of all nodes")
    squares = tree_least_squares(census.parent, census.released, census.sigma)
    clock.told("least squares")
    half = stats.norm.ppf(SHARES[1]) * squares.sd
    place = found.below + rng.random(len(half)) * (found.up_to - found.below)
    low, high = found.quantiles.T
    print(f"\ntail mass of all windows: {tree.tail_mass:.1e}")
    heads = ("nodes", "coverage", "closed", "width", "squares", "width")
    print(f"{'level':14}" + "".join(f"{head:>10}" for head in heads))
    rows = []
    for k, level in enumerate(module.LEVELS):
        at = census.level == k
        truth = census.truth[at]
        exact = (place[at] > SHARES[0]) & (place[at] < SHARES[1])
        closed = (low[at] <= truth) & (truth <= high[at])
        normal = np.abs(truth - squares.estimate[at]) <= half[at] + 1e-9
        cells = [100 * exact.mean(), 100 * closed.mean(), np.mean(high[at] - low[at])]
        cells += [100 * normal.mean(), 2 * half[at].mean()]
        print(f"{level:14}{at.sum():10d}" + "".join(f"{x:10.2f}" for x in cells))
        covers, holds, normal_covers = (f"{x:.1f} %" for x in (cells[0], cells[1], cells[3]))
        shown = [
            f"{at.sum():,}",
            covers,
            holds,
            f"{cells[2]:.1f}",
            normal_covers,
            f"{cells[4]:.1f}",
        ]
        rows.append([level, *shown])
    header = [
        *("level", "areas", "coverage", "of closed intervals", "mean width"),
        *("of least squares: coverage", "mean width"),
    ]
    markdown.fill_file(page, {table: markdown.table(header, rows, words=1)})


def draws(census, module, executor, n):
    """Time draws of all counts."""
    clock = Clock()
    tree = pmd.CountTree(census.parent, census.released, census.sigma, prior=module.log_prior())
    tree.log_evidence(executor=executor)
    clock.told("messages up, log-evidence")
    drawn = tree.draw(n, random_seed=1, executor=executor)
    clock.told(f"{n} draws of all {drawn.shape[1]} counts")


def growth(module, executor, largest, page):
    """Time marginals of more and more blocks, and fit the power with which the cost grows."""
    sizes, seconds, rows = [], [], []
    for blocks in (*takewhile(lambda n: n < largest, (10**k for k in count(4))), largest):
        census = module.replicate(blocks, np.random.default_rng(1))
        begun, cpu = time.perf_counter(), time.process_time()
        tree = pmd.CountTree(census.parent, census.released, census.sigma, prior=module.log_prior())
        tree.marginals(SHARES, executor=executor)
        sizes.append(len(census.parent))
        seconds.append(time.process_time() - cpu)
        wall, peak = time.perf_counter() - begun, peak_gib()
        print(
            f"{sizes[-1]:10d} counts{wall:9.1f} s{seconds[-1]:9.1f} s CPU{peak:7.1f} GiB",
            flush=True,
        )
        each = 1e6 * seconds[-1] / sizes[-1]
        rows.append(
            [f"{sizes[-1]:,}", f"{wall:.1f}", f"{seconds[-1]:.1f}", f"{each:.0f}", f"{peak:.1f}"]
        )
        del tree, census
    if len(sizes) > 1:
        print(f"power {np.polyfit(np.log(sizes), np.log(seconds), 1)[0]:.3f}")
    header = ["counts", "seconds", "of CPU", "of CPU for a count, in millionths", "GiB"]
    markdown.fill_file(page, {"census cost": markdown.table(header, rows, words=0)})


def write_source(census, folder):
    """Write a census to Parquet files: one for each county, one for the levels above."""
    folder.mkdir()
    file_of = np.full(len(census.parent), -1)
    counties = np.flatnonzero(census.level == 1)
    file_of[counties] = counties
    for node in range(counties[-1] + 1, len(file_of)):  # parents come first
        file_of[node] = file_of[census.parent[node]]
    order = np.argsort(file_of, kind="stable")
    for nodes in np.split(order, np.flatnonzero(np.diff(file_of[order])) + 1):
        columns = {"node": nodes}
        columns |= {name: getattr(census, name)[nodes] for name in ("parent", "released")}
        columns["scale"] = census.sigma[nodes]
        name = "_top" if file_of[nodes[0]] < 0 else f"{file_of[nodes[0]]:06}"
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")


def files(module, largest, n, page):
    """Time draws of all counts that are written to disk, by two processes."""
    rows = []
    for blocks in (largest // 4, largest):
        census = module.replicate(blocks, np.random.default_rng(1))
        with TemporaryDirectory() as at, ProcessPoolExecutor(2, get_context("spawn")) as pool:
            write_source(census, Path(at) / "source")
            target = Path(at) / "target"
            # So that neither imports nor code from disk are counted.
            solve = partial(pmd.solve_tree_files, prior=module.log_prior(), random_seed=1)
            solve(Path(at) / "source", Path(at) / "warm", draws=1, executor=pool)
            before = of_workers(pool)
            solve(Path(at) / "source", target, draws=n, executor=pool)
            after = of_workers(pool)
            size = sum(file.stat().st_size for file in target.glob("*.parquet"))
        seconds = sum(after[pid][0] - before[pid][0] for pid in after)
        millions = n * len(census.parent) / 1e6
        rows.append(
            [
                f"{len(census.parent):,}",
                f"{millions:,.0f} million",
                f"{seconds:.0f}",
                f"{1e3 * seconds / millions:.0f}",
                f"{size / 1e6 / millions:.2f}",
                f"{max(peak for _, peak in after.values()):.2f}",
            ]
        )
        print(*rows[-1], sep="  ", flush=True)
    header = [
        *("counts", "written", "CPU seconds", "CPU ms per million"),
        *("MB per million", "GiB of a worker"),
    ]
    markdown.fill_file(page, {"census files": markdown.table(header, rows, words=0)})


def of_workers(pool):
    """CPU seconds and largest memory of both workers of a pool, by process."""
    found = {}
    while len(found) < 2:
        found |= dict(future.result() for future in [pool.submit(of_process) for _ in range(8)])
    return found


def of_process():
    time.sleep(0.05)  # so that the other worker gets a task, too
    return os.getpid(), (time.process_time(), peak_gib())


def peak_gib():
    """Largest memory of the process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(blocks=400_000, threads=2, n_draws=0, grows=False, to_files=False, page=None, tracts=None):
    """Make the replica, and measure."""
    module = example("census_blocks")
    if to_files:
        files(module, blocks, n_draws or 1000, page)
        return
    rng = np.random.default_rng(1)
    warm = module.replicate(300, rng)
    tree = pmd.CountTree(warm.parent, warm.released, warm.sigma, prior=module.log_prior())
    tree.marginals()
    tree.draw(5, random_seed=1)
    with ThreadPoolExecutor(threads) as executor:
        if grows:
            growth(module, executor, blocks, page)
            return
        clock = Clock()
        splits = module.SPLITS | ({"tract": tracts} if tracts else {})
        census = module.replicate(blocks, rng, splits)
        clock.told("replica")
        if n_draws:
            draws(census, module, executor, n_draws)
        else:
            table = "census small counties" if tracts else "census levels"
            marginals(census, module, executor, rng, page, table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=400_000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--draws", type=int, default=0)
    parser.add_argument(
        "--tracts", type=float, help="tracts of a county; 27 on average if not given"
    )
    parser.add_argument("--growth", action="store_true")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    given = parser.parse_args()
    main(
        *(given.blocks, given.threads, given.draws, given.growth, given.files),
        *(given.page, given.tracts),
    )
