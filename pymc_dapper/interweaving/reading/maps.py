"""One record as a function of its distribution's parameters and of noise free of them."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import singledispatch

import pymc as pm
import pytensor.tensor as pt
from pytensor.graph import Apply, Op, Variable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.laws import Clipped, has_density
from pymc_dapper.graphs.laws import clipped as read_clipped

Parameters = Sequence[TensorVariable]


class NoRecordMapError(ReadingError):
    """A distribution's records can't be written as a function of parameters and noise."""


@dataclass(frozen=True)
class RecordMap:
    """Records as a function of noise whose law doesn't depend on the parameters.

    Any increasing function is as good as the quantile function itself: it moves the records in the
    same way when the parameters change.

    Attributes
    ----------
    noise : callable
        ``noise(records, parameters, uniforms) -> noise``. ``uniforms`` has the records' shape if
        the records are discrete or the map ``has_jumps``, and is None otherwise.
    records : callable
        ``records(noise, parameters) -> records``, its inverse. If a record doesn't come back
        unchanged, the step leaves the parameters alone for this iteration.
    is_normal : bool, default False
        Whether the noise is standard normal, each number independent of all others.
    has_jumps : bool, default False
        Whether the noise of float numbers is drawn, too: within the jump of the cdf at a number
        that has a probability, or together with the component of a mixture.
    """

    noise: Callable[[TensorVariable, Parameters, TensorVariable | None], TensorVariable]
    records: Callable[[TensorVariable, Parameters], TensorVariable]
    is_normal: bool = False
    has_jumps: bool = False


@singledispatch
def record_map(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Return how records of a distribution follow its parameters if their noise is held fixed.

    Dispatched on the type of the distribution's random variable operation. Without a rule of its
    own, a univariate distribution takes the uniform noise u = F(x), by PyMC's ``logcdf`` and
    ``icdf``.

    Parameters
    ----------
    op : Op
        Operation of the random variable, such as ``pm.Normal.rv_op``.
    node : Apply
        The random variable's node. Its parameters are in the order of ``op.dist_params(node)``.
    moved : sequence of bool
        For each parameter, whether it moves. A map in closed form may require that some parameters
        don't move.

    Returns
    -------
    RecordMap
        The map.

    Raises
    ------
    NoRecordMapError
        If there is none.

    Examples
    --------
    A map for a distribution of your own, with location and scale as its parameters:

    >>> @record_map.register(type(MyDistribution.rv_op))
    ... def _(op, node, moved):
    ...     return RecordMap(
    ...         noise=lambda x, parameters, _: (x - parameters[0]) / parameters[1],
    ...         records=lambda z, parameters: parameters[0] + parameters[1] * z,
    ...     )
    """
    return quantile_map(node)


def quantile_map(node: Apply) -> RecordMap:
    """Map by PyMC's cdf and icdf; the noise of discrete records is drawn within their cdf's step.

    Of float numbers, laws that are known to have a density are taken, and these clipped. Raises
    NoRecordMapError for others, and if PyMC doesn't have both functions for this distribution.
    """
    name = distribution_name(node)
    rv = node.default_output()
    if node.op.ndim_supp:
        raise NoRecordMapError(f"{name} is multivariate, and {REMEDY}")
    if rv.dtype.startswith("float") and not has_density(node):
        return _clipped_quantile_map(node)
    check_quantiles(rv, name)

    def noise(x: TensorVariable, parameters: Parameters, uniforms: Variable) -> TensorVariable:
        own = with_parameters(node, parameters)
        upper = cdf_at(own, x)
        if uniforms is None:
            return upper
        lower = cdf_at(own, x - 1)
        return lower + uniforms * (upper - lower)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        return pm.icdf(with_parameters(node, parameters), u, warn_rvs=False)

    return RecordMap(noise, records)


def _clipped_quantile_map(node: Apply) -> RecordMap:
    """Map a clipped record: at a bound, its noise is drawn within the jump of the cdf there."""
    name = distribution_name(node)
    clipped = read_clipped(node)
    if clipped is None:
        raise NoRecordMapError(
            f"{name} isn't known to be continuous: single values may have a positive probability, "
            f"which PyMC's quantiles don't show, and {REMEDY}"
        )
    check_quantiles(clipped.base, name)

    def at(parameters: Parameters) -> Clipped:
        found = read_clipped(with_parameters(node, parameters).owner)
        assert found is not None
        return found

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        base, lower, upper = at(parameters)
        u = cdf_at(base, x)
        if lower is not None:
            u = pt.switch(x <= lower, v * cdf_at(base, lower), u)
        if upper is not None:
            below = cdf_at(base, upper)
            u = pt.switch(x >= upper, below + v * (1 - below), u)
        return u

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        base, lower, upper = at(parameters)
        x = pm.icdf(base, u, warn_rvs=False)
        x = x if lower is None else pt.maximum(x, lower)
        return x if upper is None else pt.minimum(x, upper)

    return RecordMap(noise, records, has_jumps=True)


def check_quantiles(rv: TensorVariable, name: str) -> None:
    """Refuse a distribution whose cdf and quantiles PyMC doesn't both know."""
    try:
        with warnings.catch_warnings(action="ignore"):  # PyMC's InverseGamma has random variables
            pm.icdf(rv, pt.zeros_like(rv), warn_rvs=False)
            pm.logcdf(rv, rv, warn_rvs=False)
    except (NotImplementedError, ValueError, RuntimeError) as error:
        raise NoRecordMapError(f"PyMC knows no quantiles of {name}, and {REMEDY}") from error


def cdf_at(rv: TensorVariable, x: TensorVariable) -> TensorVariable:
    """Return a distribution's cdf."""
    return pt.exp(pm.logcdf(rv, x, warn_rvs=False))


def parameters_of(node: Apply) -> Sequence[TensorVariable]:
    """Take a random variable's parameters from its node's inputs."""
    if getattr(node.op, "extended_signature", "") is None:
        return [x for x in node.inputs if not isinstance(x.type, RandomType)]
    return node.op.dist_params(node)


def with_parameters(node: Apply, parameters: Parameters) -> TensorVariable:
    """Apply a random variable's operation to other parameters."""
    new = dict(zip(parameters_of(node), parameters, strict=True))
    clone = node.clone_with_new_inputs([new.get(x, x) for x in node.inputs], strict=False)
    return clone.default_output()


def at_index(index: TensorVariable, by_value: Sequence[TensorVariable]) -> TensorVariable:
    """Take each record's entry of the array that belongs to its value; 0 for other values."""
    found: TensorVariable = pt.constant(0.0)
    for value, entries in enumerate(by_value):
        found = pt.switch(pt.eq(index, value), entries, found)
    return found


def distribution_name(node: Apply) -> str:
    """Name the distribution as PyMC prints it."""
    printed = getattr(node.op, "_print_name", None)
    return printed[0] if printed else type(node.op).__name__.removesuffix("RV")


REMEDY = (
    "no map from noise to its records is registered. Register one with "
    "`pymc_dapper.reading.record_map.register(type(rv_op))`"
)
