"""Brute force for tiny problems: every confidential data set that could be, one by one.

With K possible values for each of n records there are K^n data sets. The mechanism's log-likelihood
is evaluated at each of them, whatever function it is; no structure is used.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pymc_dapper.checks import real_numbers, whole_number
from pymc_dapper.reference.dirichlet_table import BetaMixture

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
LogMechanism = Callable[[tuple[Any, ...]], float]

MAX_STATES = 2_000_000


@dataclass(frozen=True, eq=False)
class RecordPosterior:
    """All states that the records can be in, and how probable each is.

    Attributes
    ----------
    states : (K^n, n) int array
        The value, from 0 to K - 1, of each record, in lexicographic order: the last record's
        changes fastest.
    probabilities : (K^n,) array
        Posterior probability of each state.
    """

    states: IntArray
    probabilities: FloatArray


@dataclass(frozen=True, eq=False)
class DirichletRecordPosterior(RecordPosterior):
    """All states of the records, with cell probabilities p ~ Dirichlet(alpha) marginalised.

    Given the records, p ~ Dirichlet(alpha + counts): its posterior is the mixture of these.

    Attributes
    ----------
    states : (K^n, n) int array
        As in `RecordPosterior`.
    probabilities : (K^n,) array
        Posterior probability of each state.
    counts : (K^n, K) int array
        How many records of each state have each value.
    alpha : (K,) array
        The prior's parameters.
    """

    counts: IntArray
    alpha: FloatArray

    @property
    def count_pmf(self) -> FloatArray:
        """Posterior probability that cell k holds c records, shape (K, n + 1)."""
        bins = self.states.shape[1] + 1
        return np.array([np.bincount(column, self.probabilities, bins) for column in self.counts.T])

    @property
    def mean(self) -> FloatArray:
        """Posterior mean of p, shape (K,)."""
        return np.array([self._cell(k).mean for k in range(self.alpha.size)])

    @property
    def sd(self) -> FloatArray:
        """Posterior standard deviation of p, shape (K,)."""
        return np.array([self._cell(k).sd for k in range(self.alpha.size)])

    def cdf(self, k: int, x: float) -> float:
        """Posterior probability that ``p[k] <= x``, for x in [0, 1]."""
        return float(self._cell(k).cdf(x))

    def _cell(self, k: int) -> BetaMixture:
        concentration = float(self.alpha.sum()) + self.states.shape[1]
        return BetaMixture(self.probabilities, self.alpha[k] + self.counts[:, k], concentration)


def conditional_posterior(
    prior: ArrayLike,
    log_mechanism: LogMechanism,
    *,
    n_records: int | None = None,
    values: Sequence[Any] | None = None,
) -> RecordPosterior:
    """Exact posterior of the records with the model's parameters fixed: p(x | theta, s_dp).

    Parameters
    ----------
    prior : (K,) or (n, K) array_like
        Probability f(x_i | theta) of each value, the same for all records or a row for each.
    log_mechanism : callable
        Log-likelihood of what was released, ``log eta(s_dp | x)``, given a tuple of the n records.
        -inf rules the records out.
    n_records : int, optional
        Number of records n; needed if `prior` is a vector.
    values : sequence of length K, optional
        The values that `log_mechanism` is to be given; 0 to K - 1 by default.

    Returns
    -------
    RecordPosterior
        All K^n states and their probabilities.

    Raises
    ------
    ValueError
        If a shape or value makes no sense, if there are more than `MAX_STATES` states, or if the
        mechanism returns nan or +inf, or rules out every state that the prior allows.
    """
    table = np.asarray(prior, dtype=float)
    if table.ndim not in (1, 2) or table.size == 0:
        raise ValueError(f"prior must have shape (K,) or (n, K), got {table.shape}.")
    if table.ndim == 1:
        if n_records is None:
            raise ValueError("n_records is needed where prior is one vector for all records.")
        table = np.tile(table, (whole_number(n_records, "n_records", at_least=1), 1))
    elif n_records is not None and n_records != table.shape[0]:
        raise ValueError(
            f"n_records is {n_records}, but prior has {table.shape[0]} rows. "
            "Leave n_records out, or give one row for each record."
        )
    if not (np.all(table >= 0) and np.allclose(table.sum(axis=1), 1, rtol=0, atol=1e-9)):
        raise ValueError("prior must hold probabilities that add up to 1 over the last axis.")

    n, n_values = table.shape
    states = _all_states(n_values, n)
    prior_weights = table[np.arange(n), states].prod(axis=1)
    return RecordPosterior(states, _posterior(states, prior_weights, log_mechanism, values))


def dirichlet_posterior(
    alpha: ArrayLike,
    n_records: int,
    log_mechanism: LogMechanism,
    *,
    values: Sequence[Any] | None = None,
) -> DirichletRecordPosterior:
    """Exact posterior of records and cell probabilities, with p ~ Dirichlet(alpha).

    Parameters
    ----------
    alpha : (K,) array_like
        Parameters of the prior.
    n_records : int
        Number of records n.
    log_mechanism : callable
        As in `conditional_posterior`.
    values : sequence of length K, optional
        As in `conditional_posterior`.

    Returns
    -------
    DirichletRecordPosterior
        All K^n states, their probabilities and counts, and from these the posterior of p.

    Raises
    ------
    ValueError
        As in `conditional_posterior`.
    """
    concentrations = real_numbers(alpha, "alpha", vector=True, positive=True)
    n_records = whole_number(n_records, "n_records", at_least=1)
    states = _all_states(concentrations.size, n_records)
    counts = np.zeros((len(states), concentrations.size), dtype=np.int64)
    prior_weights = np.ones(len(states))
    rows = np.arange(len(states))
    for seen, value in enumerate(states.T):  # Polya's urn, record by record
        urn = concentrations[value] + counts[rows, value]
        prior_weights *= urn / (concentrations.sum() + seen)
        counts[rows, value] += 1
    probabilities = _posterior(states, prior_weights, log_mechanism, values)
    return DirichletRecordPosterior(states, probabilities, counts, concentrations)


def _all_states(n_values: int, n_records: int) -> IntArray:
    """Every state of the records, in lexicographic order; shape (K^n, n)."""
    if n_values**n_records > MAX_STATES:
        raise ValueError(
            f"{n_records} records of {n_values} values have {n_values}^{n_records} states, more "
            f"than the {MAX_STATES} that are enumerated. Use fewer records or values."
        )
    shape = (n_values,) * n_records
    return np.indices(shape, dtype=np.int64).reshape(n_records, -1).T


def _posterior(
    states: IntArray,
    prior_weights: FloatArray,
    log_mechanism: LogMechanism,
    values: Sequence[Any] | None,
) -> FloatArray:
    """Probability of each state: prior weight times mechanism, normalised."""
    n_values, n_records = int(states.max()) + 1, states.shape[1]
    choices = range(n_values) if values is None else values
    if len(choices) != n_values:
        raise ValueError(
            f"values must have {n_values} entries, one for each probability, got {len(choices)}."
        )
    all_records = product(choices, repeat=n_records)  # in the order of the states
    log_likelihood = np.fromiter(map(log_mechanism, all_records), dtype=float, count=len(states))
    wrong = np.isnan(log_likelihood) | np.isposinf(log_likelihood)
    if wrong.any():
        first = int(wrong.argmax())
        raise ValueError(
            f"log_mechanism returned {log_likelihood[first]} for the records "
            f"{tuple(choices[i] for i in states[first])}; "
            "it must be finite, or -inf for records that are ruled out."
        )
    with np.errstate(divide="ignore"):
        log_weights = np.log(prior_weights) + log_likelihood
    if np.isneginf(log_weights).all():
        raise ValueError(
            "log_mechanism rules out every state that the prior allows. "
            "Check it against one set of records that it should allow."
        )
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())
