"""What knowing the number of records, or not knowing it, does to a posterior.

500 people have a number each. Privacy is for added or removed people, so that how many there are is
itself confidential. The sum of their numbers and the sum of squares, clamped to [-3, 3], were
released with Laplace noise. What is their mean, and how many are they? The people were simulated,
with mean 1 and standard deviation 1, so that the answer is known.

The script prints posterior quantiles and saves a figure to examples/output/unknown_number.png
(another place: --output PATH). It shows three analyses of the same noisy sums:

known         the number of people is public
noisy         it was released with Laplace noise of scale 20
not released  nothing was released of it: both sums grow with it
"""

import argparse
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from _figures import COLOURS, OTHERS, save
from _markdown import fill_file, table
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

import pymc_dapper as pmd

OUTPUT = Path(__file__).parent / "output" / "unknown_number.png"

N, MEAN, SD = 500, 1.0, 1.0
ROOM = 1_500
COUNT_SCALE = 20.0
BUDGET = pmd.PureDP(0.5, neighbours="add_remove")
LIMITS = (-3.0, 3.0)
ANALYSES = {
    "known": COLOURS["confidential"],
    "noisy": COLOURS["private"],
    "not released": OTHERS[1],
}
PROBABILITIES = (0.05, 0.5, 0.95)


def moments(x):
    """The sum of clamped numbers and that of their squares; a zero adds nothing to either."""
    return pmd.statistics.clamped_moments(x, *LIMITS, neighbours="add_remove")


MECHANISM = pmd.LaplaceMechanism.calibrate(BUDGET, sensitivity=moments([0.0]).sensitivity)


def release():
    """The noisy number of people, and the two noisy sums."""
    rng = np.random.default_rng(6)
    sums = MECHANISM.release(moments(rng.normal(MEAN, SD, N)), random_seed=rng)
    return N + COUNT_SCALE * rng.laplace(), sums


def build_model(analysis, count, sums):
    """People are latent records, with room for more than there can be; the first n are there."""
    with pm.Model() as model:
        mean = pm.Normal("mean", 0, 2)
        if analysis == "known":
            x = pm.Normal("x", mean, SD, shape=N)
        else:
            n = pm.DiscreteUniform("n", 0, ROOM)
            everybody = pm.Normal("x", mean, SD, shape=ROOM)
            x = pt.switch(pmd.present(n, ROOM), everybody, 0)
        MECHANISM.potential("sums", moments(x), released=sums)
        if analysis == "noisy":
            pmd.LaplaceMechanism(COUNT_SCALE).potential("count", n, released=count)
    return model


def analyse(draws, tune):
    """Posterior draws by each analysis: of the mean and, where unknown, the number of people."""
    found = {}
    for analysis in ANALYSES:
        model = build_model(analysis, *release())
        posterior = pmd.sample(
            draws,
            tune=tune,
            chains=4,
            random_seed=1,
            progressbar=False,
            model=model,
        ).posterior
        names = ["mean"] if analysis == "known" else ["mean", "n"]
        found[analysis] = {name: np.ravel(posterior[name]) for name in names}
    return found


def quantiles_table(found):
    """Posterior quantiles of the mean and of the number of people, as a table of a page."""
    rows = []
    for analysis, sampled in found.items():
        mean = [f"{x:.2f}" for x in np.quantile(sampled["mean"], PROBABILITIES)]
        n = [f"{x:.0f}" for x in np.quantile(sampled.get("n", [N]), PROBABILITIES)]
        rows.append([analysis, *mean, *n])
    header = [f"{name}, {100 * p:g} %" for name in ("mean", "n") for p in PROBABILITIES]
    return table(["number of people", *header], rows, words=1)


def draw(found):
    """Two panels: the posterior of the number of people, and that of their mean."""
    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    shown = {
        "n": (left, "number of people", N, np.linspace(200, 900, 71)),
        "mean": (right, "mean", MEAN, np.linspace(0.4, 2.2, 73)),
    }
    for name, (axes, label, truth, bins) in shown.items():
        for analysis, sampled in found.items():
            if name in sampled:
                axes.hist(
                    sampled[name],
                    bins,
                    density=True,
                    histtype="step",
                    linewidth=1.6,
                    color=ANALYSES[analysis],
                )
        axes.axvline(truth, color="black", linewidth=1)
        axes.set_xlabel(label)
        axes.set_xlim(bins[0], bins[-1])
        axes.yaxis.set_major_locator(MaxNLocator(3))
        axes.spines[["top", "right"]].set_visible(False)
    left.set_ylabel("density")
    for analysis, colour in ANALYSES.items():
        right.plot([], [], color=colour, linewidth=1.6, label=analysis)
    right.plot([], [], color="black", linewidth=1, label="truth")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=len(labels), frameon=False)
    return figure


def main(draws=2_500, tune=500, output=OUTPUT, page=None):
    """Analyse the release, print the table, save the figure; fill the table of a page if given."""
    count, sums = release()
    print(f"Released: sums {sums[0]:.1f} and {sums[1]:.1f}; a noisy number of people {count:.1f}\n")
    found = analyse(draws, tune)
    shown = quantiles_table(found)
    print(shown)
    fill_file(page, {"quantiles": shown})
    save(draw(found), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the quantiles into")
    arguments = parser.parse_args()
    main(output=arguments.output, page=arguments.page)
