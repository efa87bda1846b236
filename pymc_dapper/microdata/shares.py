"""Joint probabilities of columns, from the draws of a model of microdata."""

from collections.abc import Sequence
from typing import Any

import xarray as xr

from pymc_dapper.checks import names
from pymc_dapper.diagnostics._result import group

DRAWS = ("chain", "draw")


def shares(idata: Any, columns: str | Sequence[str]) -> xr.DataArray:
    """Compute the joint probabilities of some columns, for each draw.

    For any columns of :func:`latent_classes`, :func:`graphical`, or a model of your own in which
    each ``p_COLUMN`` has the dims of the columns that it depends on, and last its own.
    :func:`regressions` has no such tables: there, only for columns of one released table.

    Parameters
    ----------
    idata : DataTree
        What ``pmd.sample`` returned.
    columns : str or sequence of str
        The columns.

    Returns
    -------
    DataArray, dims ("chain", "draw", *columns)
        The share of each combination of categories in an endless population; for
        :func:`regressions`, among the people of the model.

    Raises
    ------
    ValueError
        If the result has no table of probabilities for a column, and no share of all columns.

    Examples
    --------
    >>> shares(idata, ["age", "sex"]).quantile([0.05, 0.95], ("chain", "draw"))
    """
    asked = [columns] if isinstance(columns, str) and columns else list(names(columns, "columns"))
    if not asked or len(set(asked)) != len(asked):
        raise ValueError(f"columns must be different names, one at least, got {asked}")
    posterior = group(idata, "posterior").to_dataset()
    # In a model of one's own, a share may be one of some people only.
    tabled = any(f"p_{column}" in posterior for column in asked)
    for name, share in posterior.data_vars.items():
        cells = {*share.dims} - {*DRAWS}
        of_people = not tabled and str(name).startswith("share_") and {*asked} <= cells
        if of_people and share.sum(cells).max() < 1 + 1e-9:
            return share.sum(cells - {*asked}).transpose(*DRAWS, *asked)
    tables: dict[str, xr.DataArray] = {}
    left = list(asked)
    while left:
        column = left.pop()
        if f"p_{column}" not in posterior or column not in posterior[f"p_{column}"].dims:
            known = ", ".join(str(x) for x in posterior.dims if f"p_{x}" in posterior)
            told = f"It has those of {known}" if known else "Count synthetic people instead"
            missing = f"no 'p_{column}' with dim '{column}', and no table of all columns"
            raise ValueError(f"columns: idata has {missing}. {told}")
        tables[column] = posterior[f"p_{column}"]
        left += [str(x) for x in tables[column].dims if x not in (*DRAWS, *tables, *left)]
    # Summed over all others, in an order that keeps tables small.
    joint = xr.dot(*tables.values(), dim={*tables} - {*asked}, optimize=True)
    return joint.transpose(*DRAWS, *asked)
