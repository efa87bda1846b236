"""A forest of counts, solved in parts: subtrees are independent given their roots' messages.

Of each subtree only the message of its root is kept, so that memory stays bounded. The roots are
leaves of the tree above. Its downward messages go back to the subtrees, whose own messages are then
computed once more.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Any, NamedTuple

import numpy as np

from pymc_dapper.counts.trees import compiled
from pymc_dapper.counts.trees.messages import DROP, TAIL_MASS, Messages
from pymc_dapper.counts.trees.nodes import Nodes
from pymc_dapper.counts.trees.priors import Prior, to_tables
from pymc_dapper.counts.trees.weights import NONE, OF_TABLE

LARGEST_DROP = 690.0
"""Largest logarithm of what windows cut off: the limit of float64."""
SUBTREE = 1024
"""Nodes of a subtree, at most: their messages stay in a processor's caches."""


class ContradictionError(Exception):
    """No counts fit the release at a node and below it."""

    def __init__(self, node: int):
        super().__init__(node)
        self.node = node


class Releases(NamedTuple):
    """The releases of the nodes; arrays of shape (number of nodes,)."""

    kinds: np.ndarray
    """Int64: kinds of noise, as in :mod:`pymc_dapper.counts.trees.weights`."""
    values: np.ndarray
    """Float64: the released value, or the number of a table; 0 without a release."""
    scales: np.ndarray
    """Float64: scales of the noise."""


class Root(NamedTuple):
    """The upward message of a subtree's root."""

    lowest: int
    message: np.ndarray
    log_evidence: float
    most: float
    """Logarithm of the largest share that a window of the subtree neglects."""
    total: float
    impossible: int


class DownwardMessage(NamedTuple):
    """The message of the rest of the tree to a subtree's root, on a window."""

    lowest: int
    values: np.ndarray

    def on(self, lowest: int, width: int) -> np.ndarray:
        """Return it on the window of the subtree's own message: neither needs to hold the other."""
        found, begin = np.zeros(width), self.lowest - lowest
        low, high = max(begin, 0), min(begin + self.values.size, width)
        found[low:high] = self.values[low - begin : high - begin]
        return found


def said_of(messages: Messages, values: np.ndarray, i: int) -> DownwardMessage:
    """Return the part of ``values`` that belongs to a node, with the least count of its window."""
    own = values[messages.starts[i] :][: messages.widths[i]]
    return DownwardMessage(int(messages.lowest[i]), own)


class Asked(NamedTuple):
    """Which summaries are wanted."""

    shares: np.ndarray
    at: np.ndarray


class Summaries(NamedTuple):
    """Summaries of marginals, a row for each node."""

    means: np.ndarray
    sds: np.ndarray
    quantiles: np.ndarray
    below: np.ndarray

    def put(self, numbers: np.ndarray, part: "Summaries") -> None:
        """Write the rows of some nodes."""
        for whole, values in zip(self, part, strict=True):
            if whole.size:
                whole[numbers] = values


def room_for(n: int, asked: Asked) -> Summaries:
    """Allocate summaries of ``n`` nodes."""
    quantiles = np.empty((n, asked.shares.size), dtype=np.int64)
    return Summaries(np.empty(n), np.empty(n), quantiles, np.empty((n if asked.at.size else 0, 2)))


class Solved(NamedTuple):
    """A forest with all upward messages."""

    drop: float
    top: Nodes
    messages: Messages
    log_evidence: float
    most: float
    total: float


def tables_of(roots: Sequence[Root]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Write the messages of subtrees' roots as tables of log-weights."""
    with np.errstate(divide="ignore"):
        logs = [np.log(root.message) for root in roots]
    return to_tables(logs, [root.lowest for root in roots])


def wider(drop: float, most: float) -> float | None:
    """Return a drop by which less is neglected than ``most``; None if there is none."""
    if drop >= LARGEST_DROP:
        return None
    further = 4 * drop if most == np.inf else drop + 5 + most - np.log(TAIL_MASS)
    return float(min(further, LARGEST_DROP))


def to_root(nodes: Nodes, drop: float) -> Root:
    """Pass messages up a subtree, and keep the last."""
    messages = compiled.ascend(nodes, drop, False)
    if messages.impossible >= 0:
        return Root(0, np.zeros(0), -np.inf, -np.inf, 0.0, messages.impossible)
    _, most, total = compiled.bound_neglected(nodes, messages)
    lowest, message = said_of(messages, messages.values, -1)
    return Root(lowest, message.copy(), float(messages.log_totals.sum()), most, total, -1)


def up_and_down(
    nodes: Nodes, drop: float, downward: DownwardMessage | None
) -> tuple[Messages, np.ndarray]:
    """Return all messages of a subtree, up and down."""
    messages = compiled.ascend(nodes, drop, True)
    inside = np.ones(messages.widths[-1])
    if downward is not None:
        inside = downward.on(int(messages.lowest[-1]), inside.size)
    return messages, compiled.descend(nodes, messages, inside)


def summaries_of(
    nodes: Nodes, drop: float, downward: DownwardMessage | None, chosen: np.ndarray, asked: Asked
) -> Summaries:
    """Summarise the marginals of chosen nodes of a subtree."""
    messages, values = up_and_down(nodes, drop, downward)
    return summarised(messages, values, chosen, asked)


def summarised(
    messages: Messages, values: np.ndarray, chosen: np.ndarray, asked: Asked
) -> Summaries:
    """Summarise marginals."""
    found = room_for(len(chosen), asked)
    compiled.summarise(messages, values, chosen, asked.shares, asked.at, *found)
    return found


def to_draw(nodes: Nodes, drop: float, root: np.ndarray | None = None) -> Messages:
    """Return messages by which each count can be split in two.

    If counts of the last node are known, ``root`` has them. Windows then have to be wide enough for
    these counts, however unlikely they are.
    """
    messages = compiled.ascend(nodes, drop, True)
    if root is None:
        return messages
    _, most, _ = compiled.bound_neglected(nodes, messages)
    own = said_of(messages, messages.values, -1).on(int(root.min()), int(np.ptp(root)) + 1)
    if np.exp(min(most, 0.0)) <= TAIL_MASS * own[root - root.min()].min():
        return messages
    return compiled.ascend(nodes, LARGEST_DROP, True)


def draws_of(
    nodes: Nodes, drop: float, root: np.ndarray, chosen: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Draw the counts of chosen nodes of a subtree, given those of its root."""
    messages = to_draw(nodes, drop, root)
    counts = np.empty((nodes.left.size, root.size), dtype=np.int64)
    counts[-1] = root
    compiled.split_draws(rng, nodes, messages, counts)
    return counts[chosen]


class Forest:
    """A forest of counts, with their releases and priors.

    Parameters
    ----------
    parent : ndarray of int64, shape (number of nodes,)
        The parent of each node, -1 for roots.
    releases : Releases
        The release of each node.
    prior : Prior
        The prior of each node; it is ignored for nodes with children. Releases use its tables, too.
    most : int
        Nodes of a subtree, at most.

    Raises
    ------
    ValueError
        If the parents run in a circle.
    """

    def __init__(self, parent: np.ndarray, releases: Releases, prior: Prior, most: int = SUBTREE):
        left, right, self.origin = compiled.in_post_order(parent)
        named = self.origin >= 0
        if named.sum() < parent.size:
            left_out = np.setdiff1d(np.arange(parent.size), self.origin[named])
            raise ValueError(f"parent: nodes {left_out[:6].tolist()} are in a circle")
        arrays = [
            np.where(named, x[self.origin], filler).astype(dtype)
            for x, filler, dtype in (
                (releases.kinds, NONE, np.int64),
                (releases.values, 0.0, np.float64),
                (releases.scales, 0.0, np.float64),
                (prior.kind, 0, np.int64),
                (prior.first, 0.0, np.float64),
                (prior.second, 0.0, np.float64),
            )
        ]
        highest = np.full(left.size, np.iinfo(np.int64).max)
        self.nodes = Nodes(left, right, *arrays, highest, *prior.tables)  # type: ignore[call-arg]
        sizes, ends = compiled.cut(left, right, most)
        self._stops = np.flatnonzero(ends) + 1
        self._starts = self._stops - sizes[self._stops - 1]
        self.roots = self.origin[self._stops - 1]
        """The numbers of the subtrees' roots, in order; -1 for those in between."""
        self.size = parent.size
        # As wide as possible: the release of a sum must not cut its parts more than itself, or the
        # cut would be missing from the sum's message.
        at = compiled.limit(self.nodes, LARGEST_DROP)
        self.endless = None if at < 0 else self._name(at)
        """A node that has no limit, None if there is none."""

    def _name(self, at: int) -> int:
        """Return the number of a node, or of the next above it that has one."""
        while self.origin[at] < 0:
            at = int(np.flatnonzero((self.nodes.left == at) | (self.nodes.right == at))[0])
        return int(self.origin[at])

    def _parts(self) -> Iterator[Nodes]:
        for start, stop in zip(self._starts, self._stops, strict=True):
            yield self.nodes.part(int(start), int(stop))

    def solve(self, executor: Executor | None = None) -> Solved:
        """Pass messages up, in windows that are wide enough.

        Raises
        ------
        ContradictionError
            If no counts fit the release at a node.
        """
        drop: float | None = DROP
        while drop is not None:
            solved = self.solve_with(drop, executor)
            worst = np.inf if isinstance(solved, int) else solved.most
            if worst <= np.log(TAIL_MASS):
                assert not isinstance(solved, int)
                return solved
            drop = wider(drop, worst)
        raise ContradictionError(solved if isinstance(solved, int) else self._name(-1))

    def solve_with(self, drop: float, executor: Executor | None = None) -> Solved | int:
        """Pass messages up in given windows; return a node at which no count is possible."""
        roots: list[Root] = []
        tasks = ((part, drop) for part in self._parts())
        for k, root in enumerate(in_order(executor, to_root, tasks)):
            if root.impossible >= 0:
                return self._name(int(self._starts[k]) + root.impossible)
            roots.append(root)
        return self.above(roots, drop)

    def above(self, roots: Sequence[Root], drop: float) -> Solved | int:
        """Pass messages up from those of the subtrees' roots, as :meth:`solve_with` does."""
        top, at = self._top(roots)
        messages = compiled.ascend(top, drop, True)
        if messages.impossible >= 0:
            return self._name(int(at[messages.impossible]))
        largest, most, total = compiled.bound_neglected(top, messages)
        log_evidence = messages.log_totals.sum()
        # What windows of subtrees neglect counts as often as the rest of the tree says.
        for place, root in zip(np.searchsorted(at, self._stops - 1), roots, strict=True):
            most = max(most, largest[place] + root.most)
            total += np.exp(min(largest[place], 600.0)) * root.total
            log_evidence += root.log_evidence
        return Solved(drop, top, messages, float(log_evidence), float(most), float(total))

    def _places_above(self) -> np.ndarray:
        """Return the places of nodes that aren't below a subtree's root."""
        inside = np.zeros(self.nodes.left.size + 1, dtype=np.int64)
        np.add.at(inside, self._starts, 1)
        np.add.at(inside, self._stops - 1, -1)
        return np.flatnonzero(inside[:-1].cumsum() == 0)

    def _top(self, roots: Sequence[Root]) -> tuple[Nodes, np.ndarray]:
        """Make the tree above subtrees, which are its leaves; return it with its nodes' places."""
        nodes, at = self.nodes, self._places_above()
        place = np.full(nodes.left.size + 1, -1, dtype=np.int64)
        place[at] = np.arange(at.size)
        leaves = place[self._stops - 1]
        top = nodes.at(at)
        top.noise[leaves], top.prior[leaves] = NONE, OF_TABLE
        top.first[leaves] = len(nodes.table_lowest) + np.arange(leaves.size)
        top.second[leaves] = 0.0  # the parts account for what windows cut off
        starts, lowest, tables = tables_of(roots)
        return top._replace(
            left=place[top.left],
            right=place[top.right],
            table_starts=np.append(nodes.table_starts, nodes.tables.size + starts[1:]),
            table_lowest=np.append(nodes.table_lowest, lowest),
            tables=np.append(nodes.tables, tables),
        ), at

    def _named(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Nodes of each part that aren't in between: their places in it, and their numbers."""
        for start, stop in zip(self._starts, self._stops, strict=True):
            origin = self.origin[start:stop]
            chosen = np.flatnonzero(origin >= 0)
            yield chosen, origin[chosen]

    def _above(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Places in the top of subtrees' roots, and of other nodes with their numbers."""
        at = self._places_above()
        roots = np.searchsorted(at, self._stops - 1)
        own = self.origin[at] >= 0
        own[roots] = False
        chosen = np.flatnonzero(own)
        return roots, chosen, self.origin[at[chosen]]

    def summarise(
        self,
        solved: Solved,
        asked: Asked,
        executor: Executor | None = None,
        downward: DownwardMessage | None = None,
    ) -> Summaries:
        """Summarise the marginal pmfs of all nodes, given an outside message to a root."""
        found, said = self.summarise_above(solved, asked, downward)
        named = list(self._named())
        tasks = (
            (part, solved.drop, message, chosen, _of_nodes(asked, numbers))
            for part, message, (chosen, numbers) in zip(self._parts(), said, named, strict=True)
        )
        for (_, numbers), part in zip(named, in_order(executor, summaries_of, tasks), strict=True):
            found.put(numbers, part)
        return found

    def summarise_above(
        self, solved: Solved, asked: Asked, downward: DownwardMessage | None = None
    ) -> tuple[Summaries, list[DownwardMessage]]:
        """Summarise all nodes that aren't in subtrees; return the messages to subtrees' roots, too.

        Rows of other nodes aren't written yet.
        """
        found = room_for(self.size, asked)
        messages, values = up_and_down(solved.top, solved.drop, downward)
        roots, chosen, numbers = self._above()
        found.put(numbers, summarised(messages, values, chosen, _of_nodes(asked, numbers)))
        return found, [said_of(messages, values, root) for root in roots]

    def pmf(self, solved: Solved, node: int) -> tuple[int, np.ndarray]:
        """Return the least possible count of a node, and its marginal pmf from there on."""
        at = int(np.flatnonzero(self.origin == node)[0])
        messages, values = up_and_down(solved.top, solved.drop, None)
        roots, chosen, numbers = self._above()
        inside = np.flatnonzero((self._starts <= at) & (at < self._stops))
        if inside.size:
            [k] = inside
            downward = said_of(messages, values, roots[k])
            start, stop = self._starts[k], self._stops[k]
            messages, values = up_and_down(self.nodes.part(start, stop), solved.drop, downward)
            place = at - start
        else:
            place = chosen[numbers == node][0]
        lowest, pmf = said_of(messages, messages.values * values, place)
        return lowest, pmf / pmf.sum()

    def draw(
        self,
        solved: Solved,
        draws: int,
        rng: np.random.Generator,
        executor: Executor | None = None,
        given: np.ndarray | None = None,
    ) -> np.ndarray:
        """Draw all counts, given those of a root if they are known: (draws, number of nodes)."""
        drawn = np.empty((draws, self.size), dtype=np.int64)
        for numbers, part in self.draw_parts(solved, draws, rng, executor, given):
            drawn[:, numbers] = part.T
        return drawn

    def draw_parts(
        self,
        solved: Solved,
        draws: int,
        rng: np.random.Generator,
        executor: Executor | None = None,
        given: np.ndarray | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Draw all counts, some nodes after the other: their numbers, and (nodes, draws)."""
        own, *others = rng.spawn(1 + len(self._starts))
        numbers, counts, roots = self.draw_above(solved, draws, own, given)
        yield numbers, counts
        named = list(self._named())
        parts = zip(self._parts(), roots, named, others, strict=True)
        tasks = ((part, solved.drop, root, chosen, rng) for part, root, (chosen, _), rng in parts)
        for (_, numbers), part in zip(named, in_order(executor, draws_of, tasks), strict=True):
            yield numbers, part

    def draw_above(
        self, solved: Solved, draws: int, rng: np.random.Generator, given: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw all counts that aren't in subtrees: their numbers, they, and those of the roots."""
        top = solved.top
        messages = to_draw(top, solved.drop, given)
        counts = np.empty((top.left.size, draws), dtype=np.int64)
        roots_of_all = np.setdiff1d(np.arange(top.left.size), np.concatenate([top.left, top.right]))
        if given is None:
            compiled.draw_roots(rng, roots_of_all, messages, counts)
        else:
            counts[roots_of_all] = given
        compiled.split_draws(rng, top, messages, counts)
        roots, chosen, numbers = self._above()
        return numbers, counts[chosen], counts[roots]


def _of_nodes(asked: Asked, numbers: np.ndarray) -> Asked:
    return Asked(asked.shares, asked.at[numbers] if asked.at.size else asked.at)


def in_order(
    executor: Executor | None, function: Callable, tasks: Iterator[tuple[Any, ...]]
) -> Iterator[Any]:
    """Call a function for each task, here or in an executor, and yield results in order."""
    if executor is None:
        for task in tasks:
            yield function(*task)
        return
    ahead: list = []
    for task in tasks:
        ahead.append(executor.submit(function, *task))
        if len(ahead) >= AHEAD:
            yield ahead.pop(0).result()
    for future in ahead:
        yield future.result()


AHEAD = 64
"""Most tasks that wait in an executor."""
