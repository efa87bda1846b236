"""Records with few possible values: exact draws from what their prior and public answers say."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.discrete import DiscreteUniformRV
from pytensor.graph.op import Op
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV, CategoricalRV, categorical
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.graphs import rebuild
from pymc_dapper.reading.operations import known_value

MAX_VALUES = 16

LARGEST_RANGE = 300.0
"""Range of log-likelihoods whose exponentials, times a prior, are far from the smallest double."""


def possible_values(rvs: Sequence[TensorVariable]) -> np.ndarray | None:
    """List all values that a record can take.

    Parameters
    ----------
    rvs : sequence of TensorVariable
        Random variables of the records.

    Returns
    -------
    ndarray of int, shape (number of values, number of variables), or None
        None if a variable isn't a vector of a discrete distribution with known bounds, or if there
        are more than 16 values.
    """
    supports = [_support(rv) for rv in rvs]
    if any(support is None or len(support) > MAX_VALUES for support in supports):
        return None
    values = np.array(list(product(*(support for support in supports if support is not None))))
    return values if len(values) <= MAX_VALUES else None


def _support(rv: TensorVariable) -> range | None:
    op, node = rv.owner.op, rv.owner
    if rv.type.ndim != 1:
        return None
    if isinstance(op, BernoulliRV):
        return range(2)
    if isinstance(op, CategoricalRV):
        n_categories = op.dist_params(node)[0].type.shape[-1]
        return None if n_categories is None else range(n_categories)
    if isinstance(op, BinomialRV):
        bounds = [pt.constant(0), op.dist_params(node)[0]]
    elif isinstance(op, DiscreteUniformRV):
        bounds = list(op.dist_params(node))
    else:
        return None
    low, high = (known_value(bound) for bound in bounds)
    if low is None or high is None:
        return None
    return range(int(low.min()), int(high.max()) + 1)


@dataclass(frozen=True)
class Prior:
    """The prior of a record variable.

    Attributes
    ----------
    op : Op
        Its random variable operation.
    parameters : tuple of TensorVariable
        The parameters of its distribution.
    log_density : TensorVariable, shape (n,)
        Its log-density at each record.
    """

    op: Op
    parameters: tuple[TensorVariable, ...]
    log_density: TensorVariable

    def probability(self, value: int) -> TensorVariable:
        """Probability of a value, with an entry per record or one for all."""
        if isinstance(self.op, CategoricalRV):
            return self.parameters[0][..., value]
        if isinstance(self.op, BernoulliRV):
            [p] = self.parameters
            return p if value else 1 - p
        return pt.exp(self.log_density)


def exact_draws(
    records: Sequence[TensorVariable],
    priors: Sequence[Prior],
    log_likelihoods: Sequence[TensorVariable],
    values: np.ndarray,
) -> list[TensorVariable]:
    """Build the graph that draws all records from a density in which they don't interact.

    Parameters
    ----------
    records : sequence of TensorVariable
        Value variables of the records, each of shape (n,).
    priors : sequence of Prior
        The prior of each.
    log_likelihoods : sequence of TensorVariable, each of shape (n,)
        What else the log-density of each record consists of.
    values : ndarray of int, shape (number of values, number of variables)
        All values that a record can take.

    Returns
    -------
    list of TensorVariable
        The draws, in the order of ``records``.
    """

    def at_values(graphs: Sequence[TensorVariable]) -> TensorVariable:
        """Evaluate a graph for each value, with all records at it: columns of one matrix."""
        columns = []
        for graph, value in zip(graphs, values, strict=True):
            at = {x: pt.full(x.type.shape, v, x.dtype) for x, v in zip(records, value, strict=True)}
            columns.append(pt.atleast_1d(rebuild([graph], at)[0]))
        return pt.stack(columns, axis=1)

    prior_weights: TensorVariable = pt.ones((1, len(values)))
    for prior, column in zip(priors, values.T, strict=True):
        prior_weights = prior_weights * at_values([prior.probability(value) for value in column])
    prior_weights = pt.switch(prior_weights > 0, prior_weights, 0.0)
    logs = sum(at_values([x] * len(values)) for x in log_likelihoods)
    logs = pt.switch(pt.isnan(logs), -np.inf, logs)
    if not _can_underflow(logs):
        # Constants, so that a draw takes no exponential and a categorical prior no logarithm.
        weights = prior_weights * pt.exp(logs - logs.max(axis=1, keepdims=True))
    else:
        # Relative to the largest that the prior allows: all weights could else be rounded to zero.
        logs = logs + pt.log(prior_weights)
        largest = logs.max(axis=1, keepdims=True)
        weights = pt.exp(logs - pt.switch(pt.isfinite(largest), largest, 0.0))
    # A record for which nothing is possible gets any value: the sweep's log-density then says so.
    total = weights.sum(axis=1, keepdims=True)
    probabilities = pt.switch(total > 0, weights / total, 1 / len(values))

    rng = random_generator_type("rng")
    _, chosen = categorical(probabilities, rng=rng, return_next_rng=True)
    table = pt.constant(values)
    return [table[chosen, k].astype(x.dtype) for k, x in enumerate(records)]


def _can_underflow(logs: TensorVariable) -> bool:
    """Whether ratios of likelihoods may be too small for a double, or aren't known beforehand."""
    known = known_value(logs)
    if known is None or not np.all(np.isfinite(known.max(axis=1))):
        return True
    finite = np.where(np.isfinite(known), known, np.inf)
    return bool(np.max(known.max(axis=1) - finite.min(axis=1)) > LARGEST_RANGE)
