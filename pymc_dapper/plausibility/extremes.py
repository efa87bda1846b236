"""Statistics of data sets in which all records are alike: whether an entry can vary at all."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.tensor.random.basic import CategoricalRV, MultinomialRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.noise import with_randomness
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild
from pymc_dapper.plausibility.support import bounds_by_support

DRAWS = 64
"""A category that has no probability in any of so many draws from the prior can't be had."""

NEVER = 1e-3
"""Nor can one of known probability, if so few records are expected in it."""

MOST_EXTREMES = 256
"""So many data sets are looked at, at most."""


def at_extremes(
    model: Model, statistic: TensorVariable, values: Sequence[TensorVariable]
) -> list[np.ndarray]:
    """Evaluate a statistic, in terms of random variables, where all records have the same value.

    At each value that they can have, and tables with all in one cell. None, if these are too many,
    or if what the latent variables can be isn't known.
    """
    rvs = [model.values_to_rvs[value] for value in values]
    rng = np.random.default_rng(0)
    probabilities = [_probabilities(rv) for rv in rvs]
    randomness, drawn = with_randomness(inline_symbolic_ops([*rvs, *probabilities]))
    draw = compile_in_python(model, randomness.inputs, drawn)
    draws = [draw(*randomness.draw(each)) for each in rng.spawn(DRAWS)]
    n = len(rvs)
    each = [
        _extremes(rv, state, np.array([x[n + k] for x in draws]))
        for k, (rv, state) in enumerate(zip(rvs, draws[0][:n], strict=True))
    ]
    if not 0 < prod(len(x) for x in each) <= MOST_EXTREMES:
        return []
    given = [rv.type() for rv in rvs]
    others, [at] = with_randomness(
        inline_symbolic_ops(rebuild([statistic], dict(zip(rvs, given, strict=True))))
    )
    evaluate = compile_in_python(model, [*others.inputs, *given], [at])
    return [
        np.asarray(evaluate(*others.draw(one), *state)[0], dtype=np.float64)
        for one, state in zip(rng.spawn(MOST_EXTREMES), product(*each), strict=False)
    ]


def _probabilities(rv: TensorVariable) -> TensorVariable:
    """Return the probability of each category, over all records; 1 where there are none."""
    if not isinstance(rv.owner.op, CategoricalRV | MultinomialRV):
        return pt.ones(1)
    p = rv.owner.op.dist_params(rv.owner)[-1]
    return p.max(axis=tuple(range(p.type.ndim - 1)))


def _extremes(rv: TensorVariable, state: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    """List them for one variable: given a draw of it, and draws of its categories' probabilities.

    A probability that varies may be small in all draws under a vague prior, and says nothing.
    """
    state = np.asarray(state)
    records = state.sum() if isinstance(rv.owner.op, MultinomialRV) else state.size
    most = p.max(axis=0)
    varies = np.ptp(p, axis=0) > 1e-6 * most
    possible = (most > 0) & (varies | (records * most >= NEVER))
    if isinstance(rv.owner.op, MultinomialRV):
        totals, k = state.sum(axis=-1, keepdims=True), np.arange(state.shape[-1])
        return [(totals * (k == cell)).astype(state.dtype) for cell in k[possible]]
    low, high, _ = bounds_by_support(rv)
    if state.dtype.kind not in "biu" or not high - low < MOST_EXTREMES:
        return []
    values = np.arange(int(low), int(high) + 1)
    values = values[possible] if len(possible) == len(values) else values
    return [np.full_like(state, value) for value in values]
