"""The likelihood of each cell's true value: the law of the released value.

It is the mechanism's own log-density, evaluated in NumPy. Nothing is compiled, and no density is
written a second time. Every mechanism works that releases each cell by itself.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
import pytensor.tensor as pt
from pymc import Model

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.mechanisms import Mechanism, RandomizedResponse
from pymc_dapper.mechanisms.additive import AdditiveNoise
from pymc_dapper.mechanisms.perturbed_counts import PerturbedCounts
from pymc_dapper.releases.query import Query

TOLERANCE = 1e-9
"""Relative difference below which two evaluations of a log-density are the same."""


@dataclass(frozen=True)
class CellLaw:
    """Log-probability of each released cell, as a function of its true value.

    Cells with the same released value and the same noise share a row.

    Attributes
    ----------
    name : str
        The query's name, for messages.
    near : ndarray of float64, shape (rows,)
        Likely true values, approximately: where a search begins.
    which : ndarray of int64, shape (cells,)
        The row of each cell, in the order of the flattened released values.
    ends : tuple of ndarray of float64, shape (rows,), or None
        Lowest and highest possible true values, if the mechanism knows them. They then needn't be
        searched for, and impossible values may lie between.
    """

    name: str
    near: np.ndarray
    which: np.ndarray
    anywhere: Callable[[np.ndarray], np.ndarray]
    """Evaluates it at any values; it may be nan outside the range of true values."""
    ends: tuple[np.ndarray, np.ndarray] | None = None
    has_peak: bool = True
    """Whether the log-probability is known to fall on both sides of a peak."""

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """Evaluate the law of each row, at values of shape (n, rows)."""
        logs = self.anywhere(values)
        if np.isnan(logs).any():
            raise ValueError(f"'{self.name}': the mechanism's log-density is nan at a true value")
        return logs


def law_of(query: Query, *, whole: bool, apart: bool = False) -> CellLaw:
    """Return the law of a query's cells.

    Parameters
    ----------
    query : Query
        The released query.
    whole : bool
        Whether true values are whole numbers.
    apart : bool
        Whether each cell has its own row. Otherwise cells with the same released value share one.

    Raises
    ------
    ValueError
        If the mechanism doesn't release each cell by itself, or if its noise scale is unknown.
    """
    name, mechanism = query.name, query.mechanism
    if mechanism.unknown:
        raise ValueError(
            f"'{name}': the noise scale is a variable of a model, and answers without a model need "
            "a number. Add the release to the model by release.potential(...)"
        )
    if mechanism._why_no_answers:
        raise ValueError(f"'{name}': {mechanism._why_no_answers}")
    released = mechanism.as_released(name, query.values)
    rows, which = released, np.arange(released.size)
    of_counts = isinstance(mechanism, PerturbedCounts)
    alike = all(np.ndim(getattr(mechanism, each.name)) == 0 for each in fields(mechanism))
    if not apart and (alike or of_counts):
        rows, which = np.unique(released, return_inverse=True)
    evaluate = _evaluated(name, mechanism, rows, whole)
    ends = None
    if isinstance(mechanism, PerturbedCounts):
        low, high = mechanism.count_range(rows)
        ends = low.reshape(-1), high.reshape(-1)
    has_peak = isinstance(mechanism, AdditiveNoise | RandomizedResponse)
    law = CellLaw(name, _near(mechanism, rows), which.reshape(-1), evaluate, ends, has_peak)
    _check_cell_by_cell(law, mechanism, whole)
    return law


def _evaluated(
    name: str, mechanism: Mechanism, rows: np.ndarray, whole: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """Make a Python function of the log-density."""
    kind = "int64" if whole else "float64"
    x = pt.tensor("statistic", dtype=kind, shape=(None, *rows.shape))
    try:
        logp = mechanism.logp(rows, x)
    except (TypeError, ValueError, NotImplementedError) as error:
        raise ValueError(f"{_no_answers(name, mechanism)}: {error}") from None
    if logp.type.ndim != x.type.ndim:
        raise ValueError(_no_answers(name, mechanism))
    function = compile_in_python(Model(), [x], [logp])

    def evaluate(values: np.ndarray) -> np.ndarray:
        given = np.ascontiguousarray(values, dtype=kind).reshape(len(values), *rows.shape)
        [logs] = function(given)
        # PyTensor makes plain numbers in a user's log-density single precision.
        whole_shape = np.broadcast_to(logs, given.shape).astype(np.float64)
        return whole_shape.reshape(len(values), -1)

    return evaluate


def _near(mechanism: Mechanism, rows: np.ndarray) -> np.ndarray:
    """Return approximate noisy values, before rules of publication."""
    low = high = np.asarray(rows, dtype=np.float64)
    if hasattr(mechanism, "noisy_range"):
        low, high = mechanism.noisy_range(rows)
    with np.errstate(invalid="ignore"):
        middle = np.where(np.isinf(low), high, np.where(np.isinf(high), low, (low + high) / 2))
    return np.where(np.isfinite(middle), middle, 0.0).reshape(-1)


def _check_cell_by_cell(law: CellLaw, mechanism: Mechanism, whole: bool) -> None:
    """Check that the likelihood of a cell doesn't depend on other cells."""
    one = np.maximum(np.round(law.near) if whole else law.near, 0.0)
    others = one + 1 + np.arange(one.size) % 3
    for chosen in (np.arange(one.size) % 2 == 0, np.arange(one.size) % 3 == 0):
        mixed = np.where(chosen, one, others)
        try:
            logs = law.anywhere(np.stack([one, others, mixed]))
        except (ValueError, TypeError, IndexError):
            raise ValueError(_no_answers(law.name, mechanism)) from None
        expected = np.where(chosen, logs[0], logs[1])
        if not np.allclose(logs[2], expected, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True):
            raise ValueError(_no_answers(law.name, mechanism))


def _no_answers(name: str, mechanism: Mechanism) -> str:
    return (
        f"'{name}': {type(mechanism).__name__} doesn't release each cell by itself, which answers "
        "without a model need. Write a model, and add the release to it by "
        "release.potential(...)"
    )
