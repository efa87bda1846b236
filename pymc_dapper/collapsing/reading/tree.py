"""Read a PyMC model: its log-density with counts on a tree summed out.

Counts may be seen through sums, and some of these be known, as long as all are nested or disjoint.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.collapsing.reading.model import refused
from pymc_dapper.counts.reading.model import CountReading, read_counts
from pymc_dapper.counts.reading.tree import TreeReading, read_tree
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.view import ModelView


@dataclass(frozen=True, eq=False)
class CollapsedTree:
    """A model's log-density with counts on a tree summed out.

    That is the logarithm of the sum of the weights of all tables, relative to that of a possible
    one, and ``log_density`` at that.
    """

    noise: CountReading
    """How all factors see the counts."""
    tree: TreeReading
    """The tree of the sums that they see."""
    moved: tuple[TensorVariable, ...]
    """Value variables of the parameters that are to be moved."""
    counts: tuple[TensorVariable, ...]
    """Value variables of the counts."""
    anchors: TensorVariable
    """Input: possible counts; int64, shape (number of cells,)."""
    log_density: TensorVariable
    """The log-density at the anchors, of all factors that see counts or parameters."""
    written: TensorVariable
    """The same with the counts, as the model has it."""

    @property
    def parameters(self) -> tuple[TensorVariable, ...]:
        """Value variables of the parameters that terms depend on."""
        return self.noise.parameters

    @property
    def model(self) -> Model:
        """The model."""
        return self.noise.model

    @property
    def rvs(self) -> list[TensorVariable]:
        """The random variables of the counts."""
        return self.noise.rvs

    @property
    def view(self) -> ModelView:
        """The view that all graphs are of."""
        return self.noise.view

    @property
    def data(self) -> Mapping[SharedVariable, TensorVariable]:
        """Shared data that the terms depend on, and what stands for them."""
        return self.noise.data

    @property
    def dim_lengths(self) -> dict[str, int]:
        """Lengths of the model's dims when it was read."""
        return self.noise.dim_lengths

    @property
    def frozen(self) -> dict[Variable, np.ndarray]:
        """Data that say which count is seen by what, with the values they had."""
        return self.noise.frozen

    @property
    def factors(self) -> list[str]:
        """Names of what sees the counts, beside their prior."""
        own = {rv.name for rv in self.rvs}
        return [name for name in self.noise.as_written if name not in own]

    @property
    def how(self) -> str:
        """How counts are summed out."""
        return "on the tree of their sums"


def read_collapsed_tree(
    model: Model,
    parameters: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
) -> CollapsedTree:
    """Find out whether counts on a tree can be summed out of what parameters are moved by.

    Both are value variables; ``point`` is for shapes.

    Raises
    ------
    NotCollapsibleError
        If they can't: it says why.
    """
    names = ", ".join(f"'{model.values_to_rvs[value].name}'" for value in counts)
    reading = read_counts(model, counts, point)
    tree = read_tree(reading)
    if isinstance(tree, str):
        raise refused(names, tree)
    if reading.unknown_totals:
        listed = ", ".join(f"'{x.name}'" for x in reading.unknown_totals)
        raise refused(names, f"a total of theirs depends on {listed}")
    moving = {value.name for value in parameters}
    depends = explicit_graph_inputs([x for terms in reading.terms for x in terms.fixed.values()])
    if moving.isdisjoint(x.name for x in depends):
        raise refused(names, "what is known of them depends on none of the parameters")
    view = reading.view
    seen, factors = view.dependent_factors(counts), view.dependent_factors(parameters)
    others = [graph.sum() for name, graph in factors.items() if name not in seen]
    anchors = pt.lvector("anchors")
    parts = split(anchors, [np.shape(point[value.name]) for value in counts])
    at_anchors = {
        view.values[value]: part.astype(value.dtype)
        for value, part in zip(counts, parts, strict=True)
    }
    written = pt.add(*(graph.sum() for graph in seen.values()), *others)
    [log_density] = rebuild([written], at_anchors)
    return CollapsedTree(
        noise=reading,
        tree=tree,
        moved=tuple(parameters),
        counts=tuple(counts),
        anchors=anchors,
        log_density=log_density,
        written=written,
    )
