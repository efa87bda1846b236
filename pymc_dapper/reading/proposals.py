"""The records' prior, read as the distribution that proposes new records."""

from collections.abc import Sequence

from pymc import Model
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.graphs import inline_symbolic_ops
from pymc_dapper.reading.values import at_values


def read_proposals(model: Model, records: Sequence[TensorVariable]) -> list[TensorVariable]:
    """Build the graph that draws all records from their prior, given everything else.

    Parameters
    ----------
    model : Model
        The model.
    records : sequence of TensorVariable
        Random variables of the records. One may depend on another: they are drawn together.

    Returns
    -------
    list of TensorVariable
        The draws, in the order of ``records`` and in the space of their value variables (that is,
        transformed where PyMC transforms them).
    """
    draws: dict[TensorVariable, TensorVariable] = {}
    values: dict[TensorVariable, TensorVariable] = {}
    # In the model's order a variable comes after those it depends on.
    for rv in (rv for rv in model.free_RVs if rv in records):
        parameters = at_values(model, rv.owner.inputs, draws)
        prior = rv.owner.clone_with_new_inputs(parameters, strict=False)
        draw = prior.outputs[rv.owner.outputs.index(rv)]
        transform = model.rvs_to_transforms[rv]
        draws[rv] = draw
        values[rv] = draw if transform is None else transform.forward(draw, *parameters)
    return inline_symbolic_ops([values[rv] for rv in records])
