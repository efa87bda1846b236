"""Draws of tables, their summaries, and files of these."""

import hashlib
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.checks import pyarrow
from pymc_dapper.counts.trees.streaming import write_tables
from pymc_dapper.counts.trees.tree import read_quantiles
from pymc_dapper.runs import claim, claimed
from pymc_dapper.table_trees.chain import Margin, Plan, chain_file, draws_file, read_state

RUN = "_run.json"
AT_ONCE = 2**22
"""About so many numbers are in memory at once."""
SHARES = (0.05, 0.5, 0.95)
MOVES = ("recast", "swap", "give", "resize")


class TableSummary(NamedTuple):
    """Summaries of a margin, by area and class."""

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
    from arviz_stats.base import array_stats

    of = np.moveaxis(x.reshape(-1, *x.shape[2:]), 0, -1)
    sizes = np.full((2, *x.shape[2:]), np.nan)
    moved = np.ptp(of, axis=-1) > 0
    some = x[:, :, moved].astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):  # of chains that stand still
        sizes[0, moved] = array_stats.ess(some, chain_axis=0, draw_axis=1, method="bulk")
        r_hat = array_stats.rhat(some, chain_axis=0, draw_axis=1)
    sizes[1, moved] = np.where(np.isnan(r_hat), np.inf, r_hat)
    quantiles = np.quantile(of, shares, axis=-1, method="inverted_cdf")
    return TableSummary(of.mean(axis=-1), of.std(axis=-1), np.moveaxis(quantiles, 0, -1), *sizes)


def begin(plan: Plan, chains: int, entropy: int, data: Any) -> None:
    """Take a directory for these results, or check that it is theirs already."""
    assert plan.folder is not None
    mine = {
        "data": _digest(plan.margins, data),
        "keep": list(plan.margins),
        **{name: getattr(plan, name) for name in ("draws", "tune", "thin", "every")},
        "chains": chains,
        "seed": entropy,
    }
    plan.folder.mkdir(parents=True, exist_ok=True)
    claim(plan.folder / RUN, mine, f"results={str(plan.folder)!r} has draws of another tree or")


def _digest(margins: Mapping[str, Margin], data: Any) -> str:
    return hashlib.sha256(pickle.dumps((data, list(margins.values())))).hexdigest()


def read_so_far(folder: Path, margins: Mapping[str, Margin], data: Any) -> TableDraws:
    """Return the draws that all chains of a run have written."""
    run = claimed(folder / RUN, f"results={str(folder)!r} has draws")
    if run is None:
        raise ValueError(f"results={str(folder)!r} has no draws of tables")
    if (run.get("data"), run.get("keep")) != (_digest(margins, data), list(margins)):
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
    draws = {}
    for name in margins:
        files = [draws_file(folder, name, chain) for chain in range(run["chains"])]
        draws[name] = [np.load(file, mmap_mode="r")[:done] for file in files]
    return TableDraws(draws, {name: margin.areas for name, margin in margins.items()}, made)


def write_summaries(folder: Path, drawn: TableDraws, names: np.ndarray) -> None:
    """Write a file of intervals for each margin, some areas after the other."""
    arrow = pyarrow("results=")

    def tables(name: str, areas: np.ndarray) -> Iterator[Any]:
        for some, part in drawn._parts(name, np.array(SHARES)):
            k = part.mean.shape[1]
            columns = {
                "area": np.repeat(names[areas[some]], k),
                "class": np.tile(np.arange(k), part.mean.shape[0]),
                **{x: getattr(part, x).ravel() for x in ("mean", "sd", "ess", "r_hat")},
                **{f"q{s:g}": part.quantiles[..., i].ravel() for i, s in enumerate(SHARES)},
            }
            yield arrow.table(columns)

    for name, areas in drawn.areas.items():
        write_tables(arrow, folder / f"{name}.parquet", tables(name, areas))
