"""What the plots share: loading arviz-plots, defaults of a figure, and drawing one visual."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import xarray as xr
from arviz_base import rcParams

from pymc_dapper.checks import choice, names, options, shown, text

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

Visuals = Mapping[str, Mapping[str, Any] | bool]
"""For each visual of a figure, options for the function that draws it; or False to leave it out."""


COLOURS = {"private": "#1b5fa6", "naive": "#c1500a", "confidential": "#595959"}
"""What the usual analyses are drawn in, in all figures."""


def load_arviz_plots(backend: str) -> Any:
    """Import arviz-plots: when a figure is asked for, since matplotlib comes with it.

    Parameters
    ----------
    backend : str
        The plotting library that it is to draw with.

    Returns
    -------
    module
        ``arviz_plots``.

    Raises
    ------
    ImportError
        If either isn't installed.
    """
    try:
        arviz_plots = import_module("arviz_plots")
        import_module(f"arviz_plots.backend.{backend}")
    except ModuleNotFoundError as error:
        raise ImportError(
            f"this figure needs {error.name}, which isn't installed: pip install {error.name}"
        ) from error
    return arviz_plots


def check_options(
    *,
    plot_collection: Any,
    visuals: Any,
    figure_kwargs: Any,
    var_names: Any = None,
    filter_vars: Any = None,
    coords: Any = None,
    stats: Any = None,
) -> None:
    """Check what all plots take, by the name that the caller gave it.

    Raises
    ------
    TypeError, ValueError
        If it isn't of the type that arviz-plots takes.
    """
    if plot_collection is not None and not hasattr(plot_collection, "facet_dims"):
        raise TypeError(f"plot_collection must be a PlotCollection, got {shown(plot_collection)}")
    if isinstance(var_names, str):
        text(var_names, "var_names")
    elif var_names is not None:
        names(var_names, "var_names")
    if filter_vars is not None:
        choice(filter_vars, "filter_vars", ("like", "regex"))
    given = {"visuals": visuals, "figure_kwargs": figure_kwargs, "coords": coords, "stats": stats}
    for name, value in given.items():
        options(value, name)


def check_analyses(analyses: Any) -> None:
    """Check that results were passed.

    Raises
    ------
    TypeError
        If ``analyses`` isn't a mapping, as a result itself is.
    ValueError
        If there are none.
    """
    if not isinstance(analyses, Mapping):
        raise TypeError(
            f"analyses must be results by name, as in {{'private': idata}}, got {shown(analyses)}"
        )
    if not analyses:
        raise ValueError("analyses is empty: there is no analysis to draw")


def chosen_backend(backend: str | None, plot_collection: "PlotCollection | None") -> str:
    """Name the plotting library: the one asked for, that of the collection, or ArviZ's default.

    Parameters
    ----------
    backend : str, optional
        What the caller asks for.
    plot_collection : PlotCollection, optional
        What the caller draws in.

    Returns
    -------
    str
        A backend of arviz-plots.

    Raises
    ------
    ImportError
        If no plotting library is installed.
    """
    if backend is not None:
        return choice(backend, "backend", ("matplotlib", "plotly", "bokeh", "none"))
    if plot_collection is not None:
        return str(plot_collection.backend)
    # ArviZ's answer where it finds no plotting library: it would draw nothing, and not say so.
    if rcParams["plot.backend"] == "none":
        raise ImportError(
            "there is no plotting library to draw with: pip install matplotlib, or say "
            "backend='none'"
        )
    return str(rcParams["plot.backend"])


def colours_of(names: Iterable[str]) -> dict[str, list[str]]:
    """Options that draw the usual analyses in their colours, wherever they stand.

    Parameters
    ----------
    names : iterable of str
        Names of analyses.

    Returns
    -------
    dict
        ``color`` for a ``PlotCollection``; empty where no name is one of ``COLOURS``.
    """
    listed = list(names)
    if not set(listed) & set(COLOURS):
        return {}
    # Beside the colours above, ArviZ's third and later ones tell other analyses apart.
    others = (f"C{k}" for k in range(2, 2 + len(listed)))
    return {"color": [COLOURS[name] if name in COLOURS else next(others) for name in listed]}


def figure_options(backend: str, given: Mapping[str, Any] | None, **defaults: Any) -> dict:
    """Options of a figure: what the caller gives, over defaults that leave room for a legend.

    Parameters
    ----------
    backend : str
        The plotting library.
    given : mapping, optional
        ``figure_kwargs`` from the caller.
    **defaults
        Further defaults.

    Returns
    -------
    dict
        ``figure_kwargs`` for a ``PlotCollection``.
    """
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

    Parameters
    ----------
    collection : PlotCollection
        Where to draw.
    function : callable
        A function of ``arviz_plots.visuals``.
    name : str
        Name of the visual.
    visuals : mapping
        What the caller asks of it.
    data : DataArray
        What to draw.
    **defaults
        Options for ``function`` and ``PlotCollection.map``, which the caller may override.
    """
    options = _asked(visuals, name)
    if options is not None:
        collection.map(function, name, data=data, **{**defaults, **options})


def add_legend(collection: "PlotCollection", dim: str, visuals: Visuals, **defaults: Any) -> None:
    """Add a legend, unless the caller leaves it out.

    Parameters
    ----------
    collection : PlotCollection
        Where to add it.
    dim : str
        What the colours stand for.
    visuals : mapping
        What the caller asks of it, as "legend".
    **defaults
        Options for ``PlotCollection.add_legend``, which the caller may override.
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
