"""Compiled moves of conditional tables, with the people whose noise a boundary passes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.backend.generators import NOISE, Drawn, drawn_noise
from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.jit import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.backend.numba_ops import compiles, numba_njit
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.interweaving.kernels.boundaries import (
    Released,
    Tables,
    move_boundaries,
    n_uniforms,
)
from pymc_dapper.interweaving.kernels.columns import redraw_columns
from pymc_dapper.interweaving.reading.tables import TablesReading
from pymc_dapper.records.compiled.op import LogDensity, compiled_density
from pymc_dapper.records.compiled.sweep import density_of_sums
from pymc_dapper.records.kernels.cell_sweep import check_cells
from pymc_dapper.records.reading.rows_by_cell import indices


class BoundaryMoves(KernelOp):
    """Moves of boundaries against a log-density with a term for each cell.

    Inputs are the parts of :class:`Released` and :class:`Tables`, then those of
    :func:`move_boundaries` in its order, those of :func:`redraw_columns`, none if columns aren't
    drawn anew, and last the context. Outputs are as both functions return them.
    """

    __props__ = ("density",)
    density: LogDensity
    results = (pt.dvector, pt.imatrix, pt.dmatrix, pt.lscalar)


@compiles(BoundaryMoves)
def _boundary_moves(op: BoundaryMoves) -> Callable:
    log_term = compiled_density(op.density)

    @numba_njit
    def boundary_moves(  # type: ignore[no-untyped-def]
        cells, starts, columns, strides, of, steps, sizes, firsts, own, counted,
        widths, people, probabilities, concentrations, uniforms, of_columns, context,
    ):  # fmt: skip
        check_cells(sizes, people, people)
        released = Released(cells, starts, columns, strides, of, steps)
        tables = Tables(sizes, firsts, own, counted)
        p, moved, outcome = move_boundaries(
            log_term,
            context,
            released,
            tables,
            widths,
            np.ascontiguousarray(people.T),
            probabilities,
            concentrations,
            uniforms,
        )
        redrawn = 0
        if of_columns.size > 0:
            redrawn = redraw_columns(log_term, context, released, tables, moved, p, of_columns)
        return p, moved, outcome, np.asarray(redrawn)

    return boundary_moves


def compile_boundaries(reading: TablesReading, options: dict[str, Any]) -> JitFunction:
    """Compile the moves: ``moves(rng, widths, n_drawn, *records, *parameters, *given, *data)``.

    If ``n_drawn`` is the number of all values of people and not 0, each is drawn anew after the
    moves. They return the new values of records and parameters, the moves' outcome, and how many
    people changed by draws.
    """
    people = reading.people
    mode = with_parameter_checks(numba_mode(options.get("mode")), reading.model)
    density = density_of_sums(people, mode)
    rng, widths = random_generator_type("rng"), pt.vector("widths", dtype="float64")
    n_drawn = ps.int64("n_drawn")
    after, uniforms = drawn_noise("random", (n_uniforms(reading.tables, people.n_records),), rng)
    _, of_columns = Drawn(NOISE["random"])(after, n_drawn)
    constants = [pt.constant(np.asarray(x)) for x in (*reading.released, *reading.tables)]
    laws = (reading.probabilities, reading.concentrations)
    flat = [pt.concatenate([x.astype("float64").ravel() for x in each]) for each in laws]
    of_people = indices(people.records, reading.low)
    p, moved, outcome, redrawn = BoundaryMoves(density.graph)(
        *constants, widths, of_people, *flat, uniforms, of_columns, *density.context
    )
    columns = enumerate(zip(people.records, reading.low, strict=True))
    records = [(moved[:, k] + int(low)).astype(x.dtype) for k, (x, low) in columns]
    new = dict(zip(reading.thetas, split(p, [x.type.shape for x in reading.thetas]), strict=True))
    pairs = zip(reading.parameters, rebuild(reading.to_values, new), strict=True)
    values = [value.astype(x.dtype) for x, value in pairs]
    inputs = [*people.records, *reading.parameters, *reading.given, *reading.data.values()]
    outputs = [*records, *values, outcome, redrawn]
    return JitFunction([rng, widths, n_drawn, *inputs], outputs, reading.model, options)
