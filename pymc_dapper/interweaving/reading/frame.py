"""Parameters and the records' frame: all records moved, stretched and sheared alike.

The frame of n records of p numbers each, rows of a matrix X, is their mean m and the Cholesky
factor K of their covariance. With the standardised records held fixed, x_i = m + K w_i, parameters
and frame have few dimensions, and they are what sums of records and of products of them depend on
most. So where released sums tie parameters and records to each other, these move together.

For a normalised W = (w_1, ..., w_n)' the volume element of X is that of W times the product of
K_jj^(n - 1 - j) over the columns j = 1, ..., p, times dm dK (Muirhead, 1982, "Aspects of
multivariate statistical theory", theorem 2.1.13, for the n - 1 dimensions around the mean). This
says nothing of how X is distributed: the records' prior is a factor as any other. A move is a draw
along the orbit of a group of transformations (Liu and Sabatti, 2000, "Generalised Gibbs sampler and
multigrid Monte Carlo for Bayesian computation", Biometrika 87).
"""

from collections.abc import Mapping, Sequence
from functools import cache, reduce

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.dependence import dependent_factors
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.values import frozen_dims, shared_data
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel

MOST_COLUMNS = 8
"""A frame of p columns has p (p + 3) / 2 dimensions."""

LEAST_SPREAD = 1e-5
"""What is left of a column's spread given those before it, as a share of it: less can't be told
from rounding."""


def with_a_frame(
    records: Sequence[TensorVariable], point: Mapping[str, np.ndarray]
) -> list[TensorVariable]:
    """Choose the records that have a frame in common: real numbers in as many rows.

    They are value variables, as are those returned: none, if there are too few rows or too many
    columns.
    """
    shapes = {x: point[x.name].shape for x in records if x.dtype == "float64"}
    shapes = {x: shape for x, shape in shapes.items() if len(shape) in (1, 2)}
    n = max((shape[0] for shape in shapes.values()), default=0)
    rows = [x for x, shape in shapes.items() if shape[0] == n]
    columns = sum(int(np.prod(shapes[x][1:])) for x in rows)
    return rows if 0 < columns <= MOST_COLUMNS and n >= 2 * (columns + 1) else []


def read_frame(
    reading: NonCentredModel,
    records: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
) -> NonCentredModel:
    """Write records as a function of their frame and of what it doesn't tell of them.

    Takes what was read of the model with the records' noise held fixed, for the parameters, and the
    records' value variables (:func:`with_a_frame`).
    """
    model = reading.model
    by_name = {x.name: x for x in reading.parameters}
    sized = {x: by_name[x.name] for x in model.value_vars if x.name in by_name}
    framed = [x.type.clone(shape=point[x.name].shape)(name=x.name) for x in records]
    sized |= dict(zip(records, framed, strict=True))
    known = {**frozen_dims(model, reading.dim_lengths), **sized}

    columns = [column for x in framed for column in _columns(x)]
    frame, fixed, regular = _frame_of(columns)
    proposed = [x.type(name=f"{x.name}_proposed") for x in (*reading.parameters, frame)]
    *to_parameters, to_frame = proposed
    moved_columns, log_volume, possible = _at_frame(to_frame, fixed)
    moved = _joined(moved_columns, framed)

    new = dict(zip([*reading.parameters, *framed], [*to_parameters, *moved], strict=True))
    values = [x for x in model.value_vars if x in sized]
    factors = dependent_factors(model, values)
    total = pt.add(*(x.sum() for x in factors.values()))
    [total] = rebuild(rebuild([total], known), new)
    log_density = pt.switch(possible, total.astype("float64") + log_volume, -np.inf)
    _, present_log_volume, _ = _at_frame(frame, fixed)
    noise = pt.switch(regular, pt.stack(fixed, axis=1), np.nan)
    graphs = [noise, *moved, log_density]
    inputs = set(explicit_graph_inputs(graphs)) - set(proposed)
    return NonCentredModel(
        model=model,
        parameters=reading.parameters,
        left_alone=reading.left_alone,
        records=tuple(framed),
        uniforms=(),
        noise=(noise,) * len(framed),
        proposed=tuple(proposed),
        moved_records=tuple(moved),
        log_density=log_density,
        log_law=-present_log_volume,
        factors=tuple(factors),
        given=tuple(x for x in model.value_vars if x in inputs),
        data=tuple(shared_data(graphs)),
        dim_lengths=reading.dim_lengths,
        frame=frame,
    )


def _columns(x: TensorVariable) -> list[TensorVariable]:
    return [x] if x.ndim == 1 else [x[:, j] for j in range(x.type.shape[1])]


def _joined(
    columns: Sequence[TensorVariable], like: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Put columns together into variables of the same shapes as others."""
    left, joined = list(columns), []
    for x in like:
        n = 1 if x.ndim == 1 else x.type.shape[1]
        mine, left = left[:n], left[n:]
        together = mine[0] if x.ndim == 1 else pt.stack(mine, axis=1)
        joined.append(pt.specify_shape(together, x.type.shape))
    return joined


def _frame_of(
    columns: Sequence[TensorVariable],
) -> tuple[TensorVariable, list[TensorVariable], TensorVariable]:
    """Return the frame, as a vector, the standardised columns, and whether these have digits."""
    means = [column.mean() for column in columns]
    entries: list[TensorVariable] = []
    fixed: list[TensorVariable] = []
    regular = []
    for column, mean in zip(columns, means, strict=True):
        rest, row = column - mean, []
        for other in fixed:
            row.append((rest * other).mean())
            rest = rest - row[-1] * other
        own = pt.sqrt((rest**2).mean())
        regular.append(_is_regular(row, own))
        fixed.append(rest / own)
        entries += [*row, pt.log(own)]
    frame = pt.specify_shape(pt.stack([*means, *entries]), (len(means) + len(entries),))
    return frame, fixed, reduce(pt.and_, regular)


def _at_frame(
    frame: TensorVariable, fixed: Sequence[TensorVariable]
) -> tuple[list[TensorVariable], TensorVariable, TensorVariable]:
    """Return columns that have a frame, the log of its volume element, and whether it can be.

    The volume element is that of the mean, and of the Cholesky factor with logs on its diagonal.
    """
    p, [n] = len(fixed), fixed[0].type.shape
    columns, volume, regular, start = [], [], [], p
    for j in range(p):
        row, log_own = [frame[start + i] for i in range(j)], frame[start + j]
        start += j + 1
        column = frame[j] + pt.exp(log_own) * fixed[j]
        for entry, other in zip(row, fixed[:j], strict=True):
            column = column + entry * other
        columns.append(column)
        volume.append((n - 1 - j) * log_own)
        regular.append(_is_regular(row, pt.exp(log_own)))
    return columns, pt.add(0.0, *volume), reduce(pt.and_, regular)


def _is_regular(row: Sequence[TensorVariable], own: TensorVariable) -> TensorVariable:
    """Whether enough of a column's spread isn't shared with those before it.

    By the frame alone, so that there is a way back from each state that a move leads to.
    """
    return own > LEAST_SPREAD * pt.sqrt(pt.add(own**2, *(entry**2 for entry in row)))


def frame_coordinates(columns: np.ndarray) -> np.ndarray:
    """Evaluate the frame of records, shape (n, p), by NumPy; nan where they have none."""
    n, p = columns.shape
    mean = columns.sum(axis=0) / n
    centred = columns - mean
    try:
        factor = np.linalg.cholesky(centred.T @ centred / n)
    except np.linalg.LinAlgError:
        factor = np.full((p, p), np.nan)
    own = factor.reshape(-1)[:: p + 1]
    np.log(own, out=own)
    return np.concatenate([mean, factor[_lower(p)]])


@cache
def _lower(p: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril_indices(p)
