"""What the examples report of an odds ratio: a table of quantiles, and a figure."""

import numpy as np
from _figures import COLOURS
from _markdown import numbers, table
from matplotlib.figure import Figure

PROBABILITIES = (0.05, 0.5, 0.95)


def print_quantiles(sampled, exact):
    """Print quantiles, and no mean: the odds ratio has no finite posterior mean.

    Given noisy counts or answers, either of the cells it divides by could be empty.

    ``sampled`` holds draws of the log odds ratio; ``exact`` says what each analysis finds without
    sampling, by objects with the methods ``quantile`` and ``pdf``.
    """
    print("\nOdds ratio of admission, male to female: posterior quantiles\n")
    print(" " * 20 + "".join(f"{probability:8.0%}" for probability in PROBABILITIES))
    for name, quantiles in quantiles_of(sampled, exact).items():
        print(f"{name:20}" + "".join(f"{value:8.2f}" for value in quantiles))


def quantiles_of(sampled, exact):
    """Quantiles of the odds ratio by each analysis, as :func:`print_quantiles` prints them."""
    found = {f"{analysis}, exact": law.quantile(PROBABILITIES) for analysis, law in exact.items()}
    found["private, sampled"] = np.quantile(sampled, PROBABILITIES)
    return {name: np.exp(log_quantiles) for name, log_quantiles in found.items()}


def quantiles_table(sampled, exact):
    """The same, as a table of a page."""
    header = ["odds ratio", *(f"{100 * probability:g} %" for probability in PROBABILITIES)]
    found = quantiles_of(sampled, exact)
    return table(header, [[name, *numbers(values, 2)] for name, values in found.items()])


def draw(sampled, exact, labels, limits, ticks):
    """Densities of the odds ratio on a log axis, above the intervals that hold 90 % of each.

    ``labels`` has for each analysis the quantile of its density to write at, the text, and on
    which side of the density the text's end nearest to it lies.
    """
    figure = Figure(figsize=(8, 5), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])

    # All is drawn over the log odds ratio; only the tick labels are odds ratios.
    low, high = np.log(limits)
    grid = np.linspace(low, high, 400)
    above.hist(
        sampled, np.linspace(low, high, 41), density=True, color=COLOURS["private"], alpha=0.2
    )
    for row, (analysis, law) in enumerate(exact.items()):
        style = {"color": COLOURS[analysis], "linewidth": 2.5}
        above.plot(grid, law.pdf(grid), **style)
        first, median, last = law.quantile(PROBABILITIES)
        below.plot([first, last], [-row, -row], **style)
        below.plot(median, -row, "o", markersize=7, **style)
        numbers = "{1:.2f}  ({0:.2f} to {2:.2f})".format(*np.exp([first, median, last]))
        for x, text, ha in ((0.0, analysis, "left"), (1.0, numbers, "right")):
            below.text(
                x,
                -row,
                text,
                color=COLOURS[analysis],
                ha=ha,
                va="center",
                transform=below.get_yaxis_transform(),
            )
        probability, text, ha = labels[analysis]
        x = law.quantile(probability)
        above.annotate(
            text,
            (x, law.pdf(x)),
            xytext=(9 if ha == "left" else -9, 0),
            textcoords="offset points",
            ha=ha,
            va="bottom",
            color=COLOURS[analysis],
        )

    above.set_title("Posterior of the odds ratio of admission, men to women", loc="left")
    below.set_title("Median, and the 90 % interval", loc="left", fontsize="medium")
    below.set_xlabel("odds ratio (log scale); 1 means equal odds")
    below.set_ylim(-2.6, 0.6)
    below.set_xticks(np.log(ticks), [f"{tick:g}" for tick in ticks])
    for axes in (above, below):
        axes.axvline(0, color="#999999", linewidth=1, linestyle=(0, (4, 3)), zorder=0)
        axes.set_xlim(low, high)
        axes.set_yticks([])
        axes.spines[["left", "top", "right"]].set_visible(False)
    above.set_ylim(bottom=0)
    return figure
