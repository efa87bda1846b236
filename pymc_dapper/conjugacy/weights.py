"""Weights of categories, whose normalised products are the probabilities of a Categorical variable.

For each of its entries, a category's probability is proportional to a product of weights, each
looked up in a table by something known of the entry: a multinomial logit, the weights being the
exponentials of its coefficients. With an exponential variable for each entry, whose rate is the
sum of its products, weights of independent gamma priors are gamma given all else (Caron and Doucet
2012, for choices among a few).

Caron, F. and Doucet, A. (2012). Efficient Bayesian inference for generalized Bradley-Terry models.
Journal of Computational and Graphical Statistics 21(1).
"""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import ancestors
from pytensor.tensor.random.basic import CategoricalRV, ExponentialRV, GammaRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.children import Child, read_children
from pymc_dapper.conjugacy.families import Family, read_prior
from pymc_dapper.conjugacy.kernels.weights import draw_weights
from pymc_dapper.conjugacy.totals import in_range
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.present import Present
from pymc_dapper.graphs.products import (
    Lookup,
    flat_lookups,
    joined,
    normalised_factors,
    read_lookup,
    rows_looked_up,
)
from pymc_dapper.graphs.view import ModelView

ELSE = "a product of tables of weights, each looked up entry by entry, divided by its sum"


def categories_of(model: Model, rv: TensorVariable) -> set[str]:
    """Name the Categorical variables whose probabilities a gamma variable enters."""
    if not isinstance(rv.owner.op, GammaRV | ExponentialRV):
        return set()
    others = [x for x in model.basic_RVs if x is not rv]
    drawn = [x for x in model.basic_RVs if isinstance(x.owner.op, CategoricalRV)]
    return {x.name for x in drawn if rv in ancestors(x.owner.inputs, blockers=others)}


def log_density(
    theta: np.ndarray, weights: np.ndarray, shapes: np.ndarray, rates: np.ndarray,
    chosen: np.ndarray, offsets: np.ndarray, *lookups: np.ndarray,
) -> float:  # fmt: skip
    """Log-density of weights, up to a constant; arguments as those of `draw_weights`."""
    table = theta.reshape(-1, offsets.shape[-1])
    products = offsets * np.ones((len(chosen), 1))
    for rows in rows_looked_up(len(chosen), *lookups):
        products *= table[rows]
    there = chosen >= 0
    taken = products[np.flatnonzero(there), chosen[there]]
    prior = (shapes - 1) * np.log(theta) - rates * theta
    return float(prior.sum() + np.log(taken / products[there].sum(axis=1)).sum())


def _draw(
    rng: np.random.Generator, weights: np.ndarray, shapes: np.ndarray, rates: np.ndarray,
    chosen: np.ndarray, offsets: np.ndarray, *lookups: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Draw from the prior: values at which the density is compared with the model's."""
    rows_looked_up(len(chosen), *lookups)  # it refuses an index out of range
    return np.maximum(rng.gamma(shapes, 1 / rates), 1e-3)


WEIGHTS = Family(
    "gamma (with exponential variables)",
    ("weights", "shapes", "rates", "chosen", "offsets", "indices", "lengths", "axes"),
    _draw,
    log_density,
    kernel=draw_weights,
)


def read_weights(
    view: ModelView, parameters: dict[TensorVariable, TensorVariable], present: Present
) -> tuple[list[TensorVariable], list[Child]]:
    """Read the parameters of the conditional of weights, and the Categorical variable they rule.

    Raises
    ------
    NotConjugateError
        If the weights enter anything else, or the probabilities in another form.
    """
    family = read_children(view, parameters)
    names = {rv.name for rv in parameters}
    priors = {child.name: child for child in family if child.name in names}
    children = [child for child in family if child.name not in names]
    if len(children) != 1:
        raise NotConjugateError(
            "they enter " + " and ".join(f"'{child.name}'" for child in children) + ", not only "
            "the probabilities of one variable"
        )
    [child], thetas = children, list(parameters.values())
    graphs = [x for prior in priors.values() for x in prior.parameters]
    if not set(thetas).isdisjoint(ancestors(graphs)):
        raise NotConjugateError("the prior of one depends on another")
    lookups, offsets = _read_products(child, thetas)
    [rv] = [x for x in view.model.basic_RVs if x.name == child.name]
    if rv.type.ndim != 1:
        raise NotConjugateError(f"'{child.name}' isn't a vector")
    [n], n_categories = view.shape(rv), thetas[0].type.shape[-1]
    chosen = in_range(child.value, n_categories, "a category")
    if rv in present:
        [n_present] = view.at_values([present[rv]])
        chosen = pt.switch(pt.arange(n) < n_present, chosen, -1)
    in_order = sorted(lookups, key=lambda lookup: thetas.index(lookup.table))
    shapes, rates = [], []
    for rv, theta in parameters.items():
        _, of_prior = read_prior(priors[rv.name].op, priors[rv.name].parameters)
        shape, rate = (pt.broadcast_to(x, theta.type.shape).ravel() for x in of_prior)
        shapes.append(shape)
        rates.append(rate)
    by_entry = offsets.type.ndim == 2 and not offsets.type.broadcastable[0]
    outputs = [
        joined(view.at_values(list(parameters))),
        _known(joined(shapes)),
        _known(joined(rates)),
        pt.cast(chosen, "int64"),
        pt.cast(pt.broadcast_to(offsets, (n if by_entry else 1, n_categories)), "float64"),
        *flat_lookups(in_order),
    ]
    return outputs, children


def _read_products(
    child: Child, thetas: Sequence[TensorVariable]
) -> tuple[list[Lookup], TensorVariable]:
    """Read probabilities as normalised products; return look-ups, and the other factors."""
    [p], of_thetas = child.parameters, set(thetas)
    lookups, others = [], pt.constant(1.0)
    for factor in normalised_factors(p) or [p]:
        if of_thetas.isdisjoint(ancestors([factor])):
            others = others * factor
            continue
        lookup = read_lookup(factor)
        if lookup is None or lookup.table not in of_thetas:
            raise _otherwise(child)
        if not of_thetas.isdisjoint(ancestors(lookup.indices)):
            raise _otherwise(child)
        lookups.append(lookup)
    if len({lookup.table for lookup in lookups}) < len(lookups) or len(lookups) < len(thetas):
        raise _otherwise(child)
    return lookups, others


def _known(x: TensorVariable) -> TensorVariable:
    """Replace by a constant what is known before sampling."""
    value = known_value(x)
    return x if value is None else pt.constant(value)


def _otherwise(child: Child) -> NotConjugateError:
    return NotConjugateError(f"{child.name_parameter(0)} isn't {ELSE}")
