"""How much narrower the posterior is than the prior, parameter by parameter."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import xarray as xr
from arviz_stats import mcse

from pymc_dapper.plots import drawing
from pymc_dapper.plots.stacking import MODEL, stack, variables

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

DRAWS = ["chain", "draw"]
"""Dims over which variances are taken."""

VISUALS = ("zero", "xlim", "xlabel", "legend")
"""Visuals in addition to those of a forest."""


def plot_contraction(
    analyses: Any,
    *,
    var_names: str | list[str] | None = None,
    filter_vars: Literal["like", "regex"] | None = None,
    coords: Mapping[str, Any] | None = None,
    plot_collection: "PlotCollection | None" = None,
    backend: str | None = None,
    visuals: drawing.Visuals | None = None,
    figure_kwargs: Mapping[str, Any] | None = None,
    **pc_kwargs: Any,
) -> "PlotCollection":
    """Draw the contraction of each parameter from prior to posterior.

    That is 1 - Var(theta | s_dp) / Var(theta): the share of a parameter's prior variance that the
    release removes. Near 1, the release determines the parameter. Near 0, it says next to nothing,
    and the posterior is the prior. Below 0, the posterior is wider than the prior.

    Parameters
    ----------
    analyses : DataTree or mapping of str to DataTree
        The result of ``pmd.sample`` or ``pm.sample``, with a group "prior" added; or several by
        name, such as budgets.
    var_names : str or list of str, optional
        Variables to draw; with ``~`` before them, variables to leave out. By default all variables
        in the prior and the posterior of every analysis.
    filter_vars : {None, "like", "regex"}
        Whether ``var_names`` are names, parts of names, or regular expressions.
    coords : mapping, optional
        Entries to draw, such as ``{"cell": ["male/admit"]}``.
    plot_collection : PlotCollection, optional
        Plot to draw on; by default a new one.
    backend : {"matplotlib", "plotly", "bokeh", "none"}, optional
        Plotting backend; by default ArviZ's.
    visuals : mapping of str to mapping or False, optional
        As in ``arviz_plots.plot_forest``: "point_estimate" is the contraction, "trunk" a bar from
        0 to it, "twig" two Monte Carlo standard errors to either side. Besides "zero", the line of
        no contraction, "xlim", "xlabel" and "legend".
    figure_kwargs : mapping, optional
        Options for the figure, such as ``{"figsize": (8, 4)}``.
    **pc_kwargs
        Passed to ``arviz_plots.PlotCollection.grid``.

    Returns
    -------
    PlotCollection
        The figure: ``.savefig(name)`` saves it.

    Raises
    ------
    ValueError
        If an analysis has no prior group, or if the analyses have no such variables in common, or
        with other dims or coordinates.
    ImportError
        If there is nothing to draw with.

    Notes
    -----
    A prior without a variance, such as a Cauchy distribution, has no contraction: the number drawn
    then means nothing.

    References
    ----------
    Schad, D. J., Betancourt, M., and Vasishth, S. (2021). Toward a principled Bayesian workflow in
    cognitive science. Psychological Methods 26(1), 103-126.

    Examples
    --------
    >>> with model:
    ...     idata = pmd.sample()
    ...     idata.update(pm.sample_prior_predictive(2000, var_names=["p"]))
    >>> pmd.plot_contraction(idata)
    """
    drawing.check_analyses(analyses)
    given: dict[str, Any] = {"visuals": visuals, "figure_kwargs": figure_kwargs, "coords": coords}
    given |= {"var_names": var_names, "filter_vars": filter_vars}
    backend, arviz_plots = drawing.begin_figure(backend, plot_collection, **given)
    several = isinstance(analyses, Mapping) and not isinstance(analyses, xr.DataTree)
    by_name = dict(analyses) if several else {"the result": analyses}
    for name, tree in by_name.items():
        if "prior" not in tree.children:
            raise ValueError(
                f"{repr(name) if several else name} has no draws from the prior. Add them, as in: "
                "with model: idata.update(pm.sample_prior_predictive(2000, var_names=[...]))"
            )
    names = variables(by_name, ["posterior", "prior"], var_names, filter_vars)
    found = {name: contraction(tree, names) for name, tree in by_name.items()}
    values = stack(found) if several else found["the result"]
    if coords:
        values = values.sel(coords)

    asked = dict(visuals or {})
    ours = {name: asked.pop(name) for name in VISUALS if name in asked}
    point = values.sel(statistic="contraction", drop=True)
    error = values.sel(statistic="error", drop=True)
    # A thick line must end exactly at its value.
    ends = {"solid_capstyle": "butt"} if backend == "matplotlib" else {}
    collection = arviz_plots.plot_forest(
        # The forest's own estimates are put in place of those it would make from draws.
        point.expand_dims("draw"),
        sample_dims=["draw"],
        combined=True,
        plot_collection=plot_collection,
        backend=backend,
        stats={
            "point_estimate": point,
            "twig": xr.concat([point - 2 * error, point + 2 * error], dim="bound"),
            # A bar that ends at the contraction.
            "trunk": xr.concat([xr.zeros_like(point), point], dim="bound"),
        },
        visuals={"trunk": {"alpha": 0.35, "width": 7, **ends}, **asked},
        figure_kwargs=drawing.figure_options(backend, figure_kwargs),
        **{**(drawing.colours_of(by_name) if several else {}), **pc_kwargs},
    )
    lowest = min(0.0, float((point - 2 * error).to_array().min()))
    _draw_axis(collection, arviz_plots.visuals, ours, lowest)
    if several:
        drawing.add_legend(collection, MODEL, ours, title="")
    return collection


def _draw_axis(
    collection: "PlotCollection", parts: Any, ours: drawing.Visuals, lowest: float
) -> None:
    """Draw the line of no contraction, limits that show it, and the axis's label."""
    forest: dict[str, Any] = {"coords": {"column": "forest"}, "ignore_aes": "all"}
    zero = xr.DataArray(0.0, name="contraction")
    line = {"color": "B2", "linestyle": "C1"}
    drawing.draw(collection, parts.vline, "zero", ours, zero, **line, **forest)
    limits: dict[str, Any] = {"limits": (lowest - 0.02, 1.02), "store_artist": False}
    drawing.draw(collection, parts.set_xlim, "xlim", ours, zero, **limits, **forest)
    share = "contraction: share of the prior variance that is gone"
    drawing.draw(collection, parts.labelled_x, "xlabel", ours, zero, text=share, **forest)


def contraction(tree: Any, names: Sequence[str]) -> xr.Dataset:
    """Compute the contraction of variables, and its Monte Carlo error, along dim ``statistic``.

    The tree has groups "prior" and "posterior".
    """
    prior, posterior = (tree[group].dataset[list(names)] for group in ("prior", "posterior"))
    ratio = posterior.var(DRAWS) / prior.var(DRAWS)
    # A variance's relative error is twice that of the standard deviation.
    relative = [2 * mcse(each, method="sd") / each.std(DRAWS) for each in (prior, posterior)]
    error = ratio * (relative[0] ** 2 + relative[1] ** 2) ** 0.5
    return xr.concat([1 - ratio, error], dim="statistic").assign_coords(
        statistic=["contraction", "error"]
    )
