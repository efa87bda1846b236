"""One answer from an analysis that was repeated on several data sets."""

import warnings
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from pymc_dapper.checks import choice, finite_number, nowhere, real_numbers

Rule = Literal["synthetic", "records", "mixture"]

BISECTIONS = 60
"""Number of bisections for a quantile of a mixture."""


@dataclass(frozen=True, eq=False, repr=False)
class Combined:
    """The combined result of an analysis that was repeated on several data sets.

    Attributes
    ----------
    estimate : ndarray
        The mean of the estimates.
    variance : ndarray
        Its variance, given what was released.
    degrees_of_freedom : ndarray
        Those of the t distribution that intervals are taken from; infinite for a mixture.
    rule : str
        The rule by which the sets were combined.
    """

    estimate: np.ndarray
    variance: np.ndarray
    degrees_of_freedom: np.ndarray
    rule: str
    _sets: tuple[np.ndarray, np.ndarray] = field()

    def interval(self, prob: float = 0.9) -> np.ndarray:
        """Return the interval that has equal tails.

        Parameters
        ----------
        prob : float, default 0.9
            Its probability.

        Returns
        -------
        ndarray, shape (..., 2)
            Lower and upper end.
        """
        prob = finite_number(prob, "prob", above=0, below=1)
        tails = (0.5 * (1 - prob), 0.5 * (1 + prob))
        if self.rule == "mixture":
            return np.stack([_mixture_quantile(*self._sets, p) for p in tails], axis=-1)
        spread, df = np.sqrt(self.variance)[..., None], self.degrees_of_freedom[..., None]
        return np.asarray(self.estimate[..., None] + spread * stats.t.ppf(tails, df))

    def __repr__(self) -> str:
        """Show the estimate and an interval."""
        low, high = np.moveaxis(self.interval(), -1, 0)
        return (
            f"estimate {_shown(self.estimate)}, 90 % interval {_shown(low)} to {_shown(high)} "
            f"({len(self._sets[0])} sets, rule '{self.rule}')"
        )


def combine(estimates: ArrayLike, variances: ArrayLike, *, rule: Rule = "synthetic") -> Combined:
    r"""Combine an analysis that was repeated on several data sets.

    Parameters
    ----------
    estimates : array_like, shape (sets, ...)
        The estimate from each data set; of several parameters along further axes.
    variances : array_like, shape (sets, ...)
        The squared standard error from each data set, as the analysis reports it. It may be 0 in
        some sets, such as that of the share of a category that nobody is in.
    rule : {"synthetic", "records", "mixture"}
        The kind of data sets, and their combining rule:

        - ``"synthetic"``: each set is a draw from the posterior predictive distribution
          (:func:`synthetic_data` by default), of any size;
        - ``"records"``: each set holds the latent records of one posterior draw
          (:func:`synthetic_data` with ``latent=True``);
        - ``"mixture"``: sets from the posterior predictive distribution that are many times as
          large as the confidential data. The answer is the mixture of the analyses' posteriors,
          which needn't be normal.

    Returns
    -------
    Combined
        With the estimate, its variance, and ``interval(prob)``.

    Raises
    ------
    TypeError, ValueError
        If the arrays don't have the same shape, or labels of pandas or xarray differ between the
        sets; if they have fewer than two sets, or a variance is negative, or 0 in all sets; or if
        the sets are too few or too small for the rule ``"synthetic"``: their spread is then smaller
        than chance alone explains.

    Warns
    -----
    UserWarning
        If there is less than one degree of freedom: intervals are far too wide.

    Notes
    -----
    With m sets, estimates of mean q and variance b between sets, and u the mean of the variances:

    - synthetic (Raghunathan, Reiter and Rubin 2003): :math:`T = (1 + 1/m) b - u`, with
      :math:`(m - 1) (1 - u / ((1 + 1/m) b))^2` degrees of freedom. A set's own estimate scatters
      around its posterior draw, and b holds this scatter once too often;
    - records (Rubin 1987): :math:`T = u + (1 + 1/m) b`, with
      :math:`(m - 1) (1 + u / ((1 + 1/m) b))^2` degrees of freedom;
    - mixture (Räisä et al. 2025): the mean of the normal distributions with these estimates and
      variances.

    All take the model that made the sets to be right, and the analysis' parameter to be a function
    of the model's.

    References
    ----------
    Raghunathan, T. E., Reiter, J. P., and Rubin, D. B. (2003). Multiple imputation for statistical
    disclosure limitation. Journal of Official Statistics 19(1). For noise-aware synthetic data:
    Räisä, O., Jälkö, J., Kaski, S., and Honkela, A. (2023). Noise-aware statistical inference with
    differentially private synthetic data. Artificial Intelligence and Statistics 26.

    Rubin, D. B. (1987). Multiple imputation for nonresponse in surveys. Wiley. Chapter 3.

    Räisä, O., Jälkö, J., and Honkela, A. (2025). On consistent Bayesian inference from synthetic
    data. Journal of Machine Learning Research 26.

    Examples
    --------
    >>> combine([1.1, 0.7, 1.6], [0.01, 0.01, 0.01]).estimate
    array(1.13333333)
    """
    choice(rule, "rule", get_args(Rule))
    labels = [x for values in (estimates, variances) for x in _labels(values)]
    if any(x != labels[0] for x in labels):
        raise ValueError(
            "estimates and variances must have the same labels in all sets, in the same order: put "
            "those of each set in one order, as by .reindex(labels)"
        )
    q = real_numbers(estimates, "estimates", finite=True)
    u = real_numbers(variances, "variances", finite=True)
    if q.shape != u.shape or q.ndim == 0:
        raise ValueError(
            f"estimates and variances must have the same shape, with an entry for each set first: "
            f"got {q.shape} and {u.shape}"
        )
    m = len(q)
    if m < 2:
        raise ValueError("estimates must be of two sets or more: one doesn't show how they differ")
    within, between = u.mean(axis=0), q.var(axis=0, ddof=1)
    nowhere(u < 0, "variances must lie at 0 or above")
    nowhere((u == 0) & (within == 0), "variances must not be 0 in all sets")
    if rule == "mixture":
        variance, df = within + q.var(axis=0), np.full(within.shape, np.inf)
    else:
        variance, df = _by_moments(m, within, (1 + 1 / m) * between, rule)
    return Combined(np.asarray(q.mean(axis=0)), variance, df, rule, (q, np.sqrt(u)))


def _by_moments(
    m: int, within: np.ndarray, between: np.ndarray, rule: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return variance and degrees of freedom; ``between`` is that of the mean of one set more."""
    sign = -1.0 if rule == "synthetic" else 1.0
    variance = np.asarray(between + sign * within)
    if np.any(variance <= 0):
        raise ValueError(
            f"{_which(variance <= 0)} differ between the sets by less than their variances alone "
            f"would explain. Make more sets (there are {m}), or larger ones (n=...). If the sets "
            "have latent records, say rule='records'"
        )
    with np.errstate(divide="ignore"):
        df = np.asarray((m - 1) * (1 + sign * within / between) ** 2)
    if np.any(df < 1):
        warnings.warn(
            f"the intervals are far too wide: there are few sets, or {_which(df < 1)} differ "
            f"between them by hardly more than their variances alone would explain. Make more sets "
            f"(there are {m}), or larger ones (n=...)",
            stacklevel=3,
        )
    return variance, df


def _labels(values: Any) -> list[Any]:
    """Return the labels of the sets' parameters, where pandas or xarray has them."""
    if hasattr(values, "columns"):
        return [[list(values.columns)]]
    several = isinstance(values, list | tuple) or getattr(values, "dims", False)
    sets = list(values) if several else []
    named = [[(d, list(x.get_index(d))) for d in x.dims] for x in sets if hasattr(x, "dims")]
    return named + [[list(axis) for axis in x.axes] for x in sets if hasattr(x, "axes")]


def _which(chosen: np.ndarray) -> str:
    """Name estimates of some parameters."""
    if not chosen.ndim:
        return "the estimates"
    first = ", ".join(map(str, np.argwhere(chosen)[0]))
    return f"the estimates of {chosen.sum()} of {chosen.size} parameters (the first is [{first}])"


def _mixture_quantile(means: np.ndarray, deviations: np.ndarray, p: float) -> np.ndarray:
    """Return a quantile of the mixture of normal distributions along the first axis."""
    deviations = np.maximum(deviations, np.finfo(np.float64).tiny)
    each = means + deviations * special.ndtri(p)
    low, high = each.min(axis=0), each.max(axis=0)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        below = special.ndtr((middle - means) / deviations).mean(axis=0) < p
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(0.5 * (low + high))


def _shown(values: Any) -> str:
    return np.array2string(np.asarray(values), precision=4, threshold=6)
