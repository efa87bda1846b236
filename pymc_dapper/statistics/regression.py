"""The statistics of a linear regression."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pymc_dapper.checks import flag, real_numbers, shown, whole_number
from pymc_dapper.sensitivity import Neighbours, Sensitivities, for_either, sensitivities
from pymc_dapper.statistics import arrays
from pymc_dapper.statistics.statistic import Statistic


def regression(
    x: arrays.Records,
    y: arrays.Records,
    *,
    clamp: ArrayLike | Mapping[str, ArrayLike],
    sharp: bool = False,
    neighbours: Neighbours | None = None,
) -> Statistic:
    """Compute the sums that a linear regression with an intercept needs: x'y, y'y and x'x.

    Each column is clamped to its limits, and the limits are mapped to [-1, 1]. x gets a column of
    ones for the intercept. The entries are those of x'y, then y'y, then the different entries of
    x'x, column by column down to the diagonal. The first entry of x'x, the number of records, is
    left out. For p = 2: sum of y, x1 y, x2 y, y^2, x1, x1^2, x2, x1 x2, x2^2.

    Parameters
    ----------
    x : tensor or array, shape (n,) or (n, p)
        The covariates, without a column for the intercept.
    y : tensor or array, shape (n,)
        The outcome.
    clamp : (float, float) or mapping of "x" and "y"
        Limits (lower, upper) for all columns; or ``{"x": ..., "y": (lower, upper)}``, with x's
        either one pair for all covariates or a pair for each, of shape (p, 2).
    sharp : bool, default False
        If True, use the exact sensitivity to one replaced record. Otherwise use the bound of
        published releases, the sum of the entries' ranges, which costs more noise: for p = 2 an L1
        sensitivity of 15 instead of 9.375.
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one record has other values (the
        number of records is public). "add_remove": one record more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Sums, of shape ((p + 1) (p + 4) / 2,), of the scaled columns and their products. Sensitivity
        to one replaced record: L1 at most p^2 + 4p + 3 and L2 at most sqrt(2p^2 + 7p + 5); with
        ``sharp`` exactly (p + 1) (p + 3)^2 / (2 (p + 2)) and 2 sqrt(floor((p + 2)^2 / 4)).
        To one added or removed, exactly (p + 1) (p + 4) / 2 and its root.

    Raises
    ------
    ValueError
        If the shapes don't fit, or a pair of limits isn't finite and in order.

    See Also
    --------
    regression_labels : Names of the entries.

    Notes
    -----
    "Exact" means attained, if outcome and covariates are all confidential and may take any values.
    If some are public, one record moves the sums less.

    The bound corrects p^2 + 3p + 3, which is smaller than the sum of the ranges: 13 instead of 15
    for p = 2. Proofs of the exact values are in the documentation.

    Examples
    --------
    >>> regression([[5.0, 0.0], [-20.0, 4.0]], [10.0, 5.0], clamp=(-10, 10)).value
    array([ 1.5 ,  0.  ,  0.2 ,  1.25, -0.5 ,  1.25,  0.4 , -0.4 ,  0.16])
    """
    covariates, outcome = arrays.as_records(x, "x"), arrays.as_records(y, "y", max_ndim=1)
    covariates, outcome = arrays.as_pair(covariates, outcome, "x", "y")
    columns = arrays.n_columns(covariates, "x")
    p = 1 if columns is None else columns
    if p == 0:
        raise ValueError("x has no columns")
    low, high = _limits(clamp, p)
    flag(sharp, "sharp")
    terms = _terms(p)
    sensitivity = for_either(neighbours, lambda which: _sensitivity(p, sharp, which))

    raw = [outcome, *([covariates] if columns is None else [covariates[:, j] for j in range(p)])]
    module = arrays.module_of(outcome)
    # Vectors, not a matrix: PyTensor then makes one pass over the records for each.
    with_limits = zip(raw, low, high, strict=True)
    scaled = [(module.clip(x, a, b) - (a + b) / 2) / ((b - a) / 2) for x, a, b in with_limits]
    added = [scaled[t[0]] if len(t) == 1 else scaled[t[0]] * scaled[t[1]] for t in terms]
    value = module.stack(added, axis=1).sum(axis=0)
    return Statistic(value, sensitivity, arrays.n_records(outcome))


def regression_labels(p: int) -> list[str]:
    """Name the entries of :func:`~pymc_dapper.statistics.regression`, in their order.

    Parameters
    ----------
    p : int
        Number of covariates.

    Returns
    -------
    list of str
        A name for each entry, for example as coordinates of a model's dim.

    Examples
    --------
    >>> regression_labels(1)
    ['sum y', 'sum x1 y', 'sum y^2', 'sum x1', 'sum x1^2']
    """
    p = whole_number(p, "p", at_least=1)
    names = ["y", *(f"x{j}" for j in range(1, p + 1))]

    def label(term: tuple[int, ...]) -> str:
        if len(term) == 2 and term[0] == term[1]:
            return f"sum {names[term[0]]}^2"
        return "sum " + " ".join(names[j] for j in term)

    return [label(term) for term in _terms(p)]


def _terms(p: int) -> list[tuple[int, ...]]:
    """Return the columns that each entry multiplies: 0 stands for y, j for x_j."""
    terms: list[tuple[int, ...]] = [(0,), *((j, 0) for j in range(1, p + 1)), (0, 0)]
    for j in range(1, p + 1):
        terms += [(j,), *((i, j) for i in range(1, j + 1))]
    return terms


def _sensitivity(p: int, sharp: bool, neighbours: Neighbours) -> Sensitivities:
    columns = p + 1
    entries = columns * (columns + 3) // 2
    if neighbours == "add_remove":
        # All entries are 1 for a record whose columns are all 1.
        return sensitivities(entries, entries, 1, neighbours)
    if sharp:
        l1 = Fraction(columns * (columns + 2) ** 2, 2 * (columns + 1))
        return sensitivities(l1, 4 * ((columns + 1) ** 2 // 4), 2, neighbours)
    # The range is 1 for a square, 2 for any other entry.
    ranges = [2] * (entries - columns) + [1] * columns
    return sensitivities(sum(ranges), sum(r**2 for r in ranges), 2, neighbours, exact=False)


def _limits(clamp: Any, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper limits of y, x_1, ..., x_p."""
    if isinstance(clamp, Mapping):
        if set(clamp) != {"x", "y"}:
            raise ValueError(f"clamp must have the keys 'x' and 'y', got {list(clamp)}")
        of_x, of_y = (real_numbers(clamp[name], f"clamp[{name!r}]") for name in "xy")
    else:
        of_x = of_y = real_numbers(clamp, "clamp")
    if of_y.shape != (2,) or of_x.shape not in ((2,), (p, 2)):
        raise ValueError(
            "clamp must be one pair (lower, upper) for all columns, or a mapping {'x': ..., 'y': "
            f"...}} with one pair for y, and for x one pair or one per column, {p}; got "
            f"{shown(clamp)}"
        )
    low, high = np.vstack([of_y, np.broadcast_to(of_x, (p, 2))]).T
    arrays.check_limits(low, high, "clamp", clamp)
    return low, high
