"""Statistics of data sets in which all records are alike: they show whether an entry can vary."""

from collections.abc import Sequence
from itertools import product
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.random.basic import CategoricalRV, MultinomialRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.prior_draws import drawing
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.support import bounds_by_support
from pymc_dapper.graphs.view import ModelView

DRAWS = 64
"""Number of draws from the prior. A category without probability in all of them is impossible."""

NEVER = 1e-3
"""A category of known probability is impossible if fewer records than this are expected in it."""

MOST_EXTREMES = 256
"""At most this number of data sets is evaluated."""


def at_extremes(
    view: ModelView, statistic: TensorVariable, values: Sequence[TensorVariable]
) -> list[np.ndarray]:
    """Evaluate a statistic where all records have the same value.

    It is in terms of the view's random variables. The data sets have all records at one possible
    value, or a whole table in one cell. Returns None if there are too many of them, or if the
    possible values aren't known.
    """
    rvs = view(view.model.values_to_rvs[value] for value in values)
    rng = np.random.default_rng(0)
    probabilities = [_probabilities(rv) for rv in rvs]
    draw = drawing(view.model, [*rvs, *probabilities])
    draws = [draw(each) for each in rng.spawn(DRAWS)]
    n = len(rvs)
    drawn = enumerate(zip(rvs, draws[0][:n], strict=True))
    each = [_extremes(rv, x, np.array([y[n + k] for y in draws])) for k, (rv, x) in drawn]
    if not 0 < prod(len(x) for x in each) <= MOST_EXTREMES:
        return []
    given = [rv.type() for rv in rvs]
    evaluate = drawing(view.model, rebuild([statistic], dict(zip(rvs, given, strict=True))), given)
    states = zip(rng.spawn(MOST_EXTREMES), product(*each), strict=False)
    return [np.asarray(evaluate(one, *state)[0], dtype=np.float64) for one, state in states]


def _probabilities(rv: TensorVariable) -> TensorVariable:
    """Return the probability of each category, over all records; 1 where there are none."""
    if not isinstance(rv.owner.op, CategoricalRV | MultinomialRV):
        return pt.ones(1)
    p = rv.owner.op.dist_params(rv.owner)[-1]
    return p.max(axis=tuple(range(p.type.ndim - 1)))


def _extremes(rv: TensorVariable, state: np.ndarray, p: np.ndarray) -> list[np.ndarray]:
    """List the extreme states of one variable, given a draw of it and of its probabilities.

    A probability with a vague prior may be small in all draws; such a probability says nothing.
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
