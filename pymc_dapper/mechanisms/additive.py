"""Mechanisms that add independent noise to each entry of a statistic."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable
from scipy import stats

from pymc_dapper import budget as accounting
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.checks import (
    as_array,
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
from pymc_dapper.distributions.discrete_gaussian import DiscreteGaussianRV
from pymc_dapper.distributions.discrete_laplace import DiscreteLaplaceRV
from pymc_dapper.distributions.tulap import TulapRV
from pymc_dapper.mechanisms.base import (
    MAX_RELEASE,
    Mechanism,
    as_tensor,
    check_broadcast,
    check_rounding,
    positive,
    whole_release,
)
from pymc_dapper.mechanisms.whole import has_fractions
from pymc_dapper.sensitivity import Sensitivities, in_norm

SensitivityLike = Sensitivities | ArrayLike
Limits = tuple[float | None, float | None]


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveNoise(Mechanism):
    """Independent noise, symmetric around zero, on each entry of a statistic.

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

    def __post_init__(self) -> None:
        """Check the options."""
        check_rounding(self.rounding)
        if self.rounding and self._discrete:
            raise ValueError(f"{type(self).__name__} adds integer noise: leave rounding out")
        if self.clamp is not None:
            object.__setattr__(self, "clamp", _checked_limits(self.clamp, self.integer))

    @property
    @abstractmethod
    def _discrete(self) -> bool:
        """Whether the noise is an integer."""

    @abstractmethod
    def _noise(self, **kwargs: Any) -> TensorVariable:
        """Return the noise, around zero, as an unnamed random variable."""

    @abstractmethod
    def _draw_noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draw noise."""

    @property
    @abstractmethod
    def _noise_shape(self) -> tuple[int, ...]:
        """Shape of the noise scale: an entry of the statistic has the scale in its place."""

    def _check_shape(self, shape: tuple[int | None, ...]) -> None:
        """Check that the noise scale doesn't have more entries than the statistic of a shape."""
        scale = self._noise_shape
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
        """Log-density of released values, given the confidential statistic.

        Parameters
        ----------
        released, statistic : tensor_like
            Of broadcastable shapes.

        Returns
        -------
        TensorVariable
            The normalised log-density (log-probability where the release is discrete) of each
            entry.

        Raises
        ------
        ValueError
            If there are more noise scales than entries.
        """
        released, statistic = as_tensor(released, "the release"), as_tensor(statistic)
        check_broadcast(released, statistic)
        distance = released - statistic
        self._check_shape(distance.type.shape)
        logp = self._log_rounded(pt.abs(distance)) if self.rounding else self._at(distance)
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
        """Log-density of noise itself, before anything was rounded or clamped.

        Parameters
        ----------
        noise : tensor_like
            The noise.

        Returns
        -------
        TensorVariable
            The log-density of each entry.
        """
        return self._at(as_tensor(noise))

    def range_before_clamping(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Range in which noisy values lay before they were clamped.

        Parameters
        ----------
        released : ndarray
            The released values.

        Returns
        -------
        lowest, highest : ndarray
            Both are the released value, unless that is a limit of ``clamp``.
        """
        lower, upper = self.clamp or (None, None)
        lowest = released if lower is None else np.where(released <= lower, -np.inf, released)
        highest = released if upper is None else np.where(released >= upper, np.inf, released)
        return lowest, highest

    def _at(self, distance: TensorVariable) -> TensorVariable:
        return pm.logp(self._noise(), distance)

    def _log_at_limit(self, distance: TensorVariable) -> TensorVariable:
        """Log-probability of a release at a lower limit this far above the statistic."""
        # The cast keeps PyTensor from adding the half to the limit: it is lost beside 1e17.
        return self._log_tail(distance.astype("float64") + 0.5 if self.rounding else distance)

    def _log_tail(self, limit: TensorVariable) -> TensorVariable:
        """Log-probability of noise at or below a limit."""
        return pm.logcdf(self._noise(), limit)

    def _log_rounded(self, distance: TensorVariable) -> TensorVariable:
        """Log-probability of noise that rounding takes to this distance, 0 or more, from zero."""
        raise NotImplementedError  # of whole noise, which isn't rounded

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
        if self._discrete:
            whole = statistic == np.round(statistic)
            if not np.all(whole):
                raise ValueError(
                    f"{type(self).__name__} adds integer noise to integers. The statistic must "
                    f"hold integers: {places(~whole)}"
                )
            statistic = whole_release(statistic, type(self).__name__)
        noise = self._draw_noise(statistic.shape, rng)
        if self._discrete:
            noise = whole_release(noise, type(self).__name__)
        released = statistic + noise
        if self.rounding:
            released = np.round(released)
        if self.clamp is not None:
            released = np.clip(released, *self.clamp)
        return whole_release(released, type(self).__name__) if self.integer else released

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
class LaplaceMechanism(AdditiveNoise):
    """Laplace noise on each entry: pure differential privacy (Dwork et al. 2006).

    Attributes
    ----------
    scale : array_like
        Scale of the noise, in units of the statistic; its standard deviation is sqrt(2) scale.
    """

    scale: float | np.ndarray

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        positive("scale", self.scale)

    @classmethod
    def calibrate(cls, budget: PureDP, *, sensitivity: SensitivityLike, **options: Any) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP
            The budget.
        sensitivity : Sensitivities, float, or an array of either
            The statistic's, of which the L1 sensitivity is taken; or that number. An array is for
            groups of records, see the notes of `by_group`.
        **options
            ``clamp`` and ``rounding``.
        """
        scale = by_group(lambda s: accounting.laplace_scale(budget, sensitivity=s), sensitivity)
        return cls(scale, budget=budget, **options)

    def privacy_loss(self, *, sensitivity: SensitivityLike) -> PureDP:
        """Budget that a release spends, by the L1 sensitivity, or that of each group."""
        return _largest_loss(accounting.laplace_budget, self.scale, sensitivity)

    _discrete = False

    def _noise(self, **kwargs: Any) -> TensorVariable:
        return pm.Laplace.dist(0.0, b=as_tensor(self.scale), **kwargs)

    @property
    def _noise_shape(self) -> tuple[int, ...]:
        return np.shape(self.scale)

    def _draw_noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(0.0, self.scale, size=size)

    def _log_tail(self, limit: TensorVariable) -> TensorVariable:
        return laplace_log_tail(limit, as_tensor(self.scale))

    def _log_rounded(self, distance: TensorVariable) -> TensorVariable:
        return rounded_laplace(distance, as_tensor(self.scale))

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return -np.asarray(self.scale) * np.log(p)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteLaplaceMechanism(AdditiveNoise):
    """Discrete Laplace (double geometric) noise on each entry of an integer statistic.

    Attributes
    ----------
    scale : array_like
        The probability of k is proportional to exp(-abs(k) / scale).

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012). Universally utility-maximizing privacy mechanisms.
    """

    scale: float | np.ndarray

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        positive("scale", self.scale)

    @classmethod
    def calibrate(cls, budget: PureDP, *, sensitivity: SensitivityLike, **options: Any) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP
            The budget.
        sensitivity : Sensitivities, int, or an array of either
            The statistic's, of which the L1 sensitivity is taken; or that number. An array is for
            groups of records, see the notes of `by_group`.
        **options
            ``clamp``.
        """
        scale = by_group(
            lambda s: accounting.discrete_laplace_scale(budget, sensitivity=s), sensitivity
        )
        return cls(scale, budget=budget, **options)

    def privacy_loss(self, *, sensitivity: SensitivityLike) -> PureDP:
        """Budget that a release spends, by the L1 sensitivity, or that of each group."""
        return _largest_loss(accounting.discrete_laplace_budget, self.scale, sensitivity)

    _discrete = True

    def _noise(self, **kwargs: Any) -> TensorVariable:
        return DiscreteLaplace.dist(0.0, as_tensor(self.scale), **kwargs)

    @property
    def _noise_shape(self) -> tuple[int, ...]:
        return np.shape(self.scale)

    def _draw_noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return np.asarray(DiscreteLaplaceRV.rng_fn(rng, 0.0, self.scale, size))

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        # P(abs(noise) > t) = 2 q^(t + 1) / (1 + q) with q = exp(-1 / scale).
        scale = np.asarray(self.scale, dtype=float)
        steps = scale * (np.log(2) - np.log1p(np.exp(-1 / scale)) - np.log(p)) - 1
        return np.maximum(0, np.ceil(steps - 1e-9))


@dataclass(frozen=True, eq=False, repr=False)
class _GaussianFamily(AdditiveNoise):
    sigma: float | np.ndarray

    def __post_init__(self) -> None:
        """Check the options."""
        super().__post_init__()
        positive("sigma", self.sigma)

    @property
    def _noise_shape(self) -> tuple[int, ...]:
        return np.shape(self.sigma)

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
        spent = _largest_loss(accounting.gaussian_budget, self.sigma, sensitivity)
        return spent if delta is None else spent.to_approx(delta=delta, bound=bound)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMechanism(_GaussianFamily):
    """Gaussian noise on each entry: zero-concentrated privacy (Bun and Steinke 2016).

    Attributes
    ----------
    sigma : array_like
        Standard deviation of the noise (not its square), in units of the statistic.
    """

    _discrete = False

    def _noise(self, **kwargs: Any) -> TensorVariable:
        return pm.Normal.dist(0.0, as_tensor(self.sigma), **kwargs)

    def _draw_noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.normal(0.0, self.sigma, size=size)

    def _log_tail(self, limit: TensorVariable) -> TensorVariable:
        return gaussian_log_tail(limit, as_tensor(self.sigma))

    def _log_rounded(self, distance: TensorVariable) -> TensorVariable:
        return rounded_gaussian(distance, as_tensor(self.sigma))

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return np.asarray(self.sigma) * stats.norm.isf(p / 2)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteGaussianMechanism(_GaussianFamily):
    """Discrete Gaussian noise on each entry of an integer statistic (Canonne et al. 2020).

    Attributes
    ----------
    sigma : array_like
        The probability of k is proportional to exp(-k^2 / (2 sigma^2)).
    """

    _discrete = True

    def _noise(self, **kwargs: Any) -> TensorVariable:
        return DiscreteGaussian.dist(0.0, as_tensor(self.sigma), **kwargs)

    def _draw_noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return np.asarray(DiscreteGaussianRV.rng_fn(rng, 0.0, self.sigma, size))

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

    def __post_init__(self) -> None:
        """Check the parameters."""
        super().__post_init__()
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
        b, q = _one(self.b), _one(self.q)
        epsilon = -float(np.log(b))
        if q == 0:
            return PureDP(epsilon)
        return ApproxDP(epsilon, q * (1 - b) / (2 * b * (1 - q)))

    _discrete = False

    def _noise(self, **kwargs: Any) -> TensorVariable:
        return Tulap.dist(0.0, as_tensor(self.b), as_tensor(self.q), **kwargs)

    @property
    def _noise_shape(self) -> tuple[int, ...]:
        return np.broadcast_shapes(np.shape(self.b), np.shape(self.q))

    def _draw_noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return np.asarray(TulapRV.rng_fn(rng, 0.0, self.b, self.q, size))

    def _log_rounded(self, distance: TensorVariable) -> TensorVariable:
        return rounded_tulap(distance, as_tensor(self.b), as_tensor(self.q))

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


def by_group(scale_of: Callable[[Any], float], sensitivity: SensitivityLike) -> Any:
    """Choose the noise scale for a statistic, or for each group of records.

    Parameters
    ----------
    scale_of : callable
        Maps a sensitivity to a scale.
    sensitivity : Sensitivities, float, or a (nested) list or array of either
        Of the statistic as a whole; or of each group, in a shape that broadcasts to the
        statistic's: one number for each entry, or of shape (groups, 1) where groups are rows.

    Returns
    -------
    float or ndarray
        In the shape of ``sensitivity``.

    Raises
    ------
    TypeError, ValueError
        As ``scale_of``; or if there is no group.

    Notes
    -----
    Each record is in one group, which is public and the same in neighbouring data sets, and each
    entry depends on the records of one group only. So one record changes the entries of one group,
    and the whole release spends the budget once: parallel composition. The sensitivity is that of
    the group's entries together. Where a record enters several entries, as the columns of a
    matrix do, give the sensitivity of the statistic as a whole.

    References
    ----------
    McSherry, F. (2009). Privacy integrated queries. SIGMOD 2009, 19-30. Theorem 4.
    """
    if not _is_by_group(sensitivity):
        return scale_of(sensitivity)
    groups = _as_groups(sensitivity)
    return np.array([scale_of(each) for each in groups.flat]).reshape(groups.shape)


def _is_by_group(sensitivity: Any) -> bool:
    """Whether there is a sensitivity for each group of records."""
    if np.ma.is_masked(sensitivity):
        raise ValueError("sensitivity must be a number, or one for each group: some are masked")
    return isinstance(sensitivity, list | tuple | np.ndarray) and as_array(sensitivity).ndim > 0


def _as_groups(sensitivity: Any) -> np.ndarray:
    groups = np.array(sensitivity, dtype=object)
    if groups.size == 0:
        raise ValueError("sensitivity must be a number, or one for each group: it is empty")
    return groups


def _largest_loss(budget_of: Callable[..., Any], scale: Any, sensitivity: SensitivityLike) -> Any:
    """Budget that a release spends; of groups of records, the largest."""
    if not _is_by_group(sensitivity):
        return budget_of(_one(scale), sensitivity=sensitivity)
    pairs = np.broadcast(np.asarray(scale, dtype=float), _as_groups(sensitivity))
    return max((budget_of(float(b), sensitivity=s) for b, s in pairs), key=astuple)


def _one(scale: float | np.ndarray) -> float:
    """Return the noise scale, where it is the same for all entries."""
    values = np.unique(np.asarray(scale, dtype=float))
    if values.size != 1:
        raise ValueError(
            "the entries have noise of different scales: the privacy loss depends on how each "
            "entry can change. If each is of a group of records of its own, give an array of their "
            "sensitivities; else work it out entry by entry and add up the budgets"
        )
    return float(values[0])
