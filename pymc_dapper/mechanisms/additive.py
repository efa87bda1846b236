"""Mechanisms that add independent noise to each entry of a statistic."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy
from numpy.typing import ArrayLike
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable

from pymc_dapper import budget as accounting
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.checks import (
    choice,
    finite_number,
    places,
    real_numbers,
    shown,
    whole_number,
)
from pymc_dapper.distributions import DiscreteGaussian, DiscreteLaplace, Tulap
from pymc_dapper.distributions._rounded import (
    gaussian_log_tail,
    laplace_log_tail,
    rounded_gaussian,
    rounded_laplace,
    rounded_tulap,
)
from pymc_dapper.mechanisms.base import (
    MAX_RELEASE,
    Mechanism,
    as_tensor,
    check_broadcast,
    check_rounding,
    positive,
    whole_release,
)
from pymc_dapper.mechanisms.groups import SensitivityLike, by_group, largest_loss, one_scale
from pymc_dapper.mechanisms.whole import has_fractions
from pymc_dapper.sensitivity import Sensitivities, in_norm

Limits = tuple[float | None, float | None]
Law = Callable[..., TensorVariable]
"""A function of a value and of the parameters of noise."""


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveNoise(Mechanism):
    """Independent noise, symmetric around zero, on each entry of a statistic.

    The fields of a subclass are the parameters of its noise, as ``_law`` takes them.

    Attributes
    ----------
    clamp : (lower, upper), optional
        The curator moved noisy values beyond these limits to the limits; None for an open end. The
        likelihood then has point masses there.
    rounding : bool
        The curator rounded noisy values to the nearest integer (before clamping).
    """

    clamp: Limits | None = field(default=None, kw_only=True)
    rounding: bool = field(default=False, kw_only=True)

    _law: ClassVar[Any]
    """The noise as a distribution of PyMC, of which the first parameter is the location."""
    _log_tail: ClassVar[Law | None] = None
    """Log-probability of noise at or below a limit; None for what PyMC has."""
    _log_rounded: ClassVar[Law | None] = None
    """Log-probability of noise that rounding takes to a distance from zero, of 0 or more; None
    where releases can't be rounded."""

    def __post_init__(self) -> None:
        check_rounding(self.rounding)
        if self.rounding and self._discrete:
            raise ValueError(f"{type(self).__name__} adds integer noise: leave rounding out")
        if self.rounding and self._log_rounded is None:
            raise ValueError(f"{type(self).__name__} has no likelihood of rounded releases")
        if self.clamp is not None:
            object.__setattr__(self, "clamp", _checked_limits(self.clamp, self.integer))
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Check the parameters of the noise."""
        for name, value in self._parameters.items():
            positive(name, value)

    @property
    def _parameters(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.kw_only}

    @property
    def _symbolic(self) -> list[TensorVariable]:
        return [as_tensor(value) for value in self._parameters.values()]

    @property
    def _discrete(self) -> bool:
        """Whether the noise is an integer."""
        return issubclass(self._law, pm.Discrete)

    def _noise(self, **kwargs: Any) -> TensorVariable:
        """Return the noise, around zero, as an unnamed random variable."""
        return self._law.dist(0.0, *self._symbolic, **kwargs)

    def _check_shape(self, shape: tuple[int | None, ...]) -> None:
        """Check that the noise scale doesn't have more entries than the statistic of a shape."""
        scale = np.broadcast_shapes(*map(np.shape, self._parameters.values()))
        pairs = zip(reversed(scale), reversed(shape), strict=False)
        if len(scale) > len(shape) or any(k not in (1, n) and n is not None for k, n in pairs):
            raise ValueError(
                f"the noise scale of {type(self).__name__} has shape {scale}, which doesn't fit a "
                f"statistic of shape {shape}: give one scale for all entries, or one for each entry"
            )

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        shape = super()._released_shape(name, statistic)
        if self._discrete and has_fractions(statistic):
            raise ValueError(
                f"'{name}': {type(self).__name__} adds integer noise to integers, but the "
                "statistic is a mean, a ratio or a sum of real numbers. Give it the sum or the "
                "counts that were released, or use a mechanism with continuous noise. If it holds "
                "whole numbers all the same, write pt.round(statistic).astype('int64')"
            )
        try:
            self._check_shape(shape)
        except ValueError as error:
            raise ValueError(f"'{name}': {error}") from None
        return shape

    @property
    def integer(self) -> bool:
        """Whether the released values are integers."""
        return self._discrete or self.rounding

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-density of released values, or log-probability of discrete ones.

        As of each `Mechanism`; a ValueError is raised if there are more noise scales than entries.
        """
        released, statistic = as_tensor(released, "the release"), as_tensor(statistic)
        check_broadcast(released, statistic)
        distance = released - statistic
        self._check_shape(distance.type.shape)
        if self.rounding and self._log_rounded is not None:
            logp = self._log_rounded(pt.abs(distance), *self._symbolic)
        else:
            logp = pm.logp(self._noise(), distance)
        if self.clamp is None:
            return logp
        # Noise is symmetric: the upper tail is the lower one, seen from the other side.
        lower, upper = self.clamp
        if lower is not None:
            at_lower = self._log_at_limit(lower - statistic)
            logp = pt.switch(released > lower, logp, at_lower)
            logp = pt.switch(released < lower, -np.inf, logp)
        if upper is not None:
            at_upper = self._log_at_limit(statistic - upper)
            logp = pt.switch(released < upper, logp, at_upper)
            logp = pt.switch(released > upper, -np.inf, logp)
        return logp

    def noise_logp(self, noise: TensorVariable) -> TensorVariable:
        """Log-density of noise itself, entry by entry, before anything was rounded or clamped."""
        return pm.logp(self._noise(), as_tensor(noise))

    def range_before_clamping(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Range in which noisy values lay before they were clamped: its lowest, its highest.

        Both are the released value, unless that is a limit of ``clamp``.
        """
        lower, upper = self.clamp or (None, None)
        lowest = released if lower is None else np.where(released <= lower, -np.inf, released)
        highest = released if upper is None else np.where(released >= upper, np.inf, released)
        return lowest, highest

    def _log_at_limit(self, distance: TensorVariable) -> TensorVariable:
        """Log-probability of a release at a lower limit this far above the statistic."""
        # The cast keeps PyTensor from adding the half to the limit: it is lost beside 1e17.
        limit = distance.astype("float64") + 0.5 if self.rounding else distance
        if self._log_tail is None:
            return pm.logcdf(self._noise(), limit)
        return self._log_tail(limit, *self._symbolic)

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        # Without a size, each entry still has noise of its own.
        released = statistic + self._noise(size=statistic.shape if rv_size_is_none(size) else size)
        if self.rounding:
            # Further away, integers would wrap around.
            released = pt.round(released)
            fits = pt.all(pt.abs(released) <= float(MAX_RELEASE))
            message = f"{type(self).__name__}: rounded releases must be within 2^62 in size"
            released = Assert(message)(released, fits)
        if self.clamp is not None:
            lower, upper = self.clamp
            released = released if lower is None else pt.maximum(released, lower)
            released = released if upper is None else pt.minimum(released, upper)
        return released.astype("int64") if self.integer else released

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._check_shape(statistic.shape)
        name, whole = type(self).__name__, statistic == np.round(statistic)
        if self._discrete and not np.all(whole):
            raise ValueError(
                f"{name} adds integer noise to integers. The statistic must hold integers: "
                f"{places(~whole)}"
            )
        parameters = self._parameters.values()
        noise = np.asarray(self._law.rv_op.rng_fn(rng, 0.0, *parameters, statistic.shape))
        if self._discrete:
            statistic, noise = whole_release(statistic, name), whole_release(noise, name)
        released = statistic + noise
        if self.rounding:
            released = np.round(released)
        if self.clamp is not None:
            released = np.clip(released, *self.clamp)
        return whole_release(released, name) if self.integer else released

    def error_bound(self, k: int = 1, beta: float = 0.05) -> np.ndarray:
        """Size of the noise that all of k entries stay within, with probability 1 - beta or more.

        Parameters
        ----------
        k : int
            Number of entries.
        beta : float
            Probability that some entry's noise is larger, by the union bound.

        Returns
        -------
        ndarray
            The bound, in the shape of the noise scale and in units of the statistic. Clamping and
            rounding aren't counted.
        """
        k = whole_number(k, "k", at_least=1)
        beta = finite_number(beta, "beta", above=0, below=1)
        return np.asarray(self._two_sided_quantile(beta / k))

    @abstractmethod
    def _two_sided_quantile(self, p: float) -> ArrayLike:
        """Distance from zero that the noise exceeds with probability p at most."""


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceNoise(AdditiveNoise):
    """Laplace noise, continuous or discrete, of a scale that a pure budget gives."""

    scale: float | np.ndarray

    _scale_for: ClassVar[Callable[..., float]]
    _budget_of: ClassVar[Callable[..., PureDP]]

    @classmethod
    def calibrate(cls, budget: PureDP, *, sensitivity: SensitivityLike, **options: Any) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP
            The budget.
        sensitivity : Sensitivities, float, or an array of either
            The statistic's, of which the L1 sensitivity is taken; or that number, a whole one for
            noise of integers. An array is for groups of records, see the notes of `by_group`.
        **options
            ``clamp`` and, of continuous noise, ``rounding``.
        """
        scale = by_group(lambda s: cls._scale_for(budget, sensitivity=s), sensitivity)
        return cls(scale, budget=budget, **options)

    def privacy_loss(self, *, sensitivity: SensitivityLike) -> PureDP:
        """Budget that a release spends, by the L1 sensitivity, or that of each group."""
        return largest_loss(self._budget_of, self.scale, sensitivity)


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceMechanism(LaplaceNoise):
    """Laplace noise on each entry: pure differential privacy (Dwork et al. 2006).

    Attributes
    ----------
    scale : array_like
        Scale of the noise, in units of the statistic; its standard deviation is sqrt(2) scale.
    """

    _law = pm.Laplace
    _log_tail = staticmethod(laplace_log_tail)
    _log_rounded = staticmethod(rounded_laplace)
    _scale_for = staticmethod(accounting.laplace_scale)
    _budget_of = staticmethod(accounting.laplace_budget)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return -np.asarray(self.scale) * np.log(p)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteLaplaceMechanism(LaplaceNoise):
    """Discrete Laplace (double geometric) noise on each entry of an integer statistic.

    Attributes
    ----------
    scale : array_like
        The probability of k is proportional to exp(-abs(k) / scale).

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012). Universally utility-maximizing privacy mechanisms.
    """

    _law = DiscreteLaplace
    _scale_for = staticmethod(accounting.discrete_laplace_scale)
    _budget_of = staticmethod(accounting.discrete_laplace_budget)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        # P(abs(noise) > t) = 2 q^(t + 1) / (1 + q) with q = exp(-1 / scale).
        scale = np.asarray(self.scale, dtype=float)
        steps = scale * (np.log(2) - np.log1p(np.exp(-1 / scale)) - np.log(p)) - 1
        return np.maximum(0, np.ceil(steps - 1e-9))


@dataclass(frozen=True, eq=False, repr=False)
class GaussianNoise(AdditiveNoise):
    """Gaussian noise, continuous or discrete, of a sigma that a zCDP budget gives."""

    sigma: float | np.ndarray

    @classmethod
    def calibrate(
        cls,
        budget: ZCDP | ApproxDP,
        *,
        sensitivity: SensitivityLike,
        bound: accounting.Bound = "simple",
        **options: Any,
    ) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : ZCDP or ApproxDP
            The budget.
        sensitivity : Sensitivities, float, or an array of either
            The statistic's, of which the L2 sensitivity is taken; or that number. An array is for
            groups of records, see the notes of `by_group`.
        bound : {"simple", "tight"}
            How an approximate budget is taken to zCDP.
        **options
            ``clamp`` and ``rounding``.
        """
        sigma = by_group(
            lambda s: accounting.gaussian_sigma(budget, sensitivity=s, bound=bound), sensitivity
        )
        return cls(sigma, budget=budget, **options)

    def privacy_loss(
        self,
        *,
        sensitivity: SensitivityLike,
        delta: float | None = None,
        bound: accounting.Bound = "simple",
    ) -> ZCDP | ApproxDP:
        """Budget that a release spends, by the L2 sensitivity of the statistic.

        Parameters
        ----------
        sensitivity : Sensitivities, float, or an array of either
            The statistic's, of which the L2 sensitivity is taken; or that number. An array is for
            groups of records, see the notes of `by_group`.
        delta : float, optional
            If given, the budget is expressed as (epsilon, delta).
        bound : {"simple", "tight"}
            How zCDP is taken to an approximate budget.

        Returns
        -------
        ZCDP or ApproxDP
        """
        choice(bound, "bound", ("simple", "tight"))
        spent = largest_loss(accounting.gaussian_budget, self.sigma, sensitivity)
        return spent if delta is None else spent.to_approx(delta=delta, bound=bound)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMechanism(GaussianNoise):
    """Gaussian noise on each entry: zero-concentrated privacy (Bun and Steinke 2016).

    Attributes
    ----------
    sigma : array_like
        Standard deviation of the noise (not its square), in units of the statistic.
    """

    _law = pm.Normal
    _log_tail = staticmethod(gaussian_log_tail)
    _log_rounded = staticmethod(rounded_gaussian)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return np.asarray(self.sigma) * scipy.stats.norm.isf(p / 2)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteGaussianMechanism(GaussianNoise):
    """Discrete Gaussian noise on each entry of an integer statistic (Canonne et al. 2020).

    Attributes
    ----------
    sigma : array_like
        The probability of k is proportional to exp(-k^2 / (2 sigma^2)).
    """

    _law = DiscreteGaussian

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        # Its tails are no heavier than those of the continuous Gaussian's bound: P(noise >= t) <=
        # exp(-t^2 / (2 sigma^2)) (Canonne et al. 2020, Fact 20).
        return np.asarray(self.sigma) * np.sqrt(2 * np.log(2 / p))


@dataclass(frozen=True, eq=False, repr=False)
class TulapMechanism(AdditiveNoise):
    """Truncated-uniform-Laplace noise on a count of sensitivity 1 (Awan and Slavkovic 2018).

    Attributes
    ----------
    b : array_like
        exp(-epsilon), within (0, 1).
    q : array_like
        Truncation, within [0, 1): the noise keeps to its central 1 - q. Zero for pure privacy.
    """

    b: float | np.ndarray
    q: float | np.ndarray = 0.0

    _law = Tulap
    _log_rounded = staticmethod(rounded_tulap)

    def _check_parameters(self) -> None:
        b, q = real_numbers(self.b, "b"), real_numbers(self.q, "q")
        if not np.all((b > 0) & (b < 1)) or not np.all((q >= 0) & (q < 1)):
            raise ValueError(
                "b must be within (0, 1) and q within [0, 1), "
                f"got {shown(self.b)} and {shown(self.q)}"
            )

    @classmethod
    def calibrate(
        cls, budget: PureDP | ApproxDP, *, sensitivity: int | Sensitivities = 1, **options: Any
    ) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP or ApproxDP
            The budget.
        sensitivity : int or Sensitivities
            Must be 1: the noise is made for counts that one record changes by one at most.
        **options
            ``clamp`` and ``rounding``.

        References
        ----------
        Awan and Slavkovic (2018), Theorem 3.2: b = exp(-epsilon) and
        q = 2 delta b / (1 - b + 2 delta b).
        """
        _check_unit(sensitivity)
        if not isinstance(budget, ApproxDP):
            accounting.check_pure(budget, cls.__name__)
        b = float(np.exp(-budget.epsilon))
        if not 0 < b < 1:
            raise ValueError(
                f"b = exp(-epsilon) for {budget} can't be told from {b:.0f} by a float: "
                "use DiscreteLaplaceMechanism, whose scale is 1 / epsilon"
            )
        delta = budget.delta if isinstance(budget, ApproxDP) else 0.0
        q = 2 * delta * b / (1 - b + 2 * delta * b)
        return cls(b, q, budget=budget, **options)

    def privacy_loss(self, *, sensitivity: int | Sensitivities = 1) -> PureDP | ApproxDP:
        """Budget that a release of a count spends."""
        _check_unit(sensitivity)
        b, q = one_scale(self.b), one_scale(self.q)
        epsilon = -float(np.log(b))
        if q == 0:
            return PureDP(epsilon)
        return ApproxDP(epsilon, q * (1 - b) / (2 * b * (1 - q)))

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return pm.icdf(self._noise(), 1 - p / 2).eval()


def _checked_limits(clamp: Any, integer: bool) -> Limits:
    """Check what a release was clamped to; whole numbers where releases are."""
    pair = "clamp must be a pair (lower, upper), None for an open end"
    if isinstance(clamp, str) or not isinstance(clamp, Sequence | np.ndarray) or len(clamp) != 2:
        raise TypeError(f"{pair}; got {shown(clamp)}. For nothing below zero write clamp=(0, None)")
    if any(np.ndim(limit) for limit in clamp):
        raise TypeError(
            f"{pair}, for all entries; got {shown(clamp)}. For entries with limits of their own, "
            "give each its own mechanism, as in LaplaceMechanism(scale, clamp=(0, 10)).potential("
            '"first", statistic[0], released=released[0])'
        )
    limits: list[float | None] = []
    for limit in clamp:
        number = None if limit is None else finite_number(limit, f"{pair}: a limit")
        if number is not None and integer and not number.is_integer():
            raise ValueError(
                f"clamp must be integers where the release is an integer, got {shown(limit)}"
            )
        if number is not None and integer and abs(number) > MAX_RELEASE:
            raise ValueError(
                f"clamp must be within 2^62 for integers, got {shown(limit)}: use None"
            )
        limits.append(limit if number is None or not integer else int(limit))
    lower, upper = limits
    if lower is not None and upper is not None and not lower < upper:
        raise ValueError(f"clamp must be (lower, upper) with lower < upper: ({lower}, {upper})")
    return lower, upper


def _check_unit(sensitivity: Any) -> None:
    sensitivity = finite_number(in_norm(sensitivity, "l1", "Tulap noise"), "sensitivity")
    if sensitivity != 1:
        raise ValueError(
            f"Tulap noise is made for counts, of sensitivity 1, got {sensitivity:g}. For another "
            "integer sensitivity use DiscreteLaplaceMechanism"
        )
