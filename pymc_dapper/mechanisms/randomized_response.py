"""Randomised response: each record's category is published, with random changes."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.raise_op import Assert
from pytensor.tensor.variable import TensorVariable

from pymc_dapper import budget as accounting
from pymc_dapper.budget import PureDP
from pymc_dapper.budget.kinds import check_replace
from pymc_dapper.checks import called_as, finite_number, nowhere, whole_number
from pymc_dapper.mechanisms.arguments import refuse
from pymc_dapper.mechanisms.base import Mechanism, as_pair, as_tensor


@dataclass(frozen=True, eq=False, repr=False)
class RandomizedResponse(Mechanism):
    """Each record's answer is its true category or, at random, another one (Warner 1965).

    The answer is the true category with probability ``keep_probability``; all other categories are
    equally likely. Answers of different records are independent. This is local privacy: whoever
    collects the answers needn't be trusted.

    The statistic is the true category of each record, not a count, and each record has a released
    answer. Each answer spends the budget. If a record has several answers (several attributes, or
    columns of the statistic), their budgets add up, as by ``compose``.

    Attributes
    ----------
    keep_probability : float
        Probability that the released value equals the true one, above 1 / categories and below 1.
    categories : int
        Number k of categories, 2 or more. True and released values are 0, ..., k - 1.

    Raises
    ------
    TypeError
        If an argument isn't a number, or ``categories`` isn't a whole number.
    ValueError
        If an argument is out of range. ``keep_probability`` = 1 / categories is refused because the
        answers would carry no information, and a lower one because it probably means something
        else.

    Notes
    -----
    Other descriptions use a redraw: with some probability r, the answer is drawn uniformly from all
    k categories, including the true one. Then ``keep_probability`` is ``1 - r (k - 1) / k``.

    In a model, a record whose true category is out of range has log-probability -inf.

    References
    ----------
    Warner, S. L. (1965). Randomized response: a survey technique for eliminating evasive answer
    bias. Journal of the American Statistical Association 60, 63-69. For two categories.

    Kairouz, P., Bonawitz, K. and Ramage, D. (2016). Discrete distribution estimation under local
    privacy. International Conference on Machine Learning 33. For more than two.

    Examples
    --------
    Two attributes of each record, each kept with probability 3/4:

    >>> sex = status = RandomizedResponse(0.75, categories=2)
    >>> print(sex.privacy_loss())
    PureDP(epsilon=1.09861, one person changes)
    >>> print(sex.privacy_loss().compose(status.privacy_loss()))
    PureDP(epsilon=2.19722, one person changes)

    As factors of a model, with four records of which both are answered:

    >>> with pm.Model() as model:
    ...     p = pm.Dirichlet("p", np.ones(4))
    ...     record = pm.Categorical("record", p=p, shape=4)
    ...     factor = sex.potential("sex", record // 2, released=[1, 0, 0, 1])
    ...     factor = status.potential("status", record % 2, released=[1, 1, 0, 0])
    """

    keep_probability: float
    categories: int

    def __post_init__(self) -> None:
        k = whole_number(self.categories, "categories", at_least=2)
        keep = finite_number(self.keep_probability, "keep_probability")
        object.__setattr__(self, "keep_probability", keep)
        object.__setattr__(self, "categories", k)
        if not 0 <= keep <= 1:
            raise ValueError(f"keep_probability must be between 1/{k} and 1, got {keep!r}")
        if keep == 1:
            raise ValueError(
                "keep_probability must be below 1: at 1 the true values themselves are released. "
                "Give them to the model as data"
            )
        if abs(keep * k - 1) < 1e-14:
            raise ValueError(
                f"keep_probability must be above 1/{k}: there, all {k} answers are equally "
                "likely for any true value, so they carry no information"
            )
        if keep * k < 1:
            raise ValueError(
                f"keep_probability must be above 1/{k}, got {keep!r}. It is the probability that "
                f"the released value equals the true one. If {keep!r} is the probability of a "
                f"uniform redraw from all {k} categories, it is {1 - keep * (k - 1) / k:.6g}; if "
                f"that the value was changed to another one, {1 - keep:.6g}"
            )

    integer = True

    @classmethod
    @called_as("{owner}.calibrate(budget, categories), with a budget such as pmd.PureDP(0.5)")
    def calibrate(cls, budget: PureDP, categories: int) -> Self:
        """Choose the probability of a true answer for a budget: e^epsilon / (e^epsilon + k - 1).

        There is no sensitivity: the mechanism works on one record at a time.

        Parameters
        ----------
        budget : PureDP
            The budget for one answer. If a record has several answers, ``split`` their budget.
        categories : int
            Number k of categories.

        Returns
        -------
        RandomizedResponse
            It keeps the budget.

        Raises
        ------
        TypeError
            If the budget isn't pure: the message names a pure budget that is enough for it.
        ValueError
            If ``categories`` is below 2, if the probability isn't distinguishable from 1 or from 1
            / categories in a float, or if the budget is for added or removed records.

        References
        ----------
        Kairouz, Bonawitz and Ramage (2016).

        Examples
        --------
        >>> each = PureDP(2 * np.log(3)).split(2)[0]
        >>> round(RandomizedResponse.calibrate(each, categories=2).keep_probability, 6)
        0.75
        """
        accounting.check_pure(budget, cls.__name__)
        why = "each record has its answer, and so their number is public"
        check_replace(budget, cls.__name__, why)
        others = whole_number(categories, "categories", at_least=2) - 1
        return cls(1 / (1 + others * float(np.exp(-budget.epsilon))), categories, budget=budget)

    def privacy_loss(self) -> PureDP:
        """Budget that one answer spends: log of keep_probability (k - 1) / (1 - keep_probability).

        Returns
        -------
        PureDP
            By the largest ratio of an answer's probabilities, given two true categories.

        References
        ----------
        Kairouz, Bonawitz and Ramage (2016).
        """
        keep = self.keep_probability
        return PureDP(float(np.log1p((keep * self.categories - 1) / (1 - keep))))

    @property
    def _log_probabilities(self) -> tuple[np.ndarray, np.ndarray]:
        """Log-probability of the true category, and of each other one."""
        log_change = np.log1p(-self.keep_probability)
        return np.log(self.keep_probability), log_change - np.log(self.categories - 1)

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-probability of each answer, given the true categories; -inf for other numbers.

        As of each `Mechanism`; categories that aren't of an integer type raise a TypeError.
        """
        released, truth = as_pair(released, _as_categories(statistic))
        kept, changed = self._log_probabilities
        logp = pt.switch(pt.eq(released, truth), kept, changed)
        possible = self._is_category(truth) & self._is_category(released)
        if released.dtype.startswith("float"):
            possible &= pt.eq(released, pt.round(released))
        return pt.switch(possible, logp, -np.inf)

    def _is_category(self, values: Any) -> Any:
        return (values >= 0) & (values < self.categories)

    def check_released(self, name: str, released: np.ndarray) -> None:
        """Check that answers are categories 0, ..., k - 1: else a ValueError."""
        super().check_released(name, released)
        rule = f"answers are categories 0, ..., {self.categories - 1}"
        refuse(name, np.logical_not(self._is_category(released)), released, rule)

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        truth = _as_categories(statistic)
        size = truth.shape if rv_size_is_none(size) else size
        changed = pm.Bernoulli.dist(np.asarray(1 - self.keep_probability), size=size)
        # The other categories are 1, ..., k - 1 steps away, in a circle. (There are discrete
        # uniform draws in PyMC, but not in numba.)
        others = self.categories - 1
        steps = 1 + pt.floor(pm.Uniform.dist(0.0, np.asarray(float(others)), size=size))
        steps = changed * pt.minimum(steps, others).astype("int64")
        released = (truth + steps) % self.categories
        message = f"RandomizedResponse: true categories must be 0, ..., {self.categories - 1}"
        return Assert(message)(released, self._is_category(truth).all()).astype("int64")

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        possible = self._is_category(statistic) & (statistic == np.round(statistic))
        nowhere(~possible, f"the true values must be categories 0, ..., {self.categories - 1}")
        truth = statistic.astype(np.int64)
        changed = rng.random(truth.shape) >= self.keep_probability
        steps = changed * rng.integers(1, self.categories, size=truth.shape)
        return np.asarray((truth + steps) % self.categories)


def _as_categories(statistic: Any) -> TensorVariable:
    truth = as_tensor(statistic)
    if np.dtype(truth.dtype).kind not in "biu":
        raise TypeError(
            "the statistic of RandomizedResponse is the true category of each record, of an "
            f"integer type, but its type is {truth.dtype}. If it holds whole numbers, write "
            "statistic.astype('int64')"
        )
    return truth.astype("int64")
