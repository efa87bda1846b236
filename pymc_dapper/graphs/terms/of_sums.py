"""Terms of a log-density, each of one or a few entries of linear functions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable
from scipy import sparse

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.roles import Part


@dataclass(frozen=True, eq=False)
class Terms:
    """Terms of the log-density, one for each entry of a linear function of the counts."""

    factor: str
    """Name of the Potential or random variable to which they belong."""
    function: TensorVariable
    """A scalar: the term as a function of the scalars in ``linear`` and ``fixed``."""
    linear: dict[Variable, sparse.csr_array]
    """Linear functions of the counts: coefficients, shape (number of terms, number of cells)."""
    fixed: dict[Variable, TensorVariable]
    """Values that don't depend on the counts; vectors with a value for each term."""

    @property
    def size(self) -> int:
        """Number of terms."""
        return int(next(iter(self.linear.values())).shape[0])


def terms_of(name: str, part: Part) -> Terms:
    """Split off linear functions: sums of counts go here, offsets and scales into the function."""
    fixed = dict(part.terms.fixed)
    scaled = {x: _scale(rows.matrix) for x, rows in part.terms.linear.items() if rows.matrix.nnz}
    linear: dict[Variable, sparse.csr_array] = {}
    scalars: dict[Variable, Variable] = {}
    for x, (_, matrix) in scaled.items():
        for scalar, other in linear.items():
            joined = _joined(other, matrix)
            if joined is not None:
                scalars[x], linear[scalar] = scalar, joined
                break
        else:
            scalars[x] = pt.dscalar()
            linear[scalars[x]] = matrix
    replaced: dict[Variable, Variable] = {}
    for x, rows in part.terms.linear.items():
        value = _argument(rows.offset, fixed)
        if x in scaled:
            scale, matrix = scaled[x]
            left_out = (np.diff(matrix.indptr) == 0) & (np.diff(linear[scalars[x]].indptr) > 0)
            scale[left_out] = 0.0
            value = value + _argument(pt.constant(scale), fixed) * scalars[x]
        replaced[x] = value.astype(x.type.dtype)
    [function] = rebuild([part.terms.function], replaced)
    return Terms(name, function, linear, fixed)


def united(terms: Iterable[Terms]) -> list[Terms]:
    """Add up terms of the same linear functions, so that fewer are evaluated."""
    same: dict[tuple[bytes, ...], list[Terms]] = {}
    for each in terms:
        arrays = [x for m in each.linear.values() for x in (m.indptr, m.indices, m.data)]
        same.setdefault(tuple(x.tobytes() for x in arrays), []).append(each)
    return [_sum(each) for each in same.values()]


def _sum(terms: list[Terms]) -> Terms:
    first = terms[0]
    functions = [
        rebuild([each.function], dict(zip(each.linear, first.linear, strict=True)))[0]
        for each in terms
    ]
    fixed = {x: value for each in terms for x, value in each.fixed.items()}
    return replace(first, function=pt.add(*functions), fixed=fixed)


def _joined(first: sparse.csr_array, second: sparse.csr_array) -> sparse.csr_array | None:
    """Return the rows of both matrices, which may differ in zero rows only; None if they differ.

    A coefficient may happen to be 0 in a row, such as the logarithm of a rate of 1.
    """
    in_first, in_second = np.diff(first.indptr) > 0, np.diff(second.indptr) > 0
    both = in_first & in_second
    if (first[both] != second[both]).nnz:
        return None
    added = sparse.diags_array((~in_first).astype(float)) @ second
    return tidy(first + added)


def _scale(matrix: sparse.csr_array) -> tuple[np.ndarray, sparse.csr_array]:
    """Divide each row by its first coefficient."""
    matrix = tidy(matrix.copy())
    scale = np.ones(matrix.shape[0])
    lengths = np.diff(matrix.indptr)
    scale[lengths > 0] = matrix.data[matrix.indptr[:-1][lengths > 0]]
    matrix.data = matrix.data / np.repeat(scale, lengths)
    return scale, matrix


def _argument(values: TensorVariable, fixed: dict[Variable, TensorVariable]) -> TensorVariable:
    """Make a vector an argument of a term, or a constant if all its values are the same."""
    known = known_value(values)
    if known is not None and np.all(known == known.flat[0]):
        return pt.constant(np.asarray(known.flat[0], dtype=np.float64))
    scalar = pt.dscalar()
    fixed[scalar] = values.astype("float64")
    return scalar


def tidy(matrix: sparse.csr_array) -> sparse.csr_array:
    """Normalise a matrix: each cell of a row once, in order, without zeros."""
    matrix = matrix.tocsr()
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def rows_of(matrix: sparse.csr_array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the cells of each row, in order, and their coefficients."""
    matrix = tidy(matrix)
    for start, stop in pairwise(matrix.indptr):
        yield matrix.indices[start:stop].astype(np.int64), matrix.data[start:stop]
