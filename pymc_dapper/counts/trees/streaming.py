"""Trees that are larger than memory: a Parquet file for each subtree, and results likewise.

Subtrees are independent given the messages of their roots. So a worker reads one file, and writes
the message of its root. The tree above is solved here. A second round writes the results, a file
for each. Written files stay: if a worker or everything was killed, another call continues.
"""

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, as_completed
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.checks import pyarrow, random_generator, shown, whole_number
from pymc_dapper.counts.trees import forest, weights
from pymc_dapper.counts.trees.messages import DROP, TAIL_MASS
from pymc_dapper.counts.trees.priors import NO_TABLES, Prior, read_prior
from pymc_dapper.counts.trees.tree import CountTree, check_executor, read_quantiles, read_releases
from pymc_dapper.runs import claim, whole

IN_FILES = "a tree in files"
TOP = "_top.parquet"
RUN = "_run.json"
ROOTS = "_roots"
"""Begin with an underscore: readers of a directory of Parquet files skip such files."""
PACKED = ("quantiles", "draws")
"""Integer columns, with as many bits as needed: a fifth of the time of a dictionary encoding."""


class TreeSummary(NamedTuple):
    """Results for a whole tree in files."""

    log_evidence: float
    """As :meth:`CountTree.log_evidence`."""
    tail_mass: float
    """As :attr:`CountTree.tail_mass`."""
    files: int
    """Number of files of results."""


class Task(NamedTuple):
    """The input of a worker."""

    source: Path
    target: Path
    prior: Any
    drop: float


class Wanted(NamedTuple):
    """The requested contents of results."""

    quantiles: np.ndarray
    draws: int


def solve_tree_files(
    source: str | Path,
    target: str | Path,
    *,
    prior: Any = "flat",
    quantiles: ArrayLike = (0.025, 0.5, 0.975),
    draws: int = 0,
    random_seed: Any = None,
    executor: Executor | None = None,
) -> TreeSummary:
    """Solve a tree of counts that is kept in files, subtree by subtree.

    Parameters
    ----------
    source : path
        A directory of Parquet files, each with columns ``node``, ``parent`` (numbers of nodes; -1
        or null for a root), ``released`` (null where nothing was), ``scale``, and ``noise`` if it
        isn't discrete Gaussian, all as in :class:`CountTree`. ``_top.parquet`` has the nodes above;
        any other file has one subtree, and the parent of its root is in ``_top.parquet``.
    target : path
        A directory for the results, a file for each of the source's: columns ``node``, ``mean``,
        ``sd``, ``quantiles`` and ``draws`` (lists, in the order asked for). Rows aren't in the
        source's order.
    prior : "flat", array_like or frozen distribution of scipy.stats, default "flat"
        As in :class:`CountTree`; one for all leaves.
    quantiles : array_like of float, default (0.025, 0.5, 0.975)
        Which quantiles.
    draws : int, default 0
        Number of independent draws of all counts.
    random_seed : int, Generator, ..., optional
        The same seed gives the same draws with any executor. Needed to continue a call with draws.
    executor : Executor, optional
        Where files are worked on: a pool of processes or threads, or Dask's
        ``Client.get_executor()``. Workers need the same directories.

    Returns
    -------
    TreeSummary
        The log-evidence and the tail mass.

    Raises
    ------
    ValueError
        If the files don't form a tree, if ``target`` has results of other files or settings, or if
        no counts fit the release.
    RuntimeError
        If workers failed. Finished files are kept, and another call continues from there.

    Notes
    -----
    A worker's memory has the nodes of one file, the messages of some thousand nodes, and some
    million values of its output.
    """
    source, target = folder(source, "source"), folder(target, "target")
    wanted = Wanted(read_quantiles(quantiles), whole_number(draws, "draws", at_least=0))
    entropy = int(random_generator(random_seed, "random_seed").integers(2**63))
    check_executor(executor)
    read_prior(prior, 1, np.zeros(1, dtype=np.int64))
    names = subtree_files(source)
    arrow = pyarrow(IN_FILES)
    begin(source, target, names, prior, wanted, entropy if wanted.draws else None)

    nodes = read_nodes(arrow, source / TOP)
    drop: float | None = DROP
    while drop is not None:
        task = Task(source, target, prior, drop)
        missing = [name for name in names if not root_file(task, name).is_file()]
        everywhere(executor, write_root, [(task, name) for name in missing])
        top = Top(nodes, [read_root(root_file(task, name)) for name in names], drop, names)
        if top.most <= np.log(TAIL_MASS):
            break
        drop = forest.wider(drop, top.most)
    else:
        raise ValueError(top.impossible())

    seeds = np.random.SeedSequence(entropy).spawn(1 + len(names))
    whole = np.random.default_rng(seeds[0])
    found, draws_of_top, downward, drawn = top.finish(wanted, whole)
    parts = [(np.arange(top.n), draws_of_top)]
    write_results(arrow, target / TOP, nodes["node"], found, parts, draws_of_top.max(initial=0))
    missing_parts = [
        (task, name, wanted, downward[k], drawn[k], seeds[1 + k])
        for k, name in enumerate(names)
        if not (target / name).is_file()
    ]
    everywhere(executor, write_part, missing_parts)
    return TreeSummary(top.log_evidence, top.total, 1 + len(names))


def folder(path: Any, name: str) -> Path:
    """Check the name of a directory."""
    if not isinstance(path, str | Path) or not str(path):
        raise TypeError(f"{name} must be the path of a directory, got {shown(path)}")
    return Path(path)


def subtree_files(source: Path) -> list[str]:
    """Return the names of the files that have a subtree each."""
    names = sorted(file.name for file in source.glob("*.parquet") if file.name != TOP)
    if not (source / TOP).is_file() or not names:
        raise ValueError(
            f"source={str(source)!r} must have {TOP}, the nodes above, and a file for each subtree"
        )
    return names


def begin(
    source: Path,
    target: Path,
    names: Sequence[str],
    prior: Any,
    wanted: Wanted,
    entropy: int | None,
) -> None:
    """Take a directory for these results, or check that it is theirs already."""
    digest = hashlib.sha256(pickle.dumps(prior)).hexdigest()
    sizes = [(source / name).stat() for name in [TOP, *names]]
    mine = {
        "files": [TOP, *names],
        "changed": [[x.st_size, x.st_mtime_ns] for x in sizes],
        "prior": digest,
        "quantiles": wanted.quantiles.tolist(),
        "draws": wanted.draws,
        "seed": entropy,
    }
    (target / ROOTS).mkdir(parents=True, exist_ok=True)
    claim(target / RUN, mine, f"target={str(target)!r} has results of another tree or")


def everywhere(
    executor: Executor | None, function: Callable[..., None], tasks: Iterable[tuple[Any, ...]]
) -> None:
    """Do all tasks, here or in an executor; raise errors after all have ended."""
    if executor is None:
        for task in tasks:
            function(*task)
        return
    names = {executor.submit(function, *task): task[1] for task in tasks}
    n_files, failed = len(names), []
    for future in as_completed(names):
        name, error = names.pop(future), future.exception()
        del future  # while we hold it, Dask does the file again if its worker dies later
        if isinstance(error, ValueError):
            raise error
        if error is not None:
            failed.append((name, error))
    if failed:
        name, first = failed[0]
        raise RuntimeError(
            f"{len(failed)} of {n_files} files failed, {name} with {first!r}. What is "
            "finished is kept: call again to go on"
        ) from first


def read_nodes(arrow: Any, file: Path) -> dict[str, np.ndarray]:
    """Read the nodes of a file."""
    table = arrow.parquet.read_table(file)
    missing = {"node", "parent", "released", "scale"} - set(table.column_names)
    if missing:
        raise ValueError(f"{file.name} has no column {sorted(missing)[0]!r}")
    columns = {name: table[name].to_pandas().to_numpy() for name in table.column_names}
    return {
        "node": columns["node"].astype(np.int64),
        "parent": np.nan_to_num(columns["parent"].astype(float), nan=-1).astype(np.int64),
        "released": columns["released"].astype(float),
        "scale": np.nan_to_num(columns["scale"].astype(float)),
        "noise": columns.get("noise", np.array("discrete_gaussian")).astype(str),
    }


def places(file: str, nodes: dict[str, np.ndarray]) -> np.ndarray:
    """Return the place of each node's parent in its file; -1 if it isn't there."""
    order = np.argsort(nodes["node"])
    numbers = nodes["node"][order]
    if np.any(numbers[1:] == numbers[:-1]):
        raise ValueError(
            f"{file}: node {numbers[:-1][numbers[1:] == numbers[:-1]][0]} is twice in it"
        )
    at = np.searchsorted(numbers, nodes["parent"]).clip(max=len(numbers) - 1)
    return np.where(numbers[at] == nodes["parent"], order[at], -1)


def read_tree(task: Task, name: str) -> tuple[CountTree, dict[str, np.ndarray], int]:
    """Read the subtree of a file, and the place of its root."""
    nodes = read_nodes(pyarrow(IN_FILES), task.source / name)
    parent = places(name, nodes)
    roots = np.flatnonzero(parent < 0)
    if len(roots) != 1:
        raise ValueError(f"{name} must have one subtree, but has {len(roots)} roots")
    tree = CountTree(
        parent,
        nodes["released"],
        nodes["scale"],
        noise=nodes["noise"],
        prior=task.prior,
        names=nodes["node"],
    )
    return tree, nodes, int(roots[0])


def root_file(task: Task, name: str) -> Path:
    """Return the file with the message of a file's root, for one width of windows."""
    return task.target / ROOTS / f"{task.drop:.3f}-{Path(name).stem}.npz"


def write_root(task: Task, name: str) -> None:
    """Write the message of a subtree's root."""
    tree, nodes, root = read_tree(task, name)
    solved = tree._forest.solve_with(task.drop)
    if isinstance(solved, int):
        found = forest.Root(0, np.zeros(0), -np.inf, np.inf, np.inf, int(nodes["node"][solved]))
    else:
        lowest, message = forest.said_of(solved.messages, solved.messages.values, -1)
        found = forest.Root(lowest, message, solved.log_evidence, solved.most, solved.total, -1)
    with whole(root_file(task, name)) as beside:
        np.savez(beside, *map(np.asarray, found), nodes["node"][root], nodes["parent"][root])


def read_root(file: Path) -> tuple[forest.Root, int, int]:
    """Read it, with the root's number and its parent's."""
    with np.load(file) as stored:
        *found, node, parent = (stored[f"arr_{k}"] for k in range(8))
    return forest.Root(*(x if x.ndim else x.item() for x in found)), int(node), int(parent)


class Top:
    """The tree above the subtrees, which are its leaves."""

    def __init__(
        self,
        nodes: dict[str, np.ndarray],
        roots: Sequence[tuple[forest.Root, int, int]],
        drop: float,
        names: Sequence[str],
    ):
        self.most, self.total, self.log_evidence = np.inf, np.inf, -np.inf
        self._at: int | None = None
        impossible = [root.impossible for root, _, _ in roots if root.impossible >= 0]
        if impossible:
            self._at = impossible[0]
            return
        self.n = n = len(nodes["node"])
        joined = {
            "node": np.append(nodes["node"], [node for _, node, _ in roots]),
            "parent": np.append(nodes["parent"], [parent for _, _, parent in roots]),
        }
        parent = places(TOP, joined)
        for k, name in enumerate(names):
            if not 0 <= parent[n + k] < n:
                raise ValueError(f"{name}: the parent of its root isn't in {TOP}")
        if np.any(parent[:n] >= n) or not np.bincount(parent[parent >= 0], minlength=n)[:n].all():
            raise ValueError(f"{TOP}: a node has no children, in it or in other files")
        releases = read_releases(
            nodes["released"],
            nodes["scale"],
            nodes["noise"],
            n,
            lambda i: f"node {nodes['node'][i]}",
        )
        nothing, flat = np.full(len(roots), weights.NONE), np.zeros((3, n + len(roots)))
        self.forest = forest.Forest(
            parent,
            forest.Releases(*(np.append(x, nothing) for x in releases)),
            Prior(*flat, NO_TABLES),  # type: ignore[call-arg]
            most=1,  # the roots of files are subtrees
        )
        solved = self.forest.above([roots[k][0] for k in self.forest.roots - n], drop)
        if isinstance(solved, int):
            self._at = int(joined["node"][solved])
            return
        self.solved: forest.Solved = solved
        self.most, self.total, self.log_evidence = solved.most, solved.total, solved.log_evidence

    def impossible(self) -> str:
        """Name the node without a possible count."""
        return (
            f"no counts fit the release at node {self._at}, above it and below it: look for a "
            "wrong scale, a wrong parent or a wrong exact count"
        )

    def finish(
        self, wanted: Wanted, rng: np.random.Generator
    ) -> tuple[forest.Summaries, np.ndarray, list[forest.DownwardMessage], list[np.ndarray]]:
        """Return results and draws of the top, and of subtrees' roots, with downward messages."""
        asked = forest.Asked(wanted.quantiles, np.zeros(0))
        found, downward = self.forest.summarise_above(self.solved, asked)
        [own] = rng.spawn(1)
        numbers, counts, of_roots = self.forest.draw_above(self.solved, wanted.draws, own)
        order = np.argsort(self.forest.roots)
        return (
            forest.Summaries(*(x[: self.n] for x in found)),
            counts[np.argsort(numbers)],
            [downward[k] for k in order],
            list(of_roots[order]),
        )


def write_part(
    task: Task,
    name: str,
    wanted: Wanted,
    downward: forest.DownwardMessage,
    given: np.ndarray,
    seed: np.random.SeedSequence,
) -> None:
    """Write the results of a subtree."""
    tree, nodes, _ = read_tree(task, name)
    solved = tree._forest.solve_with(task.drop)
    assert not isinstance(solved, int)
    asked = forest.Asked(wanted.quantiles, np.zeros(0))
    found = tree._forest.summarise(solved, asked, downward=downward)
    rng = np.random.default_rng(seed)
    parts: Iterable[tuple[np.ndarray, np.ndarray]] = [
        (np.arange(tree._n_nodes), np.zeros((tree._n_nodes, 0)))
    ]
    if wanted.draws:
        parts = tree._forest.draw_parts(solved, wanted.draws, rng, given=given)
    file = task.target / name
    write_results(pyarrow(IN_FILES), file, nodes["node"], found, parts, given.max(initial=0))


def write_results(
    arrow: Any,
    file: Path,
    node: np.ndarray,
    found: forest.Summaries,
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
    largest: int,
) -> None:
    """Write a file of results, some nodes after the other, so that not all draws are in memory.

    ``parts`` has places of nodes and their draws, none above ``largest``.
    """
    narrow = np.int32 if largest < 2**31 else np.int64

    def lists(rows: np.ndarray, dtype: type) -> Any:
        flat = arrow.array(np.ascontiguousarray(rows, dtype=dtype).ravel())
        return arrow.FixedSizeListArray.from_arrays(flat, rows.shape[1])

    def tables() -> Iterator[Any]:
        for places, draws in parts:
            if places.size == 0:
                continue
            columns = {
                "node": node[places],
                "mean": found.means[places],
                "sd": found.sds[places],
                "quantiles": lists(found.quantiles[places], np.int64),
            }
            if draws.shape[1]:
                columns["draws"] = lists(draws, narrow)
            yield arrow.table(columns)

    write_tables(arrow, file, tables())


def write_tables(arrow: Any, file: Path, tables: Iterator[Any]) -> None:
    """Write a file of tables with the same columns, one after the other."""
    first = next(tables)
    packed = [f"{name}.list.element" for name in PACKED if name in first.column_names]
    encoding = dict.fromkeys(packed, "DELTA_BINARY_PACKED")
    options = {"use_dictionary": False, "column_encoding": encoding}
    with (
        whole(file) as beside,
        arrow.parquet.ParquetWriter(beside, first.schema, **options) as writer,
    ):
        for table in chain([first], tables):
            writer.write_table(table)
