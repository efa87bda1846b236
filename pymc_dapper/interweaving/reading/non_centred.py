"""A model in terms of the records' noise, or of their frame (mean and covariance)."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from types import ModuleType

from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.view import Reading
from pymc_dapper.interweaving.reading.coordinates import ITSELF, Array, Coordinates, coordinates_of


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
    frame: TensorVariable | None = None
    """Coordinates of the records that move besides the parameters, a vector computed from the
    records or from their noise: see :mod:`~pymc_dapper.interweaving.reading.frame`. The rest of
    them is held fixed as ``noise``."""
    numbers: tuple[TensorVariable, ...] = ()
    """Value variables of the numbers of records that move, too."""
    proposed_numbers: tuple[TensorVariable, ...] = ()
    """Inputs of ``log_density``: new values of ``numbers``, from 0 on."""
    is_normal: bool = False
    """Whether all noise is standard normal, as by the records' prior."""

    @property
    def moving(self) -> tuple[TensorVariable, ...]:
        """The moved variables except numbers: the parameters, and the frame, if there is one."""
        return self.parameters if self.frame is None else (*self.parameters, self.frame)

    @cached_property
    def coordinates(self) -> tuple[Coordinates, ...]:
        """The coordinates of each moved variable except numbers."""
        own = tuple(coordinates_of(self.model, x.name) for x in self.parameters)
        return own if self.frame is None else (*own, ITSELF)

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
