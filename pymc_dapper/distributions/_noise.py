"""Shared code of noise laws: draws with checked parameters, and both tails from the smaller one."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

type _Graph = Callable[..., TensorVariable]


class NoiseRV(RandomVariable):
    """Random variable of a noise law."""

    expected: str
    """Conditions on parameters, for the message about violations."""

    @staticmethod
    @abstractmethod
    def valid(*parameters: Any) -> Any:
        """Whether there are draws with such parameters: of arrays, and of numbers in numba."""

    @staticmethod
    @abstractmethod
    def draw(rng: np.random.Generator, *parameters: Any) -> np.ndarray:
        """Draw with valid parameters; the last argument is the shape."""

    @classmethod
    def rng_fn(cls, rng: np.random.Generator, *parameters: Any) -> np.ndarray:
        """Draw from the distribution.

        Parameters
        ----------
        rng : numpy.random.Generator
            The only source of randomness.
        *parameters
            The law's, array_like; then the shape of the result, against which they broadcast. None
            is for that of the parameters.
        """
        *given, size = parameters
        arrays = [np.asarray(parameter, dtype="float64") for parameter in given]
        with np.errstate(invalid="ignore"):
            valid = cls.valid(*arrays)
        if not np.all(valid):
            raise ValueError(cls.expected)
        if size is None:
            size = np.broadcast_shapes(*(array.shape for array in arrays))
        return np.asarray(cls.draw(rng, *arrays, size))


def log_tails(smaller_tail: Callable[..., tuple], checked: _Graph) -> tuple[_Graph, _Graph]:
    """Make ``logcdf`` and ``logccdf`` of a law, both right however small they are.

    Parameters
    ----------
    smaller_tail : callable
        Of a value and the parameters: whether P(X <= value) is the smaller tail, else P(X > value)
        is; and that one's logarithm.
    checked : callable
        Takes a result and the parameters; returns the result where these are valid.
    """

    def logcdf(value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Log of P(X <= value)."""
        is_lower, log_tail = smaller_tail(value, *parameters)
        return checked(pt.switch(is_lower, log_tail, pt.log1mexp(log_tail)), *parameters)

    def logccdf(value: TensorVariable, *parameters: TensorVariable) -> TensorVariable:
        """Log of P(X > value)."""
        is_lower, log_tail = smaller_tail(value, *parameters)
        return checked(pt.switch(is_lower, pt.log1mexp(log_tail), log_tail), *parameters)

    return logcdf, logccdf
