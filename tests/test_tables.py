"""Tables of the documentation: what is measured is written by a command, and compared here."""

import json
import re
import shutil
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("path", sorted(DOCS.glob("*.md")), ids=lambda path: path.name)
def test_no_table_of_numbers_is_typed_in(path):
    if path.name not in WRITTEN_AS_A_WHOLE:
        assert typed_in(path.read_text("utf-8")) == []


def test_a_table_that_is_typed_in_is_found():
    table = "| epsilon | draws |\n| --- | ---: |\n| 1 | 20.5 |\n| 2 | 1,000 |\n"
    assert typed_in(f"Measured once:\n\n{table}") == ["| epsilon | draws |"]
    assert typed_in(f"<!-- table: draws -->\n\n{table}") == []
    assert typed_in("So:\n\n| a | b |\n| --- | --- |\n| 1 | none |\n") == []


def test_the_page_on_speed_is_what_the_benchmark_measured():
    assert (DOCS / "performance.md").read_text("utf-8") == speed.text(RESULTS)


def test_the_comparison_with_r_is_what_the_benchmark_measured():
    page = (DOCS / "from-dapper.md").read_text("utf-8")
    table = speed.beside_r(speed.Results(RESULTS)).rstrip("\n")
    assert markdown.fill(page, {"effective draws per second": table}) == page


def test_exact_quantiles_of_the_randomised_answers_are_those_of_the_page():
    script = example("randomised_response")
    rows = markdown.read((DOCS / "getting-started.md").read_text("utf-8"), "randomised answers")
    exact = script.exact_posteriors()
    sampled = exact["private"].draws  # as good as any for what isn't looked at
    computed = markdown.fill(
        f"<!-- table: x -->\n\n{'-'}", {"x": script.quantiles_table(sampled, exact)}
    )
    assert rows[:5] == markdown.read(computed, "x")[:5]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("randomised_response", "getting-started.md"),
        ("census", "latent-counts.md"),
        ("noisy_stats", "noisy-stats.md"),
    ],
)
def test_an_example_writes_what_its_page_shows(name, page, tmp_path):
    copy = tmp_path / page
    shutil.copy(DOCS / page, copy)
    example(name).main(output=tmp_path / "figure.png", page=copy)
    assert copy.read_text("utf-8") == (DOCS / page).read_text("utf-8")
