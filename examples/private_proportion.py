"""A proportion, published with differential privacy: what can be said of it, and how well?

100 people are asked whether they support a proposal. What is published is protected in one of three
ways, each at a privacy budget of epsilon = 1/2:

the count, with Tulap noise            tested by the most powerful private test there is
the proportion, with Laplace noise     analysed by fiducial matching, and by a normal approximation
every person's answer, randomised      nobody needs to be trusted, and it costs a lot

The script prints what each analysis says of one release: estimate, 95 % interval, and the p-value
of the hypothesis that at most half of all people are in favour. The figure, saved to
examples/output/private_proportion.png (another place: --output PATH), shows how these methods do in
general: size, power and coverage are exact sums, not simulations.
"""

import argparse
from pathlib import Path

import numpy as np
from _figures import save
from matplotlib.figure import Figure

from pymc_dapper.budget import PureDP
from pymc_dapper.reference.fiducial_proportion import fiducial_proportion, fiducial_test
from pymc_dapper.reference.proportion_tests import (
    NormalProportion,
    UMPProportion,
    laplace_sd,
    normal_test,
    randomized_response,
    randomized_response_sd,
    ump_test,
)

OUTPUT = Path(__file__).parent / "output" / "private_proportion.png"

N, TRUE_COUNT, BUDGET = 100, 64, PureDP(0.5)
# What mechanisms of that budget published, each in one run.
RELEASED_COUNT, RELEASED_PROPORTION, RANDOMISED_YES = 62.56, 0.627, 49

NO_NOISE = PureDP(40.0)
"""At this budget Tulap noise is uniform on (-1/2, 1/2), and the test is the classical one."""

COLOURS = {
    "no privacy": "#595959",
    "Tulap, most powerful": "#1b5fa6",
    "fiducial": "#2e8b57",
    "normal": "#c1500a",
    "Laplace noise": "#c1500a",
    "randomised response": "#7a3e9d",
}


def print_analyses(draws):
    """What each method says of one release."""
    count = UMPProportion(RELEASED_COUNT, N, BUDGET)
    normal = NormalProportion(RELEASED_PROPORTION, N, BUDGET)
    fiducial = fiducial_proportion(RELEASED_PROPORTION, N, BUDGET, draws=draws, random_seed=1)
    answers = randomized_response(RANDOMISED_YES, N, BUDGET)

    rows = [
        (name, float(one.estimate), *map(float, one.interval()), float(one.p_value(0.5)))
        for name, one in (
            ("no privacy", UMPProportion(TRUE_COUNT, N, NO_NOISE)),
            ("Tulap, most powerful", count),
            ("fiducial", fiducial),
            ("normal", normal),
        )
    ]
    rows.append(("randomised response", answers.estimate, *answers.interval, np.nan))
    print(f"{'':22}{'estimate':>9}{'95 % interval':>18}{'p-value':>9}")
    for name, estimate, lower, upper, p in rows:
        shown = "" if np.isnan(p) else f"{p:9.4f}"
        print(f"{name:22}{estimate:9.3f}{lower:10.3f}{upper:8.3f}{shown}")


def classical_test(n, theta0, _, **options):
    """The test without privacy, randomised to have its exact size."""
    return ump_test(n, theta0, NO_NOISE, **options)


TESTS = {
    "no privacy": classical_test,
    "Tulap, most powerful": ump_test,
    "fiducial": fiducial_test,
    "normal": normal_test,
}


def draw():
    """Size, power, coverage and the rate, in four panels."""
    figure = Figure(figsize=(10, 7.5), layout="constrained")
    (size, power), (coverage, rate) = figure.subplots(2, 2)
    one = PureDP(1.0)

    thetas = np.linspace(0.02, 0.98, 49)
    for name in ("Tulap, most powerful", "fiducial", "normal"):
        test, style = TESTS[name], {"color": COLOURS[name], "linewidth": 2}
        size.plot(thetas, [test(30, theta, one).size for theta in thetas], **style)
        covered = [1 - test(30, theta, one, alternative="two-sided").size for theta in thetas]
        coverage.plot(thetas, covered, **style)
    size.set_title("Size of a test at level 5 %, n = 30", loc="left")
    size.set_xlabel("null hypothesis: proportion at most")
    coverage.set_title("Coverage of 95 % intervals, n = 30", loc="left")
    coverage.set_xlabel("true proportion")
    size.set_ylim(0, 0.1)
    coverage.set_ylim(0.9, 1)

    sizes = np.unique(np.geomspace(10, 1000, 40).astype(int))
    for name, test in TESTS.items():
        curve = [float(test(n, 0.9, one).power(0.95)) for n in sizes]
        power.plot(sizes, curve, color=COLOURS[name], linewidth=2, label=name)
    power.set_xscale("log")
    power.set_title("Power: at most 90 %, where truly 95 %", loc="left")
    power.set_xlabel("records n")
    power.legend(frameon=False)

    many = np.geomspace(30, 1e6, 60)
    for name, sd in (
        ("no privacy", 0.5 / np.sqrt(many)),
        ("Laplace noise", laplace_sd(0.5, many, PureDP(0.1))),
        ("randomised response", randomized_response_sd(0.5, many, PureDP(0.1))),
    ):
        rate.loglog(many, sd, color=COLOURS[name], linewidth=2, label=name)
    rate.set_title("Standard deviation of the estimate, ε = 0.1", loc="left")
    rate.set_xlabel("records n")
    rate.legend(frameon=False)
    for axes in (size, power, coverage, rate):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def main(draws=100_000, output=OUTPUT):
    """Print the analyses, save the figure."""
    print_analyses(draws)
    save(draw(), Path(output))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--output", type=Path, default=OUTPUT, help="where to save the figure")
    main(output=parser.parse_args().output)
