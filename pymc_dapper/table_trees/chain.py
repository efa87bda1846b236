"""A chain of tables: draws of margins, and a file from which it goes on."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pymc_dapper.runs import whole
from pymc_dapper.table_trees import compiled
from pymc_dapper.table_trees.kernels import GIVE, RESIZE, SWAP
from pymc_dapper.table_trees.layout import Fixed, Moves
from pymc_dapper.table_trees.start import Entries, entries_of, state_of

VISITS = 4
"""How often a sweep proposes to change the total of each block, by each kind of moves."""


class Margin(NamedTuple):
    """Counts that are kept: of some areas, by class of cells."""

    rows: np.ndarray
    classes: np.ndarray
    areas: np.ndarray


class Plan(NamedTuple):
    """How long a chain is, and what is kept of it."""

    draws: int
    tune: int
    thin: int
    margins: dict[str, Margin]
    folder: Path | None
    every: int
    """Draws from one writing of the state to the next."""


class Finished(NamedTuple):
    """What a chain returns."""

    draws: dict[str, np.ndarray]
    """Shape (draws, areas, classes), by margin."""
    made: np.ndarray
    """Shape (4, 2): how many moves of each kind were proposed and accepted after tuning."""
    misfit: np.ndarray
    """As :func:`misfits` of the last state."""


def chain_file(folder: Path, chain: int) -> Path:
    """Return where a chain's state is."""
    return folder / f"_chain_{chain}.npz"


def draws_file(folder: Path, name: str, chain: int) -> Path:
    """Return where a chain's draws of a margin are."""
    return folder / f"_draws_{name}_{chain}.npy"


def _room(plan: Plan, chain: int, goes_on: bool) -> dict[str, np.ndarray]:
    room = {}
    for name, margin in plan.margins.items():
        shape = (plan.draws, margin.areas.size, int(margin.classes.max()) + 1)
        if plan.folder is None:
            room[name] = np.zeros(shape, dtype=np.int32)
            continue
        file, mode = draws_file(plan.folder, name, chain), "r+" if goes_on else "w+"
        room[name] = np.lib.format.open_memmap(file, mode, dtype=np.int32, shape=shape)
    return room


def write_state(
    file: Path, done: int, made: np.ndarray, rng: np.random.Generator, now: Entries
) -> None:
    """Write a state, completely or not at all."""
    with whole(file) as beside:
        np.savez(beside, done, made, json.dumps(rng.bit_generator.state), *now)


def read_state(file: Path) -> tuple[int, np.ndarray, np.random.Generator, Entries]:
    """Return how many draws a chain has written, its moves, its generator and its people."""
    with np.load(file) as stored:
        done, made, words, *now = (stored[f"arr_{k}"] for k in range(6))
    rng = np.random.Generator(np.random.PCG64())
    rng.bit_generator.state = json.loads(str(words))
    return int(done), made, rng, (now[0], now[1], now[2])


def run(
    chain: int, fixed: Fixed, released: np.ndarray, first: Entries, seed: np.random.SeedSequence,
    moves: Moves, plan: Plan,
) -> Finished:  # fmt: skip
    """Run a chain, or go on with one.

    The state is made anew whenever it is written: then a chain that goes on has the same draws.
    """
    file = None if plan.folder is None else chain_file(plan.folder, chain)
    goes_on = file is not None and file.is_file()
    done, made, now = -plan.tune, np.zeros((moves.on.size, 2), dtype=np.int64), first
    rng = np.random.Generator(np.random.PCG64(seed))
    if file is not None and goes_on:
        done, made, rng, now = read_state(file)
    room = _room(plan, chain, goes_on)
    tallies = {name: np.zeros(x.shape[1:], dtype=np.int64) for name, x in room.items()}
    state = state_of(fixed, released, now)
    while done < plan.draws:
        for _ in range(plan.thin if done >= 0 else 1):
            compiled.sweep(rng, fixed, state, VISITS, moves, made)
        if done >= 0:
            for name, margin in plan.margins.items():
                compiled.tally(fixed, state.people, margin.rows, margin.classes, tallies[name])
                room[name][done] = tallies[name]
        done += 1
        if done == 0:
            made[:] = 0
        if done % plan.every == 0 or done == plan.draws:
            now = entries_of(state.people)
            if file is not None:
                for x in room.values():
                    x.flush()  # type: ignore[attr-defined]
                write_state(file, done, made, rng, now)
            state = state_of(fixed, released, now)
    return Finished(room, made, misfits(fixed, state.residual))


def misfits(fixed: Fixed, residual: np.ndarray) -> np.ndarray:
    """Tell how much larger residuals are than noise, by depth and query.

    If the model is true, the residuals of a draw are distributed as noise. The result says by how
    many standard errors their sum of squares exceeds its expectation; 0 where nothing was released.
    """
    found = np.zeros((int(fixed.depth.max()) + 1, fixed.classes.shape[1]))
    for depth in range(len(found)):
        for q, classes in enumerate(fixed.classes.T):
            here = np.flatnonzero((fixed.depth == depth) & (fixed.base[:, q] >= 0))
            places = fixed.base[here, q][:, None] + np.arange(classes.max() + 1)
            squares = 2.0 * fixed.weight[here, q][:, None] * residual[places] ** 2
            n = int((~np.isnan(squares)).sum())
            found[depth, q] = (np.nansum(squares) - n) / np.sqrt(2.0 * max(n, 1))
    return found


def moves_of(fixed: Fixed, variance: np.ndarray) -> Moves:
    """Return which moves are needed, given how well the total of each area is known.

    People change places where a total between their blocks is known to within a person. If it is
    known less well, people can move to other blocks one by one. People come and go only if some
    block is in no exact total.
    """
    lid = _lid(fixed, variance <= 1)
    on = np.ones(RESIZE + 1, dtype=bool)
    on[SWAP] = (fixed.depth[lid] > 0).any()
    on[GIVE] = not fixed.exact[fixed.leaf].all()
    on[RESIZE] = not fixed.exact[_lid(fixed, fixed.exact)].all()
    return Moves(on, lid)


def _lid(fixed: Fixed, known: np.ndarray) -> np.ndarray:
    """Return the smallest area around each block whose total is known; the root if none is."""
    area = fixed.leaf
    for _ in range(int(fixed.depth.max())):
        area = np.where(known[area] | (fixed.parent[area] < 0), area, fixed.parent[area])
    return area
