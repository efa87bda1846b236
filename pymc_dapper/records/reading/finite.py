"""Records with few possible values: exact draws from their prior times the separable factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pymc.distributions.discrete import DiscreteUniformRV
from pytensor.graph import Apply, Op
from pytensor.graph.traversal import io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.random.basic import (
    BernoulliRV,
    BetaBinomialRV,
    BinomialRV,
    CategoricalRV,
    uniform,
)
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.subtensor import AdvancedSubtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_length, known_value
from pymc_dapper.graphs.noise import chosen_by
from pymc_dapper.graphs.products import normalised_factors
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild

MAX_VALUES = 16

LARGEST_RANGE = 300.0
"""Range of log-likelihoods in which exponentials, times a prior, are far from underflow."""


def possible_values(rvs: Sequence[TensorVariable]) -> np.ndarray | None:
    """List all values that a record can take, shape (number of values, number of variables).

    None if a variable isn't a vector of a discrete distribution with known bounds, or if there are
    more than 16 values.
    """
    supports = [found for rv in rvs if (found := support(rv)) is not None]
    if len(supports) < len(rvs) or prod(map(len, supports)) > MAX_VALUES:
        return None
    return np.array(list(product(*supports)))


def support(rv: TensorVariable) -> range | None:
    """Values of a vector of a discrete distribution with known bounds; None for other variables."""
    return support_of_entries(rv) if rv.type.ndim == 1 else None


def support_of_entries(rv: TensorVariable) -> range | None:
    """Values of each entry of a discrete distribution with known bounds; None for others."""
    op, node = rv.owner.op, rv.owner
    if isinstance(op, BernoulliRV):
        return range(2)
    if isinstance(op, CategoricalRV):
        n_categories = known_length(op.dist_params(node)[0])
        return None if n_categories is None else range(n_categories)
    if isinstance(op, BinomialRV | BetaBinomialRV):
        bounds = [pt.constant(0), op.dist_params(node)[0]]
    elif isinstance(op, DiscreteUniformRV):
        bounds = list(op.dist_params(node))
    else:
        return None
    low, high = (known_value(bound) for bound in bounds)
    if low is None or high is None or np.ptp(low) > 0 or np.ptp(high) > 0:
        return None  # other factors might not be defined at another record's values
    return range(int(low.flat[0]), int(high.flat[0]) + 1) or None


def table_of_probabilities(rv: TensorVariable) -> TensorVariable | None:
    """Return the array whose rows a Categorical variable is drawn by; None for other variables."""
    if not isinstance(rv.owner.op, CategoricalRV):
        return None
    [p] = rv.owner.op.dist_params(rv.owner)
    return _looked_up(p)


def _looked_up(p: TensorVariable) -> TensorVariable:
    """Return the array of which a variable has rows."""
    match p.owner:
        case Apply(op=DimShuffle() as op, inputs=[x]) if op.new_order[-1] == x.type.ndim - 1:
            return x
        case Apply(op=AdvancedSubtensor() as op, inputs=[x, *_]) if len(op.idx_list) < x.type.ndim:
            return x
    return p


def named_probabilities(model: Model, rv: TensorVariable) -> str | None:
    """Name the variable that holds a Categorical variable's probabilities, if it has dims.

    Or the first of several whose products, divided by their sum, they are. None if their last dims
    differ: none of them is known to be the categories'.
    """
    table = table_of_probabilities(rv)
    factors = [] if table is None else normalised_factors(table) or [table]
    names = [x.name for x in map(_looked_up, factors) if model.named_vars.get(x.name) is x]
    last = {name: dims[-1] for name in names if (dims := model.named_vars_to_dims.get(name))}
    return next(iter(last)) if len(set(last.values())) == 1 else None


@dataclass(frozen=True)
class Prior:
    """The prior of a record variable."""

    op: Op
    """Its random variable operation."""
    parameters: tuple[TensorVariable, ...]
    """The parameters of its distribution."""
    log_density: TensorVariable
    """Shape (n,): its log-density at each record."""

    def probability(self, value: int) -> TensorVariable:
        """Probability of a value, with an entry per record or one for all records."""
        if isinstance(self.op, CategoricalRV):
            return self.parameters[0][..., value]
        if isinstance(self.op, BernoulliRV):
            [p] = self.parameters
            return p if value else 1 - p
        return pt.exp(self.log_density)


@dataclass(frozen=True)
class FiniteLaw:
    """A distribution of independent records over few values."""

    values: np.ndarray
    """Ints, shape (k, number of variables): all values of a record."""
    weights: tuple[TensorVariable, ...]
    """Each of shape (n,): the density of each record at each value, divided by
    ``exp(log_scale)``."""
    log_scale: TensorVariable
    """Shape (n,): chosen so that a record's largest weight neither overflows nor underflows."""
    factors: tuple[tuple[TensorVariable, TensorVariable], ...] | None
    """For each value, its prior density and its log-likelihood, if the latter is a constant."""

    def log_total(self, shape: tuple[int, ...]) -> TensorVariable:
        """Log-likelihood of records of a shape, each summed over its values.

        It is computed once for all entries of a column with the same likelihood, if all records
        have the same prior.
        """
        factors = self.factors or ()
        if not all(all(prior.type.broadcastable[:1]) for prior, _ in factors) or not factors:
            each = self.log_scale + pt.log(pt.add(*self.weights))
            return pt.broadcast_to(each, shape).sum()
        logs = [np.broadcast_to(np.asarray(known_value(log)), shape).ravel() for _, log in factors]
        by_entry = [np.arange(prod(shape)) % prod(shape[1:]), *logs]
        (columns, *logs), n_alike = np.unique(by_entry, axis=1, return_counts=True)
        largest, place = np.max(logs, axis=0), columns.astype(int)
        priors = [pt.broadcast_to(p, (1, *shape[1:])).ravel()[place] for p, _ in factors]
        weights = [p * x for p, x in zip(priors, np.exp(logs - largest), strict=True)]
        return (n_alike * (pt.log(pt.add(*weights)) + largest)).sum()

    def draw(self, records: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Build the graph of a draw of all records, in the types of their value variables."""
        # A record without a possible value gets any value; its log-density shows that.
        rng = random_generator_type("rng")
        _, u = uniform(size=records[0].type.shape, rng=rng, return_next_rng=True)
        return self.choose(u, self.weights, records)

    def choose(
        self,
        u: TensorVariable,
        weights: Sequence[TensorVariable],
        records: Sequence[TensorVariable],
    ) -> list[TensorVariable]:
        """Choose the values that correspond to uniform numbers, shape (n,)."""
        return self.at(chosen_by(u, weights), records)

    def at(self, index: TensorVariable, records: Sequence[TensorVariable]) -> list[TensorVariable]:
        """Look up the values with these numbers, in the types of the records."""
        columns = zip(records, self.values.T, strict=True)
        return [pt.constant(column)[index].astype(x.dtype) for x, column in columns]


def conditional_law(
    records: Sequence[TensorVariable],
    priors: Sequence[Prior],
    log_likelihoods: Sequence[TensorVariable],
    values: np.ndarray,
    possible: TensorVariable | None = None,
) -> FiniteLaw:
    """Multiply the records' prior by the other log-likelihoods of each record.

    Records, log-likelihoods and ``possible`` have an entry for each record. ``possible`` says
    whether the prior's parameters are valid, if they depend on the records. ``values`` are all
    values of a record, shape (number of values, number of variables).
    """

    def at_value(graph: TensorVariable, value: np.ndarray) -> TensorVariable:
        """Evaluate a graph with all records at a value."""
        at = {x: pt.full(x.type.shape, v, x.dtype) for x, v in zip(records, value, strict=True)}
        return rebuild([graph], at)[0]

    # One vector with an entry per record for each value, instead of a matrix: PyTensor then makes a
    # single pass over the records.
    weights, logs = [], []
    for value in values:
        weight, log = pt.constant(1.0), pt.constant(0.0)
        for prior, x in zip(priors, value, strict=True):
            weight = weight * at_value(prior.probability(x), value)
        if possible is not None:
            weight = pt.switch(at_value(possible, value), weight, 0.0)
        for log_likelihood in log_likelihoods:
            log = log + at_value(log_likelihood, value)
        # In double precision, whatever the model's: constants such as 0.75 would make it single.
        weight, log = weight.astype("float64"), log.astype("float64")
        weights.append(pt.switch(weight > 0, weight, 0.0))
        logs.append(pt.switch(pt.isfinite(log), log, -np.inf))
    factors = None if _can_underflow(logs) else tuple(zip(weights, logs, strict=True))
    if factors is None:
        # Relative to the largest value that the prior allows: otherwise all weights could become
        # zero.
        logs = [log + pt.log(weight) for log, weight in zip(logs, weights, strict=True)]
        weights = [pt.constant(1.0)] * len(values)
    # Otherwise the logarithms are constants: a draw then needs no exponential or logarithm.
    largest = reduce(pt.maximum, logs)
    largest = pt.switch(pt.isfinite(largest), largest, 0.0)
    scaled = [weight * pt.exp(log - largest) for weight, log in zip(weights, logs, strict=True)]
    return FiniteLaw(values, tuple(scaled), largest, factors)


def are_by_entry(graphs: Sequence[TensorVariable], record: TensorVariable) -> bool:
    """Whether each entry of graphs depends on the entry of a record at the same place alone."""
    dependent = dependent_variables([record], graphs)
    for node in io_toposort([], list(graphs)):
        of_record = [x for x in node.inputs if x in dependent]
        is_value = isinstance(node.op, Alloc | CheckAndRaise) and of_record == node.inputs[:1]
        if of_record and not (isinstance(node.op, Elemwise) or is_value):
            return False
        if any(x.type.shape != record.type.shape for x in of_record):
            return False
    return all(graph.type.shape == record.type.shape for graph in graphs)


def _can_underflow(logs: Sequence[TensorVariable]) -> bool:
    """Whether ratios of likelihoods may underflow, or aren't known beforehand."""
    known = [known_value(log) for log in logs]
    if any(log is None for log in known):
        return True
    by_value = np.array(np.broadcast_arrays(*(log for log in known if log is not None)))
    largest = by_value.max(axis=0)
    if not np.all(np.isfinite(largest)):
        return True
    smallest = np.where(np.isfinite(by_value), by_value, np.inf).min(axis=0)
    return bool(np.max(largest - smallest) > LARGEST_RANGE)
