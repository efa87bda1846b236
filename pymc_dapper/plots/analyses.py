"""Densities of several analyses of the same parameters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import xarray as xr
from arviz_base import extract

from pymc_dapper.checks import choice
from pymc_dapper.plots import drawing

MODEL = "model"
"""The dimension of analyses in arviz-plots."""

SAMPLES = ("sample", "chain", "draw")
"""Names of the draws."""


def comparable(
    analyses: Mapping[str, Any], var_names: str | list[str] | None
) -> dict[str, xr.Dataset]:
    """Take draws of the variables that all analyses have: as many of each, of the same entries.

    Variables come in the order of the first analysis. Raises ValueError if an analysis has no
    posterior, if the variables asked for aren't in all of them, or if one has other dims or other
    coordinates than in the first.
    """
    for name, tree in analyses.items():
        if "posterior" not in tree.children:
            raise ValueError(f"'{name}' has no group 'posterior'")
    posteriors = {name: tree["posterior"].dataset for name, tree in analyses.items()}
    first, *others = posteriors
    common = [x for x in posteriors[first] if all(x in posteriors[other] for other in others)]
    fewest = min(one.sizes["chain"] * one.sizes["draw"] for one in posteriors.values())
    options = {"num_samples": fewest, "random_seed": 0, "keep_dataset": True}
    everyone = ", ".join(f"'{name}'" for name in analyses)
    listed = ", ".join(f"'{name}'" for name in common) or "none"
    there = f"Variables in posterior of {everyone}: {listed}"
    if not common:
        raise ValueError(f"there is no variable to draw. {there}")
    try:
        draws: dict[str, Any] = {
            # Which draw a value comes from is of no account, and differs between analyses.
            name: extract(one[common], var_names=var_names, **options).drop_vars(SAMPLES)
            for name, one in posteriors.items()
        }
    except (KeyError, ValueError) as error:
        raise ValueError(f"var_names={var_names!r} must choose some of them. {there}") from error
    for other in others:
        for x, variable in draws[first].items():
            if set(variable.dims) != set(draws[other][x].dims):
                raise ValueError(
                    f"'{x}' has dims {variable.dims} in '{first}', but "
                    f"{draws[other][x].dims} in '{other}': give it the same in both models"
                )
    try:
        xr.align(*draws.values(), join="exact")
    except ValueError as error:
        raise ValueError(
            f"the analyses {everyone} don't have the same entries of their variables: give dims "
            f"the same coordinates in all models ({error})"
        ) from error
    return draws


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
    draws = comparable(analyses, var_names)
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
