"""Known totals that no record changes: they must add up to what they add up to for any records."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from math import prod

import numpy as np
from pytensor.graph import explicit_graph_inputs
from pytensor.tensor.variable import TensorVariable
from scipy.sparse.csgraph import connected_components

from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.terms.equations import KnownTotals
from pymc_dapper.records.reading.finite import support
from pymc_dapper.records.reading.model import ModelReading

MOST_VALUES = 1_000
"""At most this number of values of a record is looked at."""
MOST_PRODUCTS = 1_000_000_000
"""At most this number of products of contributions is computed."""
ROUNDING = 1e-6
"""What constants of the equations may be off by."""


def values_to_compare(
    reading: ModelReading, sums: Sequence[TensorVariable], point: Mapping[str, np.ndarray]
) -> list[list[np.ndarray]]:
    """List all values at which a record may contribute differently to sums.

    Returns an empty list if there are many, or if they aren't known.
    """
    read, columns = set(explicit_graph_inputs(sums)), []
    for rv, x in zip(reading.rvs, reading.records, strict=True):
        transformed = reading.model.rvs_to_transforms[rv] is not None
        if x in read and (transformed or support(rv) is None):
            return []
        columns.append(np.array(support(rv)) if x in read else point[x.name][:1])
    few = prod(len(column) for column in columns) <= MOST_VALUES
    return [list(value) for value in product(*columns)] if few else []


def check_fixed_totals(
    reading: ModelReading,
    known: KnownTotals,
    offset: np.ndarray,
    each_at: Callable[[Sequence[np.ndarray]], np.ndarray],
    values: Sequence[Sequence[np.ndarray]],
    *,
    drawn: bool = False,
) -> None:
    """Refuse known totals that contradict the number of records.

    Parameters
    ----------
    reading : ModelReading
        The records.
    known : KnownTotals
        What is known of them.
    offset : ndarray, shape (m,)
        The constant of each equation.
    each_at : callable
        Returns what each record contributes to each equation if all have the same value: shape
        (n, m).
    values : sequence
        All values that a record can have.
    drawn : bool, default False
        Whether these are some values only, which is no proof.

    Raises
    ------
    ReadingError
        If some totals add up to another number than they do whatever values the records have.

    Warns
    -----
    UserWarning
        If this is so at all values that were drawn.
    """
    inputs = explicit_graph_inputs([known.offset])
    others = {*reading.parameters, *reading.records}.intersection(inputs)
    m = len(known.factors)
    if not values or others or len(values) * reading.n_records * m**2 > MOST_PRODUCTS:
        return
    try:
        always, products = _compared(each_at, values)
    except FAILURES:  # such as a category that never occurs, and that a table lacks
        return
    if not np.abs(products).sum() + np.abs(always).sum() < 2**53:  # or nan: this isn't exact
        return
    # Totals have a sum that never changes if the square of its changes is 0, which is exact.
    linked = connected_components(products)[1]
    factors = np.unique(known.factors, return_inverse=True)[1]
    for labels in (factors, linked):
        for own in (labels == label for label in np.unique(labels)):
            total, off = always[own].sum(), (always + offset)[own].sum()
            varies = products[np.ix_(own, own)].sum() > 0
            if varies or abs(off) <= known.tolerances[own].sum() + ROUNDING:
                continue
            sign = -1 if total < 0 else 1
            names = ", ".join(f"'{name}'" for name in dict.fromkeys(known.only(own).factors))
            message = (
                f"according to {names}, totals add up to {sign * (total - off):.10g}. But they add "
                f"up to {sign * total:.10g} whatever values the {reading.n_records} records "
                f"{reading.quoted_names} {'were drawn with' if drawn else 'have'}. Look for a "
                "wrong total, or a wrong number of records"
            )
            if not drawn:
                raise ReadingError(message)
            warnings.warn(message, UserWarning, stacklevel=3)
            return


def _compared(
    each_at: Callable[[Sequence[np.ndarray]], np.ndarray], values: Sequence[Sequence[np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the totals at the first value, and products of what changes from there to others."""
    first = each_at(values[0])
    first[first != np.round(first)] = np.nan
    products = np.zeros((first.shape[1],) * 2)
    for value in values[1:]:
        changes = each_at(value) - first
        changes[changes != np.round(changes)] = np.nan
        products += changes.T @ changes
    return first.sum(axis=0), products
