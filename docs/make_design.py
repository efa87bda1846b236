"""Makes the figure of docs/design.md: how a factor is read, and the update of a record."""

from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt

FIGURE = Path(__file__).parent / "figures" / "design.svg"

# Text, place, and role of each variable of the model's factor.
ABOVE = [("$-(r - S)^2 / (2\\sigma^2)$,\nsummed", 7.35), ("privacy", 9.2)]
BELOW = [("p", 0.3), ("record", 1.5), ("eye(4)[record]", 3.35)]
COLOURS = {
    "Fixed": "#e0e0e0",
    "Rows: one slice per record": "#cfe3f5",
    "SumOverRecords": "#f7d9a8",
    "FunctionOfSums": "#d5ecd0",
}
ROLES = list(COLOURS)
UPDATE = [
    ("propose $x_i'$ from\nthe prior given p", 1.3),
    ("$S' = S - t(x_i) + t(x_i')$", 4.4),
    ("take $x_i'$ if $\\log u$\n$< g(S') - g(S)$", 7.7),
]


def draw():
    figure, ax = plt.subplots(figsize=(7.5, 3.4))
    ax.set(xlim=(-0.1, 9.6), ylim=(-0.5, 3.7))
    ax.axis("off")
    boxes = [(*BELOW[0], ROLES[0]), *((*each, ROLES[1]) for each in BELOW[1:])]
    boxes += [("sum S:\n4 counts", 5.3, ROLES[2]), *((*each, ROLES[3]) for each in ABOVE)]
    chain(ax, 2.3, [(text, x, COLOURS[role]) for text, x, role in boxes])
    chain(ax, 0.1, [(text, x, "white") for text, x in UPDATE])
    ax.axvline(5.3, 0.81, 0.92, color="grey", linestyle=":")
    ax.text(5.2, 3.15, "what a record contributes, t", ha="right", color="0.3")
    ax.text(5.4, 3.15, "what the mechanism does, g", color="0.3")
    ax.text(0.0, 0.75, "The update of record i:", color="0.3")
    for role, x in zip(ROLES, (0.0, 1.4, 5.0, 7.3), strict=True):
        ax.plot(x + 0.1, 1.5, "s", color=COLOURS[role], markersize=9)
        ax.text(x + 0.3, 1.5, role, va="center", fontsize=9)
    return figure


def chain(ax, y, boxes):
    """Draw boxes in a row, each with an arrow from the one before it."""
    drawn = []
    for text, x, colour in boxes:
        box = {"boxstyle": "round,pad=0.4", "facecolor": colour, "edgecolor": "0.4"}
        drawn.append(ax.text(x, y, text, ha="center", va="center", fontsize=9, bbox=box))
    for before, after in pairwise(drawn):
        ends = {"patchA": before.get_bbox_patch(), "patchB": after.get_bbox_patch()}
        style = {"arrowstyle": "->", "color": "0.4", **ends}
        ax.annotate("", after.get_position(), before.get_position(), arrowprops=style)


if __name__ == "__main__":
    with plt.rc_context({"svg.hashsalt": "pymc_dapper"}):
        figure = draw()
        figure.savefig(FIGURE, metadata={"Date": None}, bbox_inches="tight")
        figure.savefig(FIGURE.with_suffix(".png"), dpi=150, bbox_inches="tight")
