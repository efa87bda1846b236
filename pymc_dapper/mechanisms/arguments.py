"""Arguments beside the statistic: the release, its name, the dims of its entries."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from pandas import RangeIndex
from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Constant, Variable
from xarray import DataArray

from pymc_dapper import checks
from pymc_dapper.backend.named_dims import has_named_dims
from pymc_dapper.context import the_model

type Dims = str | Sequence[str | None] | None
type Release = SharedVariable | np.ndarray

MISSING = (
    'if they were suppressed for being low, use mechanism.published_if(">=", threshold). Otherwise '
    "drop them from the statistic and from the release, as in statistic[known] with "
    "released=released[known]"
)
"""What to do about entries without a value, for messages."""


def check_call(method: str, name: Any, statistic: Any) -> Model:
    """Check that a name comes first and a statistic second, inside a model's context."""
    example = f'{method}("privacy", statistic, released=...)'
    if not isinstance(name, str):
        swapped = ": name and statistic are swapped" if isinstance(statistic, str) else ""
        raise TypeError(f"the name comes first, got {checks.shown(name)}{swapped}. Write {example}")
    if not name:
        raise ValueError(f"the name must not be empty. Write {example}")
    return the_model()


def as_release(name: str, released: Any) -> Release:
    """Return a release as an array of real numbers; shared data is returned as it is."""
    if isinstance(released, SharedVariable):
        if kind_of(released) not in "biuf":
            raise TypeError(f"'{name}': the release must be real numbers: it is {released.type}")
        return released
    if isinstance(released, Constant):
        released = released.data
    value = getattr(released, "value", released) if hasattr(released, "sensitivity") else released
    if isinstance(value, Variable):
        raise TypeError(
            f"'{name}': the release must be the published numbers, or pm.Data of them, got "
            f"{checks.shown(released)}. Did you swap the arguments? The statistic comes second, as "
            'in potential("privacy", statistic, released=...)'
        )
    return real_array(released, f"'{name}': the release", MISSING)


def real_array(values: Any, what: str, unmask: str) -> np.ndarray:
    """Make an array of real numbers without masked entries.

    Parameters
    ----------
    values : array_like
        The argument.
    what : str
        Its name, for the message.
    unmask : str
        What to do about masked entries.
    """
    if np.ma.is_masked(values):
        masked = f"{np.ma.count_masked(values)} of {np.size(values)}"
        raise ValueError(f"{what} has masked entries, {masked}: {unmask}")
    array = checks.as_array(values)
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{what} must be an array of real numbers, got {checks.shown(values)} of dtype "
            f"{array.dtype}"
        )
    return array


def with_suppressed(what: str, released: Any) -> np.ndarray:
    """Make an array in which suppressed entries, which are masked or nan, are minus infinity.

    Raises
    ------
    TypeError
        If it doesn't hold real numbers.
    ValueError
        If some entries are masked and others are nan: the nan may be missing by mistake.
    """
    masked = np.ma.is_masked(released)
    data = np.ma.getdata(released) if masked else released
    values = real_array(data, what, "").astype(np.float64)
    hidden = np.ma.getmaskarray(released) if masked else np.isnan(values)
    forgotten = np.isnan(values) & ~hidden
    checks.nowhere(
        forgotten,
        f"{what} has masked entries, which are suppressed, and others that are nan, which may have "
        "been forgotten",
    )
    return np.where(hidden, -np.inf, values)


def published_rows(values: ArrayLike, rows: ArrayLike, length: int) -> np.ma.MaskedArray:
    """Make a release of all rows from the published ones; the others are suppressed.

    Parameters
    ----------
    values : array_like, shape (n, ...)
        The published values.
    rows : array_like of int, shape (n,)
        Numbers of the published rows, from 0.
    length : int
        Number of rows in all, suppressed ones included.

    Returns
    -------
    MaskedArray, shape (length, ...)

    Raises
    ------
    TypeError
        If ``values`` aren't real numbers or ``rows`` aren't integers.
    ValueError
        If a row is out of range or is there twice, or if there aren't as many values as rows.

    Examples
    --------
    >>> print(published_rows([12, 31], rows=[0, 3], length=4))
    [12.0 -- -- 31.0]
    """
    published = real_array(values, "values", "leave them out").astype(np.float64)
    n = checks.whole_number(length, "length", at_least=1)
    numbers = checks.whole_numbers(rows, "rows", at_least=0, at_most=n - 1, vector=True)
    checks.different(numbers.tolist(), "rows must be different")
    if published.shape[:1] != numbers.shape:
        raise ValueError(
            f"there must be a value for each row: {len(numbers)} rows, and values of shape "
            f"{published.shape}"
        )
    table = np.ma.masked_array(np.full((n, *published.shape[1:]), np.nan), mask=True)
    table[numbers] = published
    return table


def check_last_axis(shape: Sequence[int | None], length: int, what: str, told: str) -> None:
    """Check how many entries a statistic or a release, ``what``, has along its last axis."""
    if not shape or shape[-1] not in (None, length):
        raise ValueError(
            f"the {what} must hold {length} entries along its last axis, {told}, but its shape is "
            f"{shape}"
        )


def refuse(name: str, wrong: Any, released: Any, rule: str, way_out: str = "") -> None:
    """Raise a ValueError if some released values are wrong: the rule, the first and its place."""
    if np.any(wrong):
        wrong = np.broadcast_to(wrong, np.shape(released))
        first = np.asarray(released)[wrong].flat[0]
        told = f"{rule}, but {first:.10g} was released: {checks.places(wrong)}{way_out}"
        raise ValueError(f"'{name}': {told}")


def kind_of(value: Any) -> str:
    """Return NumPy's letter for the type of an array or a variable; "O" for anything else."""
    dtype = getattr(getattr(value, "type", value), "dtype", None)
    return "O" if dtype is None else np.dtype(dtype).kind


def in_order_of(name: str, model: Model, statistic: Any, released: Any, dims: Dims) -> Any:
    """Put the axes of a release with named dims, and its labels, in the statistic's order.

    Labels of pandas objects are used in the same way.

    Raises
    ------
    ValueError
        If both have named dims and not the same ones; if the release is shared data in another
        order; if an array has other labels along a dim than the model; or if it has them in another
        order, and the statistic's dims aren't known.
    """
    given = (dims,) if isinstance(dims, str) else dims
    said = dims_of(model, statistic) or given
    wanted = said if isinstance(said, list | tuple) else None
    if hasattr(released, "iloc"):
        released = _with_dims(released, wanted or [x.name for x in released.axes])
    own = getattr(getattr(released, "type", released), "dims", None)
    if own is None or (isinstance(released, Variable) and wanted is None):
        return released
    if wanted is None:
        if _in_order_of_labels(name, model, released).identical(released):
            return released
        raise ValueError(
            f"'{name}': the release has the labels of {own} in another order than the model. If "
            f"the statistic has the model's order, write dims={own}, else pass the values alone: "
            "released=values.to_numpy()"
        )
    same = set(own) == set(wanted)
    turned = tuple(own) != tuple(wanted)
    must_agree = isinstance(released, Variable)
    if (has_named_dims(statistic) and not same) or (must_agree and same and turned):
        raise ValueError(
            f"'{name}': the release has dims {tuple(own)}, where the statistic has {tuple(wanted)}"
        )
    if isinstance(released, Variable) or not same:
        return released
    return _in_order_of_labels(name, model, released.transpose(*wanted) if turned else released)


def _with_dims(released: Any, dims: Sequence[str | None]) -> Any:
    """Name the axes of a pandas object."""
    if released.ndim != len(dims) or None in dims:
        return released
    labels = {
        dim: index
        for dim, index, has in zip(dims, released.axes, labelled_axes(released), strict=True)
        if has and index.nlevels == 1
    }
    return DataArray(released.to_numpy(), coords=labels, dims=dims)


def labelled_axes(values: Any) -> list[bool]:
    """Return which axes of a pandas object have labels; row numbers aren't labels."""
    if not hasattr(values, "iloc"):
        return []
    return [not isinstance(index, RangeIndex) for index in values.axes]


def _in_order_of_labels(name: str, model: Model, released: Any) -> Any:
    """Put the entries of a labelled array in the order of the model's labels."""
    for dim in released.dims:
        of_model = model.coords.get(dim)
        if of_model is None or dim not in released.coords:
            continue
        labels = released.get_index(dim)
        if len(labels) != len(of_model) or not labels.is_unique:
            continue
        places = labels.get_indexer(list(of_model))
        if (places < 0).any():
            raise ValueError(
                f"'{name}': the release has other labels along dim '{dim}' than the model: "
                f"{list(labels[:4])}, where the model has {list(of_model[:4])}. If they mean "
                "nothing, pass the values alone: released=values.to_numpy()"
            )
        released = released.isel({dim: places})
    return released


def dims_of(model: Model, x: Any) -> tuple[str | None, ...] | None:
    """Return the dims of a variable, if they are known."""
    if has_named_dims(x):
        return tuple(x.type.dims)
    name = getattr(x, "name", None)
    if name in model.named_vars_to_dims and model.named_vars[name] is x:
        return tuple(model.named_vars_to_dims[name])
    return None


def release_dims(
    model: Model,
    name: str,
    dims: Dims,
    shape: Sequence[int | None],
    like: Sequence[Any],
) -> tuple[str | None, ...] | None:
    """Return the dims of a release: the user's, or those of variables with the same entries.

    Parameters
    ----------
    model : Model
        The model.
    name : str
        Name of the release, for the message.
    dims : str, sequence of str, or None
        The user's argument.
    shape : sequence of int or None
        Shape of a release; None for an unknown length.
    like : sequence
        Variables with the same entries. If ``dims`` is None, the first one that has dims gives
        them.

    Returns
    -------
    tuple of str or None, or None
        A dim for each axis; None if nothing names them.

    Raises
    ------
    TypeError, ValueError
        If the dims aren't dims of the model, one for each axis, or if ``like`` has them in another
        order.
    """
    alike = [own for x in like if (own := dims_of(model, x)) is not None]
    if dims is None:
        dims = alike[0] if alike else None
        _check_order(name, dims, alike)
        return dims
    given = named_axes(name, dims, len(shape))
    for dim, length in zip(given, shape, strict=True):
        if dim is None:
            continue
        checks.known([dim], model.dim_lengths, f"'{name}': the model's coords have no dim")
        entries = int(model.dim_lengths[dim].eval(mode="FAST_COMPILE"))
        if length not in (None, entries):
            raise ValueError(
                f"'{name}': the release has length {length} along '{dim}', which has {entries} "
                "entries"
            )
    _check_order(name, given, alike)
    return given


def named_axes(name: str, dims: Any, n_axes: int) -> tuple[str | None, ...]:
    """Check that dims name each axis of a release; None is an axis without a name."""
    given = (dims,) if isinstance(dims, str) else dims
    if not isinstance(given, list | tuple) or not all(
        x is None or isinstance(x, str) for x in given
    ):
        raise TypeError(f"'{name}': dims must be names of dims, as in dims='cell', got {given!r}")
    if len(given) != n_axes:
        raise ValueError(
            f"'{name}': dims must name each axis of the release, which has {n_axes}, got "
            f"{tuple(given)}"
        )
    return tuple(given)


def _check_order(
    name: str, dims: tuple[str | None, ...] | None, known: Sequence[tuple[str | None, ...]]
) -> None:
    """Refuse dims of a release that other variables have in another order."""
    for own in known:
        shared = {*own} & {*(dims or ())} - {None}
        for mine, other in zip(dims or (), own, strict=False):
            if mine != other and not shared.isdisjoint((mine, other)):
                raise ValueError(
                    f"'{name}': the statistic, or the data, has the dims {own}, where the release "
                    f"has {dims}: transpose it"
                )
