"""Results of a study: utility against the budget, and coverage against its nominal value."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from arviz_base.validate import validate_dict_argument
from scipy.stats import binom

from pymc_dapper.checks import is_a, known, text
from pymc_dapper.plots import drawing
from pymc_dapper.studies.grid import REPLICATE_DIM
from pymc_dapper.studies.result import monte_carlo_error

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

PANEL = "panel"
"""The dimension of utility and coverage."""

ANALYSIS = "analysis"
"""The dimension of a study's variables, such as a private and a naive analysis."""

VISUALS = (
    "line",
    "point",
    "error",
    "nominal",
    "band",
    "title",
    "xlabel",
    "ylabel",
    "xticks",
    "ylim",
    "legend",
)

BAND = 0.95
"""Probability of the Monte Carlo band of coverage."""

LABELS = {
    "width": "mean width of the intervals",
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
    backend: str | None = None,
    visuals: drawing.Visuals | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    **pc_kwargs: Any,
) -> "PlotCollection":
    """Draw utility, and coverage of the true value, against a setting of a study.

    The left panel has the mean of a statistic over replicates, with two Monte Carlo standard errors
    on either side. The right panel has the share of intervals that cover the true value. If
    intervals cover with their nominal probability, 95 % of the points lie in the band, which is
    computed for the smallest number of replicates of any point. Without true values there is no
    right panel.

    Parameters
    ----------
    result : DataTree
        The result of :func:`pymc_dapper.study`.
    var_names : str or sequence of str, optional
        Parameters to draw: scalars, or with entries chosen by ``coords``. All if not given.
    x : str, default "epsilon"
        The setting on the horizontal axis.
    utility : str, default "width"
        Any statistic that the result has for a parameter.
    coords : mapping, optional
        Settings, or entries of parameters, to draw, such as ``{"n": 100}``.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting backend; by default ArviZ's.
    visuals : mapping of str to mapping or False, optional
        Options for single parts, or False to leave one out: "line", "point", "error" (of the
        utility); "nominal" and "band" (of the coverage); "title", "xlabel", "ylabel" (of rows),
        "xticks", "ylim" (of the coverage, from 0 to 1), "legend".
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
    is_a(result, xr.DataTree, "result must be what pmd.study returned")
    given: dict[str, Any] = {"visuals": visuals, "figure_kwargs": figure_kwargs, "coords": coords}
    backend, arviz_plots = drawing.begin_figure(backend, var_names=var_names, **given)
    text(x, "x")
    text(utility, "utility")
    visuals = validate_dict_argument(visuals, valid_keys=VISUALS)
    found = _found(result, var_names, x, utility).assign_attrs(result.attrs)
    if coords:
        found = found.sel(coords)
    series = [dim for dim in found["mean"].dims if dim != x and found.sizes[dim] > 1]
    found = found.squeeze([dim for dim in found.dims if dim != x and found.sizes[dim] == 1])
    aes = {"color": series[:1], "linestyle": series[1:2], "marker": series[1:2]}
    rows = math.prod(found.sizes[dim] for dim in series[2:])
    titles = _titles(found, utility)
    collection = arviz_plots.PlotCollection.grid(
        found[["mean"]].expand_dims({PANEL: list(titles)}),
        backend=backend,
        figure_kwargs=drawing.figure_options(
            backend, figure_kwargs, figsize=(4.5 * len(titles), 3.6 * rows)
        ),
        **{
            "cols": [PANEL],
            "rows": series[2:],
            "aes": {name: dims for name, dims in aes.items() if dims},
            **(drawing.colours_of(found[ANALYSIS].values) if series[:1] == [ANALYSIS] else {}),
            **pc_kwargs,
        },
    )
    _draw_panels(collection, arviz_plots.visuals, visuals, found, titles, x)
    nothing = _in_each_panel(collection, found["mean"].rename("mean"), 0)
    _draw_labels(collection, arviz_plots.visuals, visuals, titles, nothing, found[x])
    for dim in series[:1]:
        drawing.add_legend(collection, str(dim), visuals)
    for dim in series[1:2]:
        # Line styles and markers, in a colour that none of the analyses has.
        drawing.add_legend(collection, str(dim), visuals, visual_kwargs={"color": "black"})
    return collection


def _draw_panels(
    collection: "PlotCollection",
    parts: Any,
    visuals: drawing.Visuals,
    found: xr.Dataset,
    titles: Mapping[str, str],
    x: str,
) -> None:
    """Draw the utility with its Monte Carlo error, and coverage with its nominal value."""
    mean, coverage = found["mean"].rename("mean"), found["coverage"].rename("mean")
    twice = 2 * found["mcse"].fillna(0)
    places: dict[str, Any] = {"x": _places(found[x])}
    band = _without(parts.fill_between_y, "marker", "linestyle")
    ends = {"y_bottom": mean - twice, "y_top": mean + twice, "coords": {PANEL: "utility"}}
    drawing.draw(collection, band, "error", visuals, mean, alpha=0.2, **ends, **places)
    if "coverage" in titles:
        n = int(found["n"].where(found["n"] > 0).min())
        level = _in_each_panel(collection, mean, float(found.attrs["prob"]))
        _draw_nominal_coverage(collection, parts, visuals, level, n)
    for panel, values in zip(titles, (mean, coverage), strict=False):
        where: dict[str, Any] = {"coords": {PANEL: panel}, **places}
        line = _without(parts.line_xy, "marker")
        drawing.draw(collection, line, "line", visuals, values, **where)
        point = _without(parts.scatter_xy, "linestyle")
        drawing.draw(collection, point, "point", visuals, values, **where)


def _titles(found: xr.Dataset, utility: str) -> dict[str, str]:
    """Titles of the panels; coverage has one only if there are true values."""
    titles = {"utility": LABELS.get(utility, utility.replace("_", " "))}
    if (found["n"] > 0).any():
        percent = 100 * float(found.attrs["prob"])
        titles["coverage"] = f"share of {percent:g} % intervals with the truth"
    return titles


def _in_each_panel(
    collection: "PlotCollection", values: xr.DataArray, number: float
) -> xr.DataArray:
    """Make an array with a number for each row of panels, for visuals that each row has once."""
    others = [dim for dim in values.dims if dim not in collection.facet_dims]
    return xr.full_like(values.isel(dict.fromkeys(others, 0), drop=True), number)


def _draw_nominal_coverage(
    collection: "PlotCollection", parts: Any, visuals: drawing.Visuals, level: xr.DataArray, n: int
) -> None:
    """Draw the nominal probability, and the band for the share among n intervals."""
    tails = xr.DataArray([(1 - BAND) / 2, (1 + BAND) / 2], dims="bound")
    band = xr.apply_ufunc(binom.ppf, tails, n, level).rename("mean") / n
    once: dict[str, Any] = {"ignore_aes": "all", "coords": {PANEL: "coverage"}}
    drawing.draw(collection, parts.hspan, "band", visuals, band, color="B2", alpha=0.25, **once)
    drawing.draw(
        collection, parts.hline, "nominal", visuals, level, color="B1", linestyle="C1", **once
    )


def _draw_labels(
    collection: "PlotCollection",
    parts: Any,
    visuals: drawing.Visuals,
    titles: Mapping[str, str],
    nothing: xr.DataArray,
    setting: xr.DataArray,
) -> None:
    """Draw the panels' titles, the name and values of the setting, and the labels of rows."""
    ticks = {
        "values": _places(setting).values,
        "labels": [f"{value:g}" for value in setting.values],
    }
    for panel, title in titles.items():
        once: dict[str, Any] = {
            "coords": {PANEL: panel},
            "store_artist": False,
            "ignore_aes": "all",
        }
        drawing.draw(
            collection, parts.labelled_title, "title", visuals, nothing, text=title, **once
        )
        name = {"epsilon": "privacy budget, epsilon"}.get(str(setting.name), setting.name)
        drawing.draw(collection, parts.labelled_x, "xlabel", visuals, nothing, text=name, **once)
        drawing.draw(collection, parts.set_xticks, "xticks", visuals, nothing, **ticks, **once)
        if panel == "coverage":
            whole = {"limits": (-0.02, 1.04), **once}
            drawing.draw(collection, parts.set_ylim, "ylim", visuals, nothing, **whole)
        if nothing.dims and panel == "utility":
            drawing.draw(collection, _label_row(parts), "ylabel", visuals, nothing, **once)


def _label_row(parts: Any) -> Callable[..., Any]:
    """Label the vertical axis with the settings that a row of panels is about."""

    def drawn(values: xr.DataArray, target: Any, **options: Any) -> Any:
        rows = {dim: label.item() for dim, label in values.coords.items() if dim != PANEL}
        text = ", ".join(f"{dim} = {label}" for dim, label in rows.items())
        return parts.labelled_y(values, target, **{"text": text, **options})

    return drawn


def _found(
    result: Any, var_names: str | Sequence[str] | None, x: str, statistic: str
) -> xr.Dataset:
    """Average utility and coverage of parameters over replicates."""
    given = [var_names] if isinstance(var_names, str) else var_names
    names = list(result.children) if given is None else list(given)
    known(names, result.children, "var_names: the study has no parameter")
    if not names:
        raise ValueError("the study has no parameters: no cell is done")
    found = [_over_replicates(result[name].dataset, name, x, statistic) for name in names]
    return xr.concat(found, dim=xr.IndexVariable(ANALYSIS, names))


def _over_replicates(parameter: xr.Dataset, name: str, x: str, statistic: str) -> xr.Dataset:
    known([statistic], parameter.data_vars, f"'{name}': the study has no")
    values = parameter[statistic]
    if x not in values.dims or not np.issubdtype(values[x].dtype, np.number):
        raise ValueError(
            f"'{x}' must be a setting of the study's grid whose values are numbers: say x=..., one "
            f"of {', '.join(map(str, values.dims))}. (A table of cells needs all combinations.)"
        )
    mean, mcse = values, xr.zeros_like(values)
    if REPLICATE_DIM in values.dims:
        mean = values.mean(REPLICATE_DIM)
        mcse = monte_carlo_error(values)
    elif f"{statistic}_mcse" in parameter:
        mcse = parameter[f"{statistic}_mcse"]
    n = parameter["covered"].count(REPLICATE_DIM)
    return xr.Dataset({"mean": mean, "mcse": mcse, "n": n, "coverage": parameter["coverage"]})


def _without(function: Callable[..., Any], *names: str) -> Callable[..., Any]:
    """Leave out aesthetics that a visual doesn't support; their dims still count."""

    def drawn(values: xr.DataArray, target: Any, **options: Any) -> Any:
        kept = {name: value for name, value in options.items() if name not in names}
        return function(values, target, **kept)

    return drawn


def _places(values: xr.DataArray) -> xr.DataArray:
    """Spread values along an axis, on a log scale if they differ by a factor of ten."""
    places = values.astype(float)
    if (places.min() > 0) and (places.max() >= 10 * places.min()):
        return xr.apply_ufunc(np.log10, places)
    return places
