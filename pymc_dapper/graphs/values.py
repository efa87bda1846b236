"""Graphs of a model in terms of its value variables."""

from collections.abc import Mapping, Sequence

import numpy as np
from pymc import Model
from pytensor.compile.mode import Mode
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import graph_inputs, io_toposort
from pytensor.tensor.basic import constant
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.shape import specify_shape
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import rebuild


def dim_lengths(model: Model) -> dict[str, int]:
    """Return the present lengths of the model's dims."""
    return {name: int(_present(length)) for name, length in model.dim_lengths.items()}


def _present(length: Variable) -> np.ndarray:
    if isinstance(length, SharedVariable):
        return length.get_value(borrow=True)
    # Not compiled with numba, which would take longer than all else.
    return length.eval(mode="FAST_COMPILE")


def frozen_dims(model: Model, lengths: Mapping[str, int]) -> dict[Variable, Variable]:
    """Constants to put in the place of dim lengths, which are shared variables of PyMC's."""
    return {
        length: constant(lengths[name], dtype=length.type.dtype)
        for name, length in model.dim_lengths.items()
        if isinstance(length, SharedVariable)
    }


def data_of_known_shape(model: Model) -> dict[Variable, Variable]:
    """Shared data as what they are at present in shape, to put in their place.

    A matrix of covariates whose number of columns isn't known couldn't be read row by row. A step
    refuses data that have changed in shape since it was built.
    """
    known: dict[Variable, Variable] = {}
    for x in model.data_vars:
        if isinstance(x, SharedVariable):
            known[x] = specify_shape(x, x.get_value(borrow=True).shape)
            known[x].name = x.name
    return known


def static_shape(rv: TensorVariable, known: Mapping[Variable, Variable]) -> tuple[int, ...]:
    """Return the shape of a random variable, with ``known`` in the place of dim lengths."""
    if None not in rv.type.shape:
        return tuple(rv.type.shape)
    [shape] = rebuild([rv.shape], known)
    # By rewriting, nothing is drawn to see how long it is.
    mode = Mode(linker="py", optimizer="fast_compile")
    return tuple(int(length) for length in shape.eval(mode=mode))


def shared_data(graphs: Sequence[Variable]) -> list[SharedVariable]:
    """Return the shared data (``pm.Data``) that graphs depend on, each once."""
    return list(
        dict.fromkeys(
            x
            for x in graph_inputs(graphs)
            if isinstance(x, SharedVariable) and not isinstance(x.type, RandomGeneratorType)
        )
    )


def at_values(
    model: Model,
    graphs: Sequence[Variable],
    instead: Mapping[TensorVariable, TensorVariable],
) -> list[Variable]:
    """Put value variables in the place of random variables, and given variables in that of some.

    ``instead`` has those for some random variables, in their natural space. Others are computed
    from their value variables.
    """
    natural: dict[Variable, Variable] = {}
    in_order = (x for node in io_toposort([], list(graphs)) for x in node.outputs)
    for rv in (x for x in in_order if x in model.rvs_to_values):
        if rv in instead:
            natural[rv] = instead[rv]
            continue
        value, transform = model.rvs_to_values[rv], model.rvs_to_transforms[rv]
        if transform is not None:
            # A variable's bounds may depend on others.
            value = transform.backward(value, *rebuild(rv.owner.inputs, natural))
        natural[rv] = value
    return rebuild(graphs, natural)


def forward(
    model: Model, naturals: Mapping[TensorVariable, TensorVariable]
) -> list[TensorVariable]:
    """Write value variables as functions of random variables in their natural space.

    ``naturals`` are what stands for these random variables. What else their transforms depend on is
    taken from value variables.
    """
    values = []
    for rv, natural in naturals.items():
        transform = model.rvs_to_transforms[rv]
        if transform is not None:
            natural = transform.forward(natural, *at_values(model, rv.owner.inputs, naturals))
        values.append(natural.astype(model.rvs_to_values[rv].dtype))
    return values
