"""Groups of a sampling result."""

from typing import Any

from xarray import DataTree

from pymc_dapper.checks import is_a, known


def group(idata: Any, name: str) -> Any:
    """Return a group of the user's ``idata``; TypeError or ValueError if it has none."""
    is_a(idata, DataTree, "idata must be the DataTree that pmd.sample returned")
    known([name], idata.children, "idata must be what pmd.sample returned: it has no group")
    return idata[name]
