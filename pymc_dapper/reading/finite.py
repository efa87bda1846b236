"""Records with few possible values: exact draws from what their prior and public answers say."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.discrete import DiscreteUniformRV
from pytensor.tensor.random.basic import BernoulliRV, BinomialRV, CategoricalRV, categorical
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.graphs import rebuild
from pymc_dapper.reading.operations import known_value

MAX_VALUES = 16


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


def exact_draws(
    records: Sequence[TensorVariable],
    log_density: TensorVariable,
    values: np.ndarray,
) -> list[TensorVariable]:
    """Build the graph that draws all records from a density in which they don't interact.

    Parameters
    ----------
    records : sequence of TensorVariable
        Value variables of the records, each of shape (n,).
    log_density : TensorVariable, shape (n,)
        Log-density of each record, not normalised.
    values : ndarray of int, shape (number of values, number of variables)
        All values that a record can take.

    Returns
    -------
    list of TensorVariable
        The draws, in the order of ``records``.
    """
    at_values = [
        rebuild(
            [log_density],
            {
                x: pt.full(x.type.shape, v, dtype=x.dtype)
                for x, v in zip(records, value, strict=True)
            },
        )[0]
        for value in values
    ]
    log_weights = pt.stack(at_values, axis=1)
    log_weights = pt.switch(pt.isnan(log_weights), -np.inf, log_weights)
    # A record for which nothing is possible gets any value: the sweep's log-density then says so.
    largest = log_weights.max(axis=1, keepdims=True)
    possible = pt.isfinite(largest)
    weights = pt.switch(possible, pt.exp(log_weights - pt.switch(possible, largest, 0)), 1.0)

    rng = random_generator_type("rng")
    probabilities = weights / weights.sum(axis=1, keepdims=True)
    _, chosen = categorical(probabilities, rng=rng, return_next_rng=True)
    table = pt.constant(values)
    return [table[chosen, k].astype(x.dtype) for k, x in enumerate(records)]
