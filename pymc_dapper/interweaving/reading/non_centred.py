"""A model in terms of the records' noise, or of their mean and covariance.

A parameter moves in coordinates of its own if the entries of its value variable are dependent.
Moves fit one t distribution, with skewness in each coordinate. At a small budget the posterior is
close to the prior, so the prior should look like such a distribution in these coordinates.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod
from types import ModuleType
from typing import Any

from pymc import Model
from pymc.distributions.transforms import CholeskyCovPacked
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import LKJCholeskyCovRV
from pymc_dapper.graphs.view import Reading

Array = Any
"""An array of NumPy's, or a tensor of PyTensor's."""


@dataclass(frozen=True)
class Coordinates:
    """A parameter's value, on the unconstrained scale, as a function of equally many numbers.

    Each is called with NumPy or with `pytensor.tensor` as its last argument.
    """

    of: Callable[[Array, ModuleType], Array]
    """``of(value, np)``: the vector of coordinates."""
    value: Callable[[Array, ModuleType], Array]
    """``value(coordinates, np)``: the inverse, as a vector."""
    log_volume: Callable[[Array, ModuleType], Array]
    """``log_volume(coordinates, np)``: the logarithm of the derivative's determinant."""


ITSELF = Coordinates(
    of=lambda value, xp: value.ravel(),
    value=lambda coordinates, xp: coordinates,
    log_volume=lambda coordinates, xp: 0.0,
)


def _rows(packed: Array) -> list[Sequence[Array]]:
    """Take the rows of a packed lower triangular matrix apart."""
    shaped: Any = getattr(packed, "type", packed)
    [length] = shaped.shape
    p = (isqrt(8 * length + 1) - 1) // 2
    return [[packed[i * (i + 1) // 2 + j] for j in range(i + 1)] for i in range(p)]


def _log_cosh(x: Array, xp: ModuleType) -> Array:
    """Compute log cosh without overflow."""
    return xp.abs(x) + xp.log1p(xp.exp(-2 * xp.abs(x))) - xp.log(2.0)


def _sds_and_areas(value: Array, xp: ModuleType) -> Array:
    found = []
    for *entries, log_diagonal in _rows(value):
        log_rest = log_diagonal
        areas: list[Array] = []
        for entry in reversed(entries):
            areas.insert(0, xp.arcsinh(entry * xp.exp(-log_rest)))
            log_rest = log_rest + _log_cosh(areas[0], xp)
        found += [*areas, log_rest]
    return xp.stack(found)


def _cholesky(coordinates: Array, xp: ModuleType) -> Array:
    found = []
    for *areas, log_rest in _rows(coordinates):
        for area in areas:
            found.append(xp.exp(log_rest) * xp.tanh(area))
            log_rest = log_rest - _log_cosh(area, xp)
        found.append(log_rest)
    return xp.stack(found)


def _log_volume(coordinates: Array, xp: ModuleType) -> Array:
    total = 0.0
    for *areas, log_rest in _rows(coordinates):
        for area in areas:
            total = total + log_rest
            log_rest = log_rest - _log_cosh(area, xp)
    return total


STANDARD_DEVIATIONS_AND_PARTIAL_CORRELATIONS = Coordinates(_sds_and_areas, _cholesky, _log_volume)
"""Standard deviations and partial correlations, for the coordinates of a Cholesky factor.

Of row i, the logarithm of its norm, which is a standard deviation, and the areas y_j of the
correlations with each earlier variable, given those before that: r = tanh(y). By the prior,
all of these are independent (Lewandowski, Kurowicka and Joe, 2009, "Generating random
correlation matrices based on vines and extended onion method", Journal of Multivariate Analysis
100). With R_j the norm of what is left of the row from column j on, its entry is
R_j tanh(y_j) = R_{j+1} sinh(y_j), and R_j = R_{j+1} cosh(y_j). For given y, the diagonal's
logarithm, which is the value, differs from that of the norm by a constant, so the derivative's
determinant is the product of all R_j of entries beside the diagonal.
"""


def coordinates_of(model: Model, name: str) -> Coordinates:
    """Choose the coordinates of a parameter, given by its value variable's name."""
    [(rv, value)] = [(rv, x) for rv, x in model.rvs_to_values.items() if x.name == name]
    is_packed = isinstance(model.rvs_to_transforms[rv], CholeskyCovPacked) and value.type.ndim == 1
    if isinstance(rv.owner.op, LKJCholeskyCovRV) and is_packed:
        return STANDARD_DEVIATIONS_AND_PARTIAL_CORRELATIONS
    return ITSELF


@dataclass(frozen=True, eq=False)
class NonCentredModel(Reading):
    """A model's log-density in terms of parameters and the records' noise."""

    parameters: tuple[TensorVariable, ...]
    """Value variables of the parameters that move records, with static shapes."""
    proposed: tuple[TensorVariable, ...]
    """Inputs of the graphs below: new values of the moved variables (:attr:`moving`)."""
    log_density: TensorVariable
    """A scalar: log-density of the proposed parameters given the noise, up to a constant: all
    factors of the parameters or the records, less ``log_law``."""
    factors: tuple[str, ...]
    """Names of these factors."""
    given: tuple[TensorVariable, ...]
    """Value variables of all else that the graphs depend on."""
    records: tuple[TensorVariable, ...] = ()
    """Value variables of the records that the parameters move, with static shapes."""
    uniforms: tuple[TensorVariable, ...] = ()
    """Inputs of the graphs: uniform variates, one for each discrete record."""
    noise: tuple[TensorVariable, ...] = ()
    """The noise of each of ``records``, computed from them and the parameters."""
    moved_records: tuple[TensorVariable, ...] = ()
    """The records at the proposed parameters and the present noise."""
    log_law: TensorVariable | None = None
    """Log-density of the present records under the law whose noise is held fixed. Records whose law
    is their prior don't count here: their prior is left out of the factors. None if none count."""
    affine: TensorVariable | None = None
    """Coordinates of the records that move besides the parameters, a vector computed from the
    records or from their noise: see :mod:`~pymc_dapper.interweaving.reading.affine`. The rest of
    them is held fixed as ``noise``."""
    numbers: tuple[TensorVariable, ...] = ()
    """Value variables of the numbers of records that move, too."""
    proposed_numbers: tuple[TensorVariable, ...] = ()
    """Inputs of ``log_density``: new values of ``numbers``, from 0 on."""
    is_normal: bool = False
    """Whether all noise is standard normal, as by the records' prior."""
    sums: tuple[str, ...] = ()
    """Names of the records whose sum with parameters is held fixed in the place of noise."""

    @property
    def moving(self) -> tuple[TensorVariable, ...]:
        """The moved variables except numbers: the parameters, and ``affine``, if there is one."""
        return self.parameters if self.affine is None else (*self.parameters, self.affine)

    @cached_property
    def coordinates(self) -> tuple[Coordinates, ...]:
        """The coordinates of each moved variable except numbers."""
        own = tuple(coordinates_of(self.model, x.name) for x in self.parameters)
        return own if self.affine is None else (*own, ITSELF)

    def parts(self, flat: Array) -> Iterator[tuple[TensorVariable, Coordinates, Array]]:
        """Split a flat vector: each moved variable except numbers, its coordinates, its part."""
        start = 0
        for x, coordinates in zip(self.moving, self.coordinates, strict=True):
            size = prod(x.type.shape)
            yield x, coordinates, flat[start : start + size]
            start += size

    def log_volume(self, flat: Array, xp: ModuleType) -> Array:
        """Logarithm of the derivative by the coordinates of moved variables except numbers."""
        return sum(coordinates.log_volume(own, xp) for _, coordinates, own in self.parts(flat))
