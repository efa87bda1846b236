"""Truncated-uniform-Laplace noise, with which tests of proportions are most powerful."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pymc as pm
from numpy.typing import ArrayLike

from pymc_dapper import budget as accounting
from pymc_dapper.budget import ApproxDP, PureDP
from pymc_dapper.budget.kinds import needed, spent_by
from pymc_dapper.checks import called_as, finite_number, real_numbers, shown
from pymc_dapper.distributions import Tulap
from pymc_dapper.distributions._rounded import tulap_between
from pymc_dapper.mechanisms.additive import AdditiveNoise
from pymc_dapper.mechanisms.groups import one_scale, with_neighbours
from pymc_dapper.sensitivity import Neighbours, Sensitivities


@dataclass(frozen=True, eq=False, repr=False)
class TulapMechanism(AdditiveNoise):
    """Truncated-uniform-Laplace noise on a count of sensitivity 1 (Awan and Slavkovic 2018).

    Attributes
    ----------
    b : array_like
        exp(-epsilon), within (0, 1).
    q : array_like
        Truncation, within [0, 1): the noise keeps its central probability 1 - q. Zero for pure
        privacy.

    Examples
    --------
    >>> mechanism = TulapMechanism.calibrate(PureDP(0.5))
    >>> with pm.Model():
    ...     p = pm.Beta("p", 1, 1)
    ...     yes = pm.Binomial("yes", 100, p)
    ...     privacy = mechanism.potential("privacy", yes, released=62.56)
    """

    b: float | np.ndarray
    q: float | np.ndarray = 0.0

    _law = Tulap
    _log_between = staticmethod(tulap_between)
    _only_unit_cells = True

    def _check_parameters(self) -> None:
        b, q = real_numbers(self.b, "b"), real_numbers(self.q, "q")
        if not np.all((b > 0) & (b < 1)) or not np.all((q >= 0) & (q < 1)):
            raise ValueError(
                "b must be within (0, 1) and q within [0, 1), "
                f"got {shown(self.b)} and {shown(self.q)}"
            )

    @classmethod
    @called_as("{owner}.calibrate(budget, sensitivity=...), with a budget such as pmd.PureDP(0.5)")
    def calibrate(
        cls,
        budget: PureDP | ApproxDP,
        *,
        sensitivity: int | Sensitivities = 1,
        neighbours: Neighbours | None = None,
    ) -> Self:
        """Choose the noise for a budget.

        Parameters
        ----------
        budget : PureDP or ApproxDP
            The budget.
        sensitivity : int or Sensitivities
            Must be 1: the noise is for counts that one record changes by one at most.
        neighbours : {"replace", "add_remove"}, optional
            Neighbouring data sets that the budget is for, if the budget doesn't say so itself.

        References
        ----------
        Awan and Slavkovic (2018), Theorem 3.2: b = exp(-epsilon) and
        q = 2 delta b / (1 - b + 2 delta b).
        """
        if not isinstance(budget, ApproxDP):
            accounting.check_pure(budget, cls.__name__)
        budget = with_neighbours(cls, budget, neighbours)
        _check_unit(needed(budget, sensitivity, "l1", "Tulap noise"))
        b = float(np.exp(-budget.epsilon))
        if not 0 < b < 1:
            raise ValueError(
                f"b = exp(-epsilon) for {budget} rounds to {b:.0f}: use DiscreteLaplaceMechanism, "
                "whose scale is 1 / epsilon"
            )
        delta = budget.delta if isinstance(budget, ApproxDP) else 0.0
        q = 2 * delta * b / (1 - b + 2 * delta * b)
        return cls(b, q, budget=budget)

    def privacy_loss(
        self, *, sensitivity: int | Sensitivities = 1, rows: int | None = None
    ) -> PureDP | ApproxDP:
        """Budget that a release of a count spends.

        After :meth:`~.PublishedByRules.nonempty`, ``rows`` is the most rows that one record can be
        in.
        """
        one, neighbours = spent_by(sensitivity, "l1", "Tulap noise")
        _check_unit(one)
        b, q = one_scale(self.b), one_scale(self.q)
        epsilon = -float(np.log(b))
        delta = q * (1 - b) / (2 * b * (1 - q))
        spent: PureDP | ApproxDP = PureDP(epsilon, neighbours=neighbours)
        if q != 0:
            spent = ApproxDP(epsilon, delta, neighbours=neighbours)
        return self._with_new_rows(spent, rows)

    def _two_sided_quantile(self, p: float) -> ArrayLike:
        return pm.icdf(self._noise(), 1 - p / 2).eval(mode="FAST_COMPILE")


def _check_unit(sensitivity: Any) -> None:
    sensitivity = finite_number(sensitivity, "sensitivity")
    if sensitivity != 1:
        raise ValueError(
            f"Tulap noise is made for counts, of sensitivity 1, got {sensitivity:g}. For another "
            "integer sensitivity use DiscreteLaplaceMechanism"
        )
