"""What the examples' figures share: colours, comparisons of densities by ArviZ, and saving."""

import arviz as az
import numpy as np

COLOURS = {"confidential": "#595959", "naive": "#c1500a", "private": "#1b5fa6"}


def posterior(name, draws, **options):
    """Draws, of shape (draws, ...), as ArviZ takes them: one chain."""
    return az.from_dict({"posterior": {name: np.asarray(draws)[np.newaxis]}}, **options)


def compare(analyses, colours, figsize=(7.5, 3.6)):
    """Densities of several analyses, one panel for each entry of the variable.

    ``analyses`` maps names to ArviZ posteriors of the same variable, with equally many draws.
    Returns ArviZ's PlotCollection.
    """
    left_out = dict.fromkeys(
        ("credible_interval", "point_estimate", "point_estimate_text", "title"), False
    )
    plot = az.plot_dist(
        analyses,
        kind="kde",
        visuals={"face": {"alpha": 0.2}, **left_out},
        stats={"dist": {"bound_correction": False}},
        color=[colours[name] for name in analyses],
        figure_kwargs={"figsize": figsize, "layout": "constrained"},
    )
    plot.add_legend("model", title="")
    return plot


def save(figure, output):
    """Save a figure, in a folder that may not be there yet, and say where."""
    output.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(output, dpi=150)
    print(f"\nFigure: {output}")
