"""Cell keys: a perturbation table changes counts by the key of each cell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pymc_dapper.checks import about, has_shape, nowhere, real_numbers, whole_numbers
from pymc_dapper.mechanisms.count_law import CountLaw, read_law
from pymc_dapper.mechanisms.perturbed_counts import PerturbedCounts

ONS_ROWS, ONS_REPEATS = 750, 250
"""Length of a table of the Office for National Statistics: rows 501 to 750 serve larger counts."""
FORMS = ("pcv", "ckey", "pvalue"), ("i", "v", "p")
"""Columns of tables by keys, and of tables of probabilities."""


@dataclass(frozen=True, eq=False, repr=False)
class CellKey(PerturbedCounts):
    """Counts changed by a perturbation table, at the row of the count and the key of the cell.

    The key of a cell is made from random keys of its records, so a cell gets the same change in
    each publication. Over random keys, the change has the law of the table.

    Attributes
    ----------
    ptable : DataFrame, mapping of columns, or array_like of shape (m, 3)
        The perturbation table, in one of two forms. Columns ``pcv, ckey, pvalue``: a row for each
        count and key, with the change of the count; all keys are equally likely. Columns ``i, v,
        p`` (and perhaps ``j``): change v of count i, with its probability p. An array has the
        columns i, v and p.
    repeats : int, optional
        This number of last counts repeats for all larger counts. Default: in the first form 250 if
        the table goes up to 750, else none; in the second form 1.

    Raises
    ------
    TypeError
        If the table isn't one.
    ValueError
        If columns, counts or keys are missing, or if probabilities of a count don't add up to one.

    Notes
    -----
    In the first form zero isn't in the table, and stays zero. Add suppression of small counts by
    :meth:`~.PublishedByRules.published_if`.

    Two releases of one cell are one observation: leave one of them out. The key of a margin is the
    sum of its cells' keys. It is independent of any part of these, but all together determine it.
    Here it is taken as independent.

    References
    ----------
    Fraser, B. and Wooton, J. (2005). A proposed method for confidentialising tabular output to
    protect against differencing. UNECE work session on statistical data confidentiality.

    Giessing, S. and Tent, R. (2019). Concepts for generalising tools implementing the cell key
    method to the case of continuous variables. UNECE work session on statistical data
    confidentiality. Tables with columns i, j, p, v.

    Examples
    --------
    >>> CellKey({"i": [0, 1, 1, 1, 2], "v": [0, -1, 0, 1, 0], "p": [1, 0.3, 0.4, 0.3, 1]})
    CellKey(ptable=<array of shape (5, 3)>, repeats=1, no privacy budget)
    """

    ptable: Any
    repeats: int | None = None

    changes_again = True

    def _read_law(self) -> CountLaw:
        entries, repeats = _entries(self.ptable)
        object.__setattr__(self, "ptable", entries)
        object.__setattr__(self, "repeats", repeats if self.repeats is None else self.repeats)
        count, change = (whole_numbers(entries[:, k], f"ptable: {x}") for k, x in enumerate("iv"))
        n = int(count.max()) + 1
        missing = np.setdiff1d(np.arange(n), count)
        if count.min() < 0 or len(missing):
            wrong = f"count {missing[0]} is missing" if len(missing) else "a count is negative"
            raise ValueError(f"ptable must have each count from 0 to the largest: {wrong}")
        low = change.min()
        rows = np.zeros((n, int(np.ptp(change)) + 1))
        if np.any(entries[:, 2] < 0):
            raise ValueError("ptable must have probabilities from 0 to 1: some are negative")
        np.add.at(rows, (count, change - low), entries[:, 2])
        differences = np.arange(low, change.max() + 1)
        return read_law(rows, differences=differences, repeats=self.repeats, what="ptable")


def _entries(ptable: Any) -> tuple[np.ndarray, int | None]:
    """Read a perturbation table, as rows of count, change and probability."""
    names = getattr(ptable, "columns", ptable.keys() if isinstance(ptable, Mapping) else None)
    if names is None:
        entries = real_numbers(ptable, "ptable")
        has_shape(entries, "ptable", (None, 3), why=", or columns pcv, ckey, pvalue or i, v, p")
        return entries, 1
    form = next((form for form in FORMS if set(form) <= set(names)), None)
    if form is None:
        listed = ", ".join(map(str, names)) or "none"
        raise ValueError(f"ptable must have columns pcv, ckey, pvalue or i, v, p, got {listed}")
    read = [x for x in (*form, "j") if x in names]
    with about("ptable"):
        of_each = {x: real_numbers(np.asarray(ptable[x]), x, finite=True) for x in read}
        table = pd.DataFrame(of_each)
    if "pcv" in form:
        return _of_keys(table)
    if "j" in table:
        nowhere(table["i"] + table["v"] != table["j"], "ptable must have j = i + v in each row")
    return table[["i", "v", "p"]].to_numpy(), 1


def _of_keys(table: pd.DataFrame) -> tuple[np.ndarray, int | None]:
    """Turn a table by keys into one of probabilities."""
    n = whole_numbers(table["pcv"], "ptable: pcv", at_least=1).max()
    n_keys = whole_numbers(table["ckey"], "ptable: ckey", at_least=0).max() + 1
    keys = table.groupby("pcv")["ckey"].agg(["nunique", "size"])
    for count, (different, rows) in keys.reindex(np.arange(1, n + 1), fill_value=0).iterrows():
        if not different == rows == n_keys:
            raise ValueError(
                f"ptable must have each key from 0 to {n_keys - 1} of each count once: count "
                f"{count} has {different} different keys, in {rows} rows"
            )
    shares = (table.groupby(["pcv", "pvalue"]).size() / n_keys).reset_index().to_numpy()
    return np.vstack([[0.0, 0.0, 1.0], shares]), ONS_REPEATS if n == ONS_ROWS else None
