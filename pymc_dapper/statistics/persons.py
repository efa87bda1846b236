"""Tables with a bounded number of records from each person."""

from typing import Any

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.checks import nowhere, whole_number
from pymc_dapper.sensitivity import Neighbours, Sensitivities, for_either
from pymc_dapper.statistics.arrays import Records, as_records, module_of, n_columns, n_records
from pymc_dapper.statistics.statistic import Statistic, column_sensitivities


def bounded_counts(
    record: Records, k: int, *, at_most: int, neighbours: Neighbours | None = None
) -> Statistic:
    """Count records in each of ``k`` categories, with at most ``at_most`` records from a person.

    Parameters
    ----------
    record : tensor or array of int, shape (n, m)
        A row for each person with the categories 0, ..., k - 1 of up to m records. Write -1 or k in
        places without a record, if a person has fewer than m.
    k : int
        Number of categories, at least 2.
    at_most : int
        The most records counted from a person, from 1 to m. The first ones in the row count.
    neighbours : {"replace", "add_remove"}, optional
        Neighbouring data sets of the sensitivity. "replace": one person has other records (the
        number of persons is public). "add_remove": one person more or less. By default, a
        calibration uses the budget's ``neighbours``.

    Returns
    -------
    Statistic
        Counts, of shape (k,). Sensitivity, exact, with c for ``at_most``: L1 2c and L2 sqrt(2) c
        for one person replaced, c and c for one added or removed, since all of a person's records
        may be in one category.

    Raises
    ------
    ValueError
        If the records aren't integers in rows, or if an argument is out of range.

    Notes
    -----
    Most curators keep a random choice of a person's records. If the model's distribution of them
    doesn't depend on their order, the first ones have the law of a random choice.

    References
    ----------
    Wilson, R. J., Zhang, C. Y., Lam, W., Desfontaines, D., Simmons-Marengo, D. and Gipson, B.
    (2020). Differentially private SQL with bounded user contribution. Proceedings on Privacy
    Enhancing Technologies 2020(2), 230-250.

    Examples
    --------
    >>> bounded_counts([[0, 0, 1], [2, -1, -1], [1, -1, 2]], 3, at_most=2).value
    array([2, 1, 2])
    """
    k = whole_number(k, "k", at_least=2)
    x: Any = as_records(record, "record")
    columns = n_columns(x, "record")
    if columns is None:
        raise ValueError("record must have a row for each person: it has one axis")
    if np.dtype(x.dtype).kind not in "iu":
        raise ValueError(f"record must hold categories, which are integers, not {x.dtype}")
    if isinstance(x, np.ndarray):
        rule = f"categories 0, ..., {k - 1}, and -1 or {k} where there is no record"
        nowhere((x < -1) | (x > k), f"record must hold {rule}")
    c = whole_number(at_most, "at_most", at_least=1)
    if c > columns:
        raise ValueError(f"at_most must be at most the records of a person, {columns}, got {c}")
    is_there = ((x >= 0) & (x < k)).astype("int64")
    earlier = module_of(x).cumsum(is_there, axis=1) - is_there
    is_counted = (is_there > 0) & (earlier < c)
    equals = np.equal if module_of(x) is np else pt.eq
    equal = equals(x[..., None], np.arange(k))
    value = (equal & is_counted[..., None]).sum(axis=1).sum(axis=0)

    def of(which: Neighbours) -> Sensitivities:
        one = (2 * c, 2 * c**2, c) if which == "replace" else (c, c**2, c)
        return column_sensitivities([one], which)

    return Statistic(value, for_either(neighbours, of), n_records(x))
