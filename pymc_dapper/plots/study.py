"""What a study found: utility against the budget, and coverage beside what it should be."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from arviz_base.validate import validate_dict_argument
from scipy.stats import binom

from pymc_dapper.plots.drawing import (
    Visuals,
    add_legend,
    chosen_backend,
    draw,
    figure_options,
    load_arviz_plots,
)
from pymc_dapper.studies.grid import REPLICATE_DIM

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

PANEL = "panel"
"""The dimension that tells utility from coverage."""

ANALYSIS = "analysis"
"""The dimension that tells variables of a study apart, such as a private and a naive analysis."""

VISUALS = (
    "line",
    "point",
    "error",
    "nominal",
    "band",
    "title",
    "xlabel",
    "xticks",
    "legend",
)

BAND = 0.95
"""Probability of the Monte Carlo band of coverage."""

LABELS = {
    "width": "width of the interval",
    "error": "error of the posterior mean",
    "sd": "posterior sd",
    "ess_per_second": "effective draws per second",
    "missing_information": "missing information",
}


def plot_study(
    result: Any,
    var_names: str | Sequence[str] | None = None,
    *,
    x: str = "epsilon",
    utility: str = "width",
    coords: Mapping[str, Any] | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
    visuals: Visuals | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    **pc_kwargs: Any,
) -> "PlotCollection":
    """Draw utility, and coverage of the true value, against a setting of a study.

    The left panel has the mean over replicates of some statistic, with two Monte Carlo standard
    errors to either side. The right one has the share of intervals that cover the true value. Where
    they do so with their nominal probability, 95 % of the points lie in the band.

    Parameters
    ----------
    result : DataTree
        What :func:`pymc_dapper.study` returned.
    var_names : str or sequence of str, optional
        Parameters to draw: scalars, or with entries chosen by ``coords``. All if not given.
    x : str, default "epsilon"
        The setting on the horizontal axis.
    utility : str, default "width"
        Any statistic that the result has for a parameter.
    coords : mapping, optional
        Settings, or entries of parameters, to draw, such as ``{"n": 100}``.
    plot_collection : PlotCollection, optional
        Where to draw. A new one if not given.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        What to draw with. ArviZ's default if not given.
    visuals : mapping of str to mapping or False, optional
        Options for single parts, or False to leave one out: "line", "point", "error" (of the
        utility); "nominal" and "band" (of the coverage); "title", "xlabel", "xticks", "legend".
    figure_kwargs : mapping, optional
        Options for the figure, such as ``{"figsize": (8, 4)}``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.grid``. By default ``aes`` gives the parameters
        colours, and another setting line styles and markers; what is left goes to rows of panels.

    Returns
    -------
    PlotCollection
        The figure: ``.savefig(name)`` saves it.

    Raises
    ------
    ValueError
        If the result hasn't such parameters, such a setting or such a statistic, or none of its
        cells is done.
    ImportError
        If there is nothing to draw with.

    Examples
    --------
    >>> result = pmd.study(simulate, build, {"epsilon": [0.1, 1.0, 10.0]}, replicates=100)
    >>> pmd.plot_study(result)
    """
    visuals = validate_dict_argument(visuals, valid_keys=VISUALS)
    backend = chosen_backend(backend, plot_collection)
    arviz_plots = load_arviz_plots(backend)
    found = _found(result, var_names, x, utility)
    if coords:
        found = found.sel(coords)
    series = [dim for dim in found["mean"].dims if dim != x and found.sizes[dim] > 1]
    found = found.squeeze([dim for dim in found.dims if dim != x and found.sizes[dim] == 1])
    aes = {"color": series[:1], "linestyle": series[1:2], "marker": series[1:2]}
    rows = found.sizes[series[2]] if len(series) > 2 else 1
    collection = plot_collection or arviz_plots.PlotCollection.grid(
        found[["mean"]].expand_dims({PANEL: ["utility", "coverage"]}),
        backend=backend,
        figure_kwargs=figure_options(backend, figure_kwargs, figsize=(9, 3.6 * rows)),
        **{
            "cols": [PANEL],
            "rows": series[2:3],
            "aes": {name: dims for name, dims in aes.items() if dims},
            **pc_kwargs,
        },
    )
    parts = arviz_plots.visuals
    places = _places(found[x])
    left: dict[str, Any] = {"coords": {PANEL: "utility"}}
    right: dict[str, Any] = {"coords": {PANEL: "coverage"}}
    lines: dict[str, Any] = {"x": places}

    mean, mcse = found["mean"].rename("mean"), found["mcse"].fillna(0)
    ends = {"y_bottom": mean - 2 * mcse, "y_top": mean + 2 * mcse}
    draw(
        collection,
        _without(parts.fill_between_y, "marker", "linestyle"),
        "error",
        visuals,
        mean,
        alpha=0.2,
        **ends,
        **lines,
        **left,
    )
    prob = float(result.attrs["prob"])
    n = int(found["n"].where(found["n"] > 0).min())
    low, high = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], n, prob) / n
    whole: dict[str, Any] = {"ignore_aes": "all"}
    level = xr.DataArray(prob, name="mean")
    band = xr.DataArray([low, high], dims="bound", name="mean")
    draw(collection, parts.hspan, "band", visuals, band, color="B2", alpha=0.25, **whole, **right)
    draw(
        collection,
        parts.hline,
        "nominal",
        visuals,
        level,
        color="B1",
        linestyle="C1",
        **whole,
        **right,
    )
    for values, panel in ((mean, left), (found["coverage"].rename("mean"), right)):
        line = _without(parts.line_xy, "marker")
        draw(collection, line, "line", visuals, values, **lines, **panel)
        point = _without(parts.scatter_xy, "linestyle")
        draw(collection, point, "point", visuals, values, **lines, **panel)

    nothing = xr.DataArray(0, name="mean")
    once: dict[str, Any] = {"store_artist": False, **whole}
    titles = {
        "utility": LABELS.get(utility, utility.replace("_", " ")),
        "coverage": f"coverage of {100 * prob:g} % intervals",
    }
    ticks = {"values": places.values, "labels": [f"{value:g}" for value in found[x].values]}
    for name, title in titles.items():
        of: dict[str, Any] = {"coords": {PANEL: name}, **once}
        draw(collection, parts.labelled_title, "title", visuals, nothing, text=title, **of)
        draw(collection, parts.labelled_x, "xlabel", visuals, nothing, text=x, **of)
        draw(collection, parts.set_xticks, "xticks", visuals, nothing, **ticks, **of)
    for dim in series[:2]:
        add_legend(collection, str(dim), visuals)
    return collection


def _found(
    result: Any, var_names: str | Sequence[str] | None, x: str, statistic: str
) -> xr.Dataset:
    """Average utility and coverage of parameters over replicates."""
    given = [var_names] if isinstance(var_names, str) else var_names
    names = list(result.children) if given is None else list(given)
    absent = [name for name in names if name not in result.children]
    if absent or not names:
        there = ", ".join(f"'{name}'" for name in result.children) or "none: no cell is done"
        raise ValueError(f"the study has no parameters {absent}, but {there}")
    found = [_over_replicates(result[name].dataset, name, x, statistic) for name in names]
    return xr.concat(found, dim=xr.IndexVariable(ANALYSIS, names))


def _over_replicates(parameter: xr.Dataset, name: str, x: str, statistic: str) -> xr.Dataset:
    if statistic not in parameter:
        there = ", ".join(f"'{each}'" for each in parameter.data_vars)
        raise ValueError(f"the study has no '{statistic}' of '{name}', but {there}")
    values = parameter[statistic]
    if x not in values.dims or not np.issubdtype(values[x].dtype, np.number):
        raise ValueError(
            f"'{x}' must be a setting of the study's grid whose values are numbers: say x=..., one "
            f"of {', '.join(map(str, values.dims))}. (A table of cells needs all combinations.)"
        )
    mean, mcse = values, xr.zeros_like(values)
    if REPLICATE_DIM in values.dims:
        mean = values.mean(REPLICATE_DIM)
        mcse = values.std(REPLICATE_DIM) / np.sqrt(values.count(REPLICATE_DIM))
    n = parameter["covered"].count(REPLICATE_DIM)
    return xr.Dataset({"mean": mean, "mcse": mcse, "n": n, "coverage": parameter["coverage"]})


def _without(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Leave out aesthetics that a visual knows nothing of; their dims still count."""

    def drawn(values: xr.DataArray, target: Any, **options: Any) -> Any:
        kept = {name: value for name, value in options.items() if name not in names}
        return function(values, target, **kept)

    return drawn


def _places(values: xr.DataArray) -> xr.DataArray:
    """Spread values along an axis: by their logarithms where they differ by a factor of ten."""
    places = values.astype(float)
    if (places.min() > 0) and (places.max() >= 10 * places.min()):
        return xr.apply_ufunc(np.log10, places)
    return places
