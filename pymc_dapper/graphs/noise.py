"""Random draws as functions of standard noise.

Draws of common distributions are rewritten as functions of uniform, normal or exponential noise:
arrays, which compiled code draws first. Other draws use the generator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch
from itertools import accumulate
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc.distributions.truncated import TruncatedRV
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Apply, Op, Variable
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.random import basic as laws
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import random_generator_type
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.naming import describe
from pymc_dapper.graphs.products import chosen_by_products, chosen_by_rows
from pymc_dapper.graphs.rebuild import at_inputs, inline_symbolic_ops, rebuild, with_inputs


@dataclass(frozen=True)
class Noise:
    """An array of standard noise."""

    variable: TensorVariable
    """Its variable in a graph."""
    kind: str
    """The method of NumPy's ``Generator`` that draws it."""
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Randomness:
    """Sources of the random draws of a graph: its first inputs."""

    noise: tuple[Noise, ...]
    """Arrays of standard noise."""
    rng: Variable | None
    """The generator for all other draws, if there are any."""

    @property
    def inputs(self) -> list[Variable]:
        """Inputs of the graph."""
        variables: list[Variable] = [noise.variable for noise in self.noise]
        return variables if self.rng is None else [*variables, self.rng]

    def draw(self, rng: np.random.Generator) -> list[Any]:
        """Draw values of the inputs."""
        arrays: list[Any] = [getattr(rng, noise.kind)(noise.shape) for noise in self.noise]
        return arrays if self.rng is None else [*arrays, rng]


def with_randomness[V: Variable](graphs: Sequence[V]) -> tuple[Randomness, list[V]]:
    """Turn the sources of random draws into inputs; return the sources, and the same draws."""
    noise: list[Noise] = []
    first = latest = random_generator_type("rng")

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        nonlocal latest
        if not isinstance(node.op, RandomVariable):
            return with_inputs(node, inputs)
        inputs = [latest, *inputs[1:]]
        for k in COUNTS.get(type(node.op), ()):
            # NumPy accepts integers only here, numba accepts whole floats, too.
            inputs[2 + k] = inputs[2 + k].astype("int64")
        node = at_inputs(node, inputs)
        next_rng, draw = node.outputs
        known = tuple(length for length in draw.type.shape if length is not None)
        rule = _rule(node.op)
        if rule is not None and len(known) == draw.type.ndim:
            kind, transform = rule
            variable = pt.tensor(f"{kind}_{len(noise)}", dtype="float64", shape=known)
            noise.append(Noise(variable, kind, known))
            from_noise = transform(variable, *node.op.dist_params(node))
            return [latest, from_noise.astype(draw.dtype)]
        latest = next_rng
        return node.outputs

    graphs = rebuild(graphs, replace_node=replace_node)
    return Randomness(tuple(noise), None if latest is first else first), graphs


@singledispatch
def truncated_draw(
    op: Op, u: TensorVariable, lower: TensorVariable, upper: TensorVariable, *parameters: Variable
) -> TensorVariable | None:
    """Turn uniform noise into draws of a discrete distribution within bounds.

    Dispatched on the distribution's operation. None if there is no rule: PyMC then repeats draws
    until all lie within the bounds.
    """
    return None


def without_rejection[V: Variable](graphs: Sequence[V]) -> list[V]:
    """Draw truncated counts by inversion, if there is a rule."""

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        draw, *others = node.outputs
        if not isinstance(node.op, TruncatedRV) or draw.dtype.startswith("float"):
            return with_inputs(node, inputs)
        _, size, *parameters, lower, upper = inputs
        _, u = laws.uniform(size=size, rng=random_generator_type("rng"), return_next_rng=True)
        found = truncated_draw(node.op.base_rv_op, u, lower, upper, *parameters)
        if found is None:
            return with_inputs(node, inputs)
        return [found.astype(draw.dtype), *others]

    return rebuild(graphs, replace_node=replace_node)


def takes_generator(rv: Variable) -> bool:
    """Whether a random variable is drawn by a generator, not made from noise."""
    [graph] = inline_symbolic_ops([rv])
    draws = (node for node in io_toposort(rv.owner.inputs, [graph]))
    return any(isinstance(node.op, RandomVariable) and _rule(node.op) is None for node in draws)


def check_sources(graphs: Sequence[Variable], names: Sequence[str]) -> None:
    """Check that all random draws of the records come from the known sources.

    The graphs are those that :func:`with_randomness` returned. Operations with their own generator
    are refused, such as a loop that draws.
    """
    for node in io_toposort([], list(graphs)):
        shared = [x for x in node.inputs if isinstance(x, SharedVariable)]
        if any(x.type == random_generator_type for x in shared):
            listed = ", ".join(f"'{name}'" for name in names)
            raise ReadingError(
                f"the prior of the records {listed} is drawn in a loop (operation "
                f"{describe(node)}), which DapperStep can't hand a chain's random numbers to. Use "
                "another distribution, or give a CustomDist a `random` function"
            )


COUNTS: dict[type[Op], tuple[int, ...]] = {laws.BinomialRV: (0,), laws.MultinomialRV: (0,)}
"""Parameters of distributions that are whole numbers."""

FEW_CATEGORIES = 16
"""Up to this number of categories, a draw is compared with the bounds of all of them."""


def _categorical(u: TensorVariable, p: TensorVariable) -> TensorVariable:
    for choose in (chosen_by_products, chosen_by_rows):
        if (chosen := choose(u, p)) is not None:
            return chosen
    n_categories = p.type.shape[-1]
    if n_categories is not None and n_categories <= FEW_CATEGORIES:
        return chosen_by(u, [p[..., k] for k in range(n_categories)])
    # At most the sum: otherwise rounding could choose a last category with zero probability.
    cumulated = pt.cumsum(p, axis=-1)
    u = u * cumulated[..., -1]
    if all(length == 1 for length in p.type.shape[:-1]):
        # Shared by all records, so that not every record is compared with every category.
        bounds = cumulated[(0,) * (p.type.ndim - 1)]
        return pt.searchsorted(bounds[:-1], u, side="right")
    return pt.ge(u[..., None], cumulated[..., :-1]).sum(axis=-1)


def chosen_by(u: TensorVariable, weights: Sequence[TensorVariable]) -> TensorVariable:
    """Choose a category for each uniform number, with probabilities in proportion to weights.

    The weights of each category broadcast against ``u``; the result has the shape of ``u``.
    """
    cumulated = list(accumulate(weights))
    # With few bounds, comparing with all of them without a branch is faster than a search. The
    # results are cast, since a sum of booleans is a boolean.
    u = u * cumulated[-1]
    above = (pt.ge(u, bound).astype("int64") for bound in cumulated[:-1])
    return pt.add(pt.zeros_like(u, dtype="int64"), *above)


def _multivariate_normal(
    z: TensorVariable, mu: TensorVariable, covariance: TensorVariable
) -> TensorVariable:
    factor = pt.linalg.cholesky(covariance)
    return mu + (factor * z[..., None, :]).sum(axis=-1)


def _laplace(u: TensorVariable, mu: TensorVariable, b: TensorVariable) -> TensorVariable:
    # 1 - u is never zero; 1 - |2u - 1| is zero only if u is.
    centred = u - 0.5
    return mu - b * pt.sign(centred) * pt.log1p(-2 * pt.abs(centred))


FROM_NOISE: dict[type[Op], tuple[str, Callable[..., TensorVariable]]] = {
    laws.BernoulliRV: ("random", lambda u, p: u < p),
    laws.CategoricalRV: ("random", _categorical),
    laws.UniformRV: ("random", lambda u, low, high: low + (high - low) * u),
    laws.NormalRV: ("standard_normal", lambda z, mu, sigma: mu + sigma * z),
    laws.LogNormalRV: ("standard_normal", lambda z, mu, sigma: pt.exp(mu + sigma * z)),
    laws.HalfNormalRV: ("standard_normal", lambda z, loc, sigma: loc + sigma * pt.abs(z)),
    laws.ExponentialRV: ("standard_exponential", lambda e, scale: scale * e),
    laws.LaplaceRV: ("random", _laplace),
    laws.MvNormalRV: ("standard_normal", _multivariate_normal),
}
"""The kind of noise for draws of a distribution, a number for each entry; and the draws, as a
function of noise and parameters."""


def _rule(op: Op) -> tuple[str, Callable[..., TensorVariable]] | None:
    """Return how a distribution is drawn from noise; None if a generator draws it."""
    if isinstance(op, laws.MvNormalRV) and op.method != "cholesky":
        return None
    return FROM_NOISE.get(type(op))
