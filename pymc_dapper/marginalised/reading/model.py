"""Read a PyMC model: its log-density with counts marginalised.

Given the parameters, the counts must be independent: Binomial or Poisson, each with its own noise,
which doesn't depend on parameters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Variable, explicit_graph_inputs
from pytensor.tensor.random.basic import BinomialRV, PoissonRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.counts.reading.description import name_cells
from pymc_dapper.counts.reading.model import CountReading, check_counts, read_factors
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.errors import NotMarginalisableError
from pymc_dapper.graphs.evaluation import at_point
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.view import ModelView, Reading, view_of


def _binomial(k: Variable, n: Variable, p: Variable) -> tuple[Variable, ...]:
    natural = pt.log(p) - pt.log1p(-p)
    log_h = pt.gammaln(n + 1) - pt.gammaln(k + 1) - pt.gammaln(n - k + 1)
    return natural, n, log_h + k * natural + n * pt.log1p(-p)


def _poisson(k: Variable, mu: Variable) -> tuple[Variable, ...]:
    return pt.log(mu), pt.constant(np.inf, dtype="float64"), k * pt.log(mu) - mu - pt.gammaln(k + 1)


LAWS: dict[type, Callable[..., tuple[Variable, ...]]] = {BinomialRV: _binomial, PoissonRV: _poisson}
"""Counts that can be marginalised: natural parameter, largest value, and log-density at k.

This is PyMC's log-density without its cases for impossible counts and rates of 0. Anchors are
possible, and a rate of 0 has no sum. The cases would take numba a second.
"""


@dataclass(frozen=True, eq=False)
class MarginalisedModel(Reading):
    """A log-density with counts marginalised (:mod:`~pymc_dapper.marginalised.kernels`).

    That is the logarithm of sums of weights, relative to those of possible counts, and
    ``log_density`` at these.
    """

    counts: tuple[TensorVariable, ...]
    """The model's value variables of the counts."""
    moved: tuple[TensorVariable, ...]
    """Those of the parameters that are to be moved."""
    noise: CountReading
    """Terms of the counts in other factors, one count each."""
    anchors: TensorVariable
    """Input: counts that weights are relative to; int64, shape (number of counts,)."""
    log_density: TensorVariable
    """The log-density at the anchors, without the summed part, with all factors of the
    parameters."""
    written: TensorVariable
    """The log-density with the counts, as the model has it: of all these factors."""
    parameters: tuple[TensorVariable, ...]
    """Value variables of all parameters that the graphs of sums depend on."""
    naturals: TensorVariable
    """Natural parameter of each count; shape (number of counts,)."""
    largest: TensorVariable
    """Largest value of each count; shape (number of counts,)."""

    @property
    def rvs(self) -> list[TensorVariable]:
        """The random variables of the counts."""
        return [self.model.values_to_rvs[value] for value in self.counts]

    @property
    def factors(self) -> list[str]:
        """Names of the factors of the counts, except their prior."""
        own = {rv.name for rv in self.rvs}
        return [name for name in self.noise.as_written if name not in own]


def read_marginalised(
    model: Model, parameters: Sequence[TensorVariable], counts: Sequence[TensorVariable]
) -> MarginalisedModel:
    """Check that counts can be marginalised where parameters are moved.

    Both are value variables.

    Raises
    ------
    NotMarginalisableError
        If they can't, with the reason.
    """
    rvs = [model.values_to_rvs[value] for value in counts]
    check_counts(model, rvs)
    for rv in rvs:
        if not isinstance(rv.owner.op, tuple(LAWS)):
            raise refused(f"'{rv.name}'", "only Binomial and Poisson counts are summed one by one")
    view = view_of(model)
    seen = view.dependent_factors(counts)
    priors = {rv.name for rv in rvs}
    rest = {name: graph for name, graph in seen.items() if name not in priors}
    noise = read_factors(view, counts, rest)
    _check_noise(noise, model)
    factors = view.dependent_factors(parameters)
    others = [graph.sum() for name, graph in factors.items() if name not in seen]

    anchors = pt.lvector("anchors")
    naturals, largest, prior_at_anchors = _laws(view, rvs, anchors)
    log_density = pt.add(prior_at_anchors.sum(), *others)
    written = pt.add(*(graph.sum() for graph in seen.values()), *others)
    if {x.name for x in view.values_in([naturals])}.isdisjoint(x.name for x in parameters):
        names = ", ".join(f"'{name}'" for name in priors)
        raise refused(names, "their distribution depends on none of the parameters")
    [at_start] = at_point(model, [naturals])(initial_point(model))
    if (fixed := np.isinf(at_start)).any():
        reason = "where the chain starts, their rate is 0, or their probability 0 or 1"
        raise refused(name_cells(noise, fixed), reason)
    return MarginalisedModel(
        view=view,
        data={**noise.data, **view.data_in([naturals, largest])},
        counts=tuple(counts),
        moved=tuple(parameters),
        noise=noise,
        naturals=naturals,
        largest=largest,
        anchors=anchors,
        log_density=log_density,
        written=written,
        parameters=view.values_in([naturals, log_density]),
    )


def _laws(
    view: ModelView, rvs: Sequence[TensorVariable], anchors: TensorVariable
) -> tuple[TensorVariable, ...]:
    """Return the counts' natural parameters and largest values, and log-densities at anchors."""
    own = [view.values[view.model.rvs_to_values[rv]] for rv in rvs]
    laws, shapes = [], [value.type.shape for value in own]
    for rv, k, shape in zip(rvs, split(anchors, shapes), shapes, strict=True):
        numbers = [k, *view.at_values(rv.owner.op.dist_params(rv.owner))]
        law = LAWS[type(rv.owner.op)](*(x.astype("float64") for x in numbers))
        followed = set(own).intersection(explicit_graph_inputs(law[:1]))
        if followed:
            names = ", ".join(f"'{x.name}'" for x, y in zip(rvs, own, strict=True) if y in followed)
            raise refused(names, f"the distribution of '{rv.name}' depends on them")
        if view.values_in(law[1:2]):
            raise refused(f"'{rv.name}'", "its n isn't known")
        laws.append([pt.broadcast_to(x, shape).ravel() for x in law])
    return tuple(pt.concatenate(x) for x in zip(*laws, strict=True))


def _check_noise(noise: CountReading, model: Model) -> None:
    """Refuse counts that share a term, or whose term has an unknown."""
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
    if noise.known.factors or noise.totals.follows.any():
        raise refused(names, "some of their sums are known exactly")
    for terms in noise.terms:
        together = len(terms.linear) > 1 or any(
            np.diff(matrix.indptr).max(initial=0) > 1 for matrix in terms.linear.values()
        )
        if together:
            raise refused(names, f"'{terms.factor}' depends on several of them at once")


def refused(counts: str, reason: str) -> NotMarginalisableError:
    """Make the error for counts, by their names, that can't be marginalised."""
    return NotMarginalisableError(
        f"the counts {counts} can't be marginalised: {reason}. Use CountStep for them, and another "
        "step for the parameters"
    )
