"""Write graphs of a model in terms of its value variables."""

from collections.abc import Mapping, Sequence

from pymc import Model
from pytensor.graph import Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import rebuild


def at_values(
    model: Model,
    graphs: Sequence[Variable],
    instead: Mapping[TensorVariable, TensorVariable],
) -> list[Variable]:
    """Replace random variables by value variables, or by given variables for some of them.

    ``instead`` has the given variables, in natural space. Other random variables are computed from
    their value variables.
    """
    transforms = model.rvs_to_transforms
    values = {rv: value for rv, value in model.rvs_to_values.items() if transforms[rv] is None}
    natural: dict[Variable, Variable] = {**values, **instead}
    in_order = (x for node in io_toposort(list(natural), list(graphs)) for x in node.outputs)
    for rv in (x for x in in_order if x in transforms and x not in natural):
        # A variable's bounds may depend on others.
        inputs = rebuild(rv.owner.inputs, natural)
        natural[rv] = transforms[rv].backward(model.rvs_to_values[rv], *inputs)
    return rebuild(graphs, natural)


def forward(
    model: Model, naturals: Mapping[TensorVariable, TensorVariable]
) -> list[TensorVariable]:
    """Write value variables as functions of random variables in their natural space.

    ``naturals`` maps these random variables to their replacements. Other variables in their
    transforms are computed from value variables.
    """
    values = []
    for rv, natural in naturals.items():
        transform = model.rvs_to_transforms[rv]
        if transform is not None:
            natural = transform.forward(natural, *at_values(model, rv.owner.inputs, naturals))
        values.append(natural.astype(model.rvs_to_values[rv].dtype))
    return values
