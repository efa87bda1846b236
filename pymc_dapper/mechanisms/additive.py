"""Mechanisms that add independent noise to each entry of a statistic."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self, override

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy
from numpy.typing import ArrayLike
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.graph import Variable
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable

from pymc_dapper import budget as accounting
from pymc_dapper import checks
from pymc_dapper.backend.named_dims import as_plain
from pymc_dapper.budget import ZCDP, ApproxDP, PureDP
from pymc_dapper.distributions import DiscreteGaussian, DiscreteLaplace, _rounded
from pymc_dapper.mechanisms.arguments import labelled_axes
from pymc_dapper.mechanisms.base import MAX_RELEASE, as_tensor, positive, whole_release
from pymc_dapper.mechanisms.groups import SensitivityLike, by_group, largest_loss, with_neighbours
from pymc_dapper.mechanisms.published import PublishedByRules
from pymc_dapper.mechanisms.rules import SUPPRESSED, Publication, Ranges
from pymc_dapper.mechanisms.spans import End, Span, Value, both, either, no, one_of
from pymc_dapper.mechanisms.whole import refuse_fractions
from pymc_dapper.sensitivity import Neighbours

Law = Callable[..., TensorVariable]
"""A function of a value and of the noise parameters."""


@dataclass(frozen=True, eq=False, repr=False)
class AdditiveNoise(PublishedByRules):
    """Independent noise, symmetric around zero, on each entry of a statistic.

    The fields of a subclass are the parameters of its noise, in the order of ``_law``.
    """

    _law: ClassVar[Any]
    """The noise as a PyMC distribution; its first parameter is the location."""
    _log_tail: ClassVar[Law | None] = None
    """Log-probability of noise at or below a limit; None if PyMC's own is used."""
    _log_between: ClassVar[Law | None] = None
    """Log-probability of continuous noise between two ends, given their distance; None if
    unknown."""
    _log_range: ClassVar[Law | None] = None
    """Log-probability of n integers from a first one on, of discrete noise."""
    _only_unit_cells: ClassVar[bool] = False
    """Whether rounded releases have a likelihood only if they are rounded to whole numbers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "publication", Publication(1.0 if self._discrete else None))
        self._check_parameters()

    def _check_parameters(self) -> None:
        """Check the parameters of the noise."""
        for name, value in self._parameters.items():
            if getattr(getattr(value, "type", value), "dims", ()) or any(labelled_axes(value)):
                raise TypeError(
                    f"{name} has named dims or labels, which can't be compared with those of a "
                    f"statistic: give its values, {name}.values, in the statistic's order"
                )
            if isinstance(value, Variable):
                object.__setattr__(self, name, as_plain(value))
                as_tensor(value, name)
            else:
                positive(name, value)

    @property
    def _parameters(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.kw_only}

    @property
    def unknown(self) -> list[TensorVariable]:
        """Parameters of the noise that are variables of a model."""
        return [x for x in self._parameters.values() if isinstance(x, Variable)]

    def _with_unknown(self, values: Sequence[TensorVariable]) -> Self:
        """Return this mechanism with other variables as its unknown parameters."""
        mechanism, others = copy(self), iter(values)
        for name, value in self._parameters.items():
            if isinstance(value, Variable):
                object.__setattr__(mechanism, name, next(others))
        return mechanism

    def _check_known(self, what: str) -> None:
        """Check that all parameters of the noise are numbers."""
        if self.unknown:
            raise TypeError(
                f"{self!r}: {what} needs a noise scale that is a number; this one is a variable of "
                "a model, and has a distribution of its own"
            )

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
        """Check that the noise scale has no more entries than the statistic."""
        parameters = self._parameters.values()
        shapes = [x.type.shape if isinstance(x, Variable) else np.shape(x) for x in parameters]
        scale = max(shapes, key=len) if self.unknown else np.broadcast_shapes(*shapes)
        pairs = zip(reversed(scale), reversed(shape), strict=False)
        fit = all(k in (None, 1, n) or n is None for k, n in pairs)
        if len(scale) > len(shape) or not fit:
            raise ValueError(
                f"the noise scale of {type(self).__name__} has shape {scale}, which doesn't fit a "
                f"statistic of shape {shape}: give one scale for all entries, or one for each entry"
            )

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        shape = super()._released_shape(name, statistic)
        with checks.about(f"'{name}'"):
            if self._discrete:
                refuse_fractions(statistic, f"{type(self).__name__} adds integer noise to integers")
            self._check_shape(shape)
        return shape

    @override
    def as_released(self, name: str, released: Any) -> np.ndarray:
        values = super().as_released(name, released)
        with checks.about(f"'{name}'"):
            self._check_shape(values.shape)
        return values

    def _published(self, publication: Publication) -> Self:
        name = type(self).__name__
        # The kinds of ends don't depend on the released values.
        span = publication.span(np.zeros(1))
        if span.cells and self._log_between is None and self._log_range is None:
            raise ValueError(f"{name} has no likelihood of rounded releases")
        if span.cells and self._only_unit_cells and span.width != 1:
            raise ValueError(
                f"{name} has a likelihood of values that were rounded to whole numbers, step=1, "
                "and of no other ranges"
            )
        return super()._published(publication)

    def _log_published(
        self, released: TensorVariable, span: Span, statistic: TensorVariable
    ) -> TensorVariable:
        self._check_shape((released - statistic).type.shape)
        low, high = self._on_grid(span.low), self._on_grid(span.high)
        logp = self._log_known(low, high, span, statistic)
        logp = either(span.below, self._log_below(high.at - statistic, high.plus), logp)
        # Noise is symmetric: the upper tail is the lower tail of the reflected value.
        logp = either(span.above, self._log_below(statistic - low.at, -low.plus), logp)
        logp = either(both(span.below, span.above), 0.0, logp)
        logp = either(span.never, -np.inf, logp)
        for parameter in self.unknown:
            logp = pt.switch(parameter > 0, logp, -np.inf)
        return logp

    def _log_known(
        self, low: End, high: End, span: Span, statistic: TensorVariable
    ) -> TensorVariable:
        """Log-density of noisy values that are known exactly, or to lie between two finite ends."""
        logp = pt.constant(np.float64(-np.inf))  # if all entries lie below or above an end
        if span.points:
            logp = pm.logp(self._noise(), low.at - statistic)
            if not self._discrete and self.publication.factor != 1:
                logp = logp - np.log(self.publication.factor)
        if span.cells:
            between = self._log_integers if self._discrete else self._log_cell
            is_cell = low.value < high.value if span.points else True
            logp = either(is_cell, between(low, high, span, statistic), logp)
        return logp

    def _log_cell(
        self, low: End, high: End, span: Span, statistic: TensorVariable
    ) -> TensorVariable:
        """Log-probability of real noise between two ends."""
        law = type(self)._log_between
        assert law is not None
        width = span.width
        first, last = (end.at - statistic + end.plus for end in (low, high))
        if width is None:
            # Keep the branch that isn't chosen finite.
            is_cell = no(one_of(one_of(span.below, span.above), span.never))
            apart = (high.at - low.at) + (high.plus - low.plus)
            is_cell = both(is_cell, apart > 0)
            first, last = either(is_cell, first, -0.5), either(is_cell, last, 0.5)
            width = either(is_cell, apart, 1.0)
        # Noise is symmetric: reflect a cell so that most of it lies in the lower tail.
        turned = first + last < 0
        near, far = pt.switch(turned, -last, first), pt.switch(turned, -first, last)
        return law(near, far, width, *self._symbolic)

    def _log_integers(
        self, low: End, high: End, span: Span, statistic: TensorVariable
    ) -> TensorVariable:
        """Log-probability of discrete noise from one integer to another."""
        law = type(self)._log_range
        assert law is not None
        if span.width is not None:
            return law(low.at - statistic, round(span.width) + 1, *self._symbolic)
        is_range = no(one_of(one_of(span.below, span.above), span.never))
        n = high.at - low.at + 1
        chosen = either(both(is_range, n >= 1), n, 1)
        return pt.switch(n < 1, -np.inf, law(low.at - statistic, chosen, *self._symbolic))

    def _on_grid(self, end: End) -> End:
        """Write an end of discrete noise as an integer."""
        if not self._discrete:
            return end
        value = end.value
        is_whole = getattr(value, "dtype", "").startswith("int")
        return End(value if is_whole else pt.round(value).astype("int64"))

    def noise_logp(self, noise: TensorVariable) -> TensorVariable:
        """Log-density of the noise itself, entry by entry, before rules of publication."""
        return pm.logp(self._noise(), as_tensor(noise))

    def noisy_range(self, released: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Lowest and highest value that each noisy value can have had before publication.

        For a rounded value, both are the middle of its cell.
        """
        span, shape = self.publication.span(released), released.shape
        low, high = (np.asarray(end.value, dtype=float) for end in (span.low, span.high))
        middle = low if span.width == 0 else (low + high) / 2
        wide = any(isinstance(rule, Ranges) for rule in self.publication.rules)
        first, last = (low, high) if wide else (middle, middle)
        lowest = np.where(span.below, -np.inf, np.where(span.above, low, first))
        highest = np.where(span.above, np.inf, np.where(span.below, high, last))
        return np.broadcast_to(lowest, shape), np.broadcast_to(highest, shape)

    def _log_below(self, limit: TensorVariable, plus: Value) -> TensorVariable:
        """Log-probability of noise up to a limit."""
        if not (isinstance(plus, float) and not plus):
            # The cast keeps PyTensor from adding the half to the end: it is lost beside 1e17.
            limit = limit.astype("float64") + plus
        if self._log_tail is None:
            return pm.logcdf(self._noise(), limit)
        return self._log_tail(limit, *self._symbolic)

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        # Without a size, each entry still has its own noise.
        noisy = statistic + self._noise(size=statistic.shape if rv_size_is_none(size) else size)
        released = self.publication.publish(noisy, statistic)
        if not self.integer or self.suppresses:
            return released
        if not self._discrete:
            # Beyond this limit, integers would wrap around.
            fits = pt.all(pt.abs(released) <= float(MAX_RELEASE))
            message = f"{type(self).__name__}: rounded releases must be within 2^62 in size"
            released = Assert(message)(released, fits)
        return released.astype("int64")

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self._check_known("a simulated release")
        self._check_shape(statistic.shape)
        name, whole = type(self).__name__, statistic == np.round(statistic)
        if self._discrete:
            rule = f"{name} adds integer noise to integers. The statistic must hold integers"
            checks.nowhere(~whole, rule)
        parameters = self._parameters.values()
        noise = np.asarray(self._law.rv_op.rng_fn(rng, 0.0, *parameters, statistic.shape))
        given = statistic
        if self._discrete:
            given, noise = whole_release(statistic, name), whole_release(noise, name)
        released = self.publication.publish(given + noise, statistic)
        return self._as_drawn(released)

    def error_bound(self, k: int = 1, beta: float = 0.05) -> np.ndarray:
        """Bound that the noise on all of k entries stays within, with probability 1 - beta or more.

        Parameters
        ----------
        k : int
            Number of entries.
        beta : float
            Probability that the noise on some entry is larger, by the union bound.

        Returns
        -------
        ndarray
            The bound, in the shape of the noise scale and in units of the statistic. Rounding and
            other rules aren't included.
        """
        k = checks.whole_number(k, "k", at_least=1)
        beta = checks.finite_number(beta, "beta", above=0, below=1)
        self._check_known("an error bound")
        return np.asarray(self._two_sided_quantile(beta / k))

    @abstractmethod
    def _two_sided_quantile(self, p: float) -> ArrayLike:
        """Distance from zero that the noise exceeds with probability p at most."""

    def _with_new_rows(self, spent: Any, rows: int | None) -> Any:
        """Add to a budget what is lost by publishing a row that exists because of one record.

        The count of such a row is one. It is published with probability p at most. None of k such
        rows is published with probability (1 - p)^k (Wilson et al. 2020, Section 3.4).
        """
        if not self.publication.nonempty:
            if rows is not None:
                raise ValueError("rows is for mechanisms of nonempty() rows: leave it out")
            return spent
        if isinstance(spent, ZCDP):
            raise ValueError(
                "a release of nonempty() rows keeps an approximate budget only: give delta="
            )
        if rows is None:
            raise TypeError(
                "a release of nonempty() rows needs rows=, the most that one record can be in"
            )
        k = checks.whole_number(rows, "rows", at_least=1)
        hidden = self.publication.span(np.array([SUPPRESSED]))
        if not hidden.suppressed or np.any(hidden.never):
            raise ValueError(
                "a release of nonempty() rows without a threshold keeps no budget: a published row "
                "shows for certain that it has a record. Add published_if, with a threshold above "
                "the smallest possible noisy value"
            )
        gap = 1 - float(np.asarray(hidden.high.value).flat[0]) - self._discrete
        log_p = np.max(self._log_below(as_tensor(gap), 0.0).eval(mode="FAST_COMPILE"))
        delta = -np.expm1(k * np.log1p(-np.exp(log_p)))
        total = float(delta) + getattr(spent, "delta", 0.0)
        return ApproxDP(spent.epsilon, total, neighbours=spent.neighbours)


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceNoise(AdditiveNoise):
    """Laplace noise, continuous or discrete; a pure budget determines its scale."""

    scale: float | np.ndarray | TensorVariable

    _scale_for: ClassVar[Callable[..., float]]
    _budget_of: ClassVar[Callable[..., PureDP]]

    @classmethod
    @checks.called_as(
        "{owner}.calibrate(budget, sensitivity=...), with a budget such as pmd.PureDP(0.5)"
    )
    def calibrate(
        cls,
        budget: PureDP,
        *,
        sensitivity: SensitivityLike,
        neighbours: Neighbours | None = None,
    ) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP
            The budget.
        sensitivity : Sensitivities, float, or an array of either
            Of the statistic; its L1 sensitivity is used. Or that number, an integer for integer
            noise. An array has one for each group of records, see the notes of `by_group`.
        neighbours : {"replace", "add_remove"}, optional
            Neighbouring data sets that the budget is for, if the budget doesn't say so itself.

        Raises
        ------
        TypeError, ValueError
            If the budget isn't pure or the sensitivity isn't positive. If the two are for different
            neighbours, or the sensitivity depends on the neighbours and neither says which are
            meant.
        """
        budget = with_neighbours(cls, budget, neighbours)
        scale = by_group(lambda s: cls._scale_for(budget, sensitivity=s), sensitivity)
        return cls(scale, budget=budget)

    def privacy_loss(
        self, *, sensitivity: SensitivityLike, rows: int | None = None
    ) -> PureDP | ApproxDP:
        """Budget that a release spends, by its L1 sensitivity; with groups, the largest of theirs.

        Parameters
        ----------
        sensitivity : Sensitivities, float, or an array of either
            Of the statistic; its L1 sensitivity is used. Or that number. An array has one for each
            group of records, see the notes of `by_group`.
        rows : int, optional
            After :meth:`~.PublishedByRules.nonempty`, the most rows that one record can be in.
        """
        self._check_known("privacy loss")
        spent = largest_loss(self._budget_of, self.scale, sensitivity)
        return self._with_new_rows(spent, rows)


class OfErrorBound(AdditiveNoise):
    """Continuous noise whose scale follows from a published error bound."""

    @classmethod
    def from_error_bound(cls, bound: ArrayLike, *, beta: float = 0.05) -> Self:
        """Make the mechanism from the published error of an entry instead of its scale.

        Parameters
        ----------
        bound : array_like
            Bound on an entry's noise that holds with probability 1 - beta; positive. One for all
            entries or one for each, in units of the statistic.
        beta : float
            Probability that the noise is larger: 0.05 for a margin of error at 95 %.

        Returns
        -------
        OfErrorBound
            The mechanism whose ``error_bound(1, beta)`` is ``bound``. It knows no budget.

        Raises
        ------
        TypeError, ValueError
            If an argument is of a wrong kind or out of range.

        Notes
        -----
        The bound must be that of the noise. A bound for rounded, clamped or suppressed values is
        another one.
        """
        bounds = positive("bound", bound)
        beta = checks.finite_number(beta, "beta", above=0, below=1)
        of_scale: Callable[..., Self] = cls
        scale = bounds / of_scale(1.0)._two_sided_quantile(beta)
        return of_scale(scale if scale.ndim else float(scale))


@dataclass(frozen=True, eq=False, repr=False)
class LaplaceMechanism(OfErrorBound, LaplaceNoise):
    """Laplace noise on each entry: pure differential privacy (Dwork et al. 2006).

    Attributes
    ----------
    scale : array_like or TensorVariable
        Scale of the noise, in units of the statistic; its standard deviation is sqrt(2) scale. If
        it is unknown, a variable of the model.

    Examples
    --------
    A sum that one record changes by 6 at most, released with epsilon = 0.5:

    >>> mechanism = LaplaceMechanism.calibrate(PureDP(0.5), sensitivity=6)
    >>> mechanism
    LaplaceMechanism(scale=12, budget=PureDP(epsilon=0.5, one person changes))
    >>> with pm.Model():
    ...     mu = pm.Normal("mu", 0, 1)
    ...     x = pm.Normal("x", mu, 1, shape=100)
    ...     privacy = mechanism.potential("privacy", pt.clip(x, -3, 3).sum(), released=35.0)
    """

    _law = pm.Laplace
    _log_tail = staticmethod(_rounded.laplace_log_tail)
    _log_between = staticmethod(_rounded.laplace_between)
    _scale_for = staticmethod(accounting.laplace_scale)
    _budget_of = staticmethod(accounting.laplace_budget)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return -np.asarray(self.scale) * np.log(p)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteLaplaceMechanism(LaplaceNoise):
    """Discrete Laplace (double geometric) noise on each entry of an integer statistic.

    Attributes
    ----------
    scale : array_like or TensorVariable
        The probability of k is proportional to exp(-abs(k) / scale).

    References
    ----------
    Ghosh, Roughgarden and Sundararajan (2012). Universally utility-maximizing privacy mechanisms.

    Examples
    --------
    A table of counts, released as whole numbers. One record that changes moves from one cell to
    another, so it changes the counts by 2:

    >>> mechanism = DiscreteLaplaceMechanism.calibrate(PureDP(0.5), sensitivity=2)
    >>> mechanism
    DiscreteLaplaceMechanism(scale=4, budget=PureDP(epsilon=0.5, one person changes))
    >>> with pm.Model():
    ...     people = pm.Poisson("people", 100, shape=3)
    ...     privacy = mechanism.potential("privacy", people, released=[104, 87, 113])
    """

    _law = DiscreteLaplace
    _log_range = staticmethod(_rounded.discrete_laplace_range)
    _scale_for = staticmethod(accounting.discrete_laplace_scale)
    _budget_of = staticmethod(accounting.discrete_laplace_budget)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        # P(abs(noise) > t) = 2 q^(t + 1) / (1 + q) with q = exp(-1 / scale).
        scale = np.asarray(self.scale, dtype=float)
        steps = scale * (np.log(2) - np.log1p(np.exp(-1 / scale)) - np.log(p)) - 1
        return np.maximum(0, np.ceil(steps - 1e-9))


@dataclass(frozen=True, eq=False, repr=False)
class GaussianNoise(AdditiveNoise):
    """Gaussian noise, continuous or discrete; a zCDP budget determines its sigma."""

    sigma: float | np.ndarray | TensorVariable

    @classmethod
    @checks.called_as(
        "{owner}.calibrate(budget, sensitivity=...), with a budget such as pmd.ZCDP(0.1)"
    )
    def calibrate(
        cls,
        budget: ZCDP | ApproxDP,
        *,
        sensitivity: SensitivityLike,
        bound: accounting.Bound = "simple",
        neighbours: Neighbours | None = None,
    ) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : ZCDP or ApproxDP
            The budget.
        sensitivity : Sensitivities, float, or an array of either
            Of the statistic; its L2 sensitivity is used. Or that number. An array has one for each
            group of records, see the notes of `by_group`.
        bound : {"simple", "tight"}
            How an approximate budget is converted to zCDP.
        neighbours : {"replace", "add_remove"}, optional
            Neighbouring data sets that the budget is for, if the budget doesn't say so itself.

        Raises
        ------
        TypeError, ValueError
            If the budget is pure or the sensitivity isn't positive. If the two are for different
            neighbours, or the sensitivity depends on the neighbours and neither says which are
            meant.
        """
        budget = with_neighbours(cls, budget, neighbours)
        sigma = by_group(
            lambda s: accounting.gaussian_sigma(budget, sensitivity=s, bound=bound), sensitivity
        )
        return cls(sigma, budget=budget)

    def privacy_loss(
        self,
        *,
        sensitivity: SensitivityLike,
        delta: float | None = None,
        bound: accounting.Bound = "simple",
        rows: int | None = None,
    ) -> ZCDP | ApproxDP:
        """Budget that a release spends, by the L2 sensitivity of the statistic.

        Parameters
        ----------
        sensitivity : Sensitivities, float, or an array of either
            Of the statistic; its L2 sensitivity is used. Or that number. An array has one for each
            group of records, see the notes of `by_group`.
        delta : float, optional
            If given, the budget is expressed as (epsilon, delta).
        bound : {"simple", "tight"}
            How zCDP is converted to an approximate budget.
        rows : int, optional
            After :meth:`~.PublishedByRules.nonempty`, the most rows that one record can be in.
            `delta` is then that of the noise alone.

        Returns
        -------
        ZCDP or ApproxDP
        """
        checks.choice(bound, "bound", ("simple", "tight"))
        self._check_known("privacy loss")
        spent = largest_loss(accounting.gaussian_budget, self.sigma, sensitivity)
        if delta is not None:
            spent = spent.to_approx(delta=delta, bound=bound)
        return self._with_new_rows(spent, rows)


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMechanism(OfErrorBound, GaussianNoise):
    """Gaussian noise on each entry: zero-concentrated privacy (Bun and Steinke 2016).

    Attributes
    ----------
    sigma : array_like or TensorVariable
        Standard deviation of the noise (not its square), in units of the statistic.

    Examples
    --------
    A sum that one record changes by 6 at most, released with rho = 0.125:

    >>> mechanism = GaussianMechanism.calibrate(ZCDP(0.125), sensitivity=6)
    >>> mechanism
    GaussianMechanism(sigma=12, budget=ZCDP(rho=0.125, one person changes))
    >>> with pm.Model():
    ...     mu = pm.Normal("mu", 0, 1)
    ...     x = pm.Normal("x", mu, 1, shape=100)
    ...     privacy = mechanism.potential("privacy", pt.clip(x, -3, 3).sum(), released=35.0)
    """

    _law = pm.Normal
    _log_tail = staticmethod(_rounded.gaussian_log_tail)
    _log_between = staticmethod(_rounded.gaussian_between)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return np.asarray(self.sigma) * scipy.stats.norm.isf(p / 2)


@dataclass(frozen=True, eq=False, repr=False)
class DiscreteGaussianMechanism(GaussianNoise):
    """Discrete Gaussian noise on each entry of an integer statistic (Canonne et al. 2020).

    Attributes
    ----------
    sigma : array_like or TensorVariable
        The probability of k is proportional to exp(-k^2 / (2 sigma^2)).

    Examples
    --------
    A table of counts. The office published sigma:

    >>> mechanism = DiscreteGaussianMechanism(sigma=6.32)
    >>> mechanism
    DiscreteGaussianMechanism(sigma=6.32)
    >>> with pm.Model():
    ...     p = pm.Dirichlet("p", np.ones(4))
    ...     table = pm.Multinomial("table", n=400, p=p)
    ...     privacy = mechanism.potential("privacy", table, released=[110, 131, 47, 110])
    """

    _law = DiscreteGaussian
    _log_range = staticmethod(_rounded.discrete_gaussian_range)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        # Its tail is bounded like the continuous one: P(noise >= t) <= exp(-t^2 / (2 sigma^2))
        # (Canonne et al. 2020, Fact 20).
        return np.asarray(self.sigma) * np.sqrt(2 * np.log(2 / p))
