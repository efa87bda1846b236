"""Read a PyMC model: its log-density with counts summed out.

Given the parameters, the counts must be independent: Binomial or Poisson, each seen by noise of its
own that doesn't depend on parameters.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs
from pytensor.tensor.random.basic import BinomialRV, PoissonRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.counts.reading.model import CountReading, check_counts, read_factors
from pymc_dapper.graphs.dependence import dependent_factors
from pymc_dapper.graphs.errors import NotCollapsibleError
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.values import at_values, dim_lengths, frozen_dims, shared_data

NATURAL: dict[type, Callable[..., tuple[Variable, Variable]]] = {
    BinomialRV: lambda n, p: (pt.log(p) - pt.log1p(-p), n),
    PoissonRV: lambda mu: (pt.log(mu), pt.constant(np.inf)),
}
"""Natural parameter and largest value of the counts that can be summed out."""


@dataclass(frozen=True, eq=False)
class CollapsedModel:
    """A model's log-density with counts summed out. All graphs are in terms of value variables.

    That is the log-sums of the counts' weights (:mod:`pymc_dapper.collapsing.kernels.sums`) at
    ``naturals``, and ``log_density``.
    """

    model: Model
    counts: tuple[TensorVariable, ...]
    """Value variables of the counts."""
    moved: tuple[TensorVariable, ...]
    """Value variables of the parameters that are to be moved."""
    noise: CountReading
    """How the other factors see the counts, each by itself."""
    naturals: TensorVariable
    """Natural parameter of each count; shape (number of counts,)."""
    largest: TensorVariable
    """Largest value of each count; shape (number of counts,)."""
    anchors: TensorVariable
    """Input: the count that weights of each are relative to; shape (number of counts,)."""
    log_density: TensorVariable
    """The log-density of the counts at the anchors, and all factors that see the parameters."""
    written: TensorVariable
    """The log-density with the counts, as the model has it: of the same factors."""
    parameters: tuple[TensorVariable, ...]
    """Value variables of all parameters that the graphs depend on."""
    data: tuple[SharedVariable, ...]
    """Shared data that the graphs depend on."""
    placeholders: dict[Variable, TensorVariable]
    """What stands for the data in the graphs of the noise."""
    dim_lengths: dict[str, int]
    """Lengths of the model's dims when it was read."""

    @property
    def how(self) -> str:
        """How counts are summed out."""
        return "one by one"

    @property
    def rvs(self) -> list[TensorVariable]:
        """The random variables of the counts."""
        return [self.model.values_to_rvs[value] for value in self.counts]

    @property
    def frozen(self) -> dict[Variable, np.ndarray]:
        """Data that say which count is seen by what, with the values they had."""
        return self.noise.frozen

    @property
    def factors(self) -> list[str]:
        """Names of what sees the counts, beside their prior."""
        return list(self.noise.as_written)


def read_collapsed(
    model: Model,
    parameters: Sequence[TensorVariable],
    counts: Sequence[TensorVariable],
    point: Mapping[str, np.ndarray],
) -> CollapsedModel:
    """Find out whether counts can be summed out of what parameters are moved by.

    Both are value variables; ``point`` is for shapes.

    Raises
    ------
    NotCollapsibleError
        If they can't: it says why.
    """
    rvs = [model.values_to_rvs[value] for value in counts]
    check_counts(model, rvs)
    for rv in rvs:
        if not isinstance(rv.owner.op, tuple(NATURAL)):
            raise refused(
                f"'{rv.name}'",
                "only Binomial and Poisson counts are independent, and summed one by one",
            )
    seen = dependent_factors(model, counts)
    priors = {rv.name for rv in rvs}
    rest = {name: graph for name, graph in seen.items() if name not in priors}
    noise = read_factors(model, counts, point, rest)
    _check_noise(noise, model)
    factors = dependent_factors(model, parameters)
    others = [graph.sum() for name, graph in factors.items() if name not in seen]

    lengths = dim_lengths(model)
    naturals, largest, at_anchors, start = [], [], {}, 0
    anchors = pt.lvector("anchors")
    for rv, value in zip(rvs, counts, strict=True):
        shape = np.shape(point[value.name])
        parameters_of = at_values(model, rv.owner.op.dist_params(rv.owner), {})
        natural, most = NATURAL[type(rv.owner.op)](*parameters_of)
        followed = set(counts).intersection(explicit_graph_inputs([natural]))
        if followed:
            names = ", ".join(f"'{model.values_to_rvs[x].name}'" for x in counts if x in followed)
            raise refused(names, f"the distribution of '{rv.name}' depends on them")
        if not set(model.value_vars).isdisjoint(explicit_graph_inputs([most])):
            raise refused(f"'{rv.name}'", "its n isn't known")
        naturals.append(pt.broadcast_to(natural.astype("float64"), shape).ravel())
        largest.append(pt.broadcast_to(most.astype("float64"), shape).ravel())
        stop = start + int(np.prod(shape))
        at_anchors[value] = anchors[start:stop].reshape(shape).astype(value.dtype)
        start = stop
    prior = pt.add(*(seen[rv.name].sum() for rv in rvs))
    [prior_at_anchors] = rebuild([prior], at_anchors)
    log_density = pt.add(prior_at_anchors, *others)
    written = pt.add(*(graph.sum() for graph in seen.values()), *others)
    naturals, largest, log_density, written = rebuild(
        [pt.concatenate(naturals), pt.concatenate(largest), log_density, written],
        frozen_dims(model, lengths),
    )
    inputs = set(explicit_graph_inputs([naturals, log_density]))
    if set(explicit_graph_inputs([naturals])).isdisjoint(parameters):
        raise refused(
            ", ".join(f"'{name}'" for name in priors),
            "their distribution depends on none of the parameters",
        )
    data = dict(noise.placeholders)
    for shared in shared_data([naturals, largest]):
        data.setdefault(shared, shared.type(name=shared.name))
    return CollapsedModel(
        model=model,
        counts=tuple(counts),
        moved=tuple(parameters),
        noise=noise,
        naturals=naturals,
        largest=largest,
        anchors=anchors,
        log_density=log_density,
        written=written,
        parameters=tuple(x for x in model.value_vars if x in inputs),
        data=tuple(data),
        placeholders=data,
        dim_lengths=lengths,
    )


def _check_noise(noise: CountReading, model: Model) -> None:
    """Refuse counts that something sees together, or by what isn't known."""
    names = ", ".join(f"'{rv.name}'" for rv in noise.rvs)
    if not noise.as_written:
        raise refused(names, "nothing else in the model depends on them")
    of_value = {value.name: rv.name for value, rv in model.values_to_rvs.items()}
    for parameter in noise.parameters:
        name, factors = of_value[parameter.name], ", ".join(f"'{x}'" for x in noise.as_written)
        if name in noise.as_written:
            raise refused(names, f"the distribution of '{name}' depends on them")
        raise refused(names, f"{factors} depends on '{name}', too")
    for whole in noise.wholes:
        raise refused(names, f"'{whole.factor}' isn't a sum of terms: {whole.reason}")
    if noise.invariants or noise.totals.follows.any():
        raise refused(names, "some of their sums are known exactly")
    for terms in noise.terms:
        together = len(terms.linear) > 1 or any(
            np.diff(matrix.indptr).max(initial=0) > 1 for matrix in terms.linear.values()
        )
        if together:
            factors = ", ".join(f"'{each}'" for each in terms.factors)
            raise refused(names, f"{factors} sees several of them at once")


def refused(counts: str, reason: str) -> NotCollapsibleError:
    """Make the error for counts, by their names, that can't be summed out."""
    return NotCollapsibleError(
        f"the counts {counts} can't be summed out: {reason}. Use CountStep for them, and another "
        "step for the parameters"
    )
