"""Several analyses of the same parameters, as one dataset."""

from collections.abc import Mapping
from typing import Any

import xarray as xr
from arviz_base import extract

MODEL = "model"
"""The dimension of analyses in arviz-plots."""


def variables(analyses: Mapping[str, Any], var_names: str | list[str] | None) -> list[str]:
    """Choose the variables to draw, among those that are in the posteriors of all analyses.

    Raises ValueError if one has no posterior, or if the variables asked for aren't in all of them.
    Returned are names, in the order of the first analysis.
    """
    for name, tree in analyses.items():
        if "posterior" not in tree.children:
            raise ValueError(f"'{name}' has no group 'posterior'")
    everywhere = [tree["posterior"] for tree in analyses.values()]
    common = [name for name in everywhere[0] if all(name in one for one in everywhere)]
    listed = ", ".join(f"'{name}'" for name in common) or "none"
    where = "in posterior of " + ", ".join(f"'{name}'" for name in analyses)
    nothing = f"there is no variable to draw. Variables {where}: {listed}"
    if not common:
        raise ValueError(nothing)
    shared = xr.DataTree.from_dict({"posterior": everywhere[0].dataset[common]})
    try:
        chosen = extract(shared, var_names=var_names, combined=False, keep_dataset=True)
    except KeyError as error:
        raise ValueError(f"{error.args[0]}. Variables {where}: {listed}") from error
    if not chosen.data_vars:
        raise ValueError(nothing)
    return [str(name) for name in chosen.data_vars]


def stack(datasets: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Put analyses one behind the other, along a dimension "model".

    Raises ValueError if a variable has other dims, or other coordinates, in one analysis than in
    the first.
    """
    first, *others = datasets
    for other in others:
        for name, variable in datasets[first].items():
            if set(variable.dims) != set(datasets[other][name].dims):
                raise ValueError(
                    f"'{name}' has dims {variable.dims} in '{first}', but "
                    f"{datasets[other][name].dims} in '{other}': give it the same in both models"
                )
    try:
        stacked = xr.concat(
            datasets.values(), MODEL, join="exact", coords="minimal", compat="override"
        )
    except ValueError as error:
        raise ValueError(
            f"the analyses {', '.join(repr(name) for name in datasets)} don't have the same "
            f"entries of their variables: give dims the same coordinates in all models ({error})"
        ) from error
    return stacked.assign_coords({MODEL: list(datasets)})
