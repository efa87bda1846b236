"""People of several columns, each with a Dirichlet table of probabilities given some others."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.basic import CategoricalRV, DirichletRV
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import default_transform
from pymc_dapper.graphs.evaluation import at_point
from pymc_dapper.graphs.view import Reading
from pymc_dapper.interweaving.kernels.boundaries import Released, Tables
from pymc_dapper.records.reading.model import ModelReading
from pymc_dapper.records.reading.plan import ByEntries
from pymc_dapper.records.reading.rows_by_cell import RowsByCell, seen_columns


@dataclass(frozen=True, eq=False)
class TablesReading(Reading):
    """Columns of people, the conditional tables that they are drawn by, and released tables."""

    people: ModelReading
    """How the model depends on the columns, which are ``people.records``."""
    rvs: tuple[TensorVariable, ...]
    """The conditional tables: random variables, in the order of the columns."""
    thetas: tuple[TensorVariable, ...]
    """Variables for new values of them."""
    probabilities: tuple[TensorVariable, ...]
    concentrations: tuple[TensorVariable, ...]
    """The tables, and the concentrations of their priors, in terms of value variables."""
    to_values: tuple[TensorVariable, ...]
    """Value variables as functions of ``thetas``."""
    tables: Tables
    released: Released
    low: np.ndarray
    """The first category of each column."""
    given: tuple[TensorVariable, ...]
    """Value variables of all other variables that the graphs depend on."""

    @property
    def parameters(self) -> list[TensorVariable]:
        """The variables for the values of the conditional tables."""
        return [self.view.values[self.model.rvs_to_values[rv]] for rv in self.rvs]


def read_tables(people: ModelReading, free: Sequence[TensorVariable]) -> TablesReading | None:
    """Read columns as drawn by conditional tables; None if the model has them otherwise.

    Of ``free``, the random variables that may move, each table is that of one column, and nothing
    else depends on it.
    """
    view, model = people.view, people.model
    plan, rows = people.plan, getattr(people.plan, "rows", None)
    if not isinstance(plan, ByEntries) or not isinstance(rows, RowsByCell):
        return None
    if len(people.rvs) < 2 or people.separable_factors or people.number is not None:
        return None
    found = [_table_of(rv, people.rvs) for rv in people.rvs]
    rvs = [table for table, _ in found if table is not None and table in free]
    pairs = zip(rvs, people.rvs, strict=True)
    if len(set(rvs)) < len(people.rvs) or not all(_is_own(people, *each) for each in pairs):
        return None
    thetas = [pt.tensor(rv.name, dtype="float64", shape=view.shape(rv)) for rv in rvs]
    shapes = [theta.type.shape for theta in thetas]
    concentrations = view.at_values([_parameter(rv) for rv in rvs])
    probabilities = view.at_values(rvs)
    to_values = view.forward(dict(zip(rvs, thetas, strict=True)))
    graphs = [*probabilities, *concentrations, *to_values]
    own = [view.values[model.rvs_to_values[rv]] for rv in rvs]
    besides = [x for x in people.parameters if x not in own]
    return TablesReading(
        view=view,
        data={**view.data_in(graphs), **people.data},
        people=people,
        rvs=tuple(rvs),
        thetas=tuple(thetas),
        probabilities=tuple(probabilities),
        concentrations=tuple(
            pt.broadcast_to(x, shape) for x, shape in zip(concentrations, shapes, strict=True)
        ),
        to_values=tuple(to_values),
        tables=_tables(shapes, [parents for _, parents in found]),
        released=_released(rows),
        low=rows.low,
        given=tuple(dict.fromkeys([*view.values_in(graphs, but=own), *besides])),
    )


def _parameter(rv: TensorVariable) -> TensorVariable:
    """Return the only parameter of a distribution."""
    op: Any = rv.owner.op
    [parameter] = op.dist_params(rv.owner)
    return parameter


def _table_of(
    rv: TensorVariable, columns: Sequence[TensorVariable]
) -> tuple[TensorVariable | None, list[int]]:
    """Return the table that a column is drawn by, and the columns by which a row is chosen."""
    if not isinstance(rv.owner.op, CategoricalRV) or rv.type.ndim != 1:
        return None, []
    p = _parameter(rv)
    if p.owner is not None and isinstance(p.owner.op, AdvancedSubtensor):
        table, *inputs = p.owner.inputs
        indices = indices_from_subtensor(inputs, p.owner.op.idx_list)
        if table.type.ndim == len(indices) + 1 and all(x in columns for x in indices):
            return table, [columns.index(x) for x in indices]
    if p.owner is not None and isinstance(p.owner.op, DimShuffle) and p.type.broadcastable[0]:
        p = p.owner.inputs[0]  # one row for all people
    return (p, []) if p.type.ndim == 1 else (None, [])


def _is_own(people: ModelReading, table: TensorVariable, column: TensorVariable) -> bool:
    """Whether a Dirichlet table decides on one column, and on nothing else."""
    model = people.model
    transform = model.rvs_to_transforms[table]
    depend = people.view.dependent_factors([model.rvs_to_values[table]])
    return (
        isinstance(table.owner.op, DirichletRV)
        and type(transform) is type(default_transform(table.owner.op, table))
        and set(depend) == {table.name, column.name}
    )


def _tables(shapes: Sequence[tuple[int, ...]], parents: Sequence[Sequence[int]]) -> Tables:
    d = len(shapes)
    strides, of = np.eye(d, dtype=np.int64), np.zeros((d, d + 1), dtype=np.int64)
    for j, (shape, above) in enumerate(zip(shapes, parents, strict=True)):
        for k, parent in enumerate(above):
            strides[j, parent] += prod(shape[k + 1 :])
    for j in range(d):
        counted = [j, *(k for k in range(d) if j in parents[k])]
        of[j, : len(counted) + 1] = [len(counted), *counted]
    starts = np.cumsum([0, *(prod(shape) for shape in shapes)])
    return Tables(np.array([shape[-1] for shape in shapes]), starts, strides, of)


def _released(rows: RowsByCell) -> Released:
    n_tables, d = rows.strides.shape
    of, steps = np.zeros((d, n_tables + 1), dtype=np.int64), np.zeros((d, n_tables), dtype=np.int64)
    for j in range(d):
        [seeing] = np.nonzero(rows.strides[:, j])
        of[j, : len(seeing) + 1] = [len(seeing), *seeing]
        steps[j, : len(seeing)] = rows.strides[seeing, j]
    return Released(rows.cells, rows.starts, *seen_columns(rows.strides), of, steps)


def agrees(reading: TablesReading, point: dict[str, np.ndarray]) -> bool:
    """Whether the model's log-density of some people is that of the conditional tables."""
    people, (_, starts, strides, _) = reading.people, reading.tables
    rng, d = np.random.default_rng(0), len(people.records)
    pairs = zip(people.records, reading.tables.sizes, strict=True)
    columns = {x.name: rng.integers(0, size, x.type.shape) for x, size in pairs}
    graphs = [*people.log_priors, *reading.probabilities]
    found = at_point(reading.model, graphs)({**point, **columns})
    values = np.stack(list(columns.values()), axis=1)
    tables = np.concatenate([np.ravel(x) for x in found[d:]])
    expected = np.log(tables[starts[:-1] + values @ strides.T]).sum(axis=0)
    return len(people.log_priors) == d and np.allclose(
        expected, np.array(found[:d]).ravel(), rtol=1e-6
    )
