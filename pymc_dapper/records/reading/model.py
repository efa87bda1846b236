"""Read a PyMC model: its records, their proposals, and the factors that depend on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import without_mechanism
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.noise import Randomness, check_sources, with_randomness
from pymc_dapper.graphs.prior import read_proposals
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild
from pymc_dapper.graphs.view import ModelView, Reading, view_of
from pymc_dapper.records.reading.axis import check_independence, check_records
from pymc_dapper.records.reading.factors import (
    AdditiveFactor,
    Factor,
    FullFactor,
    RecordSum,
    SeparableFactor,
    read_factors,
    sums_of,
)
from pymc_dapper.records.reading.finite import (
    MAX_VALUES,
    FiniteLaw,
    Prior,
    are_by_entry,
    conditional_law,
    possible_values,
    support_of_entries,
)
from pymc_dapper.records.reading.plan import ByFullEvaluation, Plan, read_plan
from pymc_dapper.records.reading.possible import read_possible

type Propose = Callable[..., tuple[list[np.ndarray], np.ndarray]]
"""``propose(rng, records, parameters)`` returns proposals, and whether each record's proposal is
possible, shape (n,)."""


@dataclass(frozen=True, eq=False)
class ModelReading(Reading):
    """How a model depends on its records.

    Attributes
    ----------
    records : tuple of TensorVariable
        The records: variables with the names of their value variables and with static shapes, the
        record axis first.
    randomness : Randomness
        Sources of the random draws in ``proposals``: inputs of these.
    proposals : tuple of TensorVariable
        A draw of all records given the parameters, in the order of ``records``: from their prior,
        or from their prior times the separable factors. A transformed record is nan if it was drawn
        outside the range of its transform.
    log_priors : tuple of TensorVariable, scalars
        The log-density of each of ``records`` in the model; none if PyMC can't derive it.
    possible : TensorVariable of bool, shape (n,), or None
        Whether the proposal ``records`` may be accepted. It may not if the draw has no value in the
        space of a value variable, or was made with invalid parameters. None if all draws may.
    possible_values : ndarray of int, shape (k, number of record variables), or None
        All values of a record, if they are few: a product of ranges.
    conditional : FiniteLaw or None
        The records' prior times the separable factors, if proposals come from it: these factors
        then don't decide.
    factors : tuple of Factor
        The factors of the log-density that depend on the records, except their prior.
    plan : Plan
        What decides on proposals in a sweep, and how contributions to the sums are computed.
    parameters : tuple of TensorVariable
        Value variables of all other free variables that the graphs depend on.
    near : bool
        Whether proposals are near the present records, and account for the separable factors
        (:func:`~pymc_dapper.records.reading.near.read_near`).
    draws_anew : bool
        Whether records may not walk, because parameters are drawn without the absent records.
    number : TensorVariable, optional
        Value variable of the number of present records, the first ones, if nothing depends on the
        others: the others then need no decision.
    """

    records: tuple[TensorVariable, ...]
    randomness: Randomness
    proposals: tuple[TensorVariable, ...]
    log_priors: tuple[TensorVariable, ...]
    possible: TensorVariable | None
    possible_values: np.ndarray | None
    conditional: FiniteLaw | None
    factors: tuple[Factor, ...]
    plan: Plan
    parameters: tuple[TensorVariable, ...]
    near: bool = False
    draws_anew: bool = False
    number: TensorVariable | None = None

    def in_python(
        self, graphs: Sequence[Variable], besides: Sequence[Variable] = ()
    ) -> Callable[..., list[np.ndarray]]:
        """Make a function of other inputs, the records and the parameters, evaluated in Python."""
        inputs = [*besides, *self.records, *self.parameters]
        return compile_in_python(self.model, inputs, graphs)

    def proposing_in_python(self) -> Propose:
        """Make a function that proposes all records, evaluated in Python."""
        possible = pt.ones(self.n_records, dtype="bool")
        if self.possible is not None:
            drawn = dict(zip(self.records, self.proposals, strict=True))
            [possible] = rebuild([self.possible], drawn)
        evaluate = self.in_python([*self.proposals, possible], self.randomness.inputs)

        def propose(
            rng: np.random.Generator,
            records: Sequence[np.ndarray],
            parameters: Sequence[np.ndarray],
        ) -> tuple[list[np.ndarray], np.ndarray]:
            # A compiled function doesn't advance its generator: each call gets its own.
            *drawn, possible = evaluate(*self.randomness.draw(rng), *records, *parameters)
            return drawn, possible

        return propose

    @property
    def quoted_names(self) -> str:
        """Names of the record variables, for messages."""
        return ", ".join(f"'{name}'" for name in self.record_names)

    @property
    def proposes_conditionally(self) -> bool:
        """Whether proposals already account for the separable factors."""
        return self.near or self.conditional is not None

    @property
    def additive_factors(self) -> list[AdditiveFactor]:
        """The factors that depend on the records through sums."""
        return [factor for factor in self.factors if isinstance(factor, AdditiveFactor)]

    @property
    def separable_factors(self) -> list[SeparableFactor]:
        """The factors with one value per record."""
        return [factor for factor in self.factors if isinstance(factor, SeparableFactor)]

    @property
    def full_factors(self) -> list[FullFactor]:
        """The factors that can only be evaluated as a whole."""
        return [factor for factor in self.factors if isinstance(factor, FullFactor)]

    @property
    def evaluated_whole(self) -> list[FullFactor]:
        """The factors that a sweep evaluates from all records for each of them."""
        return self.full_factors if isinstance(self.plan, ByFullEvaluation) else []

    @property
    def record_names(self) -> list[str]:
        """Names of the record variables in the model."""
        return self.names(self.records)

    @property
    def rvs(self) -> list[TensorVariable]:
        """Random variables of the records."""
        return [self.model[name] for name in self.record_names]

    @property
    def n_records(self) -> int:
        """Number of records."""
        return int(self.records[0].type.shape[0])

    @property
    def sums(self) -> list[RecordSum]:
        """The sums over records in any factor, each once."""
        return sums_of(self.additive_factors)


def read_model(
    model: Model, values: Sequence[TensorVariable], point: Mapping[str, np.ndarray]
) -> ModelReading:
    """Find how a model's log-density depends on the records.

    Parameters
    ----------
    model : Model
        The model.
    values : sequence of TensorVariable
        Value variables of the records.
    point : mapping of str to ndarray
        Values of the model's value variables, for the shapes of the records.

    Returns
    -------
    ModelReading
        The records' proposals, and the model's factors by how they depend on the records.

    Raises
    ------
    ReadingError
        If a variable can't be a record, if no factor depends on the records, or if a factor does in
        an unknown way.
    """
    rvs = [model.values_to_rvs[value] for value in values]
    check_records(model, rvs, point)

    view = view_of(model)
    records = [view.values[x] for x in values]
    priors_as_written = log_priors(view, rvs)
    check_independence(view, rvs, records)
    others = [x for x in (*model.basic_RVs, *model.potentials) if x not in rvs]
    factors = read_factors(view.named_log_densities(others), records)
    if not factors:
        raise without_mechanism("records", *(rv.name for rv in rvs))

    separable = [factor for factor in factors if isinstance(factor, SeparableFactor)]
    untransformed = all(model.rvs_to_transforms[rv] is None for rv in rvs)
    supports = [support_of_entries(rv) if untransformed else None for rv in rvs]
    finite = possible_values(rvs) if untransformed else None
    possible, valid_parameters = read_possible(view, rvs, records, priors_as_written)
    likelihoods = [factor.log_densities for factor in separable]
    conditional = None
    if finite is not None and separable:
        conditional = _finite_law(view, rvs, likelihoods, finite, possible)
    elif untransformed and possible is None and len(separable) == len(factors):
        conditional = _law_of_entries(view, rvs, [factor.name for factor in factors])
    if conditional is not None:
        proposals, possible = conditional.draw(records), None
    else:
        proposals = read_proposals(view, rvs, valid_parameters)
    randomness, proposals = with_randomness(proposals)
    check_sources(proposals, [rv.name for rv in rvs])

    graphs = [*proposals, *(factor.as_written for factor in factors)]
    return ModelReading(
        view=view,
        data=view.data_in(graphs),
        records=tuple(records),
        randomness=randomness,
        proposals=tuple(proposals),
        log_priors=tuple(x.sum() for x in priors_as_written),
        possible=possible,
        possible_values=finite,
        conditional=conditional,
        factors=tuple(factors),
        plan=read_plan(
            records, factors, supports=supports, proposes_conditionally=conditional is not None
        ),
        parameters=view.values_in(graphs, but=records),
    )


def prior_law(reading: ModelReading) -> FiniteLaw | None:
    """Return the prior of records with few values; None if it isn't known for each record."""
    if reading.possible_values is None:
        return None
    return _finite_law(reading.view, reading.rvs, [], reading.possible_values, reading.possible)


def _finite_law(
    view: ModelView,
    rvs: Sequence[TensorVariable],
    log_likelihoods: Sequence[TensorVariable],
    values: np.ndarray,
    possible: TensorVariable | None,
) -> FiniteLaw | None:
    records = [view.values[view.model.rvs_to_values[rv]] for rv in rvs]
    log_priors = log_priors_of_each(view, rvs, records)
    # A prior without a record axis isn't known for each record.
    if len(log_priors) < len(rvs):
        return None
    priors = [
        Prior(rv.owner.op, tuple(view.at_values(rv.owner.op.dist_params(rv.owner))), log_prior)
        for rv, log_prior in zip(rvs, log_priors, strict=True)
    ]
    return conditional_law(records, priors, log_likelihoods, values, possible)


def _law_of_entries(
    view: ModelView, rvs: Sequence[TensorVariable], factors: Sequence[str]
) -> FiniteLaw | None:
    """Law of each entry of records, such as answers to several questions, if nothing ties them."""
    values = support_of_entries(rvs[0])
    if len(rvs) > 1 or values is None or len(values) > MAX_VALUES:
        return None
    record = view.values[view.model.rvs_to_values[rvs[0]]]
    variables = [*rvs, *(view.model[name] for name in factors)]
    log_prior, *log_likelihoods = inline_symbolic_ops(view.log_densities(variables))
    if not are_by_entry([log_prior, *log_likelihoods], record):
        return None
    of_prior = view.at_values(rvs[0].owner.op.dist_params(rvs[0].owner))
    prior = Prior(rvs[0].owner.op, tuple(of_prior), log_prior)
    return conditional_law([record], [prior], log_likelihoods, np.array([*values])[:, None])


def log_priors_of_each(
    view: ModelView,
    rvs: Sequence[TensorVariable],
    records: Sequence[TensorVariable],
    *,
    jacobian: bool = True,
) -> list[TensorVariable]:
    """Return each record's log-densities, shape (n,), of variables whose density is per record."""
    factors = read_factors(view.named_log_densities(rvs, jacobian=jacobian), records)
    return [x.log_densities for x in factors if isinstance(x, SeparableFactor)]


def log_priors(view: ModelView, rvs: list[TensorVariable]) -> list[TensorVariable]:
    """Return the log-density of records, in terms of value variables; nothing if there is none."""
    try:
        return view.log_densities(rvs)
    except (NotImplementedError, RuntimeError):
        return []  # PyMC refuses to sample such a model
