"""Read a PyMC model: how its log-density depends on tables of counts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from pymc import Model
from pymc.distributions.discrete import DiscreteUniformRV
from pymc.distributions.multivariate import DirichletMultinomialRV
from pytensor.graph import Variable, ancestors, explicit_graph_inputs
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.random import basic as laws
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.conditional import Conditional
from pymc_dapper.conjugacy.marginal import marginalise
from pymc_dapper.counts.reading.totals import Totals, find_totals
from pymc_dapper.graphs.checks import localise_checks
from pymc_dapper.graphs.errors import ReadingError, without_mechanism
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild
from pymc_dapper.graphs.terms import roles
from pymc_dapper.graphs.terms.equations import KnownTotals, says_only_what_is_required
from pymc_dapper.graphs.terms.of_sums import Terms, terms_of
from pymc_dapper.graphs.terms.walk import CountWalk, as_terms
from pymc_dapper.graphs.view import ModelView, Reading, view_of

FAMILIES = (
    laws.MultinomialRV,
    laws.BinomialRV,
    laws.PoissonRV,
    laws.NegBinomialRV,
    DirichletMultinomialRV,
    laws.BetaBinomialRV,
    DiscreteUniformRV,
)
BOUNDED_FAMILIES = (laws.BinomialRV, laws.BetaBinomialRV, DiscreteUniformRV)
"""Families whose counts have an upper limit of their own, beside any total."""


@dataclass(frozen=True, eq=False)
class WholeFactor:
    """A factor that isn't a sum of terms and is evaluated as a whole."""

    factor: str
    """Name of the Potential or random variable."""
    log_density: TensorVariable
    """A scalar: the log-density, a function of the keys of ``linear``."""
    linear: dict[Variable, roles.Linear]
    """The linear functions of the counts in it."""
    reason: str
    """Why it isn't a sum of terms."""


@dataclass(frozen=True, eq=False)
class CountReading(Reading):
    """How a model depends on its counts."""

    counts: tuple[TensorVariable, ...]
    """The counts: variables with the names of their value variables and with static shapes."""
    terms: tuple[Terms, ...]
    """Terms of the log-density, each of single entries of linear functions; includes the
    prior's."""
    wholes: tuple[WholeFactor, ...]
    """Other factors of the log-density."""
    known: KnownTotals
    """The exact equations."""
    totals: Totals
    """Counts that are determined by others. All matrices above are for the others."""
    as_written: dict[str, TensorVariable]
    """Each factor as the model computes it, a scalar."""
    parameters: tuple[TensorVariable, ...]
    """Value variables of all other free variables that the graphs depend on."""
    frozen: dict[Variable, np.ndarray]
    """Data that determine the linear structure, with their values at the time."""
    marginalised: tuple[Conditional, ...] = ()
    """Conditionals of the parameters that are marginalised."""

    @property
    def rvs(self) -> list[TensorVariable]:
        """The random variables of the counts."""
        return [self.model[name] for name in self.names(self.counts)]

    @property
    def n_cells(self) -> int:
        """Number of cells, of all counts together."""
        return sum(int(np.prod(count.type.shape)) for count in self.counts)

    @property
    def prior_terms(self) -> list[Terms]:
        """The terms that come from the counts' own prior."""
        names = {rv.name for rv in self.rvs}
        return [terms for terms in self.terms if terms.factor in names]

    @property
    def unknown_totals(self) -> list[TensorVariable]:
        """The other free variables on which the exact equations depend."""
        inputs = set(explicit_graph_inputs([self.known.offset]))
        return [x for x in self.parameters if x in inputs]

    def bounded_cells(self) -> np.ndarray:
        """Return which cells have an upper limit by their prior, or by that of a latent total."""
        is_bounded = [isinstance(rv.owner.op, BOUNDED_FAMILIES) for rv in self.rvs]
        bounded = np.repeat(is_bounded, [prod(count.type.shape) for count in self.counts])
        return np.asarray(self.totals.sums.T @ bounded.astype(float) > 0)


def check_counts(model: Model, rvs: Sequence[TensorVariable]) -> None:
    """Refuse variables that aren't counts."""
    for rv in rvs:
        if np.dtype(rv.dtype).kind == "f":
            raise ReadingError(
                f"'{rv.name}' is continuous: CountStep updates counts. Leave it to another step; "
                "if it describes single people, to DapperStep"
            )
        if isinstance(rv.owner.op, laws.BernoulliRV | laws.CategoricalRV):
            raise ReadingError(
                f"'{rv.name}' is not a count but has a category for each record: DapperStep is for "
                "that. Or count the records: a Multinomial or Binomial with the same probabilities"
            )
        if not isinstance(rv.owner.op, FAMILIES):
            raise ReadingError(
                f"'{rv.name}' has a prior that CountStep doesn't know. It updates Multinomial, "
                "Binomial, Poisson, NegativeBinomial, DirichletMultinomial, BetaBinomial and "
                "DiscreteUniform counts"
            )
        if isinstance(rv.owner.op, DiscreteUniformRV):
            lowest = known_value(rv.owner.op.dist_params(rv.owner)[0])
            if lowest is None or np.any(lowest < 0):
                raise ReadingError(
                    f"'{rv.name}' may be negative: CountStep updates counts. Give DiscreteUniform "
                    "a lower limit that is a number, 0 or more; or leave it to another step"
                )


def read_counts(
    model: Model, values: Sequence[TensorVariable], marginalised: Sequence[Conditional] = ()
) -> CountReading:
    """Find how a model's log-density depends on tables of counts, and split it into terms.

    ``marginalised`` are the conditionals of marginalised parameters.

    Raises
    ------
    ReadingError
        If a variable isn't a count, or a factor can't be evaluated.
    NotConjugateError
        If a parameter can't be marginalised.
    """
    rvs = [model.values_to_rvs[value] for value in values]
    check_counts(model, rvs)
    # Conditionals of parameters are in terms of the view in which they were read.
    view = marginalised[0].view if marginalised else view_of(model)
    reading = read_factors(view, values, marginalise(view, marginalised, rvs))
    if not set(reading.as_written) - {rv.name for rv in rvs}:
        raise without_mechanism("counts", *(rv.name for rv in rvs))
    return replace(reading, marginalised=tuple(marginalised))


def read_factors(
    view: ModelView, values: Sequence[TensorVariable], written: Mapping[str, TensorVariable]
) -> CountReading:
    """Find how some named factors of a log-density depend on tables of counts.

    Raises
    ------
    ReadingError
        If a factor can't be evaluated.
    """
    counts = [view.values[value] for value in values]
    walk = CountWalk(counts, {x: shared.get_value() for shared, x in view.data.items()})
    terms: list[Terms] = []
    wholes: list[WholeFactor] = []
    required: list[tuple[str, roles.LinearEntries]] = []
    as_written: dict[str, TensorVariable] = {}
    for name, raw in written.items():
        if set(counts).isdisjoint(ancestors([raw])):
            continue
        [graph] = localise_checks(inline_symbolic_ops([raw]), counts)
        role = walk.follow(graph)
        if isinstance(role, roles.Fixed):
            continue
        as_written[name] = graph.sum()
        if isinstance(role, roles.Mixed) or (isinstance(role, roles.Reduced) and role.by != "add"):
            reason = role.reason if isinstance(role, roles.Mixed) else "it is a truth value"
            wholes.append(_whole(name, graph, walk, reason))
            required += [(name, rows) for rows in getattr(role, "requires", ())]
            continue
        for part in as_terms(role, walk, graph):
            required += [(name, rows) for rows in part.terms.requires]
            found = terms_of(name, part)
            if found.linear and not says_only_what_is_required(part.terms):
                terms.append(found)
    known, totals = _without_totals(required, sum(roles.size(x.type.shape) for x in counts))
    terms = [_of_moving_cells(each, totals) for each in terms]
    wholes = [_of_moving_cells(each, totals) for each in wholes]
    data = view.data_in(list(as_written.values()))
    return CountReading(
        view=view,
        data=data,
        counts=tuple(counts),
        terms=tuple(terms),
        wholes=tuple(wholes),
        known=known,
        totals=totals,
        as_written=as_written,
        parameters=view.values_in(list(as_written.values()), but=counts),
        frozen={shared: walk.frozen[x] for shared, x in data.items() if x in walk.frozen},
    )


def _without_totals(
    required: Sequence[tuple[str, roles.LinearEntries]], n_cells: int
) -> tuple[KnownTotals, Totals]:
    """Find the latent totals, and the remaining exact equations."""
    known = KnownTotals.of(required, n_cells)
    is_zero = np.concatenate(
        [np.zeros(0, dtype=bool), *(_known_to_be_zero(rows.offset) for _, rows in required)]
    )
    totals = find_totals(known.matrix[is_zero])
    known = replace(known, matrix=totals.of_moving_cells(known.matrix))
    return known.only(~is_zero | (np.diff(known.matrix.indptr) > 0)), totals


def _known_to_be_zero(offset: TensorVariable) -> np.ndarray:
    """Return which entries are zero for all parameters and data."""
    value = known_value(offset)
    return np.zeros(offset.type.shape, dtype=bool) if value is None else value == 0


def _of_moving_cells[T: (Terms, WholeFactor)](part: T, totals: Totals) -> T:
    """Write a part of the log-density as a function of the free cells."""
    linear = {
        x: replace(at, matrix=totals.of_moving_cells(at.matrix))
        if isinstance(at, roles.Linear)
        else totals.of_moving_cells(at)
        for x, at in part.linear.items()
    }
    return replace(part, linear=linear)


def _whole(name: str, graph: TensorVariable, walk: CountWalk, reason: str) -> WholeFactor:
    """Cut a graph where it stops being linear in the counts."""
    cuts: dict[Variable, roles.Linear] = {}
    for node in io_toposort([], [graph]):
        if isinstance(walk.role(node.outputs[0]), roles.Linear | roles.Fixed):
            continue
        if isinstance(node.op, Subtensor | AdvancedSubtensor) and any(
            isinstance(walk.role(x), roles.Linear) for x in node.inputs[1:]
        ):
            raise ReadingError(
                f"'{name}' looks up entries of a table by counts, and CountStep tries counts "
                "beyond the table. Say which entry those have, as in "
                "table[pt.clip(counts, 0, last)]; or leave the counts to another step"
            )
        for x in node.inputs:
            role = walk.role(x)
            if isinstance(role, roles.Linear) and isinstance(x.type, TensorType):
                cuts[x] = role
    new = {x: x.type.clone(shape=role.shape)() for x, role in cuts.items()}
    [log_density] = rebuild([graph.sum()], new)
    return WholeFactor(name, log_density, {new[x]: role for x, role in cuts.items()}, reason)
