"""The paper's reproduction: the script runs, and docs/evidence/paper.md shows what it computes.

Exact numbers on the page are compared with what is computed now. Sampled ones, which a run put
there, are compared with the exact ones, allowing for their Monte Carlo error.
"""

import importlib
import math
import re
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGE = (DOCS / "evidence" / "paper.md").read_text(encoding="utf-8")
STANDARD_ERRORS = 4.5


@pytest.fixture(scope="module")
def examples():
    """The script and its parts, by name."""
    with pytest.MonkeyPatch.context() as patch:
        # A script finds its neighbours because its folder is first on the path.
        patch.syspath_prepend(str(ROOT / "examples"))
        names = ["_markdown", "_paper_admissions", "_paper_mixing", "_paper_regression"]
        names += ["_randomised_table", "paper", "regression"]
        yield {name: importlib.import_module(name) for name in names}


def rows_of(examples, name):
    return examples["_markdown"].read(PAGE, name)[2:]


def cells(table_text):
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in table_text]


def test_tables_without_sampling_are_those_of_the_page(examples):
    for name, make in examples["paper"].EXACT.items():
        assert examples["_markdown"].read(PAGE, name) == cells(make().splitlines()), name


@pytest.mark.parametrize("number", [1, 2])
def test_exact_and_printed_rows_of_the_page_are_computed_and_quoted(examples, number):
    part, markdown = examples["_paper_admissions"], examples["_markdown"]
    exact = getattr(part, f"exact_example_{number}")()
    rows = rows_of(examples, f"example {number}")
    for k, cell in enumerate(part.CELLS):
        printed, sampled, computed = rows[3 * k : 3 * k + 3]
        assert computed[:6] == [cell, "exact", *markdown.numbers(exact[k])]
        quoted = part.PRINTED[f"example_{number}"][cell]
        assert printed[:6] == [cell, "printed", *markdown.numbers(quoted[:4])]
        # What a run put there agrees with the exact mean.
        error = float(sampled[3]) / math.sqrt(float(sampled[6]))
        assert abs(float(sampled[2]) - exact[k][0]) < STANDARD_ERRORS * error + 0.0005


def test_the_exact_odds_ratios_are_those_of_the_page(examples):
    part, markdown = examples["_paper_admissions"], examples["_markdown"]
    for number, exact in enumerate(part.exact_odds_ratios(), start=1):
        rows = rows_of(examples, f"example {number}, odds ratio")
        for row, (analysis, law) in zip(rows, exact.items(), strict=False):
            quantiles = np.exp(law.quantile(part.PROBABILITIES))
            assert row == [f"{analysis}, exact", *markdown.numbers(quantiles, 2)]


def test_naive_and_confidential_coefficients_are_those_of_the_page(examples):
    regression, markdown = examples["regression"], examples["_markdown"]
    rows = {tuple(row[:2]): row[2:6] for row in rows_of(examples, "example 3")}
    for analysis in ("naive", "confidential"):
        summaries = regression.summary_of_normal(*getattr(regression, analysis)())
        for name, numbers in zip(regression.COEFFICIENTS, summaries, strict=True):
            assert rows[name, analysis] == markdown.numbers(numbers, 2)


def test_rates_of_the_page_are_exact_and_measured_ones_agree(examples):
    mixing = examples["_paper_mixing"]
    rows = rows_of(examples, "mixing")
    assert len(rows) == len(mixing.SETTINGS)
    for row, (epsilon, sigma) in zip(rows, mixing.SETTINGS, strict=True):
        gamma = mixing.gamma(epsilon, sigma)
        assert row[:3] == [f"{epsilon:g}", f"{sigma:g}", f"{gamma:.3f}"]
        fraction, error = map(float, row[5].split("±"))
        assert abs(fraction - gamma) < STANDARD_ERRORS * (error + 0.0005)
        # Bartlett's formula for an AR(1) of 40,000 draws.
        lag_one = math.sqrt((1 - gamma**2) / 40_000)
        for measured in map(float, row[3:5]):
            assert abs(measured - gamma) < STANDARD_ERRORS * lag_one + 0.0005


def test_the_printed_table_of_example_2_is_not_the_posterior_and_that_of_example_1_is(examples):
    part = examples["_paper_admissions"]

    def distances(name, exact):
        printed = [part.PRINTED[name][cell] for cell in part.CELLS]
        return [
            abs(mean - right[0]) * math.sqrt(ess) / sd
            for (mean, sd, _, _, ess), right in zip(printed, exact, strict=True)
        ]

    assert max(distances("example_1", part.exact_example_1())) < 3
    assert min(distances("example_2", part.exact_example_2())) > 10
    # Nor is it the draft's sigma that makes the difference.
    other = np.array(part.exact_example_2(sigma=6.25))
    assert np.abs(other - part.exact_example_2()).max() < 2e-4


def test_the_quadrature_agrees_with_independent_draws(examples):
    part = examples["_paper_admissions"]
    exact = np.array(part.exact_example_1())
    one = np.array([[part.KEEP, 1 - part.KEEP], [1 - part.KEEP, part.KEEP]])
    rng = np.random.default_rng(5)
    answered = rng.dirichlet(1 + part.ANSWERS, size=100_000).T
    p = np.linalg.solve(np.kron(one, one).T, answered)
    p = p[:, (p > 0).all(axis=0)]
    errors = exact[:, 1] / math.sqrt(p.shape[1])
    assert np.all(np.abs(p.mean(axis=1) - exact[:, 0]) < STANDARD_ERRORS * errors)
    below = (p < exact[:, 2:3]).mean(axis=1)
    assert np.all(np.abs(below - 0.05) < STANDARD_ERRORS * math.sqrt(0.05 * 0.95 / p.shape[1]))
    # A channel that keeps a little more is found out.
    twin = examples["_randomised_table"].RandomisedTable(part.ANSWERS, keep=0.77)
    off = [abs(p[k].mean() - twin.cell(k)[0]) / errors[k] for k in range(4)]
    assert max(off) > STANDARD_ERRORS


def test_the_nearest_semidefinite_matrix_is_no_farther_than_others(examples):
    nearest = examples["regression"].nearest_positive_semidefinite
    rng = np.random.default_rng(2)
    a = rng.normal(size=(3, 3))
    a = a + a.T
    found = nearest(a)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    assert np.allclose(nearest(found), found)
    for _ in range(200):
        step = 0.1 * rng.normal(size=(3, 3))
        root = np.linalg.cholesky(found + 1e-9 * np.eye(3)) + step
        assert np.linalg.norm(root @ root.T - a) >= np.linalg.norm(found - a) - 1e-6


def test_the_naive_analysis_of_sums_without_noise_is_the_confidential_one(examples):
    regression = examples["regression"]
    # As scaled, but not clamped: clamping loses information that nothing brings back.
    y, x1, x2 = regression.RECORDS.T / regression.WIDTH
    sums = [y.sum(), x1 @ y, x2 @ y, y @ y, x1.sum(), x1 @ x1, x2.sum(), x1 @ x2, x2 @ x2]
    for found, expected in zip(
        regression.naive(np.array(sums)), regression.confidential(), strict=True
    ):
        assert np.allclose(found, expected)


def test_every_figure_of_the_page_is_there():
    figures = re.findall(r"\]\(\.\./(figures/\S+?\.png)\)", PAGE)
    assert len(figures) == 6
    for figure in figures:
        assert (DOCS / figure).stat().st_size > 10_000


@pytest.mark.long
def test_the_script_runs_and_fills_a_page(examples, tmp_path, capsys):
    page = tmp_path / "page.md"
    page.write_text(PAGE, encoding="utf-8")
    tables = examples["paper"].main(figures=tmp_path, page=page, short=True)
    assert len(list(tmp_path.glob("*.png"))) == 6
    printed, filled = capsys.readouterr().out, page.read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- table: (.*) -->", PAGE)) == set(tables)
    for text in tables.values():
        assert text in printed
        assert text in filled


def test_sampled_coefficients_of_the_page_agree_with_the_printed_ones(examples):
    rows = {tuple(row[:2]): row for row in rows_of(examples, "example 3")}
    for name in examples["regression"].COEFFICIENTS:
        printed, ours = rows[name, "printed, one chain"], rows[name, "sampled, four chains"]
        error = math.hypot(float(printed[7]), float(ours[7]))
        assert abs(float(printed[2]) - float(ours[2])) < STANDARD_ERRORS * error
