"""Information that mechanisms store with their variables: tags, which PyMC copies unchanged.

In a copied model (`pm.do`, `pm.observe`, `freeze_dims_and_data`, one without named dims), tags
refer to the statistic, release and unknown scales of the original model. They are replaced by the
copy's before it is read; otherwise checks would use the other model's data.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pymc import Model
from pytensor.graph import Constant, Variable, ancestors, graph_replace
from pytensor.tensor.elemwise import Elemwise


def tagged_graphs(variable: Variable) -> list[Variable]:
    """Return the graphs in the tags of a variable, if it has a mechanism."""
    mechanism = getattr(variable.tag, "mechanism", None)
    if mechanism is None:
        return []
    released = getattr(variable.tag, "released", None)
    return [variable.tag.statistic, *mechanism.unknown, *([] if released is None else [released])]


def tag(variable: Variable, graphs: Sequence[Variable], released: Variable | None) -> None:
    """Store new graphs, in the order of :func:`tagged_graphs`, and the released values."""
    statistic, *unknown = graphs
    mechanism = variable.tag.mechanism
    mechanism = mechanism._with_unknown(unknown[: len(mechanism.unknown)])
    if released is None:
        variable.tag.mechanism, variable.tag.statistic = mechanism, statistic
    else:
        data = _data(released)
        if np.ma.is_masked(data):
            data = data.astype(np.float64).filled(np.nan)
        mechanism._tag(variable, variable.name, statistic, data)


def tag_copies(model: Model) -> None:
    """Make the tags of a copied model's variables refer to the copy.

    An observed variable refers to its observed values, which `pm.observe` may have changed.

    Raises
    ------
    ValueError
        If a mechanism can't have released that.
    """
    of_model = set(ancestors(model.named_vars.values()))
    for variable in (*model.potentials, *model.observed_RVs):
        graphs = tagged_graphs(variable)
        if not graphs:
            continue
        # When a release is added, its statistic may get a name. PyTensor names means and variances.
        own = {
            x: model[x.name]
            for x in ancestors([graph for graph in graphs if graph not in of_model])
            if x.name in model.named_vars and x.name != variable.name and x not in of_model
            if not isinstance(getattr(x.owner, "op", None), Elemwise)
        }
        if own:
            graphs = graph_replace(graphs, own, strict=False)
        released = graphs[-1] if hasattr(variable.tag, "released") else None
        observed = model.rvs_to_values.get(variable)
        if observed is not None and (released is None or not _same_data(released, observed)):
            tag(variable, graphs, observed)
            variable.tag.check_data()
        elif own:
            tag(variable, graphs, released)


def _same_data(one: Variable, other: Variable) -> bool:
    a, b = _data(one), _data(other)
    both_known = isinstance(a, np.ndarray) and isinstance(b, np.ndarray)
    return a is b or (both_known and np.array_equal(a, b, equal_nan=True))


def _data(released: Variable) -> Any:
    """Return a release as mechanisms take it: shared data, or an array."""
    while released.owner is not None:  # a cast
        [released] = released.owner.inputs
    return released.data if isinstance(released, Constant) else released
