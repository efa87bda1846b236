"""Summaries of a parameter's posterior in a cell."""

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr
from arviz_stats.base import array_stats
from numpy.typing import ArrayLike

from pymc_dapper.studies.fields import STATISTICS
from pymc_dapper.studies.messages import StudyError

AXES = {"chain_axis": 0, "draw_axis": 1}


def summarise(
    draws: xr.DataArray,
    *,
    truth: ArrayLike | None,
    prob: float,
    seconds: float,
    information: Mapping[str, np.ndarray],
) -> Iterator[dict[str, Any]]:
    """Summarise the posterior of a parameter, entry by entry.

    ``information`` has the statistics that don't come from the draws alone; they and the true value
    have the parameter's shape. Each entry gives a dict with its index, as JSON text, and a number
    for each of ``STATISTICS``, nan if unknown.
    """
    draws = draws.transpose("chain", "draw", ...)
    dims, shape = draws.dims[2:], draws.shape[2:]
    true = np.full(shape, np.nan) if truth is None else np.asarray(truth, dtype=np.float64)
    if true.shape != shape:
        raise StudyError(
            f"the truth of '{draws.name}' has shape {true.shape}, but the model's variable has "
            f"shape {shape}"
        )
    values = np.asarray(draws.values, dtype=np.float64)
    statistics = {**_statistics(values, true, prob, seconds), **information}
    for index in np.ndindex(shape):
        entry = {str(dim): draws[dim].values[k] for dim, k in zip(dims, index, strict=True)}
        yield {
            "parameter": str(draws.name),
            "entry": json.dumps(entry, default=_plain),
            **{name: float(statistics[name][index]) for name in STATISTICS},
        }


def _statistics(
    x: np.ndarray, true: np.ndarray, prob: float, seconds: float
) -> dict[str, np.ndarray]:
    """Statistics of an array of shape (chains, draws, ...)."""
    tail = (1 - prob) / 2
    mean = x.mean(axis=(0, 1))
    lower, median, upper = np.quantile(x, [tail, 0.5, 1 - tail], axis=(0, 1))
    with warnings.catch_warnings():
        # They are nan for a parameter that hasn't moved, as they should be.
        warnings.simplefilter("ignore", RuntimeWarning)
        ess = np.asarray(array_stats.ess(x, method="bulk", **AXES))
        r_hat = (
            np.asarray(array_stats.rhat(x, **AXES)) if len(x) > 1 else np.full(mean.shape, np.nan)
        )
    unknown = np.isnan(true) | np.isnan(lower) | np.isnan(upper)
    covered = np.where(unknown, np.nan, (lower <= true) & (true <= upper))
    return {
        "truth": true,
        "mean": mean,
        "median": median,
        "sd": x.std(axis=(0, 1), ddof=1),
        "lower": lower,
        "upper": upper,
        "width": upper - lower,
        "error": mean - true,
        "covered": covered,
        "ess_bulk": ess,
        "ess_per_second": ess / seconds,
        "r_hat": r_hat,
    }


def _plain(label: Any) -> Any:
    """Make plain Python of a coordinate's label: NumPy's numbers, or text."""
    return label.item() if isinstance(label, np.number | np.bool_) else str(label)
