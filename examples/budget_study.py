"""What privacy costs: randomised response against discrete Gaussian noise, at the same budgets.

Four hundred applicants are cross-classified by sex and admission. A budget (epsilon, delta) for
each applicant can be spent in two ways. In randomised response each applicant randomises both
answers, and trusts nobody. Discrete Gaussian noise is added to the four counts by a curator, who
knows them. What do the releases still tell of the odds of admission, male to female?

The study simulates applicants with the sample's odds, releases them at five budgets in both ways,
and analyses each release twice: naive, as if it were true, and private, with its randomness taken
into account. The script prints how wide 90 % intervals of the log odds ratio are on average, and
how often they cover the true value; it saves a figure to examples/output/budget_study.png (another
place: --output PATH).
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from _figures import save
from _markdown import fill_file, numbers, table

import pymc_dapper as pmd

HERE = Path(__file__).parent
DATA = json.loads((HERE / "data" / "admissions.json").read_text(encoding="utf-8"))
OUTPUT = HERE / "output" / "budget_study.png"

GRID = {
    "mechanism": ["randomised response", "discrete Gaussian"],
    "epsilon": [0.5, 1.0, 2.0, 4.0, 8.0],
}
DELTA = 1e-6
CELLS = ["male/admit", "male/reject", "female/admit", "female/reject"]
SHARES = np.array(DATA["confidential"]) / DATA["n"]


def log_odds_ratio(p, log=np.log):
    return log(p[0] * p[3] / (p[1] * p[2]))


def response(epsilon):
    """Half of the budget goes to each answer. It is a pure one: delta is 0."""
    return pmd.RandomizedResponse.calibrate(pmd.PureDP(epsilon).split(2)[0], categories=2)


def noise(epsilon):
    """An applicant in another cell changes two counts by one."""
    return pmd.DiscreteGaussianMechanism.calibrate(
        pmd.ApproxDP(epsilon, DELTA), sensitivity=np.sqrt(2), bound="tight"
    )


def simulate(rng, mechanism, epsilon):
    """Draw applicants, and release what the mechanism lets through."""
    counts = rng.multinomial(DATA["n"], SHARES)
    truth = dict.fromkeys(("private", "naive"), log_odds_ratio(SHARES))
    if mechanism == "discrete Gaussian":
        return {"table": noise(epsilon).release(counts, rng)}, truth
    applicants = np.repeat(np.arange(4), counts)
    male = response(epsilon).release(1 - applicants // 2, rng)
    admitted = response(epsilon).release(1 - applicants % 2, rng)
    table = np.bincount(2 * (1 - male) + (1 - admitted), minlength=4)
    return {"male": male, "admitted": admitted, "table": table}, truth


def build(released, mechanism, epsilon):
    """Both analyses in one model: the naive one shares nothing with the private one but data."""
    with pm.Model(coords={"table_cell": CELLS}) as model:
        data = {name: pm.Data(name, values) for name, values in released.items()}
        p = pm.Dirichlet("p", np.ones(4), dims="table_cell")
        record = pm.Categorical("record", p=p, shape=DATA["n"])
        if mechanism == "discrete Gaussian":
            counts = pmd.statistics.counts(record, 4)
            noise(epsilon).observe("released", counts, released=data["table"])
        else:
            # The cells in order: male/admit, male/reject, female/admit, female/reject.
            of_epsilon = response(epsilon)
            of_epsilon.observe("answered_male", 1 - record // 2, released=data["male"])
            of_epsilon.observe("answered_admitted", 1 - record % 2, released=data["admitted"])
        pm.Deterministic("private", log_odds_ratio(p, pt.log))
        # The posterior of the shares if the table were true; noise may have made counts negative.
        naive = pm.Dirichlet("p_naive", 1 + pt.clip(data["table"], 0, np.inf), dims="table_cell")
        pm.Deterministic("naive", log_odds_ratio(naive, pt.log))
    return model


def print_table(result):
    """Mean width of the intervals, and their coverage with its Monte Carlo error."""
    print(f"{'mechanism':21}{'analysis':10}{'epsilon':>8}{'width':>8}{'coverage':>10}{'± s.e.':>8}")
    for mechanism in GRID["mechanism"]:
        for analysis in ("private", "naive"):
            found = result[analysis].dataset.sel(mechanism=mechanism)
            for epsilon in found["epsilon"].values:
                at = found.sel(epsilon=epsilon)
                numbers = (at["width"].mean(), at["coverage"], at["coverage_mcse"])
                width, coverage, error = map(float, numbers)
                print(
                    f"{mechanism:21}{analysis:10}{epsilon:>8g}{width:>8.2f}{coverage:>10.2f}"
                    f"{error:>8.2f}"
                )


def width_and_coverage(result):
    """The same, as a table of a page."""
    columns = [(mechanism, x) for mechanism in GRID["mechanism"] for x in ("private", "naive")]
    rows = []
    for epsilon in result["private"].dataset["epsilon"].values:
        cells = [f"{epsilon:g}"]
        for mechanism, analysis in columns:
            at = result[analysis].dataset.sel(mechanism=mechanism, epsilon=epsilon)
            cells.append(", ".join(numbers([at["width"].mean().item(), at["coverage"].item()], 2)))
        rows.append(cells)
    header = ["ε", *(f"{mechanism}, {analysis}" for mechanism, analysis in columns)]
    return table(header, rows, words=0)


def draw(result):
    """Width and coverage against the budget; widths on a logarithmic axis, so that all are seen."""
    figure = pmd.plot_study(result, ["private", "naive"])
    widths = figure.axes[0]
    widths.set_yscale("log")
    widths.set_yticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    widths.minorticks_off()
    widths.set_ylim(0.5, 10)
    return figure


def main(replicates=50, draws=500, tune=300, grid=GRID, output=OUTPUT, page=None, **options):
    """Run the study, print the table, save the figure; fill the table of a page if given.

    Options are those of pmd.study.
    """
    result = pmd.study(
        simulate,
        build,
        grid,
        replicates=replicates,
        seed=1,
        sample_kwargs={"draws": draws, "tune": tune},
        **options,
    )
    print_table(result)
    save(draw(result), Path(output))
    fill_file(page, {"width and coverage": width_and_coverage(result)})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=50, help="releases per setting")
    parser.add_argument("--store", type=Path, help="where to keep finished cells")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    arguments = parser.parse_args()
    main(
        arguments.replicates,
        store=arguments.store,
        output=arguments.output,
        page=arguments.page,
    )
