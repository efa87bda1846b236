"""Results of a study: utility against the budget, and coverage against its nominal value."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from scipy.stats import binom

from pymc_dapper.checks import is_a, known, names, options, text
from pymc_dapper.plots.drawing import colours_of
from pymc_dapper.studies.grid import REPLICATE_DIM
from pymc_dapper.studies.result import monte_carlo_error

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ANALYSIS = "analysis"
"""The dimension of a study's variables, such as a private and a naive analysis."""

BAND = 0.95
"""Probability of the Monte Carlo band of coverage."""

STYLES = ("o-", "s--", "^:", "D-.")
"""Markers and lines of settings that have no colours of their own."""

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
) -> "Figure":
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

    Returns
    -------
    matplotlib.figure.Figure
        A line for each combination of parameters and other settings: the first of these has
        colours, the others have markers and dashes. ``.savefig(name)`` saves the figure, and
        ``.axes`` has its panels, to be changed. In a notebook, a semicolon after the call keeps the
        figure from being shown twice.

    Raises
    ------
    ValueError
        If the result hasn't such parameters, such a setting or such a statistic, or none of its
        cells is done.

    Examples
    --------
    >>> result = pmd.study(simulate, build, {"epsilon": [0.1, 1.0, 10.0]}, replicates=100)
    >>> pmd.plot_study(result)
    """
    is_a(result, xr.DataTree, "result must be what pmd.study returned")
    text(x, "x")
    text(utility, "utility")
    found = _found(result, var_names, x, utility).assign_attrs(result.attrs)
    found = found.sel(options(coords, "coords"))
    found = found.squeeze([dim for dim in found.dims if dim != x and found.sizes[dim] == 1])
    return _draw(found, x, utility)


def _draw(found: xr.Dataset, x: str, utility: str) -> "Figure":
    """Draw utility with its Monte Carlo error and, if it is known, coverage."""
    from matplotlib import pyplot

    panels = 1 + bool((found["n"] > 0).any())
    size = (4.5 * panels, 4.2)
    figure, [axes] = pyplot.subplots(1, panels, figsize=size, layout="constrained", squeeze=False)
    axes[0].set_title(LABELS.get(utility, utility.replace("_", " ")))
    if panels == 2:
        n, prob = int(found["n"].where(found["n"] > 0).min()), float(found.attrs["prob"])
        band = binom.ppf([(1 - BAND) / 2, (1 + BAND) / 2], n, prob) / n
        axes[1].axhspan(*band, color="grey", alpha=0.25)
        axes[1].axhline(prob, color="black", linestyle="--")
        axes[1].set_title(f"share of {100 * prob:g} % intervals with the truth")
        axes[1].set_ylim(-0.02, 1.04)

    at = found[x].values.astype(float)
    series = [dim for dim in found["mean"].dims if dim != x]
    shape = [found.sizes[dim] for dim in series]
    usual = colours_of(found[series[0]].values.tolist()) if series else {}
    for index in np.ndindex(*shape):
        one = found.isel(dict(zip(series, index, strict=True)))
        mean, twice = one["mean"].values, 2 * one["mcse"].fillna(0).values
        colour = usual["color"][index[0]] if usual else f"C{index[0] if index else 0}"
        style = STYLES[int(np.ravel_multi_index(index[1:], shape[1:])) % len(STYLES)]
        label = ", ".join(str(found[dim].values[k]) for dim, k in zip(series, index, strict=True))
        axes[0].plot(at, mean, style, color=colour, label=label)
        axes[0].fill_between(at, mean - twice, mean + twice, color=colour, alpha=0.2)
        if panels == 2:
            axes[1].plot(at, one["coverage"].values, style, color=colour)

    for panel in axes:
        if at.min() > 0 and at.max() >= 10 * at.min():
            panel.set_xscale("log")
        panel.set_xticks(at, [f"{value:g}" for value in at])
        panel.minorticks_off()
        panel.set_xlabel({"epsilon": "privacy budget, epsilon"}.get(x, x))
    if series:
        title = ", ".join(map(str, series))
        figure.legend(title=title, loc="outside lower center", ncols=panels)
    return figure


def _found(
    result: Any, var_names: str | Sequence[str] | None, x: str, statistic: str
) -> xr.Dataset:
    """Average utility and coverage of parameters over replicates."""
    asked = [var_names] if isinstance(var_names, str) else var_names
    chosen = list(result.children if asked is None else names(asked, "var_names"))
    known(chosen, result.children, "var_names: the study has no parameter")
    if not chosen:
        raise ValueError("the study has no parameters: no cell is done")
    found = [_over_replicates(result[name].dataset, name, x, statistic) for name in chosen]
    return xr.concat(found, dim=xr.IndexVariable(ANALYSIS, chosen))


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
