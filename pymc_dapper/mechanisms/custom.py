"""A mechanism of the user's own, from its log-density."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.checks import flag, function
from pymc_dapper.mechanisms.base import Mechanism, as_pair


@dataclass(frozen=True, eq=False, repr=False)
class CustomMechanism(Mechanism):
    """A mechanism given by its log-density.

    Attributes
    ----------
    log_density : callable
        ``log_density(released, statistic) -> TensorVariable``: symbolic and normalised, one value
        for each independent noise term.
    draw : callable, optional
        ``draw(statistic, rng) -> ndarray``, one release of a NumPy array, for
        :meth:`~pymc_dapper.Mechanism.release` and for predictive draws.
    whole_numbers : bool
        Whether the released values are integers.

    Raises
    ------
    TypeError
        If a function can't be called, or ``whole_numbers`` isn't True or False.

    Examples
    --------
    Noise with Student's t distribution:

    >>> def log_density(released, statistic):
    ...     return pm.logp(pm.StudentT.dist(nu=4, mu=statistic, sigma=2), released)
    >>> mechanism = CustomMechanism(log_density)
    >>> with pm.Model():
    ...     people = pm.Poisson("people", 100, shape=3)
    ...     privacy = mechanism.potential("privacy", people, released=[104.2, 87.5, 113.1])
    """

    log_density: Callable[[TensorVariable, TensorVariable], TensorVariable]
    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray] | None = None
    whole_numbers: bool = False

    def __post_init__(self) -> None:
        function(self.log_density, "log_density", "log_density(released, statistic)")
        if self.draw is not None:
            function(self.draw, "draw", "draw(statistic, rng)")
        flag(self.whole_numbers, "whole_numbers")

    @property
    def integer(self) -> bool:
        """Whether the released values are integers."""
        return self.whole_numbers

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-density of released values, given the confidential statistic."""
        released, statistic = as_pair(released, statistic)
        return self.log_density(released, statistic)

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        raise NotImplementedError("a custom mechanism is drawn from by its own function")

    def _event(self, statistic: TensorVariable) -> dict[str, Any]:
        def random(statistic: np.ndarray, rng: np.random.Generator, size: Any) -> np.ndarray:
            return self._draw(np.broadcast_to(statistic, size or np.shape(statistic)), rng)

        return {"dist": None, "random": random, "dtype": "int64" if self.integer else "float64"}

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        if self.draw is None:
            raise ValueError(
                "this mechanism can't be drawn from: give CustomMechanism a function as draw="
            )
        return np.asarray(self.draw(statistic, rng))
