"""Maps in closed form, one small rule per family."""

from collections.abc import Sequence
from itertools import accumulate

import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.continuous import (
    AsymmetricLaplaceRV,
    HalfCauchyRV,
    HalfStudentTRV,
    MoyalRV,
    SkewNormalRV,
    WeibullBetaRV,
)
from pymc.distributions.multivariate import MvStudentTRV
from pymc.distributions.truncated import TruncatedRV
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.random.basic import (
    BernoulliRV,
    CategoricalRV,
    CauchyRV,
    ExponentialRV,
    GammaRV,
    GumbelRV,
    HalfNormalRV,
    InvGammaRV,
    LaplaceRV,
    LogisticRV,
    LogNormalRV,
    MvNormalRV,
    NormalRV,
    ParetoRV,
    StudentTRV,
    UniformRV,
)
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.noise import FEW_CATEGORIES
from pymc_dapper.interweaving.reading.maps import (
    REMEDY,
    NoRecordMapError,
    Parameters,
    RecordMap,
    at_index,
    distribution_name,
    parameters_of,
    quantile_map,
    record_map,
)


def location_scale(
    location: int | None, scale: int | None, *, reciprocal: bool = False
) -> RecordMap:
    """Map by z = (x - location) / scale, given the positions of these parameters, or 1 / scale."""

    def at(parameters: Parameters) -> tuple[TensorVariable, TensorVariable]:
        mu = pt.zeros(()) if location is None else parameters[location]
        sigma = pt.ones(()) if scale is None else parameters[scale]
        return mu, (1 / sigma if reciprocal else sigma)

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        mu, sigma = at(parameters)
        return (x - mu) / sigma

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        mu, sigma = at(parameters)
        return mu + sigma * z

    return RecordMap(noise, records)


@record_map.register(NormalRV)
@record_map.register(LaplaceRV)
@record_map.register(LogisticRV)
@record_map.register(CauchyRV)
@record_map.register(GumbelRV)
@record_map.register(MoyalRV)
@record_map.register(HalfNormalRV)
def _location_and_scale(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return location_scale(0, 1)


@record_map.register(ExponentialRV)
@record_map.register(HalfCauchyRV)
def _scale(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return location_scale(None, 0)


@record_map.register(GammaRV)
@record_map.register(InvGammaRV)
@record_map.register(HalfStudentTRV)
def _scale_with_shape(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return quantile_map(node) if moved[0] else location_scale(None, 1)


@record_map.register(StudentTRV)
def _location_and_scale_with_shape(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return quantile_map(node) if moved[0] else location_scale(1, 2)


@record_map.register(SkewNormalRV)
def _skew_normal(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return quantile_map(node) if moved[2] else location_scale(0, 1)


@record_map.register(AsymmetricLaplaceRV)
def _asymmetric_laplace(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return quantile_map(node) if moved[1] else location_scale(2, 0, reciprocal=True)


@record_map.register(UniformRV)
def _uniform(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """U = (x - lower) / (upper - lower)."""

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        lower, upper = parameters
        return (x - lower) / (upper - lower)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        lower, upper = parameters
        return lower + (upper - lower) * u

    return RecordMap(noise, records)


@record_map.register(LogNormalRV)
def _log_normal(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Z = (log x - mu) / sigma."""

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        mu, sigma = parameters
        return (pt.log(x) - mu) / sigma

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        mu, sigma = parameters
        return pt.exp(mu + sigma * z)

    return RecordMap(noise, records)


@record_map.register(WeibullBetaRV)
@record_map.register(ParetoRV)
def _shape_and_scale(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Z = shape * (log x - log scale): of a Pareto, exponential; of a Weibull, its logarithm."""

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        shape, scale = parameters
        return shape * (pt.log(x) - pt.log(scale))

    def records(z: TensorVariable, parameters: Parameters) -> TensorVariable:
        shape, scale = parameters
        return pt.exp(pt.log(scale) + z / shape)

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


@record_map.register(MvNormalRV)
def _multivariate_normal(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    return _location_and_cholesky(0, 1)


@record_map.register(MvStudentTRV)
def _multivariate_t(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    if moved[0]:
        raise NoRecordMapError(
            f"the degrees of freedom of {distribution_name(node)} move, and they are no location "
            "or scale"
        )
    return _location_and_cholesky(1, 2)


@record_map.register(BernoulliRV)
def _bernoulli(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """X = 1 where u < p; u is uniform on (0, p) or on (p, 1)."""

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        [p] = parameters
        return pt.switch(pt.eq(x, 1), (1 - p) + v * p, v * (1 - p))

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        [p] = parameters
        return pt.ge(u, 1 - p).astype("int64")

    return RecordMap(noise, records)


@record_map.register(CategoricalRV)
def _categorical(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """As many as there are categories whose cumulative probability is at most u."""
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
    """Compare with one category after another: without an array that has them for each record."""

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


@record_map.register(TruncatedRV)
def _truncated(op: TruncatedRV, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """F is the distribution that is truncated: u = (F(x) - F(lower)) / (F(upper) - F(lower))."""
    name = distribution_name(node)
    if not node.default_output().dtype.startswith("float"):
        raise NoRecordMapError(f"{name} is discrete, and {REMEDY}")
    try:
        pm.icdf(op.base_rv_op.make_node(*node.inputs[:-2]).default_output(), 0.5, warn_rvs=False)
    except (NotImplementedError, ValueError) as error:
        raise NoRecordMapError(f"PyMC knows no quantiles of {name}, and {REMEDY}") from error

    def at(parameters: Parameters) -> tuple[TensorVariable, TensorVariable, TensorVariable]:
        new = dict(zip(parameters_of(node), parameters, strict=True))
        *base, lower, upper = [new.get(x, x) for x in node.inputs]
        rv = op.base_rv_op.make_node(*base).default_output()
        return rv, cdf(rv, lower), cdf(rv, upper)

    def cdf(rv: TensorVariable, x: TensorVariable) -> TensorVariable:
        return pt.exp(pm.logcdf(rv, x, warn_rvs=False))

    def noise(x: TensorVariable, parameters: Parameters, _: object) -> TensorVariable:
        rv, below_lower, below_upper = at(parameters)
        return (cdf(rv, x) - below_lower) / (below_upper - below_lower)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        rv, below_lower, below_upper = at(parameters)
        within = below_lower + u * (below_upper - below_lower)
        return pm.icdf(rv, within, warn_rvs=False)

    return RecordMap(noise, records)
