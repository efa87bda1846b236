"""Shared code of the plots: loading arviz-plots, defaults of a figure, and drawing one visual."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr
from arviz_base import rcParams

from pymc_dapper.checks import choice, is_a, names, options, text

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

Visuals = Mapping[str, Mapping[str, Any] | bool]
"""For each visual of a figure, options for the function that draws it; or False to leave it out."""


COLOURS = {"private": "#1b5fa6", "naive": "#c1500a", "confidential": "#595959"}
"""Colours of the usual analyses, in all figures."""


def begin_figure(backend: str | None, *, var_names: Any = None, **given: Any) -> tuple[str, Any]:
    """Check the arguments that figures share, under the caller's names, and import arviz-plots.

    That is imported when a figure is asked for, since matplotlib comes with it.

    Returned are the name of the plotting library (the one asked for, or ArviZ's default) and
    ``arviz_plots``.
    """
    import arviz_plots

    if isinstance(var_names, str):
        text(var_names, "var_names")
    elif var_names is not None:
        names(var_names, "var_names")
    for name, value in given.items():
        options(value, name)
    if backend is None:
        backend = str(rcParams["plot.backend"])
    return choice(backend, "backend", ("matplotlib", "plotly", "bokeh", "none")), arviz_plots


def check_analyses(analyses: Any) -> None:
    """Check that there are results: by name, or one result, which is a mapping, too."""
    is_a(analyses, Mapping, "analyses must be results by name, as in {'private': idata}")
    if not analyses:
        raise ValueError("analyses is empty: there is no analysis to draw")


def colours_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Options that draw the usual analyses in their colours, wherever they stand.

    ``color`` for a ``PlotCollection``; empty if no name is in ``COLOURS``.
    """
    listed = list(names)
    if not set(listed) & set(COLOURS):
        return {}
    # Together with the colours above, ArviZ's third and later ones are distinct.
    others = (f"C{k}" for k in range(2, 2 + len(listed)))
    return {"color": [COLOURS[name] if name in COLOURS else next(others) for name in listed]}


def figure_options(backend: str, given: Mapping[str, Any] | None, **defaults: Any) -> dict:
    """Options of a figure: the caller's, over defaults that leave room for a legend."""
    layout = {"layout": "constrained"} if backend == "matplotlib" else {}
    return {**layout, **defaults, **(given or {})}


def draw(
    collection: "PlotCollection",
    function: Callable[..., Any],
    name: str,
    visuals: Visuals,
    data: xr.DataArray,
    **defaults: Any,
) -> None:
    """Draw one visual everywhere in a collection, unless the caller leaves it out.

    The function is one of ``arviz_plots.visuals``. Defaults are options for it, and for
    ``PlotCollection.map``, which the caller may override.
    """
    options = _asked(visuals, name)
    if options is not None:
        collection.map(function, name, data=data, **{**defaults, **options})


def add_legend(collection: "PlotCollection", dim: str, visuals: Visuals, **defaults: Any) -> None:
    """Add a legend of the colours, unless the caller leaves it out.

    Defaults are options for ``PlotCollection.add_legend``, which the caller may override.
    """
    options = _asked(visuals, "legend")
    if options is not None:
        collection.add_legend(dim, **{**defaults, **options})


def _asked(visuals: Visuals, name: str) -> dict[str, Any] | None:
    """Options that the caller gives for a visual; None to leave it out."""
    given = visuals.get(name, {})
    if isinstance(given, bool):
        return {} if given else None
    return dict(given)
