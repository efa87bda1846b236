"""Tables of answers, with notes."""

from dataclasses import dataclass
from html import escape
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from pymc_dapper.answers.table import DRAW
from pymc_dapper.checks import finite_number

ENDS = ("lower", "upper")
MATTERS = 0.1
"""The prior matters if an interval's end moves by more than this share of the interval's width."""
AT_ONCE = 2**20
"""Number of draws that are sorted at once, which avoids a copy of all of them."""
MOST_ROWS = 40
"""Number of rows shown."""


@dataclass(frozen=True, repr=False)
class Summary:
    """Answers as a table.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each cell.
    notes : tuple of str
        Notes: how draws were made, under which prior, and whether the prior matters.
    """

    frame: pd.DataFrame
    notes: tuple[str, ...]

    def __repr__(self) -> str:
        shown = self.frame.to_string(max_rows=MOST_ROWS, float_format=_number, na_rep="-")
        return "\n".join([shown, *self.notes])

    def _repr_html_(self) -> str:
        shown = self.frame.to_html(max_rows=MOST_ROWS, float_format=_number, na_rep="-")
        return shown + "".join(f"<p>{escape(note)}</p>" for note in self.notes)

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table to a CSV file."""
        self.frame.to_csv(path, index=self.frame.index.names != [None])


def _number(value: float) -> str:
    return f"{value:.0f}" if value == np.round(value) and abs(value) < 1e15 else f"{value:.4g}"


def quantiles(draws: xr.DataArray, shares: list[float]) -> xr.DataArray:
    """Return quantiles along a first dim ``end``: the smallest draws that reach these shares.

    Raises
    ------
    TypeError, ValueError
        If the draws are of a comparison, or if one is nan.
    """
    values = draws.values
    if values.dtype.kind == "b":
        raise TypeError("a comparison has a probability(), and no interval or median")
    if values.dtype.kind == "f" and np.isnan(values).any():
        share = np.isnan(values).mean()
        raise ValueError(
            f"{100 * share:.3g} % of the draws are nan, such as 0 / 0: the quantity is undefined "
            "there. Ask for a share of a whole that isn't 0, such as A / (A + B + C)"
        )
    n = values.shape[-1]
    at = [min(max(int(np.ceil(share * n - 1e-9)) - 1, 0), n - 1) for share in shares]
    flat, rows = values.reshape(-1, n), max(1, AT_ONCE // n)
    found = np.empty((len(flat), len(at)), dtype=values.dtype)
    for start in range(0, len(flat), rows):
        part = np.partition(flat[start : start + rows], sorted(set(at)), axis=1)
        found[start : start + rows] = part[:, at]
    ends = draws.isel({DRAW: [0] * len(at)}).rename({DRAW: "end"})
    return ends.copy(data=found.reshape(*values.shape[:-1], len(at))).transpose("end", ...)


def interval_of(draws: xr.DataArray, probability: float) -> xr.DataArray:
    """Return the ends of equal-tailed intervals. Errors are those of `quantiles`."""
    p = finite_number(probability, "probability", above=0, below=1)
    return quantiles(draws, [(1 - p) / 2, (1 + p) / 2]).assign_coords(end=list(ENDS))


def frame_of(
    draws: xr.DataArray, released: xr.DataArray | None, probability: float
) -> pd.DataFrame:
    """Return a row for each cell, with its labels as the index."""
    columns: dict[str, xr.DataArray] = {}
    if draws.dtype.kind == "b":
        columns["probability"] = draws.mean(DRAW)
    else:
        if released is not None:
            columns["released"] = released
        columns["median"] = quantiles(draws, [0.5])[0]
        columns |= dict(zip(ENDS, interval_of(draws, probability), strict=True))
    dims = [str(dim) for dim in draws.dims if dim != DRAW]
    values = {name: np.asarray(each.transpose(*dims)).reshape(-1) for name, each in columns.items()}
    # A single number has no labels.
    index = draws.isel({DRAW: 0}).to_series().index if dims else None
    return pd.DataFrame(values, index=index)


def moved(frame: pd.DataFrame, other: pd.DataFrame, prior: str) -> str:
    """Say how far intervals move under the other prior."""
    with np.errstate(invalid="ignore", divide="ignore"):
        width = (frame["upper"] - frame["lower"]).to_numpy(dtype=float)
        ends, others = (each[list(ENDS)].to_numpy(dtype=float) for each in (frame, other))
        distance = np.abs(ends - others).max(axis=1)
        least = 1.0 if frame["lower"].dtype.kind == "i" else 1e-300
        share = np.nan_to_num(distance / np.maximum(width, least))
    most, many = int(share.argmax()), int((share > MATTERS).sum())
    if share[most] <= MATTERS:
        return (
            f"The prior hardly matters: no end of an interval moves by more than "
            f"{100 * MATTERS:.0f} % of its width under the other prior ({prior})."
        )
    which = "" if len(share) == 1 else f" of {label_of(frame.index[most])}"
    rest = f" {many} of {len(share)} intervals move by more than {100 * MATTERS:.0f} %."
    return (
        f"The prior matters: under the other prior ({prior}) the interval{which} is "
        f"{_number(others[most, 0])} to {_number(others[most, 1])}; an end moves by "
        f"{100 * share[most]:.0f} % of its width.{rest if len(share) > 1 else ''}"
    )


def label_of(label: Any) -> str:
    """Write a cell's label, or its several ones."""
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)
