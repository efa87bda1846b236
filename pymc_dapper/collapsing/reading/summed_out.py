"""Read a PyMC model: whether counts can be summed out one by one, or on a tree."""

from collections.abc import Sequence

from pymc import Model
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.collapsing.reading.model import CollapsedModel, read_collapsed
from pymc_dapper.collapsing.reading.tree import CollapsedTree, read_collapsed_tree
from pymc_dapper.graphs.errors import NotCollapsibleError


def read_summed_out(
    model: Model,
    parameters: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
) -> CollapsedModel | CollapsedTree:
    """Find how counts can be summed out of the density that moves parameters.

    Both are value variables.

    Raises
    ------
    NotCollapsibleError
        If they can't, with the reason why not on a tree, the weaker condition.
    """
    try:
        return read_collapsed(model, parameters, counts)
    except NotCollapsibleError:
        return read_collapsed_tree(model, parameters, counts)
