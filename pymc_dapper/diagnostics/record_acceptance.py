"""How often each record was moved."""

from typing import Any

import numpy as np
import xarray as xr

from pymc_dapper.checks import whole_number
from pymc_dapper.diagnostics._result import group
from pymc_dapper.steps.stats import RECORD_STAT


def record_acceptance(idata: Any, *, step: int | None = None) -> xr.DataArray:
    """Return the acceptance rate of each record, per chain.

    Parameters
    ----------
    idata : DataTree
        What ``pm.sample`` returned, with ``DapperStep(..., track_records=True)`` among its steps.
    step : int, optional
        Which of several such steps, in the order in which they were passed. Needed only if there
        are several.

    Returns
    -------
    DataArray, dims (chain, record)
        Share of the draws after tuning in which the record's proposal was accepted.

    Raises
    ------
    TypeError
        If ``idata`` isn't a result, or ``step`` isn't a whole number.
    ValueError
        If no step tracked its records, if a chain was interrupted before its last draw, or if
        ``step`` doesn't say which step is meant.

    Notes
    -----
    A record that is hardly ever moved is one that the released values pin down, or whose prior
    proposes little that fits. A high rate is no sign of good mixing: at a small privacy budget
    every proposal is accepted while the parameters move slowly.
    """
    if step is not None:
        step = whole_number(step, "step", at_least=0)
    stats = group(idata, "sample_stats")
    if RECORD_STAT not in stats:
        raise ValueError(
            "no acceptance by record was kept. Sample with DapperStep(..., track_records=True)"
        )
    last = stats[RECORD_STAT].isel(draw=-1)
    if step is not None:
        n_steps = last.shape[1] if last.ndim > 1 else 1
        whole_number(step, "step", at_least=0, at_most=n_steps - 1)
    if last.ndim > 1:
        if step is None and last.shape[1] > 1:
            raise ValueError(
                f"{last.shape[1]} steps tracked their records: say which one is meant, as in "
                "record_acceptance(idata, step=0)"
            )
        last = last[:, step or 0]
    rates = list(last.values)
    missing = [int(chain) for chain, rate in zip(last["chain"], rates, strict=True) if rate is None]
    if missing:
        raise ValueError(
            f"there is no acceptance by record for chain {', '.join(map(str, missing))}: it is "
            "handed over at a chain's last draw, and the run was interrupted before (PyMC then "
            "cuts all chains to the length of the shortest)"
        )
    return xr.DataArray(
        np.stack(rates),
        dims=("chain", "record"),
        coords={"chain": last["chain"].values},
        name=RECORD_STAT,
    )
