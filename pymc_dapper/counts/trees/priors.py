"""Priors of counts, as users write them, in the form of the kernels."""

from typing import Any, NamedTuple

import numpy as np

from pymc_dapper.checks import as_array, real_numbers, shown
from pymc_dapper.counts.trees.weights import ENDLESS, FLAT, NEGATIVE_BINOMIAL, OF_TABLE, POISSON

TAIL = 1e-20
"""Tail of a law that a table leaves out, if nothing else limits it."""
MOST_ENTRIES = 10**8
"""Most entries of all tables of a tree together."""

Tables = tuple[np.ndarray, np.ndarray, np.ndarray]
NO_TABLES: Tables = (np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


class Prior(NamedTuple):
    """The prior of each leaf; arrays of shape (number of leaves,)."""

    kind: np.ndarray
    first: np.ndarray
    second: np.ndarray
    tables: Tables


def to_tables(rows: list[np.ndarray], lowest: list[int]) -> Tables:
    """Put tables of log-weights one behind the other."""
    starts = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return starts, np.array(lowest, dtype=np.int64), np.concatenate([np.zeros(0), *rows])


def read_prior(prior: Any, n_leaves: int, largest: np.ndarray) -> Prior:
    """Read a prior.

    Parameters
    ----------
    prior : "flat", array_like or frozen distribution of scipy.stats
        As in :class:`pymc_dapper.CountTree`.
    n_leaves : int
        Number of leaves.
    largest : ndarray of int64, shape (number of leaves,)
        Largest counts that are possible given the releases.
    """
    zeros = np.zeros(n_leaves)
    if isinstance(prior, str):
        if prior != "flat":
            raise ValueError(
                f"prior must be 'flat', an array of log-probabilities or a distribution of "
                f"scipy.stats, got {shown(prior)}"
            )
        return Prior(np.full(n_leaves, FLAT), zeros, zeros, NO_TABLES)
    if not hasattr(prior, "dist"):
        return _of_log_pmf(prior, n_leaves)
    return _of_scipy(prior, n_leaves, largest)


def _of_log_pmf(prior: Any, n_leaves: int) -> Prior:
    if as_array(prior).ndim != 1:
        raise ValueError(
            "prior: log-probabilities must have one dimension: those of 0, 1, 2, ... people. For a "
            "law of its own for each leaf give a distribution of scipy.stats with arrays"
        )
    with np.errstate(invalid="ignore"):
        logs = real_numbers(prior, "prior")
    if np.isnan(logs).any() or (logs == np.inf).any() or not (logs > -np.inf).any():
        raise ValueError("prior: log-probabilities must be numbers or -inf, and not all -inf")
    total = np.logaddexp.reduce(logs)
    if abs(total) > 1e-6:
        raise ValueError(
            f"prior: the probabilities add up to {np.exp(total):.6g} instead of 1. Are they "
            "logarithms, and of all counts from 0 on?"
        )
    zeros = np.zeros(n_leaves)
    return Prior(np.full(n_leaves, OF_TABLE), zeros, zeros, to_tables([logs], [0]))


def _of_scipy(prior: Any, n_leaves: int, largest: np.ndarray) -> Prior:
    law = prior.dist
    if not hasattr(law, "logpmf"):
        raise ValueError(f"prior: {law.name} is a law of continuous numbers, not of counts")
    shapes, loc, _ = law._parse_args(*prior.args, **prior.kwds)
    try:
        parameters = [np.broadcast_to(x, n_leaves).astype(np.float64) for x in (*shapes, loc)]
    except ValueError:
        raise ValueError(
            f"prior: the parameters of {law.name} must be numbers, or have shape ({n_leaves},), "
            "one for each leaf in the order of the nodes"
        ) from None
    valid = np.broadcast_to(law._argcheck(*parameters[:-1]), n_leaves)
    # With rate 0 it is a law, but not all laws of scipy accept that.
    if not valid.all() or not all(np.isfinite(x).all() for x in parameters):
        leaf = int(np.flatnonzero(~valid | ~np.isfinite(np.sum(parameters, axis=0)))[0])
        raise ValueError(
            f"prior: the parameters of {law.name} are invalid at leaf {leaf} (of the leaves in the "
            f"order of the nodes): {[float(x[leaf]) for x in parameters[:-1]]}"
        )
    zeros = np.zeros(n_leaves)
    if not parameters[-1].any():
        if law.name == "poisson":
            return Prior(np.full(n_leaves, POISSON), parameters[0], zeros, NO_TABLES)
        if law.name == "nbinom" and (parameters[1] < 1).all():
            kind = np.full(n_leaves, NEGATIVE_BINOMIAL)
            return Prior(kind, parameters[0], parameters[1], NO_TABLES)
    return _tabulated(law, np.stack(parameters, axis=1), largest)


def _tabulated(law: Any, parameters: np.ndarray, largest: np.ndarray) -> Prior:
    """Make a table of each law that occurs."""
    each, which = np.unique(parameters, axis=0, return_inverse=True)
    which = which.ravel()
    ends = np.zeros(len(each), dtype=np.int64)
    np.maximum.at(ends, which, np.minimum(largest, ENDLESS))
    rows, lowest, entries = [], [], 0
    for (*shapes, loc), end in zip(each, ends, strict=True):
        frozen = law(*shapes, loc=loc)
        first, last = frozen.support()
        first, last = int(max(first, 0)), min(int(min(last, ENDLESS)), int(end))
        if last > MOST_ENTRIES:
            last = int(min(frozen.isf(TAIL), ENDLESS))
        last = max(first, last)
        entries += last - first + 1
        if entries > MOST_ENTRIES:
            raise ValueError(
                f"prior: tables of {law.name} would have more than {MOST_ENTRIES} entries. If a "
                "leaf and everything above it was not released, its prior must not have a heavy "
                "tail. If laws differ between leaves, use Poisson or negative binomial"
            )
        rows.append(frozen.logpmf(np.arange(first, last + 1)))
        lowest.append(first)
    kind, zeros = np.full(len(which), OF_TABLE), np.zeros(len(which))
    return Prior(kind, which.astype(np.float64), zeros, to_tables(rows, lowest))
