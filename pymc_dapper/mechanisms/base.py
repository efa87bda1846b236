"""What every mechanism can do: give its likelihood, enter a model, and simulate a release."""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper import checks
from pymc_dapper.backend.internals import RandomState
from pymc_dapper.backend.named_dims import as_plain
from pymc_dapper.budget import Budget
from pymc_dapper.budget.kinds import check_budget
from pymc_dapper.context import check_precision
from pymc_dapper.html import table
from pymc_dapper.mechanisms.arguments import (
    MISSING,
    Dims,
    Release,
    as_release,
    check_call,
    in_order_of,
    kind_of,
    real_array,
    refuse,
    release_dims,
)
from pymc_dapper.mechanisms.mistakes import refuse_sums_of_truth_values, tell_of_mistakes
from pymc_dapper.mechanisms.rules import MAX_RELEASE

LARGEST_WHOLE_DOUBLE = 2**53
"""Whole numbers up to this one are exact in double precision."""

RULES = ("rounded", "clamped", "published_if", "times", "in_ranges", "nonempty")
"""Methods that `PublishedByRules` adds to mechanisms."""

RULE_OF_OPTION = {"clamp": ".clamped(lower, upper)", "rounding": ".rounded()"}
"""What to write instead of an argument that other packages' mechanisms have."""


@dataclass(frozen=True, eq=False)
class Mechanism(ABC):
    """A privacy mechanism: the known law of a released value, given the statistic.

    Attributes
    ----------
    budget : PureDP, ZCDP or ApproxDP, optional
        The budget that the mechanism was calibrated to, if it was.
    """

    budget: Budget | None = field(default=None, kw_only=True)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse unknown arguments, such as epsilon, and list the known ones."""
        known = list(inspect.signature(cls.__init__).parameters)[1:]
        for name in kwargs:
            if name not in known:
                way_out = _by_budget(cls)
                if rule := RULE_OF_OPTION.get(name):
                    told = f" Add the rule to the mechanism: write {cls.__name__}(...){rule}"
                    way_out = told + way_out
                raise TypeError(
                    f"{cls.__name__} has no argument '{name}', but {', '.join(known)}.{way_out}"
                )
        check_budget(kwargs.get("budget"))
        return super().__new__(cls)

    def _shown(self) -> dict[str, str]:
        """Return the arguments that differ from their defaults, the budget last."""
        values = {
            f.name: getattr(self, f.name)
            for f in sorted(fields(self), key=lambda f: bool(f.kw_only))
            if f.repr and not _is(getattr(self, f.name), f.default)
        }
        return {
            name: f"{value:.6g}" if isinstance(value, float) else f"{value}"
            for name, value in values.items()
        }

    def __repr__(self) -> str:
        """Show the arguments that differ from their defaults, the budget last."""
        values = [f"{name}={value}" for name, value in self._shown().items()]
        return f"{type(self).__name__}({', '.join([*values, *self._also_shown])})"

    def _repr_html_(self) -> str:
        return table(type(self).__name__, (), self._shown().items())

    _also_shown: ClassVar[tuple[str, ...]] = ()
    """Words at the end of what is shown."""

    _why_no_rules: ClassVar[str] = "rules are for noise that is added to each entry by itself"

    @property
    def _why_no_answers(self) -> str:
        """Why releases have no answers without a model, and what is known of them; or nothing."""
        return ""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Say why the mechanism lacks a rule of publication that is asked for."""
            if name not in RULES:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
            raise AttributeError(
                f"{type(self).__name__} has no likelihood of releases that were worked on, as by "
                f"{name}: {type(self)._why_no_rules}. Ask the curator for the values as they were "
                "before"
            )

    @property
    def integer(self) -> bool:
        """Whether the released values are integers."""
        return False

    @property
    def suppresses(self) -> bool:
        """Whether entries may be suppressed."""
        return False

    @property
    def unknown(self) -> list[TensorVariable]:
        """Noise parameters that are variables of a model; none by default."""
        return []

    def _with_unknown(self, values: Sequence[TensorVariable]) -> Self:
        """Return this mechanism with other variables as its unknown parameters."""
        return self

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
            The normalised log-density, or log-probability of a discrete release. One value for each
            independent noise term.

        Raises
        ------
        TypeError
            If one of them doesn't hold real numbers.
        ValueError
            If their shapes don't broadcast, or don't fit the mechanism.
        """

    @abstractmethod
    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        """Return a release of ``statistic`` as a random variable."""

    _signature: ClassVar[str | None] = None
    """Which axes a release has for itself, as PyMC's CustomDist takes it; None for no axis."""

    def _event(self, statistic: TensorVariable) -> dict[str, Any]:
        """Return further arguments of PyMC's CustomDist."""
        return {"signature": self._signature}

    @abstractmethod
    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw one release of ``statistic``."""

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that a release can have come from the mechanism.

        Parameters
        ----------
        name : str
            Name of the release, for the message.
        released : ndarray
            The released values.

        Raises
        ------
        ValueError
            If a value is nan or infinite; or, for a mechanism that releases integers, is fractional
            or beyond 2^62.
        """
        released = np.asarray(released)
        rule = "the released values must be finite numbers"
        refuse(name, ~np.isfinite(released), released, rule, f"; {MISSING}")
        if self.integer:
            rule = f"{type(self).__name__} releases integers"
            undo = ". If the curator scaled the release, undo it first"
            refuse(name, released != np.round(released), released, rule, undo)
            beyond = (released > MAX_RELEASE) | (released < -MAX_RELEASE)
            refuse(name, beyond, released, "released integers must be within 2^62 in size")

    @checks.called_as('mechanism.potential("privacy", statistic, released=...)')
    def potential(
        self, name: str, statistic: Any, *, released: Any, dims: Dims = None
    ) -> TensorVariable:
        """Add the likelihood of a release to the model in context, as a ``pm.Potential``.

        Parameters
        ----------
        name : str
            Name of the Potential. The release is kept as ``pm.Data(f"{name}_released")``.
        statistic : tensor_like
            The confidential statistic, a function of latent records.
        released : array_like or shared variable
            The released values; a ``pm.Data`` is used as it is.
        dims : str or sequence of str, optional
            Dims of the release, whose coords are in the model. By default those of the
            ``pm.Data``, or of a statistic that is a variable of the model.

        Returns
        -------
        TensorVariable
            The Potential.

        Raises
        ------
        TypeError
            If name and statistic are swapped, or if the release isn't numbers.
        ValueError
            If the mechanism can't have released the values; if they have another shape than the
            statistic, or masked entries though the mechanism suppresses none; or if the dims don't
            fit.

        Notes
        -----
        Predictive draws leave Potentials out: use :meth:`observe` to draw releases.
        """
        data, statistic, dims = self._checked("potential", name, statistic, released, dims)
        if not isinstance(data, SharedVariable):
            data = pm.Data(f"{name}_released", data, dims=dims)
        logp = self.logp(data, statistic)
        # Noise that is joint over an axis has one log-density, and no dim for that axis.
        potential = pm.Potential(name, logp, dims=(dims and dims[: logp.type.ndim]) or None)
        return self._tag(potential, name, statistic, data)

    @checks.called_as('mechanism.observe("privacy", statistic, released=...)')
    def observe(
        self, name: str, statistic: Any, *, released: Any, dims: Dims = None
    ) -> TensorVariable:
        """Add a release to the model in context as an observed variable of this name.

        Predictive draws then include releases, which they don't for a Potential. Arguments and
        errors are those of :meth:`potential`.

        Returns
        -------
        TensorVariable
            The observed variable.
        """
        data, statistic, dims = self._checked("observe", name, statistic, released, dims)
        variable = self._random_variable(name, statistic, observed=data, dims=dims)
        return self._tag(variable, name, statistic, data)

    @checks.called_as('mechanism.generate("privacy", statistic)')
    def generate(self, name: str, statistic: Any, *, dims: Dims = None) -> TensorVariable:
        """Add a release that isn't known yet to the model in context, as a random variable.

        Use it to write a model once. ``pm.draw`` simulates a release from it. ``pm.observe(model,
        {name: released})`` gives the model with a release, as :meth:`observe` makes it.

        Parameters
        ----------
        name : str
            Name of the random variable.
        statistic : tensor_like
            The confidential statistic, a function of latent records.
        dims : str or sequence of str, optional
            Dims of the release, whose coords are in the model. By default those of a statistic that
            is a variable of the model.

        Returns
        -------
        TensorVariable
            The random variable.

        Raises
        ------
        TypeError
            If name and statistic are swapped.
        ValueError
            If the dims don't fit.
        """
        model = check_call("generate", name, statistic)
        given, statistic = statistic, as_tensor(statistic)
        shape = self._released_shape(name, statistic)
        alike = [given] if tuple(shape) == tuple(statistic.type.shape) else []
        named = release_dims(model, name, dims, shape, alike)
        variable = self._random_variable(name, statistic, dims=named)
        variable.tag.mechanism, variable.tag.statistic = self, statistic
        return variable

    def _random_variable(
        self, name: str, statistic: TensorVariable, **options: Any
    ) -> TensorVariable:
        """Add the release of a statistic to the model in context, as a random variable."""
        options = {"dist": self._random_given, **options, **self._event(statistic)}
        return pm.CustomDist(name, statistic, *self.unknown, logp=self._logp_given, **options)

    def _logp_given(
        self, released: TensorVariable, statistic: TensorVariable, *unknown: TensorVariable
    ) -> TensorVariable:
        return self._with_unknown(unknown).logp(released, statistic)

    def _random_given(self, statistic: TensorVariable, *rest: Any) -> TensorVariable:
        *unknown, size = rest
        return self._with_unknown(unknown)._random(statistic, size)

    def _checked(
        self, method: str, name: str, statistic: Any, released: Any, dims: Dims
    ) -> tuple[Release, TensorVariable, tuple[str | None, ...] | None]:
        """Check and return what a variable needs: the release, the statistic and its dims."""
        model = check_call(method, name, statistic)
        given, released = statistic, in_order_of(name, model, statistic, released, dims)
        data = as_release(name, self._taken(f"'{name}': the release", released))
        statistic = as_tensor(given)
        refuse_sums_of_truth_values(name, model, statistic)
        self._release_check(name, statistic, data)()
        tell_of_mistakes(name, self, given)
        if not isinstance(data, SharedVariable):
            data = self._as_kept(name, data)
        shape = self._released_shape(name, statistic)
        alike = [given] if tuple(shape) == tuple(statistic.type.shape) else []
        return data, statistic, release_dims(model, name, dims, shape, [data, *alike])

    def _tag(
        self, variable: TensorVariable, name: str, statistic: TensorVariable, data: Release
    ) -> TensorVariable:
        """Note on a variable what it stands for, for steps and for checks of releases."""
        variable.tag.mechanism = self
        variable.tag.statistic, variable.tag.released = statistic, as_tensor(data)
        # pm.set_data can change the release: steps check it again when a chain starts.
        variable.tag.check_data = self._release_check(name, statistic, data)
        return variable

    def as_released(self, name: str, released: Any) -> np.ndarray:
        """Return released values as an array, before there is a statistic.

        Parameters
        ----------
        name : str
            Name of the release, for messages.
        released : array_like
            The released values; masked or nan where entries are suppressed.

        Returns
        -------
        ndarray
            The values; suppressed entries are minus infinity.

        Raises
        ------
        TypeError, ValueError
            If the mechanism can't have released the values; the message begins with the name.
        """
        if isinstance(released, Variable):
            raise TypeError(f"'{name}': the released values must be an array, not symbolic")
        values = np.asarray(as_release(name, self._taken(f"'{name}': the release", released)))
        self.check_released(name, values)
        return values

    def _taken(self, what: str, released: Any) -> Any:
        """Return a release as numbers; entries may be suppressed."""
        return released

    def _as_kept(self, name: str, released: np.ndarray) -> np.ndarray:
        """Convert released values to a type that PyMC doesn't change."""
        if not self.integer:
            return released.astype(np.float64)
        # PyMC stores integers in 32 bits, which changes larger ones.
        largest = np.max(np.abs(released.astype(np.float64)), initial=0)
        if largest > LARGEST_WHOLE_DOUBLE:
            raise ValueError(
                f"'{name}': released values of up to {largest:.3g} are larger than the integers "
                "that double precision tells apart"
            )
        return released.astype(np.float64 if largest > np.iinfo(np.int32).max else np.int64)

    def _released_shape(self, name: str, statistic: TensorVariable) -> tuple[int | None, ...]:
        """Return the shape of a release of ``statistic``; None for an unknown length."""
        return statistic.type.shape

    def _release_check(
        self, name: str, statistic: TensorVariable, released: Any
    ) -> Callable[[], None]:
        expected = self._released_shape(name, statistic)

        def check() -> None:
            values = released
            if isinstance(released, SharedVariable):
                values = released.get_value(borrow=True)
            if not checks.fits(values.shape, expected):
                list_of_one = f". Write it as a list of one: released=[{values}]"
                summed = ". Add up the records first, as in x.sum()"
                way_out = "" if values.shape else list_of_one if expected == (1,) else summed
                raise ValueError(
                    f"'{name}': the release has shape {values.shape}, where the mechanism releases "
                    f"shape {expected} of this statistic{way_out}"
                )
            self.check_released(name, values)

        return check

    def release(self, statistic: ArrayLike, random_seed: RandomState = None) -> np.ndarray:
        """Simulate a release, to study the cost of privacy.

        Not for production: floating-point noise can be attacked. To protect real data, use a
        vetted library such as OpenDP. The first call of a session warns of that.

        Parameters
        ----------
        statistic : array_like
            The confidential statistic.
        random_seed : int, Generator, ..., optional
            Seed.

        Returns
        -------
        ndarray
            The released value, in the statistic's shape. A masked array if entries may be
            suppressed.

        Raises
        ------
        TypeError
            If the statistic doesn't hold real numbers.
        ValueError
            If the statistic isn't finite or can't be released by this mechanism; or if a release of
            integers doesn't fit into 64 bits.
        """
        values = real_array(statistic, "the statistic", "leave them out")
        checks.nowhere(~np.isfinite(values), "the statistic must hold finite numbers")
        rng = checks.random_generator(random_seed, "random_seed")
        _warn_once()
        return self._draw(values, rng)


def _is(value: Any, default: Any) -> bool:
    """Whether a parameter equals its default; words read from files are other objects."""
    return value is default or (isinstance(value, str) and value == default)


_has_warned = False


def _warn_once() -> None:
    """Warn once that releases are simulated: studies make many."""
    global _has_warned
    if not _has_warned:
        _has_warned = True
        warnings.warn(
            "release() simulates, and isn't for production: floating-point noise can be attacked. "
            "To protect real data, use a vetted library such as OpenDP",
            stacklevel=3,
        )


def whole_release(released: np.ndarray, name: str) -> np.ndarray:
    """Convert released floats to integers; none of ``name`` may be beyond 2^62 in size."""
    fits = (released <= MAX_RELEASE) & (released >= -MAX_RELEASE)
    checks.nowhere(
        ~fits,
        f"{name} releases integers, which must be within 2^62 in size",
        ". Release real numbers, or change the statistic's units",
    )
    return released.astype(np.int64)


def _by_budget(mechanism: type) -> str:
    """Say how to calibrate a mechanism to a budget, if it has a calibration."""
    calibrate = getattr(mechanism, "calibrate", None)
    if calibrate is None:
        return ""
    known = inspect.signature(calibrate).parameters.values()
    budget, *others = (x for x in known if x.default is x.empty)
    needed = [f"{x.name}=..." for x in others if x.kind is not x.VAR_KEYWORD]
    return (
        f" To choose the noise by a privacy budget, such as pmd.PureDP(1) or pmd.ZCDP(0.5), write "
        f"{mechanism.__name__}.calibrate({', '.join([budget.name, *needed])})"
    )


def as_pair(released: Any, statistic: Any) -> tuple[TensorVariable, TensorVariable]:
    """Convert a release and a statistic to tensors, and check that their known shapes fit."""
    released, statistic = as_tensor(released, "the release"), as_tensor(statistic)
    pairs = zip(reversed(released.type.shape), reversed(statistic.type.shape), strict=False)
    if any(None not in (n, m) and 1 not in (n, m) and n != m for n, m in pairs):
        raise ValueError(
            f"the release has shape {released.type.shape}, which doesn't go with a statistic of "
            f"shape {statistic.type.shape}"
        )
    return released, statistic


def as_tensor(value: Any, what: str = "a statistic") -> TensorVariable:
    """Convert a statistic with its sensitivity, or anything tensor-like, to a tensor.

    Unsigned integers and bools become int64, so that a difference of them doesn't wrap around.

    Parameters
    ----------
    value : tensor_like
        The argument.
    what : str
        Its name, for the message.
    """
    check_precision()
    if np.ma.is_masked(value):
        raise ValueError(f"{what} must be complete, but entries are masked: leave them out")
    given = value
    checks.no_comparison(value, what)
    value = as_plain(getattr(value, "value", value))
    if not isinstance(value, Variable):
        value = checks.as_array(value)  # PyTensor would hold a plain float in single precision
    if not isinstance(value, Variable | np.ndarray) or kind_of(value) not in "biuf":
        holds_variables = isinstance(value, np.ndarray) and any(
            isinstance(x, Variable) for x in value.flat
        )
        symbolic = " that holds variables of a model, with which NumPy can't compute"
        raise TypeError(
            f"{what} must be a tensor, or an array, of real numbers, got {checks.shown(given)}"
            f"{symbolic if holds_variables else ''}. In a model, use pytensor.tensor (pt.stack, "
            "pt.clip, pt.mean) or pymc_dapper.statistics (counts, histogram, clamped_sum)"
        )
    if isinstance(value, np.ndarray) and value.dtype.kind == "u" and np.any(value > MAX_RELEASE):
        value = value.astype("float64")
    tensor = pt.as_tensor_variable(value)
    return tensor.astype("int64") if np.dtype(tensor.dtype).kind in "bu" else tensor


def positive(name: str, value: ArrayLike) -> np.ndarray:
    """Check that a noise scale, or each of an array of them, is positive and finite."""
    if isinstance(value, Variable):
        raise TypeError(
            f"{name} must be known, got {checks.shown(value)}, which is symbolic. Only "
            "LaplaceMechanism, GaussianMechanism and their discrete versions take an unknown "
            "scale: LaplaceMechanism(scale), with a scale that has a prior"
        )
    if isinstance(value, Budget):
        raise TypeError(
            f"{name} must be a number, got the budget {value}: write calibrate(budget, "
            "sensitivity=...), which finds the scale for it"
        )
    return checks.real_numbers(value, name, positive=True)


def single_scale(value: Any) -> float:
    """Check the scale of noise that has one for all entries."""
    scale = positive("scale", value)
    if scale.ndim:
        raise TypeError(
            f"scale must be a single number, got {checks.shown(value)}. If entries were scaled "
            "before noise was added, let the statistic be the scaled entries"
        )
    return float(scale)
