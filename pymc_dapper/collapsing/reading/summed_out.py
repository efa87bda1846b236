"""Read a PyMC model: whether counts can be summed out one by one, or on a tree."""

from collections.abc import Mapping, Sequence

import numpy as np
from pymc import Model
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.collapsing.reading.model import CollapsedModel, read_collapsed
from pymc_dapper.collapsing.reading.tree import CollapsedTree, read_collapsed_tree
from pymc_dapper.graphs.errors import NotCollapsibleError


def read_summed_out(
    model: Model,
    parameters: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
) -> CollapsedModel | CollapsedTree:
    """Find out how counts can be summed out of what parameters are moved by.

    Both are value variables; ``point`` is for shapes.

    Raises
    ------
    NotCollapsibleError
        If they can't: it says why not on a tree, which is less to ask.
    """
    try:
        return read_collapsed(model, parameters, counts, point)
    except NotCollapsibleError:
        return read_collapsed_tree(model, parameters, counts, point)
