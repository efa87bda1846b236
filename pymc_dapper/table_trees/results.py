"""What is said of draws of tables, and files of it."""

import hashlib
import json
import os
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import fft, special, stats

from pymc_dapper.counts.trees.streaming import claim, import_arrow
from pymc_dapper.counts.trees.tree import read_quantiles
from pymc_dapper.table_trees.chain import Margin, Plan, chain_file, draws_file, read_state

RUN = "_run.json"
AT_ONCE = 2**22
"""About so many numbers are in memory at once."""
SHARES = (0.05, 0.5, 0.95)
MOVES = ("recast", "swap", "give", "resize")


class TableSummary(NamedTuple):
    """What is said of a margin, by area and class."""

    mean: np.ndarray
    sd: np.ndarray
    """Shape (areas, classes)."""
    quantiles: np.ndarray
    """Shape (areas, classes, quantiles)."""
    ess: np.ndarray
    r_hat: np.ndarray
    """Effective draws, and R-hat; nan for counts that are the same in all draws. R-hat is infinite
    if each chain stands still, at another count."""


class TableDraws:
    """Draws of the margins of a tree of tables.

    Attributes
    ----------
    areas : dict of str to ndarray
        The areas of each margin.
    accepted : dict of str to float
        The share of each kind of moves that was accepted.
    """

    def __init__(
        self, draws: dict[str, list[np.ndarray]], areas: dict[str, np.ndarray], made: np.ndarray
    ):
        self._draws, self.areas = draws, areas
        self.accepted = {
            name: float(done / proposed)
            for name, (proposed, done) in zip(MOVES, made.tolist(), strict=True)
            if proposed
        }

    def __getitem__(self, name: str) -> np.ndarray:
        """Return the draws of a margin, of shape (chains, draws, areas, classes)."""
        return np.stack(self._chains(name))

    def _chains(self, name: str) -> list[np.ndarray]:
        if name not in self._draws:
            raise KeyError(f"no margin {name!r} was kept, but {', '.join(map(repr, self._draws))}")
        return self._draws[name]

    def summary(self, name: str, quantiles: ArrayLike = SHARES) -> TableSummary:
        """Summarise the draws of a margin.

        Parameters
        ----------
        name : str
            The name in ``keep``.
        quantiles : array_like of float, default (0.05, 0.5, 0.95)
            Which quantiles.

        Returns
        -------
        TableSummary
            Means, standard deviations, quantiles, effective draws and R-hat.
        """
        shares = read_quantiles(quantiles)
        parts = [part for _, part in self._parts(name, shares)]
        return TableSummary(*(np.concatenate(each) for each in zip(*parts, strict=True)))

    def _parts(self, name: str, shares: np.ndarray) -> Iterator[tuple[slice, TableSummary]]:
        chains = self._chains(name)
        draws, n, k = chains[0].shape
        step = max(1, AT_ONCE // (draws * k * len(chains)))
        for begin in range(0, n, step):
            some = slice(begin, begin + step)
            yield some, _summary(np.stack([x[:, some] for x in chains]), shares)


def _summary(x: np.ndarray, shares: np.ndarray) -> TableSummary:
    """Summarise draws of shape (chains, draws, areas, classes)."""
    of = np.moveaxis(x.reshape(-1, *x.shape[2:]), 0, -1)
    mixed = np.full((2, *x.shape[2:]), np.nan)
    moved = np.ptp(of, axis=-1) > 0
    mixed[:, moved] = _mixing(x[:, :, moved])
    quantiles = np.quantile(of, shares, axis=-1, method="inverted_cdf")
    return TableSummary(of.mean(axis=-1), of.std(axis=-1), np.moveaxis(quantiles, 0, -1), *mixed)


def _mixing(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return effective draws and R-hat, of ranks and of split chains, for many counts at once.

    As Vehtari et al. (2021, Bayesian Analysis 16:667) define them. Draws have shape (chains, draws,
    counts), and no count is the same in all draws.
    """
    n = x.shape[1] // 2
    if n < 2 or x.shape[2] == 0:
        return (np.full(x.shape[2], np.nan),) * 2
    halves = np.moveaxis(np.concatenate([x[:, :n], x[:, -n:]]), -1, 0)
    z, size = _normal_scores(halves), halves[0].size
    folded = _normal_scores(np.abs(halves - np.median(halves, axis=(1, 2), keepdims=True)))
    means, within = z.mean(axis=2), z.var(axis=2, ddof=1).mean(axis=1)
    long = fft.next_fast_len(2 * n, real=True)
    power = np.abs(fft.rfft(z - means[..., None], long)) ** 2
    with_itself = fft.irfft(power.mean(axis=1), long)[:, :n] / n
    whole = with_itself[:, :1] + means.var(axis=1, ddof=1)[:, None]
    rho = 1 - (within[:, None] - with_itself) / whole
    rho[:, 0] = 1
    # Sums of two neighbours are positive in theory: what comes after the first that isn't is noise.
    pairs = rho[:, : n - n % 2].reshape(len(rho), -1, 2)
    sums = pairs.sum(axis=2)
    sums[:, -1] = -1
    signal = np.logical_and.accumulate(sums > 0, axis=1)
    rest = pairs[np.arange(len(rho)), signal.sum(axis=1), 0].clip(0)
    time = 2 * np.where(signal, np.minimum.accumulate(sums, axis=1), 0).sum(axis=1) - 1 + rest
    r_hat = np.fmax(_r_hat(z), _r_hat(folded))
    return size / np.maximum(time, 1 / np.log10(size)), r_hat


def _normal_scores(x: np.ndarray) -> np.ndarray:
    """Return normal quantiles of ranks among all draws of a count."""
    ranks = stats.rankdata(x.reshape(len(x), -1), axis=1)
    return special.ndtri((ranks - 0.375) / (ranks.shape[1] + 0.25)).reshape(x.shape)


def _r_hat(z: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore", invalid="ignore"):  # of chains that stand still
        between = z.mean(axis=2).var(axis=1, ddof=1) / z.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt(1 - 1 / z.shape[2] + between)


def begin(plan: Plan, chains: int, entropy: int, data: Any) -> None:
    """Take a directory for these results, or check that it is theirs already."""
    assert plan.folder is not None
    mine = {
        "data": _digest(plan.margins, data),
        "keep": list(plan.margins),
        **{name: getattr(plan, name) for name in ("draws", "tune", "thin", "visits", "every")},
        "chains": chains,
        "seed": entropy,
    }
    plan.folder.mkdir(parents=True, exist_ok=True)
    claim(plan.folder / RUN, mine, f"results={str(plan.folder)!r} has draws")


def _digest(margins: Mapping[str, Margin], data: Any) -> str:
    return hashlib.sha256(pickle.dumps((data, list(margins.values())))).hexdigest()


def read_so_far(folder: Path, margins: Mapping[str, Margin], data: Any) -> TableDraws:
    """Return the draws that all chains of a run have written."""
    file = folder / RUN
    if not file.is_file():
        raise ValueError(f"results={str(folder)!r} has no draws of tables")
    run = json.loads(file.read_text(encoding="utf-8"))
    if (run["data"], run["keep"]) != (_digest(margins, data), list(margins)):
        raise ValueError(
            f"results={str(folder)!r} has draws of another tree or of other margins: give the tree "
            "and keep= as sample had them"
        )
    done, made = 0, np.zeros(0)
    states = [chain_file(folder, chain) for chain in range(run["chains"])]
    if all(state.is_file() for state in states):
        progress = [read_state(state)[:2] for state in states]
        done, made = min(n for n, _ in progress), np.sum([each for _, each in progress], axis=0)
    if done < 1:
        raise ValueError(f"results={str(folder)!r} has no draws yet of each chain. Wait a little")
    draws = {
        name: [
            np.load(draws_file(folder, name, chain), mmap_mode="r")[:done]
            for chain in range(run["chains"])
        ]
        for name in margins
    }
    return TableDraws(draws, {name: margin.areas for name, margin in margins.items()}, made)


def write_summaries(folder: Path, drawn: TableDraws, names: np.ndarray) -> None:
    """Write a file of intervals for each margin, some areas after the other."""
    arrow = import_arrow()
    for name, areas in drawn.areas.items():
        file = folder / f"{name}.parquet"
        beside = file.with_name(f".{file.name}-{os.getpid()}")
        writer = None
        for some, part in drawn._parts(name, np.array(SHARES)):
            k = part.mean.shape[1]
            columns = {
                "area": np.repeat(names[areas[some]], k),
                "class": np.tile(np.arange(k), part.mean.shape[0]),
                **{x: getattr(part, x).ravel() for x in ("mean", "sd", "ess", "r_hat")},
                **{f"q{s:g}": part.quantiles[..., i].ravel() for i, s in enumerate(SHARES)},
            }
            table = arrow.table(columns)
            if writer is None:
                writer = arrow.parquet.ParquetWriter(beside, table.schema)
            writer.write_table(table)
        assert writer is not None
        writer.close()
        os.replace(beside, file)
