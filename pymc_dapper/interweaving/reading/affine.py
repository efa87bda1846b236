"""The affine group move: all records shifted, stretched and sheared alike, with the parameters.

Let m be the mean of n records of p numbers each, the rows of a matrix X, and K the Cholesky factor
of their covariance. With the standardised records held fixed, x_i = m + K w_i, parameters, m and K
have few dimensions, and sums of records and of their products depend mostly on these. So if
released sums tie parameters and records together, moves of both mix well.

The records' noise can be moved in the same way, z_i = m + K w_i, if the noise is standard
normal: the records follow parameters and noise. For location-scale records, both moves lead to the
same states in different coordinates. Noise coordinates suit weak releases, record coordinates
precise ones.

For a normalised W = (w_1, ..., w_n)' the volume element of X is that of W times the product of
K_jj^(n - 1 - j) over the columns j = 1, ..., p, times dm dK (Muirhead, 1982, "Aspects of
multivariate statistical theory", theorem 2.1.13, for the n - 1 dimensions around the mean). This
says nothing of how X is distributed: the records' prior is a factor as any other. A move is a draw
along the orbit of a group of transformations (Liu and Sabatti, 2000, "Generalised Gibbs sampler and
multigrid Monte Carlo for Bayesian computation", Biometrika 87).
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import islice

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.interweaving.reading.conditional_noise import prior_is_valid
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel

MOST_COLUMNS = 8
"""Mean and Cholesky factor of p columns have p (p + 3) / 2 dimensions."""

LEAST_SPREAD = 1e-5
"""Least share of a column's spread that remains given the columns before it: a smaller one is
rounding error."""


def affine_records(
    records: Sequence[TensorVariable], point: Mapping[str, np.ndarray]
) -> list[TensorVariable]:
    """Choose the records that one affine move takes: real numbers with equally many rows.

    They are value variables, as are those returned: none, if there are too few rows or too many
    columns.
    """
    shapes = {x: point[x.name].shape for x in records if x.dtype == "float64"}
    shapes = {x: shape for x, shape in shapes.items() if len(shape) in (1, 2)}
    n = max((shape[0] for shape in shapes.values()), default=0)
    rows = [x for x, shape in shapes.items() if shape[0] == n]
    columns = sum(int(np.prod(shapes[x][1:])) for x in rows)
    return rows if 0 < columns <= MOST_COLUMNS and n >= 2 * (columns + 1) else []


def read_affine(
    reading: NonCentredModel,
    records: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
    of_noise: bool = False,
) -> NonCentredModel:
    """Write records as a function of their mean, Cholesky factor and standardised values.

    Takes the non-centred reading of the parameters, and the records' value variables
    (:func:`affine_records`). The noise may move in their place (:func:`noise_moves_affinely`):
    that of records that the parameters move, together with the other records themselves.
    """
    view = reading.view
    noise_of = dict(zip(reading.records, reading.noise, strict=True)) if of_noise else {}
    chosen = [view.values[x] for x in records]
    moving = [*reading.parameters, *noise_of, *chosen]

    own = [noise_of.get(x, x) for x in chosen]
    own = [pt.specify_shape(y, x.type.shape) for x, y in zip(chosen, own, strict=True)]
    affine, fixed, regular = _affine_of([column for x in own for column in _columns(x)])
    to_affine = affine.type(name="affine_proposed")
    moved_columns, log_volume, possible = _at_affine(to_affine, fixed)
    new = dict(zip(chosen, _joined(moved_columns, chosen), strict=True))
    new |= dict(zip(reading.parameters, reading.proposed, strict=True))
    if of_noise:
        at = {noise_of.get(x, x): new[x] for x in chosen}
        followed = rebuild(reading.moved_records, at)
        new |= dict(zip(noise_of, followed, strict=True))
        # The records' prior is left out of the log-density, so its validity is checked here.
        rvs = [view.model[name] for name in reading.names(reading.records)]
        finite = (pt.isfinite(x).all() for x in followed)
        possible = reduce(pt.and_, finite, possible & prior_is_valid(view, rvs, new))
    moved = [new[x] for x in chosen]

    factors = view.dependent_factors([x for x, own in view.values.items() if own in moving])
    for name in {*reading.names(list(noise_of))}.difference(reading.factors):
        del factors[name]
    law = [reading.log_law] if of_noise and reading.log_law is not None else []
    total = pt.add(*(x.sum() for x in factors.values()), *(-x for x in law))
    [total] = rebuild([total], new)
    normal = [x in noise_of for x in chosen for _ in _columns(x)]
    log_law = log_volume + _log_normal(to_affine, normal, fixed)
    log_density = pt.switch(possible, total.astype("float64") + log_law, -np.inf)
    _, present_log_volume, _ = _at_affine(affine, fixed)
    present_log_law = present_log_volume + _log_normal(affine, normal, fixed)
    proposed = (*reading.proposed, to_affine)
    noise = pt.switch(regular, pt.stack(fixed, axis=1), np.nan)
    graphs = [noise, *moved, log_density]
    return NonCentredModel(
        view=view,
        data=view.data_in(graphs),
        parameters=reading.parameters,
        records=tuple(chosen),
        noise=(noise,) * len(chosen),
        proposed=proposed,
        moved_records=tuple(moved),
        log_density=log_density,
        log_law=pt.add(*law, -present_log_law),
        factors=tuple(factors),
        given=view.values_in(graphs, but=(*reading.parameters, *chosen)),
        affine=affine,
    )


def noise_moves_affinely(reading: NonCentredModel, records: Sequence[TensorVariable]) -> bool:
    """Whether all noise is standard normal and that of records which one affine move takes."""
    return reading.is_normal and {x.name for x in reading.records} <= {x.name for x in records}


def _columns(x: TensorVariable) -> list[TensorVariable]:
    return [x] if x.ndim == 1 else [x[:, j] for j in range(x.type.shape[1])]


def _joined(
    columns: Sequence[TensorVariable], like: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Put columns together into variables of the same shapes as others."""
    left, joined = iter(columns), []
    for x in like:
        mine = next(left) if x.ndim == 1 else pt.stack([*islice(left, x.type.shape[1])], axis=1)
        joined.append(pt.specify_shape(mine, x.type.shape))
    return joined


def _affine_of(
    columns: Sequence[TensorVariable],
) -> tuple[TensorVariable, list[TensorVariable], TensorVariable]:
    """Return mean and Cholesky factor in a vector, standardised columns, if these have digits."""
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
    affine = pt.specify_shape(pt.stack([*means, *entries]), (len(means) + len(entries),))
    return affine, fixed, reduce(pt.and_, regular)


def _at_affine(
    affine: TensorVariable, fixed: Sequence[TensorVariable]
) -> tuple[list[TensorVariable], TensorVariable, TensorVariable]:
    """Return columns of such mean and factor, the log volume element, and whether they can be.

    The volume element is that of the mean, and of the Cholesky factor with logs on its diagonal.
    """
    p, [n] = len(fixed), fixed[0].type.shape
    columns, volume, regular, start = [], [], [], p
    for j in range(p):
        row, log_own = [affine[start + i] for i in range(j)], affine[start + j]
        start += j + 1
        column = affine[j] + pt.exp(log_own) * fixed[j]
        for entry, other in zip(row, fixed[:j], strict=True):
            column = column + entry * other
        columns.append(column)
        volume.append((n - 1 - j) * log_own)
        regular.append(_is_regular(row, pt.exp(log_own)))
    return columns, pt.add(0.0, *volume), reduce(pt.and_, regular)


def _log_normal(
    affine: TensorVariable, normal: Sequence[bool], fixed: Sequence[TensorVariable]
) -> TensorVariable:
    """Log-density of standard normal columns by mean and Cholesky factor, up to a constant."""
    [n], squares, start = fixed[0].type.shape, [], len(normal)
    for j, is_normal in enumerate(normal):
        row, log_own = affine[start : start + j], affine[start + j]
        start += j + 1
        if is_normal:
            squares.append(affine[j] ** 2 + (row**2).sum() + pt.exp(2 * log_own))
    return -0.5 * n * pt.add(0.0, *squares)


def _is_regular(row: Sequence[TensorVariable], own: TensorVariable) -> TensorVariable:
    """Whether enough of a column's spread isn't shared with those before it.

    This depends on the Cholesky factor alone, so each move has a way back.
    """
    return own > LEAST_SPREAD * pt.sqrt(pt.add(own**2, *(entry**2 for entry in row)))
