"""Acceptance of the records' proposals, with the floor of a pure budget."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from arviz_base.validate import validate_dict_argument

from pymc_dapper.budget import Budget
from pymc_dapper.checks import choice, whole_number
from pymc_dapper.diagnostics import acceptance, record_acceptance
from pymc_dapper.plots import drawing
from pymc_dapper.steps.stats import ACCEPT_STAT, record_stats

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

SHOWN = 1_000
"""Most records on a line, evenly spread over all."""

VISUALS = ("rate", "mean", "floor", "floor_text", "xlim", "xlabel", "ylabel", "legend")


def plot_record_acceptance(
    idata: Any,
    budget: Budget | None = None,
    *,
    by: Literal["record", "draw"] | None = None,
    step: int | None = None,
    backend: str | None = None,
    visuals: drawing.Visuals | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    **pc_kwargs: Any,
) -> "PlotCollection":
    """Draw the acceptance of the records' proposals, with the floor that a pure budget implies.

    By record, if they were tracked: each chain has a line of its records' rates in increasing
    order, so records that hardly ever move are at the left end. Otherwise by draw: the share of
    records that moved in each sweep.

    Parameters
    ----------
    idata : DataTree
        The result of ``pmd.sample``, or of ``pm.sample`` with a ``DapperStep``.
    budget : PureDP, ZCDP or ApproxDP, optional
        Budget of the floor, as in :func:`pymc_dapper.diagnostics.acceptance`; by default the one
        that ``pmd.sample`` wrote into the result.
    by : {"record", "draw"}, optional
        Whether rates are by record or by draw. By default by record, if all records were tracked
        (``dapper={"track_records": True}``).
    step : int, optional
        Which of several ``DapperStep``: in the order in which the model has their records if
        ``by="record"``, in which they were passed if ``by="draw"``.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting backend; by default ArviZ's.
    visuals : mapping of str to mapping or False, optional
        Options for single parts, or False to leave one out: "rate" (a line for each chain), "mean"
        (a line at each chain's mean), "floor" and "floor_text" (if there is a floor), "xlim",
        "xlabel", "ylabel", "legend".
    figure_kwargs : mapping, optional
        Options for the figure, such as ``{"figsize": (8, 4)}``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.wrap``, such as ``color=["C0", "C1"]`` for the
        chains.

    Returns
    -------
    PlotCollection
        The figure: ``.savefig(name)`` saves it.

    Raises
    ------
    ValueError
        If no ``DapperStep`` was among the steps, if records weren't tracked and ``by="record"``, or
        if ``step`` doesn't name a step.

    Warns
    -----
    UserWarning
        If a chain's rate is below the floor: see :func:`pymc_dapper.diagnostics.acceptance`.

    Notes
    -----
    A high rate is no sign of good mixing. If the figure has no floor,
    ``print(pmd.diagnostics.acceptance(idata))`` says why.

    Examples
    --------
    >>> with model:
    ...     idata = pmd.sample(dapper={"track_records": True})
    >>> pmd.plot_record_acceptance(idata)
    """
    backend, arviz_plots = drawing.begin_figure(
        backend, visuals=visuals, figure_kwargs=figure_kwargs
    )
    if step is not None:
        whole_number(step, "step", at_least=0)
    visuals = validate_dict_argument(visuals, valid_keys=VISUALS)
    if by is not None:
        choice(by, "by", ("record", "draw"))
    found = acceptance(idata, budget)
    if by is None:
        by = "record" if record_stats(idata["sample_stats"].data_vars) else "draw"
    if by == "record":
        rates = _in_order(record_acceptance(idata, step=step))
    else:
        rates = _of_step(idata["sample_stats"][ACCEPT_STAT], step)
    rates = rates.rename("acceptance")
    number = rates.sizes[by]

    collection = arviz_plots.PlotCollection.wrap(
        rates.to_dataset(),
        backend=backend,
        figure_kwargs=drawing.figure_options(backend, figure_kwargs),
        **{"aes": {"color": ["chain"]}, **pc_kwargs},
    )
    parts = arviz_plots.visuals
    places, style = np.arange(number), {"alpha": 0.4, "width": 0.7}
    if by == "record":
        places, style = np.unique(np.linspace(0, number - 1, SHOWN).astype(int)), {"width": 1.5}
    at: dict[str, Any] = {"x": xr.DataArray(places, dims=by), **style}
    drawing.draw(collection, parts.line_xy, "rate", visuals, rates.isel({by: places}), **at)
    drawing.draw(collection, parts.hline, "mean", visuals, rates.mean(by), width=1)

    if found.floor is not None:
        _draw_floor(collection, parts, visuals, found.floor, 1.03 * number)
    # Drawn once for all chains.
    whole: dict[str, Any] = {"ignore_aes": "all"}
    nothing = xr.DataArray(0, name="acceptance")
    ends: dict[str, Any] = {"limits": (-0.02 * number, 1.02 * number - 1), "store_artist": False}
    drawing.draw(collection, parts.set_xlim, "xlim", visuals, nothing, **ends, **whole)
    label = {"record": "records, from the least to the most accepted", "draw": "draw"}[by]
    drawing.draw(collection, parts.labelled_x, "xlabel", visuals, nothing, text=label, **whole)
    share = "share of proposals accepted"
    drawing.draw(collection, parts.labelled_y, "ylabel", visuals, nothing, text=share, **whole)
    if rates.sizes["chain"] > 1:
        drawing.add_legend(collection, "chain", visuals)
    return collection


def _in_order(rates: xr.DataArray) -> xr.DataArray:
    """Sort the records of each chain by their rates."""
    values = np.sort(rates.values, axis=rates.dims.index("record"))
    return rates.drop_vars("record", errors="ignore").copy(data=values)


def _draw_floor(
    collection: "PlotCollection", parts: Any, visuals: drawing.Visuals, floor: float, beside: float
) -> None:
    """Draw a dashed line, with its name next to the panel, away from the rates."""
    level = xr.DataArray(floor, name="acceptance")
    line = {"color": "B1", "linestyle": "C1", "ignore_aes": "all"}
    drawing.draw(collection, parts.hline, "floor", visuals, level, **line)
    text = {"x": beside, "text": f"floor\n{floor:.3g}", "ignore_aes": "all"}
    align = {"vertical_align": "center", "horizontal_align": "left"}
    drawing.draw(collection, parts.annotate_xy, "floor_text", visuals, level, **text, **align)


def _of_step(rates: xr.DataArray, step: int | None) -> xr.DataArray:
    """Return the rates of one ``DapperStep``; PyMC adds an axis if there are several."""
    axes = [dim for dim in rates.dims if dim not in ("chain", "draw")]
    if not axes:
        return rates
    if step is None:
        raise ValueError(
            f"there are {rates.sizes[axes[0]]} DapperSteps: say which one is meant, as in "
            "plot_record_acceptance(idata, step=0)"
        )
    return rates.isel({axes[0]: step}, drop=True)
