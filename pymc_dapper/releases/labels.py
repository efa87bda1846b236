"""Dims of released values, and the labels along them."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from typing import Any

import numpy as np
import pandas as pd
from pymc import Model

from pymc_dapper.checks import different, is_a, options, shown
from pymc_dapper.mechanisms.arguments import named_axes

Label = str | int | float | bool
Coords = Mapping[str, Sequence[Label]]


def as_dims(name: str, dims: Any, n_axes: int) -> tuple[str | None, ...]:
    """Check a query's dims: a name for each axis, or none at all."""
    unnamed = (None,) * n_axes
    given = unnamed if dims is None else named_axes(name, dims, n_axes)
    if given != unnamed and (not all(given) or len(set(given)) != n_axes):
        raise ValueError(f"'{name}': dims must be different names, one for each axis, got {given}")
    return given


def as_coords(what: str, coords: Any) -> dict[str, tuple[Label, ...]]:
    """Check labels by dim; dates become text in ISO format.

    Raises
    ------
    TypeError, ValueError
        If labels aren't strings or numbers, or if one is there twice.
    """
    given = options(coords, f"{what} coords", "labels by dim")
    return {dim: as_labels(f"{what} coords of '{dim}'", labels) for dim, labels in given.items()}


def check_used(coords: Coords, dims: Iterable[str | None], otherwise: str) -> None:
    """Refuse labels of a name that isn't a dim."""
    unknown = [dim for dim in coords if dim not in set(dims)]
    if unknown:
        raise ValueError(f"coords has labels of '{unknown[0]}', which {otherwise}")


def as_labels(what: str, labels: Any) -> tuple[Label, ...]:
    """Check the labels of a dim."""
    in_order(what, labels)
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"{what} must be a list of labels, got an array of shape {labels.shape}")
    found = tuple(as_label(what, each) for each in labels)
    different(found, f"{what} must be different")
    return found


def in_order(what: str, labels: Any) -> None:
    """Check that these are several labels, whose order is known."""
    if isinstance(labels, str | Mapping | set | frozenset) or not isinstance(labels, Iterable):
        raise TypeError(f"{what} must be a list of labels, got {shown(labels)}")


def as_label(what: str, label: Any) -> Label:
    """Check one label, and convert it to a plain Python object."""
    if isinstance(label, np.datetime64):
        label = label.astype("datetime64[us]").item()
    if isinstance(label, np.generic):
        label = label.item()
    if pd.isna(label) is True or (isinstance(label, float) and np.isinf(label)):
        raise ValueError(f"{what}: a label is missing")
    if isinstance(label, datetime) and label.time() == time():
        label = label.date()
    if isinstance(label, date):
        return label.isoformat()
    is_a(label, str | int | float | bool, f"{what} must be strings or numbers")
    return label


def add_to_model(
    name: str,
    model: Model,
    dims: tuple[str | None, ...],
    shape: tuple[int, ...],
    coords: Coords,
) -> None:
    """Add a query's dims and labels to a model, or compare them with the model's.

    Raises
    ------
    ValueError
        If the model has other labels along a dim, or the same in another order.
    """
    for dim, length in zip(dims, shape, strict=True):
        if dim is None:
            continue
        if dim not in model.dim_lengths:
            model.add_coord(dim, coords.get(dim), length=None if dim in coords else length)
        elif dim in coords and model.coords.get(dim) is not None:
            _compare(name, dim, coords[dim], as_labels(f"'{dim}'", model.coords[dim]))


def _compare(name: str, dim: str, own: Sequence[Label], of_model: Sequence[Label]) -> None:
    if tuple(own) == tuple(of_model):
        return
    if set(own) == set(of_model):
        raise ValueError(
            f"'{name}': the model has the labels of dim '{dim}' in another order than the release: "
            f"{listed(of_model)}, where the release has {listed(own)}. Write pm.Model(coords="
            "release.coords), or read the release with these coords"
        )
    raise ValueError(
        f"'{name}': the model has other labels along dim '{dim}' than the release: "
        f"{listed(of_model)}, where the release has {listed(own)}"
    )


def listed(labels: Sequence[Label], most: int = 4) -> str:
    """Write labels as a list; of many, the first ones."""
    first = ", ".join(map(repr, labels[:most]))
    return first if len(labels) <= most else f"{first}, ... ({len(labels)})"
