"""Arguments of statistics: record variables of a model, or arrays of data."""

from types import ModuleType

import numpy as np
import pytensor.tensor as pt
from numpy.typing import ArrayLike
from pytensor.compile.mode import Mode
from pytensor.graph import Variable
from pytensor.graph.utils import MissingInputError
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.named_dims import as_plain
from pymc_dapper.checks import as_array, no_comparison, nowhere, shown
from pymc_dapper.context import check_precision
from pymc_dapper.statistics.statistic import Array

type Records = ArrayLike | TensorVariable
"""What a user may pass: a symbolic vector or matrix, or anything that NumPy converts to an
array."""


def as_records(x: Records, name: str, *, max_ndim: int = 2) -> Array:
    """Check that ``x`` has numbers, none nan, for each record; the record axis comes first."""
    x = as_plain(x)
    no_comparison(x, name)
    if isinstance(x, Variable):
        check_precision()
        if not isinstance(x.type, TensorType):
            raise ValueError(f"{name} is a variable of type {x.type}, not a tensor")
    else:
        if np.ma.is_masked(x):
            raise ValueError(f"{name} has masked entries: drop or fill in missing values first")
        x = as_array(x)
    kind = np.dtype(x.dtype).kind
    if kind not in "biuf":
        raise ValueError(f"{name} must hold numbers, but its dtype is {x.dtype}")
    if not 1 <= x.ndim <= max_ndim:
        expected = "one axis, over records"
        if max_ndim == 2:
            expected = "one axis, over records, or two, over records and their columns"
        raise ValueError(f"{name} must have {expected}: it has {x.ndim}")
    if isinstance(x, np.ndarray) and kind == "f":
        way_out = ". Drop or fill in missing values first"
        nowhere(np.isnan(x), f"{name} must have no nan in it", way_out)
    return x


def as_categories(x: Records, name: str, k: int, *, max_ndim: int = 2) -> Array:
    """Check that ``x`` holds integers, and, if they are known, categories 0, ..., k - 1."""
    x = as_records(x, name, max_ndim=max_ndim)
    if np.dtype(x.dtype).kind == "f":
        raise ValueError(
            f"{name} must hold categories, which are integers, but its dtype is {x.dtype}. To "
            "count real numbers, use histogram"
        )
    if isinstance(x, np.ndarray):
        nowhere((x < 0) | (x >= k), f"{name} must hold categories 0, ..., {k - 1}")
    return x


def check_limits(low: np.ndarray, high: np.ndarray, name: str, given: object) -> None:
    """Check that limits of clamped records are in order, with a distance that floats can hold."""
    with np.errstate(over="ignore"):
        widths = high - low
    if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
        raise ValueError(f"{name} must hold finite limits, lower before upper, got {shown(given)}")
    if not np.isfinite(widths).all():
        raise ValueError(f"{name}'s limits are so far apart that their distance isn't a float")


def n_columns(x: Array, name: str) -> int | None:
    """Return the number of columns of a record, or None if records are single numbers."""
    if x.ndim == 1:
        return None
    static = x.shape[1] if isinstance(x, np.ndarray) else x.type.shape[1]
    if static is not None:
        return int(static)
    try:
        # The model knows the number if columns are a dim.
        return int(x.shape[1].eval(mode=Mode(linker="py", optimizer="fast_compile")))
    except MissingInputError as error:
        raise ValueError(
            f"the number of columns of {name} isn't known: give the variable a shape of integers"
        ) from error


def module_of(x: Array) -> ModuleType:
    """Return the module, NumPy or PyTensor, for arrays like ``x``."""
    return np if isinstance(x, np.ndarray) else pt


def n_records(x: Array) -> int | None:
    """Return the number of records, or None if it isn't known."""
    return x.shape[0] if isinstance(x, np.ndarray) else x.type.shape[0]


def as_pair(x: Array, y: Array, x_name: str, y_name: str) -> tuple[Array, Array]:
    """Check that two arrays have equally many records, if known; make both symbolic if one is."""
    nx, ny = n_records(x), n_records(y)
    if nx is not None and ny is not None and nx != ny:
        raise ValueError(f"{x_name} has {nx} records, but {y_name} has {ny}")
    if isinstance(x, np.ndarray) != isinstance(y, np.ndarray):
        return pt.as_tensor(x), pt.as_tensor(y)
    return x, y
