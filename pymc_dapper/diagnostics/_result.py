"""Groups of a sampling result."""

from typing import Any

from xarray import DataTree

from pymc_dapper.checks import known, shown


def group(idata: Any, name: str) -> Any:
    """Return a group of the user's ``idata``; TypeError or ValueError if it has none."""
    if not isinstance(idata, DataTree):
        raise TypeError(f"idata must be the DataTree that pmd.sample returned, got {shown(idata)}")
    known([name], idata.children, "idata must be what pmd.sample returned: it has no group")
    return idata[name]
