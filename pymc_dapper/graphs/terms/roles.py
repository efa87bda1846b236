"""How a variable of a model's graph depends on a table of counts.

A factor of the log-density that mechanisms lead to is a sum of terms, each of which sees one entry,
or a few, of what is linear in the counts: log eta(r_k | s_k) for the noisy total s_k of some cells,
-log(x_c!) for a cell's own count. If people move between two cells, only the terms that these cells
enter change.
"""

from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs.rebuild import rebuild

Indices = NDArray[np.int64]


class Role:
    """How a variable of a model's graph depends on the counts."""


@dataclass(frozen=True)
class Fixed(Role):
    """It doesn't."""


@dataclass(frozen=True, eq=False)
class LinearEntries:
    """Entries of a linear function, one for each entry of something computed from them."""

    matrix: sparse.csr_array
    """Shape (size, number of cells): the coefficients."""
    offset: TensorVariable
    """Shape (size,): the values where all counts are zero."""


@dataclass(frozen=True, eq=False)
class Mixed(Role):
    """In a way that can't be split into terms."""

    reason: str
    """Why not, with the operation to blame."""
    requires: tuple[LinearEntries, ...] = ()
    """The sum of the entries is -inf, all the same, where one of these isn't zero."""


@dataclass(frozen=True, eq=False)
class Linear(Role):
    """Linear in the counts: ``offset + matrix @ counts``, with known coefficients."""

    shape: tuple[int, ...]
    matrix: sparse.csr_array
    """Shape (size, number of cells): the coefficients."""
    offset: TensorVariable
    """Of the same shape: the value where all counts are zero."""


@dataclass(frozen=True, eq=False)
class Entrywise(Role):
    """Each entry is the same function of single entries of linear functions and of fixed values."""

    shape: tuple[int, ...]
    function: TensorVariable
    """Scalar: the function, of the scalars in ``linear`` and ``fixed``."""
    linear: dict[Variable, LinearEntries]
    """Scalars of the function, and what they stand for."""
    fixed: dict[Variable, TensorVariable]
    """Scalars of the function, and the vectors of length size that they stand for."""
    equality: tuple[LinearEntries, bool] | None = None
    """For a truth value: it says of each of these whether it is zero (True) or not (False)."""
    requires: tuple[LinearEntries, ...] = ()
    """The entries are -inf where one of these isn't zero."""


Kind = Literal["add", "or", "and"]


@dataclass(frozen=True, eq=False)
class Part:
    """Terms of a reduction."""

    terms: Entrywise
    targets: Indices
    """Ints, shape (size of the terms,): which entry of the (flat) result each term goes into."""


@dataclass(frozen=True, eq=False)
class Reduced(Role):
    """Each entry adds up terms, or says whether any or all of them are true.

    What doesn't depend on the counts is left out: nothing is asked but how a sum changes with them.
    """

    shape: tuple[int, ...]
    kind: Kind
    """What is done with the terms."""
    parts: tuple[Part, ...] = field(default=())


def size(shape: tuple[int, ...]) -> int:
    """Return the number of entries."""
    return int(np.prod(shape, dtype=np.int64))


def all_indices(shape: tuple[int, ...]) -> Indices:
    """Return the (flat) index of each entry."""
    return np.arange(size(shape), dtype=np.int64).reshape(shape)


def take_rows(rows: LinearEntries, indices: Indices) -> LinearEntries:
    """Take entries, any number of times each."""
    return LinearEntries(rows.matrix[indices], take_values(rows.offset, indices))


def take_values(vector: TensorVariable, indices: Indices) -> TensorVariable:
    """Take entries of a vector of values."""
    [length] = vector.type.shape
    if length == len(indices) and np.array_equal(indices, np.arange(length)):
        return vector
    return vector[pt.constant(indices)]


def take(role: Role, indices: Indices, shape: tuple[int, ...]) -> Role:
    """Take entries of what has a role by their (flat) indices, any number of times each."""
    indices = np.asarray(indices, dtype=np.int64).ravel()
    match role:
        case Linear():
            offset = take_values(role.offset.ravel(), indices).reshape(shape)
            return Linear(shape, role.matrix[indices], offset)
        case Entrywise():
            if shape == role.shape and np.array_equal(indices, np.arange(size(shape))):
                return role
            return _take_entries(role, indices, shape)
        case Reduced():
            parts = [_take_targets(part, indices, size(role.shape)) for part in role.parts]
            return Reduced(shape, role.kind, tuple(parts))
    return role


def _take_entries(role: Entrywise, indices: Indices, shape: tuple[int, ...]) -> Entrywise:
    # Other scalars, since the function of the entries as they were may be used as well.
    new = {old: old.type() for old in (*role.linear, *role.fixed)}
    equality = role.equality
    if equality is not None:
        equality = (take_rows(equality[0], indices), equality[1])
    return Entrywise(
        shape,
        rebuild([role.function], new)[0],
        {new[old]: take_rows(rows, indices) for old, rows in role.linear.items()},
        {new[old]: take_values(values, indices) for old, values in role.fixed.items()},
        equality,
        tuple(take_rows(rows, indices) for rows in role.requires),
    )


def _take_targets(part: Part, indices: Indices, n_targets: int) -> Part:
    """Repeat the terms of each entry that is taken, and send them where it goes."""
    order = np.argsort(part.targets, kind="stable")
    counts = np.bincount(part.targets, minlength=n_targets)
    starts = np.concatenate([[0], np.cumsum(counts)])[:-1]
    lengths = counts[indices]
    targets = np.repeat(np.arange(len(indices)), lengths)
    within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return part_of(part, order[np.repeat(starts[indices], lengths) + within], targets)


def part_of(part: Part, terms: Indices, targets: Indices) -> Part:
    """Choose terms, any number of times each, and where they go."""
    terms = np.asarray(terms, dtype=np.int64)
    chosen = take(part.terms, terms, (len(terms),))
    assert isinstance(chosen, Entrywise)
    return Part(chosen, np.asarray(targets, dtype=np.int64))
