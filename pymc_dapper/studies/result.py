"""Results of cells as labelled arrays."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from xarray import DataTree

from pymc_dapper.studies.cell import CellResult
from pymc_dapper.studies.fields import NUMBER_FIELDS, OVER_REPLICATES, STATISTICS, STATUS_FIELDS
from pymc_dapper.studies.grid import REPLICATE_DIM, Cell, Grid


def collect(grid: Grid, results: Mapping[Cell, CellResult], attrs: Mapping[str, Any]) -> DataTree:
    """Collect the outcomes of the cells.

    The root of the tree describes the cells; below it is a group for each parameter.
    """
    shape = tuple(grid.dims.values())
    cells: dict[str, Any] = {name: np.full(shape, "", dtype=object) for name in STATUS_FIELDS}
    cells |= {name: np.full(shape, np.nan) for name in NUMBER_FIELDS}
    entries: dict[str, list[tuple[Cell, dict[str, Any]]]] = {}
    for cell, result in results.items():
        cells["status"][cell.index] = result.status
        cells["message"][cell.index] = result.message
        for name, value in result.numbers.items():
            cells[name][cell.index] = value
        for entry in result.parameters:
            entries.setdefault(entry["parameter"], []).append((cell, entry))
    variables = {name: (tuple(grid.dims), values) for name, values in cells.items()}
    root = xr.Dataset(variables, coords=grid.coords, attrs=attrs)
    groups = {name: _parameter(grid, found) for name, found in entries.items()}
    return DataTree.from_dict({"/": root, **groups})


def _parameter(grid: Grid, entries: Sequence[tuple[Cell, dict[str, Any]]]) -> xr.Dataset:
    """Arrange the statistics of a parameter, and add statistics over replicates."""
    labels = [json.loads(entry["entry"]) for _, entry in entries]
    dims = list(dict.fromkeys(dim for label in labels for dim in label))
    coords = {dim: list(dict.fromkeys(label.get(dim, "") for label in labels)) for dim in dims}
    places = {dim: {label: k for k, label in enumerate(coords[dim])} for dim in dims}
    shape = (*grid.dims.values(), *map(len, coords.values()))
    arrays = {name: np.full(shape, np.nan) for name in STATISTICS}
    for (cell, entry), label in zip(entries, labels, strict=True):
        place = (*cell.index, *(places[dim][label.get(dim, "")] for dim in dims))
        for name in STATISTICS:
            arrays[name][place] = entry[name]
    taken = {*grid.coords, *grid.dims, *STATISTICS, *OVER_REPLICATES}
    own = {dim: f"{entries[0][1]['parameter']}_{dim}" if dim in taken else dim for dim in dims}
    order = (*grid.dims, *own.values())
    dataset = xr.Dataset(
        {name: (order, values) for name, values in arrays.items()},
        coords={**grid.coords, **{own[dim]: values for dim, values in coords.items()}},
    )
    return dataset.assign(_over_replicates(dataset))


def _over_replicates(statistics: xr.Dataset) -> dict[str, xr.DataArray]:
    """Bias of the posterior mean and coverage of the interval, with their Monte Carlo errors."""
    error, covered = statistics["error"], statistics["covered"]
    n = covered.count(REPLICATE_DIM)
    # With one more interval of each kind: otherwise the error would be zero if all cover.
    shrunk = (covered.sum(REPLICATE_DIM) + 1) / (n + 2)
    return {
        "bias": error.mean(REPLICATE_DIM),
        "bias_mcse": monte_carlo_error(error),
        "coverage": covered.mean(REPLICATE_DIM),
        "coverage_mcse": (shrunk * (1 - shrunk) / n.where(n > 0)) ** 0.5,
    }


def monte_carlo_error(values: xr.DataArray) -> xr.DataArray:
    """Return the standard error of the mean over replicates; nan with fewer than two."""
    n = values.count(REPLICATE_DIM)
    return values.std(REPLICATE_DIM) / np.sqrt((n - 1).where(n > 1))
