"""A tree of counts in the kernels' form: nodes in post-order, with two children at most.

A node's children come before it, and its whole subtree is the run before it. So an upward pass is a
loop, a downward pass the same loop backwards, and a subtree is a slice. A node with many children
has intermediate nodes, without releases, which sum the children two by two.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Nodes(NamedTuple):
    """Nodes in post-order. All arrays but the tables have shape (number of nodes,)."""

    left: np.ndarray
    right: np.ndarray
    """Int64: children; -1 for none."""
    noise: np.ndarray
    """Int64: kind of noise, as in :mod:`pymc_dapper.counts.trees.weights`."""
    released: np.ndarray
    """Float64: the released value, or the number of a table."""
    scale: np.ndarray
    """Float64: the scale of the noise."""
    prior: np.ndarray
    """Int64: kind of prior of a count without children."""
    first: np.ndarray
    second: np.ndarray
    """Float64: parameters of the prior; or the number of a table, and the sum of the weights of
    counts beyond it, which it leaves out."""
    highest: np.ndarray
    """Int64: largest count that is possible given the sums above."""
    table_starts: np.ndarray
    """Int64, shape (number of tables + 1,): the start of each table."""
    table_lowest: np.ndarray
    """Int64, shape (number of tables,): the count that it starts with."""
    tables: np.ndarray
    """Float64: log-weights; of counts beyond a table it is -inf."""

    def at(self, places: np.ndarray | slice) -> "Nodes":
        """Return some of the nodes; their children still refer to all nodes."""
        own, tables = self[:9], self[9:]
        return Nodes(*(x[places].copy() for x in own), *tables)  # type: ignore[call-arg]

    def part(self, start: int, stop: int) -> "Nodes":
        """Return the nodes of a run that has all below its last node."""
        part = self.at(slice(start, stop))
        left, right = (np.maximum(x - start, -1) for x in part[:2])
        return part._replace(left=left, right=right)


@njit
def put(run: np.ndarray, node: int, begin: int, end: int, above: int, side: int) -> None:
    """Write a run of a node's children, one by one: numba takes two seconds to assign a row."""
    run[0], run[1], run[2], run[3], run[4] = node, begin, end, above, side


@njit
def in_post_order(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bring a forest into post-order, with intermediate nodes for many children.

    Parameters
    ----------
    parent : ndarray of int64, shape (number of nodes,)
        The parent of each node, -1 for roots.

    Returns
    -------
    left, right : ndarray of int64, shape (number of nodes in post-order,)
        Children, -1 if there is none.
    origin : ndarray of int64, shape (number of nodes in post-order,)
        The node's number in ``parent``; -1 for those in between. Fewer than all nodes are reached,
        and come out, if the parents run in a circle.
    """
    n = parent.size
    begins = np.zeros(n + 2, dtype=np.int64)
    for i in range(n):
        begins[parent[i] + 2] += 1
    for i in range(1, n + 2):
        begins[i] += begins[i - 1]
    # Children of node i are at begins[i + 1] : begins[i + 2] after this; roots at 0 : begins[1].
    place, children = begins.copy(), np.empty(n, dtype=np.int64)
    for i in range(n):
        children[place[parent[i] + 1]] = i
        place[parent[i] + 1] += 1

    # Backwards: a node, its right subtree, its left subtree.
    left, right = np.full(2 * n, -1, dtype=np.int64), np.full(2 * n, -1, dtype=np.int64)
    origin, at = np.empty_like(left), 2 * n
    # The stack: runs of a node's children, whose sum is itself a child, and its side.
    runs, height = np.empty((n + 1, 5), dtype=np.int64), 0
    for k in range(begins[1]):
        put(runs[k], children[k], begins[children[k] + 1], begins[children[k] + 2], -1, 0)
        height += 1
    while height:
        height -= 1
        node, begin, end, above, side = runs[height]
        at -= 1
        is_whole = end - begin == begins[node + 2] - begins[node + 1]
        origin[at] = node if is_whole else -1
        if above >= 0:
            of_side = left if side == 0 else right
            of_side[above] = at
        middle = (begin + end + 1) // 2
        for first, stop, side in ((begin, middle, 0), (middle, end, 1)):
            if stop - first == 1:
                child = children[first]
                put(runs[height], child, begins[child + 1], begins[child + 2], at, side)
            elif stop > first:
                put(runs[height], node, first, stop, at, side)
            height += int(stop > first)
    for i in range(at, 2 * n):
        left[i], right[i] = max(left[i] - at, -1), max(right[i] - at, -1)
    return left[at:].copy(), right[at:].copy(), origin[at:].copy()


@njit
def cut(left: np.ndarray, right: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut a forest into subtrees of limited size.

    Returns
    -------
    sizes : ndarray of int64, shape (number of nodes,)
        How many nodes the subtree of each has.
    ends : ndarray of bool, shape (number of nodes,)
        Which are the roots of the subtrees to cut at.
    """
    n = left.size
    sizes, ends = np.ones(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    for i in range(n):
        for child in (left[i], right[i]):
            if child >= 0:
                sizes[i] += sizes[child]
        ends[i] = sizes[i] <= most
        for child in (left[i], right[i]):
            if child >= 0 and ends[i]:
                ends[child] = False
    return sizes, ends
