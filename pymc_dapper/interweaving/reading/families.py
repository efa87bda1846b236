"""Maps in closed form, one small rule per family."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions import continuous
from pymc.distributions.distribution import DiracDeltaRV
from pymc.distributions.mixture import MixtureRV
from pymc.distributions.multivariate import MvStudentTRV
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph import Apply, Op
from pytensor.tensor.random import basic as laws
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import HurdleRV
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.laws import has_density
from pymc_dapper.graphs.noise import FEW_CATEGORIES
from pymc_dapper.interweaving.reading.maps import (
    REMEDY,
    NoRecordMapError,
    Parameters,
    RecordMap,
    at_index,
    cdf_at,
    check_quantiles,
    distribution_name,
    parameters_of,
    quantile_map,
    record_map,
    with_parameters,
)
from pymc_dapper.records.reading.finite import support_of_entries


def location_scale(
    at: Callable[..., tuple[TensorVariable, TensorVariable]], *, of_logarithm: bool = False
) -> RecordMap:
    """Map by z = (x - location) / scale, given these as functions of the parameters."""

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        location, scale = at(*parameters)
        return ((pt.log(x) if of_logarithm else x) - location) / scale

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        location, scale = at(*parameters)
        x = location + scale * z
        return pt.exp(x) if of_logarithm else x

    return RecordMap(noise, records)


LOCATION_AND_SCALE = location_scale(lambda location, scale: (location, scale))
NORMAL = replace(LOCATION_AND_SCALE, is_normal=True)
SCALE = location_scale(lambda scale, *_: (pt.zeros(()), scale))
SCALE_AFTER_SHAPE = location_scale(lambda _, scale: (pt.zeros(()), scale))
LOG_NORMAL = location_scale(lambda mu, sigma: (mu, sigma), of_logarithm=True)
UNIFORM = location_scale(lambda lower, upper: (lower, upper - lower))
STUDENT_T = location_scale(lambda _, mu, sigma: (mu, sigma))
SKEW_NORMAL = location_scale(lambda mu, sigma, _: (mu, sigma))
ASYMMETRIC_LAPLACE = location_scale(lambda b, _, mu: (mu, 1 / b))
SHAPE_AND_SCALE = RecordMap(
    noise=lambda x, parameters, _: parameters[0] * (pt.log(x) - pt.log(parameters[1])),
    records=lambda z, parameters: pt.exp(pt.log(parameters[1]) + z / parameters[0]),
)
"""Z = shape * (log x - log scale). It is exponential for a Pareto law, and the logarithm of an
exponential number for a Weibull law."""


def _truncated_normal() -> RecordMap:
    """U = (Phi(z) - Phi(a)) / (Phi(b) - Phi(a)), with standardised value z and bounds a and b.

    PyMC's own quantiles are nan if one of the bounds is infinite and broadcast. If both bounds lie
    above the mean, everything is reflected, since Phi is accurate in relative terms below the mean.
    """

    def at(parameters: Parameters) -> tuple[TensorVariable, ...]:
        mu, sigma, lower, upper = parameters
        a, b = (lower - mu) / sigma, (upper - mu) / sigma
        turned = pt.gt(a, 0)
        return turned, phi(pt.switch(turned, -b, a)), phi(pt.switch(turned, -a, b))

    def phi(z: TensorVariable) -> TensorVariable:
        return 0.5 * pt.erfc(-z / np.sqrt(2))

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        turned, below_lower, below_upper = at(parameters)
        z = (x - parameters[0]) / parameters[1]
        u = (phi(pt.switch(turned, -z, z)) - below_lower) / (below_upper - below_lower)
        return pt.switch(turned, 1 - u, u)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        turned, below_lower, below_upper = at(parameters)
        within = below_lower + pt.switch(turned, 1 - u, u) * (below_upper - below_lower)
        z = -np.sqrt(2) * pt.erfcinv(2 * within)
        return parameters[0] + parameters[1] * pt.switch(turned, -z, z)

    return RecordMap(noise, records)


def _location_and_cholesky(location: int, covariance: int) -> RecordMap:
    """Z = L^-1 (x - location), where L L' is the covariance or scale matrix."""

    def at(parameters: Parameters) -> tuple[TensorVariable, TensorVariable]:
        return parameters[location], pt.linalg.cholesky(parameters[covariance])

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        mean, factor = at(parameters)
        return pt.linalg.solve_triangular(factor, (x - mean)[..., None], lower=True)[..., 0]

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        mean, factor = at(parameters)
        return mean + (factor * z[..., None, :]).sum(axis=-1)

    return RecordMap(noise, records)


RULES: dict[type[Op], tuple[RecordMap, int | None]] = {
    laws.NormalRV: (NORMAL, None),
    laws.LaplaceRV: (LOCATION_AND_SCALE, None),
    laws.LogisticRV: (LOCATION_AND_SCALE, None),
    laws.CauchyRV: (LOCATION_AND_SCALE, None),
    laws.GumbelRV: (LOCATION_AND_SCALE, None),
    continuous.MoyalRV: (LOCATION_AND_SCALE, None),
    laws.HalfNormalRV: (LOCATION_AND_SCALE, None),
    laws.ExponentialRV: (SCALE, None),
    continuous.HalfCauchyRV: (SCALE, None),
    laws.UniformRV: (UNIFORM, None),
    laws.LogNormalRV: (replace(LOG_NORMAL, is_normal=True), None),
    continuous.WeibullBetaRV: (SHAPE_AND_SCALE, None),
    laws.ParetoRV: (SHAPE_AND_SCALE, None),
    laws.GammaRV: (SCALE_AFTER_SHAPE, 0),
    laws.InvGammaRV: (SCALE_AFTER_SHAPE, 0),
    continuous.HalfStudentTRV: (SCALE_AFTER_SHAPE, 0),
    laws.StudentTRV: (STUDENT_T, 0),
    continuous.SkewNormalRV: (SKEW_NORMAL, 2),
    continuous.AsymmetricLaplaceRV: (ASYMMETRIC_LAPLACE, 1),
    laws.MvNormalRV: (replace(_location_and_cholesky(0, 1), is_normal=True), None),
    continuous.TruncatedNormalRV: (_truncated_normal(), None),
}
"""Maps, each with a parameter or None: if this moves, the quantile function is used instead."""


def _by_rule(rule: RecordMap, shape: int | None) -> Callable[..., RecordMap]:
    def choose(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
        return rule if shape is None or not moved[shape] else quantile_map(node)

    return choose


for family, (rule, shape) in RULES.items():
    record_map.register(family, _by_rule(rule, shape))


@record_map.register(MvStudentTRV)
def _multivariate_t(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    if moved[0]:
        raise NoRecordMapError(
            f"the degrees of freedom of {distribution_name(node)} move, and they are no location "
            "or scale"
        )
    return _location_and_cholesky(1, 2)


@record_map.register(laws.BernoulliRV)
def _bernoulli(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """X = 1 where u < p; u is uniform on (0, p) or on (p, 1)."""

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        [p] = parameters
        return pt.switch(pt.eq(x, 1), (1 - p) + v * p, v * (1 - p))

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        [p] = parameters
        return pt.ge(u, 1 - p).astype("int64")

    return RecordMap(noise, records)


@record_map.register(laws.CategoricalRV)
def _categorical(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Return the number of categories whose cumulative probability is at most u."""
    n_categories = parameters_of(node)[0].type.shape[-1]
    if n_categories is not None and 1 < n_categories <= FEW_CATEGORIES:
        return _few_categories(n_categories)

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        [p] = parameters
        upper = pt.cumsum(p, axis=-1)
        if p.type.ndim == 1:
            return upper[x] - (1 - v) * p[x]
        own = pt.eq(x[..., None], pt.arange(p.shape[-1]))
        return (own * (upper - (1 - v[..., None]) * p)).sum(axis=-1)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        [p] = parameters
        return pt.ge(u[..., None], pt.cumsum(p, axis=-1)[..., :-1]).sum(axis=-1)

    return RecordMap(noise, records)


def _few_categories(n: int) -> RecordMap:
    """Compare with the categories one by one, without an array of all categories per record."""

    def at(parameters: Parameters) -> tuple[list[TensorVariable], list[TensorVariable]]:
        [p] = parameters
        each = [p[..., k] for k in range(n)]
        return each, list(accumulate(each))

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        p, upper = at(parameters)
        return at_index(x, upper) - (1 - v) * at_index(x, p)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        _, upper = at(parameters)
        return pt.add(*(pt.ge(u, bound).astype("int8") for bound in upper[:-1]))

    return RecordMap(noise, records)


@record_map.register(laws.BetaBinomialRV)
def _beta_binomial(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Map as a Categorical variable, by the probabilities of its values."""
    values = support_of_entries(node.default_output())
    if values is None or len(values) > FEW_CATEGORIES:
        raise NoRecordMapError(
            f"{distribution_name(node)} isn't known to have {FEW_CATEGORIES} values or fewer, and "
            f"{REMEDY}"
        )
    of_values = _few_categories(len(values))

    def p(parameters: Parameters) -> list[TensorVariable]:
        own = with_parameters(node, parameters)
        return [pt.stack([pt.exp(pm.logp(own, value)) for value in values], axis=-1)]

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        return of_values.noise(x, p(parameters), v)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        return of_values.records(u, p(parameters)).astype("int64")

    return RecordMap(noise, records)


COUNTS = (laws.PoissonRV, laws.BinomialRV, laws.NegBinomialRV)


@record_map.register(MixtureRV)
@record_map.register(HurdleRV)
def _mixture(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Map counts with more zeros, hurdle models of positive numbers, and few laws with densities.

    Of the first two, u is that of the law without more zeros, above a step for these.
    """
    point, other = (x.owner for x in node.inputs[-2:])
    if len(node.inputs) != 4 or not isinstance(point.op, DiracDeltaRV):
        return _by_component(node)
    if isinstance(op, HurdleRV):
        own = quantile_map(other)
    elif isinstance(other.op, COUNTS) and known_value(point.inputs[-1]) == 0:
        own = record_map(other.op, other, moved)
    else:
        return quantile_map(node)

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        weights, _, drawn = parameters
        added = pt.switch(pt.eq(x, 0), v, 1) * weights[..., 0]
        within = None if x.dtype.startswith("float") else v
        return added + weights[..., 1] * own.noise(x, parameters_of(drawn.owner), within)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        weights, _, drawn = parameters
        within = pt.maximum((u - weights[..., 0]) / weights[..., 1], 0)
        return own.records(within, parameters_of(drawn.owner))

    return RecordMap(noise, records, has_jumps=True)


def _by_component(node: Apply) -> RecordMap:
    """Draw each record's component given the record; noise is that of both.

    One number says which component a record has, as of a Categorical variable. The other one is the
    noise within it, which has the same law for all components.
    """
    weights, *laws = parameters_of(node)
    n = weights.type.shape[-1]
    if not 1 < (n or 0) <= FEW_CATEGORIES or node.op.ndim_supp or not has_density(node):
        return quantile_map(node)
    families = {type(law.owner.op) for law in laws}
    alike = len(families) == 1 and families <= {*RULES}
    own = [
        record_map(x.op, x, [True] * len(parameters_of(x))) if alike else quantile_map(x)
        for x in (law.owner for law in laws)
    ]
    which = _few_categories(n)

    def each(f: Callable[..., TensorVariable], x: TensorVariable, laws: Parameters) -> Parameters:
        if len(laws) > 1:
            return [f(law, x, rule) for law, rule in zip(laws, own, strict=True)]
        together = f(laws[0], x[..., None] + pt.zeros(n), own[0])
        return [together[..., k] for k in range(n)]

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        weights, *laws = parameters
        log_densities = each(lambda law, x, _: pm.logp(law, x, warn_rvs=False), x, laws)
        p = pt.special.softmax(pt.log(weights) + pt.stack(log_densities, axis=-1), axis=-1)
        k = which.records(v, [p])
        lower, upper = (which.noise(k, [p], end) for end in (0, 1))
        u = which.noise(k, [weights], (v - lower) / (upper - lower))
        z = each(lambda law, x, rule: rule.noise(x, parameters_of(law.owner), None), x, laws)
        return pt.stack([u, at_index(k, z)], axis=-1)

    def records(noise: TensorVariable, parameters: Parameters) -> TensorVariable:
        weights, *laws = parameters
        k, z = which.records(noise[..., 0], [weights]), noise[..., 1]
        x = each(lambda law, z, rule: rule.records(z, parameters_of(law.owner)), z, laws)
        return at_index(k, x)

    return RecordMap(noise, records, has_jumps=True)


@record_map.register(TruncatedRV)
def _truncated(op: TruncatedRV, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """F is the distribution that is truncated: u = (F(x) - F(lower)) / (F(upper) - F(lower))."""
    name = distribution_name(node)
    if not node.default_output().dtype.startswith("float"):
        raise NoRecordMapError(f"{name} is discrete, and {REMEDY}")
    if not has_density(node):
        raise NoRecordMapError(f"{name} isn't known to be continuous, and {REMEDY}")
    check_quantiles(op.base_rv_op.make_node(*node.inputs[:-2]).default_output(), name)

    def at(parameters: Parameters) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        new = dict(zip(parameters_of(node), parameters, strict=True))
        *base, lower, upper = [new.get(x, x) for x in node.inputs]
        rv = op.base_rv_op.make_node(*base).default_output()
        return rv, cdf_at(rv, lower), cdf_at(rv, upper)

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        rv, below_lower, below_upper = at(parameters)
        return (cdf_at(rv, x) - below_lower) / (below_upper - below_lower)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        rv, below_lower, below_upper = at(parameters)
        within = below_lower + u * (below_upper - below_lower)
        return pm.icdf(rv, within, warn_rvs=False)

    return RecordMap(noise, records)
