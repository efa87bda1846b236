"""How often each record was moved."""

from typing import Any

import xarray as xr

from pymc_dapper.checks import whole_number
from pymc_dapper.diagnostics._result import group
from pymc_dapper.steps.stats import RECORD_STAT, record_stats


def record_acceptance(idata: Any, *, step: int | None = None) -> xr.DataArray:
    """Return the acceptance rate of each record, per chain.

    Parameters
    ----------
    idata : DataTree
        The result of ``pm.sample`` with ``DapperStep(..., track_records=True)`` among its steps.
    step : int, optional
        Which of several such steps, in the order in which the model has their records. Needed only
        if there are several.

    Returns
    -------
    DataArray, dims (chain, record)
        Share of the draws after tuning in which the record's proposal was accepted.

    Raises
    ------
    TypeError
        If ``idata`` isn't a result, or ``step`` isn't a whole number.
    ValueError
        If no step tracked its records, if there are no draws, or if ``step`` doesn't name a step.

    Notes
    -----
    A record that hardly ever moves is fixed by the released values, or its prior proposes few
    values that fit. A high rate is no sign of good mixing: at a small privacy budget every proposal
    is accepted while the parameters move slowly. At a large one, records may walk in small steps
    (see :class:`~pymc_dapper.DapperStep`): many are then accepted, but move little.
    """
    if step is not None:
        step = whole_number(step, "step", at_least=0)
    stats = group(idata, "sample_stats")
    names = record_stats(stats.data_vars)
    if not names:
        raise ValueError(
            "no acceptance by record was kept. Sample with DapperStep(..., track_records=True)"
        )
    if step is None and len(names) > 1:
        raise ValueError(
            f"{len(names)} steps tracked their records: say which one is meant, as in "
            "record_acceptance(idata, step=0)"
        )
    accepted = stats[names[whole_number(step or 0, "step", at_least=0, at_most=len(names) - 1)]]
    if accepted.sizes["draw"] == 0:
        raise ValueError("there is no draw after tuning that records could have been moved in")
    rates = accepted.mean("draw")
    return xr.DataArray(
        rates.values,
        dims=("chain", "record"),
        coords={"chain": rates["chain"].values},
        name=RECORD_STAT,
    )
