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
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Apply, ancestors
from pytensor.graph.basic import equal_computations
from pytensor.tensor.elemwise import DimShuffle, Elemwise
from pytensor.tensor.math import Sum
from pytensor.tensor.random.basic import CategoricalRV, ExponentialRV, GammaRV
from pytensor.tensor.subtensor import AdvancedSubtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.children import Child, read_children
from pymc_dapper.conjugacy.families import Family, read_prior
from pymc_dapper.conjugacy.kernels.weights import draw_weights
from pymc_dapper.conjugacy.totals import in_range
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.present import Present
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
    theta: np.ndarray, weights: np.ndarray, ends: np.ndarray, shapes: np.ndarray,
    rates: np.ndarray, chosen: np.ndarray, looked_up: np.ndarray, offsets: np.ndarray,
) -> float:  # fmt: skip
    """Log-density of weights, up to a constant; arguments as those of :func:`draw_weights`."""
    table = theta.reshape(ends[-1], -1)
    products = offsets.reshape(-1, table.shape[1]) * np.ones((len(chosen), 1))
    for rows in looked_up.reshape(len(ends), -1):
        products *= table[rows]
    there = chosen >= 0
    taken = products[np.flatnonzero(there), chosen[there]]
    prior = (shapes - 1) * np.log(theta) - rates * theta
    return float(prior.sum() + np.log(taken / products[there].sum(axis=1)).sum())


def _draw(
    rng: np.random.Generator, weights: np.ndarray, ends: np.ndarray, shapes: np.ndarray,
    rates: np.ndarray, *others: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """Draw from the prior: values at which the density is compared with the model's."""
    return np.maximum(rng.gamma(shapes, 1 / rates), 1e-3)


WEIGHTS = Family(
    "gamma (with exponential variables)",
    ("weights", "ends", "shapes", "rates", "chosen", "looked_up", "offsets"),
    _draw,
    log_density,
    kernel=draw_weights,
)


@dataclass(frozen=True, eq=False)
class Lookup:
    """A table of weights, and which of its rows each entry looks up."""

    theta: TensorVariable
    row: TensorVariable
    """Ints: the number of the table's row that each entry looks up."""


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
    ends = np.cumsum([prod(theta.type.shape[:-1]) for theta in thetas])
    starts = dict(zip(thetas, [0, *ends[:-1]], strict=True))
    in_order = sorted(lookups, key=lambda lookup: starts[lookup.theta])
    rows = [starts[x.theta] + x.row for x in in_order]
    shapes, rates = [], []
    for rv, theta in parameters.items():
        _, of_prior = read_prior(priors[rv.name].op, priors[rv.name].parameters)
        shape, rate = (pt.broadcast_to(x, theta.type.shape).ravel() for x in of_prior)
        shapes.append(shape)
        rates.append(rate)
    by_entry = offsets.type.ndim == 2 and not offsets.type.broadcastable[0]
    real, whole = (partial(pt.cast, dtype=dtype) for dtype in ("float64", "int64"))
    outputs = [
        real(pt.concatenate([x.ravel() for x in view.at_values(list(parameters))])),
        whole(ends),
        real(pt.concatenate(shapes)),
        real(pt.concatenate(rates)),
        whole(chosen),
        whole(pt.concatenate([pt.broadcast_to(x, (n,)) for x in rows])),
        real(pt.broadcast_to(offsets, (n if by_entry else 1, n_categories)).ravel()),
    ]
    return outputs, children


def _read_products(
    child: Child, thetas: Sequence[TensorVariable]
) -> tuple[list[Lookup], TensorVariable]:
    """Read probabilities as normalised products; return look-ups, and the other factors."""
    [p], of_thetas = child.parameters, set(thetas)
    match _bare(p).owner:
        case Apply(op=Elemwise(scalar_op=ps.TrueDiv()), inputs=[products, total]):
            pass
        case _:
            raise _otherwise(child)
    if not _is_total(_bare(total), _bare(products)):
        raise _otherwise(child)
    lookups, others = [], pt.constant(1.0)
    for factor in _factors(_bare(products)):
        if of_thetas.isdisjoint(ancestors([factor])):
            others = others * factor
        elif (lookup := _lookup(_bare(factor), of_thetas)) is not None:
            lookups.append(lookup)
        else:
            raise _otherwise(child)
    if len({lookup.theta for lookup in lookups}) < len(lookups) or len(lookups) < len(thetas):
        raise _otherwise(child)
    return lookups, others


def _otherwise(child: Child) -> NotConjugateError:
    return NotConjugateError(f"{child.name_parameter(0)} isn't {ELSE}")


def _bare(x: TensorVariable) -> TensorVariable:
    """Leave out axes of length one that were added in front or behind."""
    match x.owner:
        case Apply(op=DimShuffle() as op, inputs=[inner]) if not op.shuffle or op.augment:
            kept = [axis for axis in op.new_order if axis != "x"]
            return inner if kept == list(range(inner.type.ndim)) else x
    return x


def _is_total(total: TensorVariable, products: TensorVariable) -> bool:
    """Whether one variable is the sum of another over its last axis."""
    match total.owner:
        case Apply(op=Sum(axis=(axis,)), inputs=[summed]):
            return _is_same(summed, products) and axis == products.type.ndim - 1
        case Apply(op=Sum(axis=None), inputs=[summed]):
            return _is_same(summed, products) and products.type.ndim == 1
    return False


def _is_same(x: TensorVariable, y: TensorVariable) -> bool:
    return equal_computations([_bare(x)], [y])


def _factors(product: TensorVariable) -> list[TensorVariable]:
    """Take a product apart."""
    match product.owner:
        case Apply(op=Elemwise(scalar_op=ps.Mul()), inputs=inputs):
            return [factor for x in inputs for factor in _factors(x)]
    return [product]


def _lookup(factor: TensorVariable, thetas: set[TensorVariable]) -> Lookup | None:
    """Read a factor as rows of a table; None if it is something else."""
    if factor in thetas and factor.type.ndim == 1:
        return Lookup(factor, pt.constant(0))
    match factor.owner:
        case Apply(op=AdvancedSubtensor() as op, inputs=[theta, *inputs]) if theta in thetas:
            indices: list[Any] = indices_from_subtensor(inputs, op.idx_list)
        case _:
            return None
    sizes = theta.type.shape[:-1]
    vectors = all(isinstance(x, TensorVariable) and x.type.ndim == 1 for x in indices)
    if len(indices) != len(sizes) or not vectors or not thetas.isdisjoint(ancestors(indices)):
        return None
    row = pt.constant(0)
    for x, size in zip(indices, sizes, strict=True):
        x = pt.cast(x, "int64")  # of an int8, row numbers may be larger than it holds
        row = row * size + in_range(pt.switch(x < 0, x + size, x), size, "an index")
    return Lookup(theta, row)
