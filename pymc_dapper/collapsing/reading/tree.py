"""Read a PyMC model: its log-density with counts on a tree summed out.

Counts may be in sums, and some sums may be known, as long as all are nested or disjoint.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pytensor.tensor as pt
from pymc import Model
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.collapsing.reading.model import (
    CollapsedModel,
    SummedOut,
    read_collapsed,
    refused,
)
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.counts.reading.tree import TreeReading, read_tree
from pymc_dapper.graphs.errors import NotCollapsibleError
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.rebuild import rebuild


@dataclass(frozen=True, eq=False)
class CollapsedTree(SummedOut):
    """Counts summed out on a tree: all tables together."""

    how: ClassVar[str] = "on the tree of their sums"

    tree: TreeReading
    """The tree of the factors' sums."""


def read_collapsed_tree(
    model: Model,
    parameters: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
) -> CollapsedTree:
    """Check that counts on a tree can be summed out of the density that moves parameters.

    Both are value variables.

    Raises
    ------
    NotCollapsibleError
        If they can't, with the reason.
    """
    names = ", ".join(f"'{model.values_to_rvs[value].name}'" for value in counts)
    reading = read_counts(model, counts)
    tree = read_tree(reading)
    if isinstance(tree, str):
        raise refused(names, tree)
    if reading.unknown_totals:
        listed = ", ".join(f"'{x.name}'" for x in reading.unknown_totals)
        raise refused(names, f"a total of theirs depends on {listed}")
    moving = {value.name for value in parameters}
    depends = explicit_graph_inputs([x for terms in reading.terms for x in terms.fixed.values()])
    if moving.isdisjoint(x.name for x in depends):
        raise refused(names, "their terms depend on none of the parameters")
    view = reading.view
    seen, factors = view.dependent_factors(counts), view.dependent_factors(parameters)
    others = [graph.sum() for name, graph in factors.items() if name not in seen]
    anchors = pt.lvector("anchors")
    parts = split(anchors, [view.values[value].type.shape for value in counts])
    at_anchors = {
        view.values[value]: part.astype(value.dtype)
        for value, part in zip(counts, parts, strict=True)
    }
    written = pt.add(*(graph.sum() for graph in seen.values()), *others)
    [log_density] = rebuild([written], at_anchors)
    return CollapsedTree(
        view=view,
        data=reading.data,
        parameters=reading.parameters,
        noise=reading,
        tree=tree,
        moved=tuple(parameters),
        counts=tuple(counts),
        anchors=anchors,
        log_density=log_density,
        written=written,
    )


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
