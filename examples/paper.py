"""The paper on dapper, reproduced: Eng, Awan, Ju, Rao and Gong (2024), arXiv:2412.14503.

Examples 1, 2 and 3 with the paper's data, chains and draws, and the toy model of its section 6. The
script prints the tables of docs/evidence/paper.md and saves the figures paper_*.png and
regression.png.

    python examples/paper.py                                  figures to examples/output
    python examples/paper.py --page docs/evidence/paper.md --figures docs/figures
"""

import argparse
from pathlib import Path

import _paper_admissions as admissions
import _paper_mixing as mixing
import _paper_regression as coefficients
import numpy as np
import regression
from _figures import save
from _markdown import fill_file

FIGURES = Path(__file__).parent / "output"

EXACT = {
    "example 2, counts": admissions.counts_table,
    "budget": admissions.budget_table,
    "eigenvalues": coefficients.eigenvalues_table,
    "naive coefficients": coefficients.naive_table,
}
"""Tables that need no sampling, by name."""


def admission_examples(figures, short):
    """Examples 1 and 2: tables by name; figures go to a folder."""
    settings = {"draws": 50, "tune": 50} if short else {}
    one, two = (
        admissions.sample_example_1(**settings),
        admissions.sample_example_2(**settings),
    )
    exact_one, exact_two = admissions.exact_odds_ratios()
    odds_one, odds_two = admissions.log_odds_ratio(one), admissions.log_odds_ratio(two)
    tables = {}
    for name, idata, exact in (
        ("example_1", one, admissions.exact_example_1()),
        ("example_2", two, admissions.exact_example_2()),
    ):
        p = np.moveaxis(idata.posterior["p"].values, -1, 0)
        sampled = [admissions.summary_of_draws(cell) for cell in p]
        tables[name.replace("_", " ")] = admissions.summary_table(
            admissions.PRINTED[name], sampled, exact
        )
    tables["example 1, odds ratio"] = admissions.odds_table(odds_one, exact_one)
    tables["example 2, odds ratio"] = admissions.odds_table(odds_two, exact_two)
    tables["example 1, means"] = admissions.means_table(odds_one)

    titles = "Example 1: randomised response", "Example 2: discrete Gaussian noise"
    for name, plot in (
        ("odds_ratio_1", admissions.draw_odds_ratio(odds_one, exact_one, (0.15, 100), titles[0])),
        ("odds_ratio_2", admissions.draw_odds_ratio(odds_two, exact_two, (0.7, 6), titles[1])),
        (
            "two_mechanisms",
            admissions.draw_two_mechanisms(odds_one, odds_two, exact_one["confidential"]),
        ),
    ):
        save(plot.viz["figure"].item(), figures / f"paper_{name}.png")
    save(admissions.draw_trace(one), figures / "paper_trace.png")
    return tables


def regression_example(figures, short):
    """Example 3."""
    settings = {"draws": 50, "tune": 50} if short else {}
    draws = coefficients.sample(**settings).posterior["b"].values
    save(regression.draw(draws.reshape(-1, draws.shape[-1])), figures / "regression.png")
    return {"example 3": coefficients.coefficients_table(draws)}


def mixing_and_budget(figures, short):
    """Section 6."""
    short_run = {"draws": 100, "tune": 20, "settings": mixing.SETTINGS[:2]}
    measured = mixing.measure(**(short_run if short else {}))
    save(mixing.draw(measured), figures / "paper_mixing.png")
    return {"mixing": mixing.mixing_table(measured)}


def main(figures=FIGURES, page=None, short=False):
    """Run everything, print the tables; write them into a page if one is given.

    ``short`` makes few draws: it shows that the script runs, and nothing else.
    """
    figures = Path(figures)
    tables = {name: make() for name, make in EXACT.items()}
    for part in (admission_examples, regression_example, mixing_and_budget):
        tables |= part(figures, short)
    for name, text in tables.items():
        print(f"\n{name}\n\n{text}")
    fill_file(page, tables)
    return tables


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--figures", type=Path, default=FIGURES, help="folder for the figures")
    parser.add_argument("--page", type=Path, help="page to write the tables into")
    arguments = parser.parse_args()
    main(arguments.figures, arguments.page)
