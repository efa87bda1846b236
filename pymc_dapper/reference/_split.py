"""The law of a split: independent cell weights, given that the cells add up to a known total.

A split ``(n_1, ..., n_K)`` of N records has probability proportional to ``prod_k weight_k(n_k)`` on
``n_1 + ... + n_K = N``. Read from the first cell to the last, the running totals form a Markov
chain. Its backward kernels, P(n_k = c given that the first k cells hold s), answer every question
asked here: draws, means of products, moments of sums.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

NEGLIGIBLE = 1e-18
"""Probability dropped in either tail of each cell's count: less than rounding can show."""


class BackwardKernel(NamedTuple):
    """P(n_k = c given that cells 1..k hold s), over rows s and columns c.

    Rows that cannot occur are zero throughout.
    """

    log_probability: np.ndarray
    probability: np.ndarray
    previous: np.ndarray
    """Row of the previous kernel, that is, the index of s - c; 0 if the probability is 0."""


@dataclass(frozen=True, eq=False)
class SplitLaw:
    """A law of splits, held as the marginal law of each cell and a backward chain.

    Cell k can hold the counts ``supports[k]``, with the marginal probabilities ``pmfs[k]``. There
    is a kernel for each cell from the second on. The first kernel's `previous` points into
    ``supports[0]``; the last kernel has one row, the total. The functions of counts that the
    methods take are given by their values on the supports.
    """

    supports: tuple[np.ndarray, ...]
    pmfs: tuple[np.ndarray, ...]
    kernels: tuple[BackwardKernel, ...]

    def mean_of_product(self, factors: Sequence[np.ndarray]) -> complex:
        """Mean of ``prod_k factors[k](n_k)``; stable as long as no factor exceeds 1 in modulus."""
        value: np.ndarray = factors[0]
        for kernel, factor in zip(self.kernels, factors[1:], strict=True):
            value = (kernel.probability * value[kernel.previous]) @ factor
        return complex(value[0])

    def log_mean_of_product(self, log_factors: Sequence[np.ndarray]) -> float:
        """Log of the mean of ``prod_k exp(log_factors[k](n_k))``, for factors of any size."""
        value = log_factors[0]
        for kernel, log_factor in zip(self.kernels, log_factors[1:], strict=True):
            value = logsumexp(kernel.log_probability + value[kernel.previous] + log_factor, axis=-1)
        return float(value[0])

    def moments_of_sum(self, terms: Sequence[np.ndarray]) -> tuple[float, float]:
        """Mean and variance of ``sum_k terms[k](n_k)``, the cells' dependence included."""
        mean, variance = terms[0], np.zeros_like(terms[0])
        for kernel, term in zip(self.kernels, terms[1:], strict=True):
            total = term + mean[kernel.previous]
            mean = (kernel.probability * total).sum(axis=1)
            spread = variance[kernel.previous] + (total - mean[:, None]) ** 2
            variance = (kernel.probability * spread).sum(axis=1)
        return float(mean[0]), float(variance[0])

    def draws(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draw splits independently, from the last cell back to the first; shape (size, K)."""
        columns = []
        row = np.zeros(size, dtype=np.intp)
        for cell in range(len(self.kernels), 0, -1):
            kernel = self.kernels[cell - 1]
            column = np.empty(size, dtype=np.intp)
            for one_row in np.unique(row):
                here = row == one_row
                probability = kernel.probability[one_row]
                column[here] = rng.choice(probability.size, size=here.sum(), p=probability)
            columns.append(self.supports[cell][column])
            row = kernel.previous[row, column]
        columns.append(self.supports[0][row])
        return np.column_stack(columns[::-1])


def log_convolve(a: np.ndarray, b: np.ndarray, size: int) -> np.ndarray:
    """Log of the first `size` terms of the convolution of ``exp(a)`` and ``exp(b)``."""
    out = np.empty(min(size, a.size + b.size - 1))
    for s in range(out.size):
        first, last = max(0, s - b.size + 1), min(s, a.size - 1)
        out[s] = logsumexp(a[first : last + 1] + b[s - last : s - first + 1][::-1])
    return out


def log_marginal_weights(log_weights: np.ndarray) -> np.ndarray:
    """Unnormalised log marginal law of each cell's count, by leave-one-out convolutions.

    Input and result are log weights of each count in each cell, shape (K, N + 1) with K >= 2. The
    rows of the result all add up, as exponentials, to the total weight of the splits of N.
    """
    size = log_weights.shape[1]

    def running(rows: np.ndarray) -> list[np.ndarray]:
        return list(accumulate(rows, lambda a, b: log_convolve(a, b, size), initial=np.zeros(1)))

    before = running(log_weights[:-1])
    after = running(log_weights[:0:-1])[::-1]
    others = [log_convolve(a, b, size) for a, b in zip(before, after, strict=True)]
    return log_weights + np.array(others)[:, ::-1]


def latent_split(log_weights: np.ndarray, pmf: np.ndarray) -> SplitLaw:
    """Law of the splits of N with these log weights of each count in each cell, shape (K, N + 1).

    `pmf` is the marginal law of each cell's count, as `log_marginal_weights` gives it, normalised.
    Counts in either tail, with probability `NEGLIGIBLE` altogether, are left out.
    """
    total = log_weights.shape[1] - 1
    low = (pmf.cumsum(axis=1) > NEGLIGIBLE).argmax(axis=1)
    high = total - (pmf[:, ::-1].cumsum(axis=1) > NEGLIGIBLE).argmax(axis=1)
    counts = [np.arange(first, last + 1) for first, last in zip(low, high, strict=True)]

    kernels = []
    start, log_prefix = low[0], log_weights[0, counts[0]]
    for k in range(1, len(counts)):
        # The possible counts of the first k + 1 cells, given the others.
        smallest = max(low[: k + 1].sum(), total - high[k + 1 :].sum())
        largest = min(high[: k + 1].sum(), total - low[k + 1 :].sum())
        previous = np.arange(smallest, largest + 1)[:, None] - counts[k] - start
        possible = (previous >= 0) & (previous < log_prefix.size)
        previous = np.where(possible, previous, 0)
        joint = np.where(possible, log_weights[k, counts[k]] + log_prefix[previous], -np.inf)
        start, log_prefix = smallest, logsumexp(joint, axis=-1)
        log_probability = joint - np.where(np.isneginf(log_prefix), 0.0, log_prefix)[:, None]
        kernels.append(BackwardKernel(log_probability, np.exp(log_probability), previous))

    kept = [row[c] for row, c in zip(pmf, counts, strict=True)]
    pmfs = tuple(row / row.sum() for row in kept)
    return SplitLaw(supports=tuple(counts), pmfs=pmfs, kernels=tuple(kernels))


def known_split(counts: np.ndarray) -> SplitLaw:
    """Law that puts all probability on one split, whose counts may be fractional."""
    certain = BackwardKernel(np.zeros((1, 1)), np.ones((1, 1)), np.zeros((1, 1), dtype=np.intp))
    return SplitLaw(
        supports=tuple(np.array([count]) for count in counts),
        pmfs=tuple(np.ones(1) for _ in counts),
        kernels=(certain,) * (len(counts) - 1),
    )
