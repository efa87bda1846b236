"""Tables of the documentation: commands write the measured ones, and tests compare them."""

import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import arviz as az
import numpy as np
import pytest

import pymc_dapper as pmd
from benchmarks import page as speed
from benchmarks import run
from benchmarks._models import example

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = json.loads(run.RESULTS.read_text("utf-8"))
markdown = example("_markdown")

# A table, with the line two above it: where a command is to fill it in, that line names it.
TABLE = re.compile(r"(?P<above>[^\n]*)\n\n(?P<table>\|[^\n]*\|\n\|[ :|-]+\|\n(?:\|[^\n]*\|\n?)+)")
NUMBER = re.compile(r"[-−±]?\d[\d,.]*( ?(%|min|s|ms|us|MB|kB))?(, ?\d[\d.]*)?( ± [\d.]+)?")
WRITTEN_AS_A_WHOLE = ("performance.md", "exactness.md")


def typed_in(page):
    """Tables in which most cells, but for the first column, are numbers, and that have no name."""
    found = []
    for match in TABLE.finditer(page):
        cells = [
            cell.strip()
            for line in match["table"].splitlines()[2:]
            for cell in line.strip("| ").split("|")[1:]
        ]
        n_numbers = sum(NUMBER.fullmatch(cell) is not None for cell in cells)
        if 2 * n_numbers > len(cells) and not match["above"].startswith("<!-- table: "):
            found.append(match["table"].partition("\n")[0])
    return found


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_no_table_of_numbers_is_typed_in(path):
    if path.name not in WRITTEN_AS_A_WHOLE:
        assert typed_in(path.read_text("utf-8")) == []


def test_a_table_that_is_typed_in_is_found():
    table = "| epsilon | draws |\n| --- | ---: |\n| 1 | 20.5 |\n| 2 | 1,000 |\n"
    assert typed_in(f"Measured once:\n\n{table}") == ["| epsilon | draws |"]
    assert typed_in(f"<!-- table: draws -->\n\n{table}") == []
    assert typed_in("So:\n\n| a | b |\n| --- | --- |\n| 1 | none |\n") == []


def test_the_page_on_speed_is_what_the_benchmark_measured():
    assert (DOCS / "performance.md").read_text("utf-8") == speed.summary(RESULTS)
    page = DOCS / "evidence" / "performance.md"
    assert page.read_text("utf-8") == speed.text(RESULTS)


def test_the_comparison_with_r_is_what_the_benchmark_measured():
    page = (DOCS / "tutorials" / "from-dapper.md").read_text("utf-8")
    table = speed.beside_r(speed.Results(RESULTS)).rstrip("\n")
    assert markdown.fill(page, {"effective draws per second": table}) == page


def test_exact_quantiles_of_the_randomised_answers_are_those_of_the_page():
    script = example("randomised_response")
    rows = markdown.read((DOCS / "getting-started.md").read_text("utf-8"), "randomised answers")
    exact = script.exact_posteriors()
    sampled = exact["private"].draws  # as good as any for what isn't looked at
    assert rows[:5] == markdown.rows(script.quantiles_table(sampled, exact))[:5]


def test_the_page_on_broadband_is_of_the_release_and_of_chains_that_agree():
    script, page = example("broadband"), (DOCS / "evidence" / "broadband.md").read_text("utf-8")
    release = script.load()

    def cells(name):
        return markdown.read(page, name)[2:]

    noise = cells("broadband noise")
    assert [row[0] for row in noise] == markdown.numbers(release.mean_error, 3)
    assert [row[2] for row in noise] == markdown.numbers(release.error_95, 3)
    share = release.share
    groups = [share == 0, (share > 0) & (share < 1), share == 1]
    of_rows = [[f"{x.sum():,}", f"{share[x].mean():.2f}"] for x in groups]
    assert [row[1:3] for row in cells("broadband ends")] == of_rows
    published = np.std(script.by_county(release, share))
    assert cells("broadband counties")[0][1] == f"{published:.3f}"
    chains = cells("broadband chains")
    assert [row[1] for row in chains[1:]] == ["3,136", "32,735"]
    assert all(float(row[3]) < 1.1 for row in chains)


@pytest.mark.long
def test_the_sampled_quantiles_are_those_of_the_page(tmp_path):
    copy = tmp_path / "page.md"
    shutil.copy(DOCS / "getting-started.md", copy)
    example("randomised_response").main(output=tmp_path / "figure.png", page=copy)
    assert copy.read_text("utf-8") == (DOCS / "getting-started.md").read_text("utf-8")


# NUTS moves some parameters here. What rounding does to a chain of its draws depends on the
# machine, so numbers are compared in units of their Monte Carlo error.
STANDARD_ERRORS = 4.5


@pytest.mark.long
def test_quantiles_of_the_slope_are_those_of_the_page():
    """Of the first release, where chains mix slowest. `make gallery` computes all."""
    script = example("noisy_stats")
    found = script.analyse(draws=1_200, tune=600, epsilons=script.EPSILONS[:1])
    rows = markdown.rows(script.quantiles_table(found))
    shown = markdown.read((DOCS / "noisy-stats.md").read_text("utf-8"), "slope")[: len(rows)]
    assert [row[:2] for row in rows] == [row[:2] for row in shown]
    for row, of_page in zip(rows[2:], shown[2:], strict=True):
        sampled = found[row[0] or next(iter(found))][row[1]]["beta"]
        ess = 10_000 if row[1] == "naive" else float(az.ess(sampled.values))
        for k, p in enumerate(script.PROBABILITIES, start=2):
            # Of a quantile, with the density there as far as draws tell.
            low, high = np.quantile(sampled, [max(p - 0.02, 0), p + 0.02])
            error = np.sqrt(p * (1 - p) / ess) * (high - low) / 0.04
            difference = abs(float(row[k]) - float(of_page[k]))
            assert difference < STANDARD_ERRORS * np.sqrt(2) * error + 0.005


@pytest.mark.long
def test_the_census_is_that_of_the_page(tmp_path):
    copy = tmp_path / "page.md"
    shutil.copy(DOCS / "latent-counts.md", copy)
    example("census").main(output=tmp_path / "figure.png", page=copy)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    (header, _, *rows), (of_page, _, *shown) = (
        markdown.read(path.read_text("utf-8"), "census")
        for path in (copy, DOCS / "latent-counts.md")
    )
    assert header == of_page
    assert rows[0] == shown[0]  # naive: nothing is sampled
    (_, *numbers), (_, *there) = rows[1], shown[1]
    # With one effective draw in four of 2,000, and a posterior that is about normal, 5 % quantiles
    # have an error of sqrt(0.05 * 0.95 / 500) / 0.103 = 0.095 standard deviations, means one of
    # 0.045. So the difference of two runs, over 200 tracts, is 0.4 % in mean width as in error.
    for number, other in zip(numbers[1:], there[1:], strict=True):
        assert float(number) == pytest.approx(float(other), rel=STANDARD_ERRORS * 0.0042, abs=0.05)
    # About 2 % of the intervals have an end so near the truth that another run may differ.
    held, of_table = (float(cells[0].removesuffix(" %")) for cells in (numbers, there))
    assert abs(held - of_table) <= 2.5


@pytest.mark.long
@pytest.mark.parametrize("mechanism", ["randomised response", "discrete Gaussian"])
def test_widths_of_the_study_are_those_of_the_page(mechanism):
    script = example("budget_study")
    n = 6
    result = pmd.study(
        script.simulate,
        script.build,
        {"mechanism": [mechanism], "epsilon": [8.0]},
        replicates=n,
        seed=2,
        executor=ThreadPoolExecutor(1),  # the example is no module that a process could import
        sample_kwargs={"draws": 500, "tune": 300},
        progressbar=False,
    )
    header, _, *rows = markdown.read((DOCS / "studies.md").read_text("utf-8"), "width and coverage")
    of_page = dict(zip(header, rows[-1], strict=True))
    assert of_page["ε"] == "8"
    for analysis in ("private", "naive"):
        widths = result[analysis]["width"].values.ravel()
        width, coverage = map(float, of_page[f"{mechanism}, {analysis}"].split(", "))
        assert 0 <= coverage <= 1
        # Few replicates: Student's t with 5 degrees of freedom, at a probability of 1e-3.
        assert abs(widths.mean() - width) < 6.9 * widths.std(ddof=1) / np.sqrt(n) + 0.005


@pytest.mark.long
def test_the_blocks_of_a_census_are_those_of_the_page(tmp_path):
    """Nothing is sampled: rounding alone may differ."""
    copy = tmp_path / "page.md"
    shutil.copy(DOCS / "census.md", copy)
    example("census_blocks").main(output=tmp_path / "figure.png", page=copy)
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    assert copy.read_text("utf-8") == (DOCS / "census.md").read_text("utf-8")
