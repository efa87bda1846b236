"""What the examples' figures share: colours, comparisons of densities, and saving."""

import arviz as az
import numpy as np
from matplotlib import rc_context

import pymc_dapper as pmd
from pymc_dapper.plots.drawing import COLOURS

OTHERS = ("#2e8b57", "#7a3e9d")
"""Colours of anything but the three analyses."""


def posterior(name, draws, **options):
    """Draws, of shape (draws, ...), as ArviZ takes them: one chain."""
    return az.from_dict({"posterior": {name: np.asarray(draws)[np.newaxis]}}, **options)


def compare(analyses, colours=COLOURS, figsize=(7.5, 3.6)):
    """Densities of several analyses, and nothing else, in colours given by the analyses' names.

    Returns ArviZ's PlotCollection.
    """
    return pmd.plot_analyses(
        analyses,
        visuals=dict.fromkeys(("credible_interval", "point_estimate", "title"), False),
        stats={"dist": {"bound_correction": False}},
        color=[colours[name] for name in analyses],
        figure_kwargs={"figsize": figsize},
    )


def save(figure, output):
    """Save a figure as pixels and, beside them, as SVG; say where. The folder needn't be there yet.

    What was drawn from the same numbers is the same file, byte by byte.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    with rc_context({"svg.hashsalt": "pymc_dapper"}):
        figure.savefig(output.with_suffix(".svg"), metadata={"Date": None})
    print(f"\nFigure: {output}")
