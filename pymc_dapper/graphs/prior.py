"""The records' prior as the distribution that proposes new records."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.local_draws import Walk, local_draw
from pymc_dapper.graphs.noise import takes_generator, without_rejection
from pymc_dapper.graphs.rebuild import at_inputs, inline_symbolic_ops, rebuild
from pymc_dapper.graphs.view import ModelView


def read_proposals(
    view: ModelView,
    records: Sequence[TensorVariable],
    valid: Mapping[TensorVariable, TensorVariable] | None = None,
    reach: TensorVariable | None = None,
) -> list[TensorVariable]:
    """Build the graph that draws all records from their prior, given everything else.

    Records that depend on each other are drawn together. ``valid``, shape (n,), marks for some of
    them where their parameters are valid. Elsewhere draws are meaningless; there, draws from a
    generator use the present records' parameters, because with invalid ones a generator may raise
    or never return. With a ``reach``, records are drawn near the present ones if their distribution
    has a random walk that leaves it invariant (:func:`~pymc_dapper.graphs.local_draws.local_draw`).

    The draws are in the space of the records' value variables: transformed, if PyMC transforms
    them. A record without a finite value becomes nan.
    """
    return _draws(view, records, to_values_of_records, valid or {}, reach)


def read_prior_draws(view: ModelView, rvs: Sequence[TensorVariable]) -> list[TensorVariable]:
    """Build the graph that draws value variables of ``rvs`` from their prior, given all others."""
    return _draws(view, rvs, lambda transform, *arguments: transform.forward(*arguments), {})


def _draws(
    view: ModelView,
    rvs: Sequence[TensorVariable],
    to_values: Callable[..., TensorVariable],
    valid: Mapping[TensorVariable, TensorVariable],
    reach: TensorVariable | None = None,
) -> list[TensorVariable]:
    model = view.model
    draws: dict[TensorVariable, TensorVariable] = {}
    values: dict[TensorVariable, TensorVariable] = {}
    # In the model's order, a variable comes after those it depends on.
    for rv in (rv for rv in model.free_RVs if rv in rvs):
        given = draws
        if rv in valid and takes_generator(rv):
            at = {view.values[model.rvs_to_values[x]]: value for x, value in values.items()}
            [possible] = rebuild([valid[rv]], at)
            present = view.at_values(list(draws))
            given = {
                x: pt.switch(as_rows(possible, draw), draw, old).astype(draw.dtype)
                for (x, draw), old in zip(draws.items(), present, strict=True)
            }
        parameters = view.at_values(rv.owner.inputs, given)
        prior = at_inputs(rv.owner, parameters)
        draw = prior.outputs[rv.owner.outputs.index(rv)]
        if reach is not None:
            draw = _near(view, rv, draw, reach)
        transform = model.rvs_to_transforms[rv]
        draws[rv] = draw
        values[rv] = draw if transform is None else to_values(transform, draw, *parameters)
    return inline_symbolic_ops(without_rejection([values[rv] for rv in rvs]))


def _near(
    view: ModelView, rv: TensorVariable, draw: TensorVariable, reach: TensorVariable
) -> TensorVariable:
    """Draw a random variable near its present value, or independently if there is no walk."""
    op = rv.owner.op
    if not isinstance(op, RandomVariable):
        return draw
    present, *there = view.at_values([rv, *op.dist_params(rv.owner)])
    near = local_draw(op, Walk(present, there, draw, op.dist_params(draw.owner), reach))
    return near.astype(draw.dtype)


def to_values_of_records(
    transform: Any, draw: TensorVariable, *parameters: Variable
) -> TensorVariable:
    """Map draws to the space of their value variable; nan for records without a value there.

    PyMC reads a transform that isn't the prior's own as a truncation: draws outside the transform's
    range are impossible. So are draws that round to an end of the support.
    """
    value = transform.forward(draw, *parameters)
    reached = transform.backward(value, *parameters)
    tolerance = float(np.sqrt(np.finfo(value.dtype).eps))
    # The model gets `reached`, which may round to an end of the support.
    finite = pt.isfinite(transform.forward(reached, *parameters))
    same = pt.isclose(reached, draw, rtol=tolerance, atol=tolerance)
    exists = all_entries(finite) & all_entries(same)
    return pt.switch(as_rows(exists, value), value, np.nan).astype(value.dtype)


def all_entries(rows: TensorVariable) -> TensorVariable:
    """Return, for each record, whether all of its entries are true."""
    return rows.all(axis=tuple(range(1, rows.type.ndim))) if rows.type.ndim > 1 else rows


def as_rows(per_record: TensorVariable, like: TensorVariable) -> TensorVariable:
    """Add axes of length 1 to a vector, so that it broadcasts against arrays of records."""
    return per_record.reshape((-1,) + (1,) * (like.type.ndim - 1))


def choose(
    chosen: TensorVariable, new: Sequence[TensorVariable], old: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Take new values for chosen records and old values for the others."""
    pairs = zip(old, new, strict=True)
    return [pt.switch(as_rows(chosen, b), b, a).astype(a.dtype) for a, b in pairs]
