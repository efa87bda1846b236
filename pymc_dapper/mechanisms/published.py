"""Mechanisms with rules: what the curator did to noisy values before publication."""

from abc import abstractmethod
from copy import copy
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.checks import about, nowhere
from pymc_dapper.html import table
from pymc_dapper.mechanisms import rules
from pymc_dapper.mechanisms.arguments import with_suppressed
from pymc_dapper.mechanisms.base import Mechanism, as_pair, whole_release
from pymc_dapper.mechanisms.spans import Span, either


@dataclass(frozen=True, eq=False, repr=False)
class PublishedByRules(Mechanism):
    """A mechanism with the rules that the curator applied to noisy values, in order.

    Attributes
    ----------
    publication : Publication
        The rules. Not an argument: the methods below add them.
    """

    publication: rules.Publication = field(
        default=rules.Publication(None), init=False, repr=False, kw_only=True
    )

    def __repr__(self) -> str:
        """Show the rules after the mechanism."""
        return f"{super().__repr__()}{self.publication!r}"

    def _repr_html_(self) -> str:
        told = repr(self.publication).removeprefix(".")
        rows = {**self._shown(), **({"published": told} if told else {})}
        return table(type(self).__name__, (), rows.items())

    def rounded(self, step: float = 1, *, ties: rules.Ties = "half even") -> Self:
        """Add the rule that noisy values were rounded to multiples of a step.

        Add rules in the order in which they were applied: ``mechanism.rounded(5).clamped(0, None)``
        is another release than ``mechanism.clamped(0, None).rounded(5)``.

        Parameters
        ----------
        step : float
            The step, above zero: 5, 100, 0.001. Noise on a grid of floating-point numbers
            (snapping, granularity) is rounded to that grid.
        ties : {"half even", "half up", "down", "toward zero"}
            Where values halfway between two multiples go: to the even one, as in IEEE 754, NumPy
            and R; or to the upper one. With "down" all values go to the multiple below, with
            "toward zero" to the one nearer to zero, as with Python's ``int``.

        Returns
        -------
        PublishedByRules
            This one with the rule.

        Raises
        ------
        TypeError, ValueError
            If an argument is of a wrong kind or out of range, if the rule can't follow the rules
            before, or if the mechanism has no likelihood of such releases.
        """
        return self.following(rules.Rounding(step, ties))

    def clamped(self, lower: float | None, upper: float | None) -> Self:
        """Add the rule that noisy values beyond limits were moved to the limits.

        The likelihood then has point masses at the limits.

        Parameters
        ----------
        lower, upper : float or None
            The limits; None for an open end.

        Returns
        -------
        PublishedByRules
            This one with the rule. Errors are those of :meth:`rounded`.
        """
        return self.following(rules.Clamping(lower, upper))

    def published_if(self, relation: rules.Relation, threshold: float) -> Self:
        """Add the rule that entries with a low noisy value were suppressed.

        The likelihood of a suppressed entry is the probability of suppression. In the release the
        entry is masked (`numpy.ma`) or nan; in shared data and inside PyMC, minus infinity.
        :func:`~pymc_dapper.published_rows` makes such a release from the published rows.

        Parameters
        ----------
        relation : {">", ">="}
            How a published noisy value compares with the threshold.
        threshold : float
            The threshold, in the units that values have after the rules before.

        Returns
        -------
        PublishedByRules
            This one with the rule. Errors are those of :meth:`rounded`.
        """
        return self.following(rules.Threshold(relation, threshold))

    def times(self, factor: float) -> Self:
        """Add the rule that values were published in other units: per cent are ``times(100)``.

        Parameters
        ----------
        factor : float
            The positive factor by which values were multiplied.

        Returns
        -------
        PublishedByRules
            This one with the rule. Errors are those of :meth:`rounded`.
        """
        return self.following(rules.Scaling(factor))

    def in_ranges(self, edges: ArrayLike) -> Self:
        """Add the rule that the number of the range of a value was published.

        Parameters
        ----------
        edges : array_like, shape (k,)
            Where ranges begin, in increasing order. Range i is from ``edges[i - 1]`` to below
            ``edges[i]``. Range 0 is everything below the first edge, range k everything from the
            last edge on.

        Returns
        -------
        PublishedByRules
            This one with the rule, which must be the last. Errors are those of :meth:`rounded`.
        """
        return self.following(rules.Ranges(edges))

    def nonempty(self) -> Self:
        """Add the rule that there are rows only where the statistic, a count, is above zero.

        Use it if the rows of a table weren't fixed beforehand: a row without records isn't
        published, and a published row is known to have records. Give missing rows as suppressed
        entries, see :meth:`published_if`.

        Returns
        -------
        PublishedByRules
            This one with the rule, which must be the first. Its ``budget`` is None:
            ``privacy_loss`` computes what such rows spend, given a threshold.

        References
        ----------
        Korolova, A., Kenthapadi, K., Mishra, N. and Ntoulas, A. (2009). Releasing search queries
        and clicks privately. WWW 2009, 171-180.

        Wilson, R. J., Zhang, C. Y., Lam, W., Desfontaines, D., Simmons-Marengo, D. and Gipson, B.
        (2020). Differentially private SQL with bounded user contribution. Proceedings on Privacy
        Enhancing Technologies 2020(2), 230-250.
        """
        return self._published(self.publication.of_nonempty())

    def following(self, rule: rules.Rule) -> Self:
        """Add a rule after the present ones. Errors are those of :meth:`rounded`."""
        with about(f"{self!r}.{rule!r}"):
            return self._published(self.publication.then(rule))

    @property
    def integer(self) -> bool:
        """Whether the released values are integers."""
        grid = self.publication.grid
        return grid is not None and float(grid).is_integer()

    @property
    def suppresses(self) -> bool:
        """Whether entries may be suppressed."""
        return self.publication.suppresses

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that the rules can have led to a release: else a ValueError.

        Suppressed entries are minus infinity.
        """
        released = np.asarray(released)
        values = released
        if self.suppresses and released.dtype.kind == "f":
            nowhere(
                np.isnan(released),
                f"'{name}': in shared data and in pm.observe, suppressed entries must be -np.inf, "
                "but there is nan, which may be a forgotten value",
                f". mechanism.as_released('{name}', released) converts masked or nan entries",
            )
            values = released[~np.isneginf(released)]
        super().check_released(name, values)
        self.publication.check(name, released)

    def _taken(self, what: str, released: Any) -> Any:
        if self.suppresses and not isinstance(released, Variable):
            return with_suppressed(what, released)
        return released

    def _as_kept(self, name: str, released: np.ndarray) -> np.ndarray:
        if not self.suppresses:
            return super()._as_kept(name, released)
        super()._as_kept(name, np.where(np.isneginf(released), 0, released))
        return released.astype(np.float64)

    def _as_drawn(self, released: np.ndarray) -> np.ndarray:
        """Return a simulated release as users get it: masked where it is suppressed."""
        if self.suppresses:
            hidden = np.isneginf(released)
            return np.ma.masked_array(np.where(hidden, np.nan, released), hidden)
        return whole_release(released, type(self).__name__) if self.integer else released

    def _published(self, publication: rules.Publication) -> Self:
        """Return this mechanism with other rules; a ValueError if there is no likelihood."""
        mechanism = copy(self)
        object.__setattr__(mechanism, "publication", publication)
        if publication.nonempty:
            object.__setattr__(mechanism, "budget", None)
        return mechanism

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-density of released values, or log-probability of discrete and suppressed ones.

        As of each `Mechanism`. Minus infinity for values that the noise or the rules can't give.
        """
        released, statistic = as_pair(self._taken("the release", released), statistic)
        logp = self._log_published(released, self.publication.span(released), statistic)
        if not self.publication.nonempty:
            return logp
        of_empty = either(self.publication.hidden(released), 0.0, -np.inf)
        return pt.switch(statistic > 0, logp, of_empty)

    @abstractmethod
    def _log_published(
        self, released: TensorVariable, span: Span, statistic: TensorVariable
    ) -> TensorVariable:
        """Log-density of released values, given the span of their noisy values."""
