"""What every mechanism can do: give its likelihood, enter a model, and simulate a release."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pymc.util import RandomState, get_random_generator
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.checks import flag, real_numbers, shown

Budget = PureDP | ZCDP | ApproxDP

MAX_RELEASE = 2**62
"""Released integers are at most this in size: their difference from a statistic doesn't wrap."""


@dataclass(frozen=True, eq=False)
class Mechanism(ABC):
    """A privacy mechanism: a known law by which a released value follows from a statistic.

    Attributes
    ----------
    budget : PureDP, ZCDP or ApproxDP, optional
        What the mechanism was calibrated to, if it was.
    """

    budget: Budget | None = field(default=None, kw_only=True)

    def __repr__(self) -> str:
        """Show what differs from the defaults, the budget last."""
        shown = {
            f.name: getattr(self, f.name)
            for f in sorted(fields(self), key=lambda f: bool(f.kw_only))
            if getattr(self, f.name) is not f.default
        }
        values = [
            f"{name}={value:.6g}" if isinstance(value, float) else f"{name}={value}"
            for name, value in shown.items()
        ]
        return f"{type(self).__name__}({', '.join(values)})"

    @property
    def integer(self) -> bool:
        """Whether the released values are integers."""
        return False

    @abstractmethod
    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-density of a released value, given the confidential statistic.

        Parameters
        ----------
        released, statistic : tensor_like
            Of broadcastable shapes.

        Returns
        -------
        TensorVariable
            The normalised log-density, one value per independent noise term.
        """

    @abstractmethod
    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        """Make a release of ``statistic`` a random variable."""

    def _event(self, statistic: TensorVariable) -> dict[str, Any]:
        """Return what else PyMC's CustomDist must be told."""
        return {}

    @abstractmethod
    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one release of ``statistic``."""

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that a release can have come from the mechanism.

        Parameters
        ----------
        name : str
            What the release is called, for the message.
        released : ndarray
            The released values.

        Raises
        ------
        ValueError
            If a value is nan or infinite, or fractional where the mechanism releases integers, or
            beyond 2^62 there.
        """
        released = np.asarray(released)
        if released.dtype.kind not in "biuf" or not np.all(np.isfinite(released)):
            raise ValueError(
                f"'{name}': the released values must be finite numbers, got "
                f"{_shown_release(released)}"
            )
        if self.integer and not np.array_equal(released, np.round(released)):
            raise ValueError(
                f"'{name}': {type(self).__name__} releases integers, got "
                f"{_shown_release(released)}. If the curator scaled the release, undo it first"
            )
        if self.integer and not np.all((released <= MAX_RELEASE) & (released >= -MAX_RELEASE)):
            raise ValueError(
                f"'{name}': released integers must be within 2^62 in size, got "
                f"{_shown_release(released)}"
            )

    def potential(self, name: str, statistic: Any, *, released: Any) -> TensorVariable:
        """Add the likelihood of a release to the model in context, as a ``pm.Potential``.

        Parameters
        ----------
        name : str
            Name of the Potential. The release is kept as ``pm.Data(f"{name}_released")``.
        statistic : tensor_like
            The confidential statistic, a function of latent records.
        released : array_like or shared variable
            The released values; a ``pm.Data`` is used as it is.

        Returns
        -------
        TensorVariable
            The Potential.

        Raises
        ------
        ValueError
            If the release can't have come from the mechanism, or has another shape than the
            statistic.

        Notes
        -----
        PyMC leaves Potentials out of predictive draws: use :meth:`observe` to draw releases.
        """
        statistic = as_tensor(statistic)
        data = self._release_data(name, statistic, released)
        potential = pm.Potential(name, self.logp(data, statistic))
        potential.tag.mechanism = self
        # pm.set_data can change the release: steps look at it again when a chain starts.
        potential.tag.check_data = self._release_check(name, statistic, data)
        return potential

    def _release_data(self, name: str, statistic: TensorVariable, released: Any) -> TensorVariable:
        if isinstance(released, SharedVariable):
            data = released
        else:
            dtype = np.int64 if self.integer else np.float64
            values = np.asarray(released)
            self._release_check(name, statistic, values)()
            data = pm.Data(f"{name}_released", values.astype(dtype))
        self._release_check(name, statistic, data)()
        return data

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        """Return the shape that a release of ``statistic`` has; None for an unknown length."""
        shape: tuple[int | None, ...] = statistic.type.shape
        return shape

    def _release_check(
        self, name: str, statistic: TensorVariable, released: Any
    ) -> Callable[[], None]:
        expected = self._released_shape(name, statistic)

        def check() -> None:
            values = released
            if isinstance(released, SharedVariable):
                values = released.get_value(borrow=True)
            fits = len(values.shape) == len(expected) and all(
                size in (None, length) for size, length in zip(expected, values.shape, strict=True)
            )
            if not fits:
                raise ValueError(
                    f"'{name}': the release has shape {values.shape}, where the mechanism releases "
                    f"shape {expected} of this statistic"
                )
            self.check_released(name, values)

        return check

    def observe(self, name: str, statistic: Any, *, observed: ArrayLike) -> TensorVariable:
        """Add a release to the model in context as an observed variable.

        Predictive draws in PyMC then give releases, as they don't for a Potential.

        Parameters
        ----------
        name : str
            Name of the observed variable.
        statistic : tensor_like
            The confidential statistic, a function of latent records.
        observed : array_like or shared variable
            The released values.

        Returns
        -------
        TensorVariable
            The observed variable.

        Raises
        ------
        ValueError
            As :meth:`potential`.
        """
        statistic = as_tensor(statistic)
        values = observed if isinstance(observed, SharedVariable) else np.asarray(observed)
        self._release_check(name, statistic, values)()

        variable = pm.CustomDist(
            name,
            statistic,
            logp=self.logp,
            observed=observed,
            **{"dist": self._random, **self._event(statistic)},
        )
        variable.tag.mechanism = self
        variable.tag.check_data = self._release_check(name, statistic, values)
        return variable

    def release(self, statistic: ArrayLike, random_seed: RandomState = None) -> np.ndarray:
        """Simulate a release, to study what privacy costs.

        Not for production: floating-point noise can be attacked. To protect real data, use a
        vetted library such as OpenDP.

        Parameters
        ----------
        statistic : array_like
            The confidential statistic.
        random_seed : int, Generator, ..., optional
            Seed.

        Returns
        -------
        ndarray
            The released value, in the statistic's shape.
        """
        return self._draw(np.asarray(statistic), get_random_generator(random_seed, copy=False))


def _shown_release(released: np.ndarray) -> str:
    """Show a release, in a message: it is public."""
    if released.dtype.kind not in "biuf":
        return f"an array of type {released.dtype}"
    return np.array2string(released, threshold=6)


def as_tensor(value: Any) -> TensorVariable:
    """Make a tensor of a statistic with its sensitivity, or of anything tensor-like.

    Unsigned integers and bools become int64, so that a difference of them doesn't wrap around.
    """
    value = getattr(value, "value", value)
    if not isinstance(value, Variable):
        value = np.asarray(value)  # PyTensor would hold a plain float in single precision
    tensor = pt.as_tensor_variable(value)
    return tensor.astype("int64") if np.dtype(tensor.dtype).kind in "bu" else tensor


def positive(name: str, value: ArrayLike) -> np.ndarray:
    """Check that a noise scale, or each of an array of them, is positive and finite.

    Raises
    ------
    TypeError
        If it isn't made of numbers; ``name`` is in the message.
    ValueError
        If there is none, or one isn't positive and finite.
    """
    values = real_numbers(value, name)
    if not np.all(np.isfinite(values) & (values > 0)):
        raise ValueError(f"{name} must be positive and finite, got {shown(value)}")
    return values


def check_rounding(value: Any) -> None:
    """Check whether releases are rounded: to whole numbers, or not at all.

    Raises
    ------
    TypeError
        If it isn't True or False.
    """
    try:
        flag(value, "rounding")
    except TypeError as error:
        raise TypeError(
            f"{error}: it is to whole numbers. If a release was rounded to multiples of 10, say, "
            "divide the statistic, the released values and the noise scale by 10"
        ) from None
