"""Groups of a sampling result."""

from collections.abc import Sequence
from typing import Any

from pytensor.graph import Variable
from xarray import DataTree

from pymc_dapper.checks import is_a, known


def group(idata: Any, name: str) -> Any:
    """Return a group of the user's ``idata``; TypeError or ValueError if it has none."""
    is_a(idata, DataTree, "idata must be the DataTree that pmd.sample returned")
    known([name], idata.children, "idata must be what pmd.sample returned: it has no group")
    if not {"chain", "draw"} <= set(idata[name].sizes):
        raise ValueError("idata has no dims 'chain' and 'draw': keep both, as in .sel(chain=[0])")
    return idata[name]


def check_kept(posterior: Any, rvs: Sequence[Variable], cure: str) -> None:
    """Check that a result has draws of these variables."""
    missing = [f"'{rv.name}'" for rv in rvs if rv.name not in posterior]
    if missing:
        raise ValueError(f"idata has no draws of {', '.join(missing)}: {cure}")
