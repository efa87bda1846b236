"""The paper's examples 1 and 2: the admissions table, by randomised response and with noise."""

import json
import math
from pathlib import Path

import admissions
import arviz as az
import numpy as np
import randomised_response
from _figures import COLOURS, compare, posterior
from _markdown import numbers, table
from _randomised_table import RandomisedTable
from matplotlib.figure import Figure

import pymc_dapper as pmd
from pymc_dapper.budget import analytic_gaussian_sigma, gaussian_budget, gaussian_sigma
from pymc_dapper.reference import TablePosterior, gaussian_cell_loglik

PRINTED = json.loads(
    (Path(__file__).parent / "data" / "paper_printed.json").read_text(encoding="utf-8")
)
CELLS = admissions.DATA["cells"]
RELEASED, CONFIDENTIAL = np.array(admissions.DATA["released"]), admissions.DATA["confidential"]
SIGMA, N = admissions.DATA["sigma"], admissions.DATA["n"]

KEEP = randomised_response.DATA["keep_probability"]
MALE = np.array(randomised_response.DATA["answered_male"])
ADMITTED = np.array(randomised_response.DATA["answered_admitted"])
ANSWERS = np.bincount(2 * (1 - MALE) + (1 - ADMITTED), minlength=4)

PROBABILITIES = (0.05, 0.5, 0.95)
DELTA = 1e-10


def sample(model, draws, tune, chains):
    """Sample with the default steps: records exactly or by Metropolis, p by its conditional."""
    with model:
        return pmd.sample(
            draws,
            tune=tune,
            chains=chains,
            random_seed=1,
            progressbar=False,
            compute_convergence_checks=False,
        )


def sample_example_1(draws=5_000, tune=1_000):
    """As in the paper: four chains of 5,000 draws after 1,000 to tune."""
    model = randomised_response.build_model(MALE, ADMITTED, KEEP)
    return sample(model, draws, tune, chains=4)


def sample_example_2(draws=1_000, tune=1_000):
    """As in the paper: one chain of 2,000 iterations, 1,000 of them tuning."""
    return sample(admissions.build_model(RELEASED, SIGMA, N), draws, tune, chains=1)


def exact_example_1():
    """Mean, sd, 5 % and 95 % quantile of each cell's probability, by quadrature."""
    exact = RandomisedTable(ANSWERS, KEEP)
    return [exact.cell(k) for k in range(4)]


def exact_example_2(sigma=SIGMA):
    """The same, as a mixture over all possible tables."""
    exact = TablePosterior(np.ones(4), gaussian_cell_loglik(RELEASED, sigma, N))
    cells = [exact.cell(k) for k in range(4)]
    return [(cell.mean, cell.sd, *cell.quantile([0.05, 0.95])) for cell in cells]


def implied_counts(example):
    """Posterior means of the counts, from means of p: E[p] = (1 + E[count]) / (4 + n)."""
    return [(4 + N) * PRINTED[example][cell][0] - 1 for cell in CELLS]


def summary_of_draws(draws):
    """Mean, sd, 5 % and 95 % quantile, and bulk effective sample size, of (chain, draw) draws."""
    return (draws.mean(), draws.std(), *np.quantile(draws, [0.05, 0.95]), float(az.ess(draws)))


def summary_table(printed, sampled, exact):
    """What the paper prints, what we sample, and the exact answer, cell by cell.

    The last column is the distance of a mean from the exact one, in Monte Carlo standard errors.
    """
    rows = []
    for k, cell in enumerate(CELLS):
        for source, values in (("printed", printed[cell]), ("sampled", sampled[k])):
            *shown, ess = values
            off = abs(shown[0] - exact[k][0]) / (shown[1] / math.sqrt(ess))
            rows.append([cell, source, *numbers(shown), f"{ess:.0f}", f"{off:.1f}"])
        rows.append([cell, "exact", *numbers(exact[k]), "", ""])
    return table(["p", "", "mean", "sd", "5 %", "95 %", "ESS", "mean off by"], rows)


def odds_table(sampled, exact):
    """Quantiles of the odds ratio: it has no finite posterior mean to report."""
    rows = [
        [f"{analysis}, exact", *numbers(np.exp(law.quantile(PROBABILITIES)), 2)]
        for analysis, law in exact.items()
    ]
    quantiles = np.exp(np.quantile(sampled, PROBABILITIES))
    rows.append(["private, sampled", *numbers(quantiles, 2)])
    return table(["odds ratio, men to women", "5 %", "50 %", "95 %"], rows)


def means_table(sampled):
    """The odds ratio by chain: medians agree, sample means don't, since there is no mean."""
    rows = [
        [str(chain), *numbers([np.median(draws), draws.mean(), draws.max()], 1)]
        for chain, draws in enumerate(np.exp(sampled))
    ]
    return table(["chain", "median", "sample mean", "largest draw"], rows)


def counts_table():
    """The released table beside the one that the printed means of example 2 imply."""
    exact = [(4 + N) * mean - 1 for mean, *_ in exact_example_2()]
    rows = [
        ["released", *numbers(RELEASED, 0)],
        ["posterior means, from the printed table", *numbers(implied_counts("example_2"), 0)],
        ["posterior means, exact", *numbers(exact, 0)],
    ]
    return table(["count", *CELLS], rows)


def budget_table():
    """Which sigma a budget asks for, and what sigma = 6.32 keeps, by sensitivity."""
    answers = pmd.PureDP(math.log(3)).compose(pmd.PureDP(math.log(3)))
    goal = pmd.ApproxDP(answers.epsilon, DELTA)
    rows = []
    for name, sensitivity in (("2", 2.0), ("sqrt 2", math.sqrt(2))):
        sigmas = (
            gaussian_sigma(goal, sensitivity=sensitivity),
            gaussian_sigma(goal, sensitivity=sensitivity, bound="tight"),
            analytic_gaussian_sigma(goal, sensitivity=sensitivity),
        )
        kept = gaussian_budget(SIGMA, sensitivity=sensitivity).to_approx(delta=DELTA)
        rows.append([name, *numbers([*sigmas, kept.epsilon], 2)])
    return table(
        ["sensitivity", "footnote's bound", "tight bound", "continuous noise", "epsilon at 6.32"],
        rows,
    )


def log_odds_ratio(idata):
    """Draws of the log odds ratio, (chain, draw)."""
    return idata.posterior["log_odds_ratio"].values


def exact_odds_ratios():
    """Laws of the log odds ratio by analysis, for both examples."""
    one = randomised_response.exact_log_odds_ratios(ANSWERS, np.array(CONFIDENTIAL), KEEP)
    two = admissions.exact_log_odds_ratios(RELEASED, np.array(CONFIDENTIAL), SIGMA, N)
    return one, two


def draw_trace(idata):
    """Density of each cell's probability, a line for each chain."""
    p = idata.posterior["p"]
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    panels = figure.subplots(2, 2).ravel()
    for axes, cell in zip(panels, p[p.dims[-1]].values, strict=True):
        values = p.sel({p.dims[-1]: cell})
        bins = np.linspace(0, 0.6, 61)
        for chain in values["chain"].values:
            drawn = values.sel(chain=chain).values
            axes.hist(drawn, bins, density=True, histtype="step", label=f"chain {chain + 1}")
        axes.set_title(cell, loc="left", fontsize=10)
        axes.set_yticks([])
        axes.spines[["top", "right", "left"]].set_visible(False)
    figure.supxlabel("probability of the cell", fontsize=10)
    figure.supylabel("posterior density", fontsize=10)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
    return figure


def draw_odds_ratio(sampled, exact, limits, title):
    """Private against naive and confidential: the log odds ratio's densities."""
    analyses = {"private": _log_odds(sampled)}
    for name in ("naive", "confidential"):
        analyses[name] = _log_odds(_draws(exact[name], sampled.size))
    return _finish(compare(analyses, COLOURS), limits, title)


def draw_two_mechanisms(randomised, noisy, confidential):
    """What both mechanisms leave of the information, together."""
    colours = {
        "randomised response": "#7a3e9d",
        "discrete Gaussian": COLOURS["private"],
        "confidential": COLOURS["confidential"],
    }
    draws = (randomised, noisy, _draws(confidential, noisy.size))
    analyses = {name: _log_odds(one) for name, one in zip(colours, draws, strict=True)}
    return _finish(compare(analyses, colours), (0.1, 100), "Two mechanisms, one table")


def _draws(law, size):
    """Evenly spread quantiles: a picture of the law without Monte Carlo error."""
    grid = np.linspace(0.0005, 0.9995, 500)
    return np.interp((np.arange(size) + 0.5) / size, grid, law.quantile(grid))


def _log_odds(draws):
    return posterior("log_odds_ratio", np.ravel(draws))


def _finish(plot, limits, title):
    """Label the axis with odds ratios, on a log scale."""
    axes = plot.viz["plot"]["log_odds_ratio"].item()
    axes.set_xlim(*np.log(limits))
    ticks = [t for t in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64) if limits[0] < t < limits[1]]
    axes.set_xticks(np.log(ticks), [f"{tick:g}" for tick in ticks])
    axes.set_xlabel("odds ratio of admission, men to women (log scale)")
    axes.set_title(title, loc="left")
    return plot
