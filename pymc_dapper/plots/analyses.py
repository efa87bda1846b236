"""Densities of several analyses of the same parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr
from arviz_base import extract

from pymc_dapper.checks import choice
from pymc_dapper.plots import drawing

MODEL = "model"
"""The dimension of analyses in arviz-plots."""


def variables(analyses: Mapping[str, Any], var_names: str | list[str] | None) -> list[str]:
    """Choose the variables to draw, among those that are in the posteriors of all analyses.

    Raises ValueError if one has no posterior, or if the variables asked for aren't in all of them.
    Returned are names, in the order of the first analysis.
    """
    for name, tree in analyses.items():
        if "posterior" not in tree.children:
            raise ValueError(f"'{name}' has no group 'posterior'")
    everywhere = [tree["posterior"] for tree in analyses.values()]
    common = [name for name in everywhere[0] if all(name in one for one in everywhere)]
    listed = ", ".join(f"'{name}'" for name in common) or "none"
    where = "in posterior of " + ", ".join(f"'{name}'" for name in analyses)
    nothing = f"there is no variable to draw. Variables {where}: {listed}"
    if not common:
        raise ValueError(nothing)
    shared = xr.DataTree.from_dict({"posterior": everywhere[0].dataset[common]})
    try:
        chosen = extract(shared, var_names=var_names, combined=False, keep_dataset=True)
    except KeyError as error:
        raise ValueError(f"{error.args[0]}. Variables {where}: {listed}") from error
    if not chosen.data_vars:
        raise ValueError(nothing)
    return [str(name) for name in chosen.data_vars]


def stack(datasets: Mapping[str, xr.Dataset]) -> xr.Dataset:
    """Put analyses one behind the other, along a dimension "model".

    Raises ValueError if a variable has other dims, or other coordinates, in one analysis than in
    the first.
    """
    first, *others = datasets
    for other in others:
        for name, variable in datasets[first].items():
            if set(variable.dims) != set(datasets[other][name].dims):
                raise ValueError(
                    f"'{name}' has dims {variable.dims} in '{first}', but "
                    f"{datasets[other][name].dims} in '{other}': give it the same in both models"
                )
    try:
        stacked = xr.concat(
            datasets.values(), MODEL, join="exact", coords="minimal", compat="override"
        )
    except ValueError as error:
        raise ValueError(
            f"the analyses {', '.join(repr(name) for name in datasets)} don't have the same "
            f"entries of their variables: give dims the same coordinates in all models ({error})"
        ) from error
    return stacked.assign_coords({MODEL: list(datasets)})


if TYPE_CHECKING:
    from arviz_plots import PlotCollection


def plot_analyses(
    analyses: Mapping[str, Any],
    *,
    var_names: str | list[str] | None = None,
    coords: Mapping[str, Any] | None = None,
    kind: str = "kde",
    backend: str | None = None,
    visuals: drawing.Visuals | None = None,
    stats: Mapping[str, Any] | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    **pc_kwargs: Any,
) -> "PlotCollection":
    """Compare the private posterior with the naive one and others: one panel for each parameter.

    An analysis that uses noisy values as exact gets intervals of the wrong width, often in the
    wrong place. This plot shows it.

    Parameters
    ----------
    analyses : mapping of str to DataTree
        Results of ``pmd.sample`` or ``pm.sample``, by the name of the analysis, such as
        ``{"private": ..., "naive": ..., "confidential": ...}``.
    var_names : str or list of str, optional
        Variables to draw; with ``~`` before them, variables to leave out. By default all variables
        that the analyses share.
    coords : mapping, optional
        Entries to draw, such as ``{"cell": ["male/admit"]}``.
    kind : {"kde", "hist", "ecdf", "dot", "auto"}
        How to draw a distribution.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting backend; by default ArviZ's.
    visuals : mapping of str to mapping or False, optional
        As in ``arviz_plots.plot_dist``, and "legend". Besides the densities there are intervals
        and means below them, without the means' numbers.
    stats : mapping, optional
        As in ``arviz_plots.plot_dist``.
    figure_kwargs : mapping, optional
        Options for the figure, such as ``{"figsize": (8, 4)}``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.wrap``, such as ``color=["C0", "C1"]`` for the
        analyses, in their order.

    Returns
    -------
    PlotCollection
        The figure: ``.savefig(name)`` saves it, ``arviz_plots.add_lines`` adds a true value.

    Raises
    ------
    TypeError
        If ``analyses`` is a single result.
    ValueError
        If the analyses have no such variables in common, or with other dims or coordinates.
    ImportError
        If there is nothing to draw with.

    Notes
    -----
    Analyses are thinned at random to the number of draws of the shortest one.

    Examples
    --------
    >>> pmd.plot_analyses({"private": private, "naive": naive}, var_names="p")
    """
    given = {"visuals": visuals, "figure_kwargs": figure_kwargs, "coords": coords, "stats": stats}
    backend, arviz_plots = drawing.begin_figure(backend, var_names=var_names, **given)
    choice(kind, "kind", ("kde", "hist", "ecdf", "dot", "auto"))
    drawing.check_analyses(analyses)
    if isinstance(analyses, xr.DataTree):
        raise TypeError("pass several results by name, as in {'private': idata, 'naive': other}")
    names = variables(analyses, var_names)
    fewest = min(
        tree["posterior"].sizes["chain"] * tree["posterior"].sizes["draw"]
        for tree in analyses.values()
    )
    draws = stack({name: _thinned(tree, names, fewest) for name, tree in analyses.items()})
    asked = dict(visuals or {})
    legend = asked.pop("legend", {})
    collection = arviz_plots.plot_dist(
        draws,
        coords=coords,
        sample_dims=["sample"],
        kind=kind,
        backend=backend,
        visuals={"face": {"alpha": 0.2}, "point_estimate_text": False, **asked},
        stats=stats,
        figure_kwargs=drawing.figure_options(backend, figure_kwargs),
        # One interval below the other, all of them below the densities.
        **{
            "y": [-1 - k for k in range(len(analyses))],
            **drawing.colours_of(analyses),
            **pc_kwargs,
        },
    )
    drawing.add_legend(collection, MODEL, {"legend": legend}, title="")
    return collection


def _thinned(tree: Any, names: list[str], number: int) -> xr.Dataset:
    """Take this many draws of all chains together."""
    draws: Any = extract(
        tree, var_names=names, num_samples=number, random_seed=0, keep_dataset=True
    )
    # Which draw a value comes from is of no account, and differs between analyses.
    return draws.drop_vars(["sample", "chain", "draw"])
