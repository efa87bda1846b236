"""How a variable of a model's graph depends on a table of counts.

A mechanism's factor of the log-density is a sum of terms. Each term depends on one or a few entries
of a linear function of the counts: log eta(r_k | s_k) on the noisy total s_k of some cells,
-log(x_c!) on a cell's own count. If people move between two cells, only the terms of these cells
change.
"""

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs.rebuild import rebuild


class Role:
    """How a variable of a model's graph depends on the counts."""


@dataclass(frozen=True)
class Fixed(Role):
    """It doesn't depend on them."""


@dataclass(frozen=True, eq=False)
class LinearEntries:
    """Entries of a linear function, one for each entry of something computed from them."""

    matrix: sparse.csr_array
    """Shape (size, number of cells): the coefficients."""
    offset: TensorVariable
    """Shape (size,): the values if all counts are zero."""
    tolerance: float = 0.0
    """If they are required to be zero: how far from zero they may be."""


@dataclass(frozen=True, eq=False)
class Mixed(Role):
    """It depends on them in a way that can't be split into terms."""

    reason: str
    """The reason, with the operation that causes it."""
    requires: tuple[LinearEntries, ...] = ()
    """The sum of the entries is still known to be -inf if one of these isn't zero."""


@dataclass(frozen=True, eq=False)
class Linear(Role):
    """Linear in the counts: ``offset + matrix @ counts``, with known coefficients."""

    shape: tuple[int, ...]
    matrix: sparse.csr_array
    """Shape (size, number of cells): the coefficients."""
    offset: TensorVariable
    """Of the same shape: the value if all counts are zero."""


@dataclass(frozen=True, eq=False)
class Entrywise(Role):
    """Each entry is one function of single entries of linear functions and of fixed values."""

    shape: tuple[int, ...]
    function: TensorVariable
    """Scalar: the function, of the scalars in ``linear`` and ``fixed``."""
    linear: dict[Variable, LinearEntries]
    """The linear functions, by the function's scalars."""
    fixed: dict[Variable, TensorVariable]
    """The fixed vectors of length size, by the function's scalars."""
    equalities: tuple[tuple[LinearEntries, bool], ...] = ()
    """For a truth value: functions that are zero where it is true (True), or where it is false
    (False)."""
    requires: tuple[LinearEntries, ...] = ()
    """The entries are -inf if one of these isn't zero."""


Reduction = Literal["add", "or", "and"]


@dataclass(frozen=True, eq=False)
class Part:
    """Terms of a reduction."""

    terms: Entrywise
    targets: np.ndarray
    """Ints, shape (size of the terms,): the (flat) entry of the result to which each term
    belongs."""


@dataclass(frozen=True, eq=False)
class Reduced(Role):
    """Each entry adds up terms, or is true if any or all of them are.

    Terms that don't depend on the counts are left out: only changes of the sum matter.
    """

    shape: tuple[int, ...]
    by: Reduction
    """The operation on the terms."""
    parts: tuple[Part, ...] = field(default=())


def size(shape: tuple[int, ...]) -> int:
    """Return the number of entries."""
    return int(np.prod(shape, dtype=np.int64))


def all_indices(shape: tuple[int, ...]) -> np.ndarray:
    """Return the (flat) index of each entry."""
    return np.arange(size(shape), dtype=np.int64).reshape(shape)


def shaped(x: TensorVariable, shape: tuple[int, ...]) -> TensorVariable:
    """Broadcast a variable, unless it has that shape."""
    return pt.as_tensor(x) if x.type.shape == shape else pt.broadcast_to(x, shape)


def take_rows(rows: LinearEntries, indices: np.ndarray) -> LinearEntries:
    """Take entries, with repetition."""
    return LinearEntries(rows.matrix[indices], take_values(rows.offset, indices), rows.tolerance)


def take_values(vector: TensorVariable, indices: np.ndarray) -> TensorVariable:
    """Take entries of a vector of values."""
    [length] = vector.type.shape
    if length == len(indices) and np.array_equal(indices, np.arange(length)):
        return vector
    return vector[pt.constant(indices)]


def take[R: Role](role: R, indices: np.ndarray, shape: tuple[int, ...]) -> R:
    """Take entries of a variable with a role by their (flat) indices, with repetition."""
    indices = np.asarray(indices, dtype=np.int64).ravel()
    taken: Any = role
    match role:
        case Linear():
            offset = take_values(role.offset.ravel(), indices).reshape(shape)
            taken = Linear(shape, role.matrix[indices], offset)
        case Entrywise():
            if shape != role.shape or not np.array_equal(indices, np.arange(size(shape))):
                taken = _take_entries(role, indices, shape)
        case Reduced():
            parts = [_take_targets(part, indices, size(role.shape)) for part in role.parts]
            taken = Reduced(shape, role.by, tuple(parts))
    return taken


def _take_entries(role: Entrywise, indices: np.ndarray, shape: tuple[int, ...]) -> Entrywise:
    # New scalars: the function of the original entries may still be used.
    new = {old: old.type() for old in (*role.linear, *role.fixed)}
    return Entrywise(
        shape,
        rebuild([role.function], new)[0],
        {new[old]: take_rows(rows, indices) for old, rows in role.linear.items()},
        {new[old]: take_values(values, indices) for old, values in role.fixed.items()},
        tuple((take_rows(rows, indices), if_true) for rows, if_true in role.equalities),
        tuple(take_rows(rows, indices) for rows in role.requires),
    )


def _take_targets(part: Part, indices: np.ndarray, n_targets: int) -> Part:
    """Repeat the terms of each taken entry, and assign them to its new place."""
    order = np.argsort(part.targets, kind="stable")
    counts = np.bincount(part.targets, minlength=n_targets)
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    lengths = counts[indices]
    targets = np.repeat(np.arange(len(indices)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return part_of(part, order[np.repeat(starts[indices], lengths) + within], targets)


def part_of(part: Part, terms: np.ndarray, targets: np.ndarray) -> Part:
    """Choose terms, with repetition, and their targets."""
    terms = np.asarray(terms, dtype=np.int64)
    chosen = take(part.terms, terms, (len(terms),))
    return Part(chosen, np.asarray(targets, dtype=np.int64))
