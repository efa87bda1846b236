"""What a tree of counts is to the kernels: nodes in post-order, with two children at most.

A node's children come before it, and all that is below it lies in one run before it. So a pass up
is a loop, a pass down the same loop backwards, and a subtree is a slice. A node of many children
has nodes in between, of which nothing was released, that sum them two by two.
"""

from typing import NamedTuple

import numpy as np
from numba import njit


class Nodes(NamedTuple):
    """Nodes in post-order. All arrays but the tables have shape (number of nodes,)."""

    left: np.ndarray
    right: np.ndarray
    """Int64: children; -1 where there is none."""
    between: np.ndarray
    """Bool: which are in between, and only sum two others."""
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
    """Int64: largest count that what is above leaves possible."""
    table_starts: np.ndarray
    """Int64, shape (number of tables + 1,): where each table starts."""
    table_lowest: np.ndarray
    """Int64, shape (number of tables,): the count that it starts with."""
    tables: np.ndarray
    """Float64: log-weights; of counts beyond a table it is -inf."""

    def part(self, start: int, stop: int) -> "Nodes":
        """Return the nodes of a run that has all below its last node, which isn't in between."""
        run = slice(start, stop)
        shifted = [np.where(x[run] < 0, -1, x[run] - start) for x in (self.left, self.right)]
        between = self.between[run].copy()
        between[-1] = False
        own = [x[run] for x in self[3:10]]
        return Nodes(*shifted, between, *own, *self[10:])  # type: ignore[call-arg]


@njit
def in_post_order(parent: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Bring a forest into post-order, with nodes in between where there are many children.

    Parameters
    ----------
    parent : ndarray of int64, shape (number of nodes,)
        The parent of each node, -1 for roots.

    Returns
    -------
    left, right : ndarray of int64, shape (number of nodes in post-order,)
        Children, -1 where there is none.
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

    left = np.empty(2 * n, dtype=np.int64)
    right, origin = np.empty_like(left), np.empty_like(left)
    n_out = 0
    # A frame is a run of a node's children, of which one half or the other is done. What is done
    # and not yet part of anything is on a stack of its own.
    frames, done = np.empty(4 * (n + 64), dtype=np.int64), np.empty(n + 64, dtype=np.int64)
    for root in range(begins[1]):
        height, n_done = 0, 0
        node = children[root]
        begin, end, stage = begins[node + 1], begins[node + 2], 0
        while True:
            whole = end - begin == begins[node + 2] - begins[node + 1]
            parts = min(end - begin, 2)
            if stage < parts:
                # A half; or, of a single child, all that is below it.
                middle = (begin + end + 1) // 2
                if whole or parts == 2:
                    at = 4 * height
                    frames[at], frames[at + 1] = node, begin
                    frames[at + 2], frames[at + 3] = end, stage + 1
                    height += 1
                    if stage == 0:
                        end = middle
                    else:
                        begin = middle
                if end - begin == 1:
                    node = children[begin]
                    begin, end = begins[node + 1], begins[node + 2]
                stage = 0
                continue
            left[n_out], right[n_out], origin[n_out] = -1, -1, node if whole else -1
            if parts == 2:
                n_done -= 1
                right[n_out] = done[n_done]
            if parts > 0:
                n_done -= 1
                left[n_out] = done[n_done]
            done[n_done] = n_out
            n_done += 1
            n_out += 1
            if height == 0:
                break
            height -= 1
            at = 4 * height
            node, begin, end, stage = frames[at], frames[at + 1], frames[at + 2], frames[at + 3]
    return left[:n_out].copy(), right[:n_out].copy(), origin[:n_out].copy()


@njit
def cut(left: np.ndarray, right: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Cut a forest into subtrees of so many nodes at most.

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
