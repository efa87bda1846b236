"""A figure of answers: intervals, medians, and released values."""

from typing import Any

import numpy as np
import pandas as pd

from pymc_dapper.answers.summary import label_of

COLOURS = {"interval": "#1b5fa6", "released": "#c1500a"}
MOST = 200
"""Up to this number of cells can be drawn."""


def draw_intervals(frame: pd.DataFrame, name: str, probability: float, ax: Any) -> Any:
    """Draw a line for each cell, the first on top.

    Raises
    ------
    ValueError
        If there are more cells than a figure can show, or if this is a comparison.
    """
    import matplotlib.pyplot as plt

    if "median" not in frame:
        raise ValueError("a comparison has no intervals to draw: see its probability()")
    if len(frame) > MOST:
        raise ValueError(
            f"there are {len(frame)} cells, too many for a figure: choose some by sel(...) or "
            "isel(...), or add them up"
        )
    if ax is None:
        _, ax = plt.subplots(figsize=(6, 1.2 + 0.3 * len(frame)), layout="constrained")
    at = np.arange(len(frame))
    ax.hlines(at, frame["lower"], frame["upper"], color=COLOURS["interval"], linewidth=2)
    told = f"{100 * probability:g} % interval, median"
    ax.plot(frame["median"], at, "o", color=COLOURS["interval"], markersize=5, label=told)
    if "released" in frame:
        ax.plot(
            frame["released"], at, "x", color=COLOURS["released"], markersize=6, label="released"
        )
    is_one = len(frame) == 1 and frame.index.name is None
    ax.set_yticks(at, [""] if is_one else [label_of(each) for each in frame.index])
    ax.set_ylim(len(frame) - 0.5, -0.5)
    ax.set_xlabel(name)
    ax.set_ylabel(", ".join(str(name) for name in frame.index.names if name))
    ax.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)
    return ax
