"""The records' prior, read as the distribution that proposes new records."""

from collections.abc import Sequence

from pymc import Model
from pytensor.graph.basic import Apply, Variable
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.graphs import inline_symbolic_ops, rebuild, with_inputs


def read_proposals(
    model: Model, records: Sequence[TensorVariable]
) -> tuple[Variable, list[TensorVariable]]:
    """Build the graph that draws all records from their prior, given everything else.

    Parameters
    ----------
    model : Model
        The model.
    records : sequence of TensorVariable
        Random variables of the records. One may depend on another: they are drawn together.

    Returns
    -------
    rng : Variable
        Input of the graph: the random generator that all draws are taken from.
    proposals : list of TensorVariable
        The draws, in the order of ``records`` and in the space of their value variables (that is,
        transformed where PyMC transforms them).
    """
    draws: dict[TensorVariable, TensorVariable] = {}
    values: dict[TensorVariable, TensorVariable] = {}
    # In the model's order a variable comes after those it depends on.
    for rv in (rv for rv in model.free_RVs if rv in records):
        parameters = _given(model, rv.owner.inputs, draws)
        prior = rv.owner.clone_with_new_inputs(parameters, strict=False)
        draw = prior.outputs[rv.owner.outputs.index(rv)]
        transform = model.rvs_to_transforms[rv]
        draws[rv] = draw
        values[rv] = draw if transform is None else transform.forward(draw, *parameters)
    return _chain_generators(inline_symbolic_ops([values[rv] for rv in records]))


def _given(
    model: Model, parameters: Sequence[Variable], draws: dict[TensorVariable, TensorVariable]
) -> list[Variable]:
    """Put draws in the place of records, and value variables in that of other variables."""
    # Stand-ins keep the drawn records from being replaced by their value variables.
    stand_ins = {record: record.clone() for record in draws}
    parameters = rebuild(parameters, stand_ins)
    symbolic = [x for x in parameters if x.owner is not None]
    at_values = dict(zip(symbolic, model.replace_rvs_by_values(symbolic), strict=True))
    parameters = [at_values.get(x, x) for x in parameters]
    return rebuild(parameters, {stand_ins[record]: draws[record] for record in draws})


def _chain_generators(graphs: list[TensorVariable]) -> tuple[Variable, list[TensorVariable]]:
    """Make all random variables draw from one generator, one after the other."""
    first = latest = random_generator_type("rng")

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        nonlocal latest
        if not isinstance(node.op, RandomVariable):
            return with_inputs(node, inputs)
        _, *parameters = inputs
        outputs = with_inputs(node, [latest, *parameters])
        latest = outputs[0]
        return outputs

    return first, rebuild(graphs, replace_node=replace_node)
