"""Pages of the documentation do what they say: their code runs and prints what stands below it."""

import inspect
import re
from contextlib import nullcontext
from pathlib import Path

import pytest

import pymc_dapper as pmd
from docs import navigation, pages
from tests.surroundings import nothing_compiled

DOCS = Path(__file__).parents[1] / "docs"
PAGES = {name: path.read_text("utf-8") for name, path in pages.with_code().items()}


DRAWS = re.compile(r"sample|draw\(|rejection_abc|study\(|posterior\(|CountTree\(")
"""What code calls that needs compiled steps. Other code shows how models are read."""


def as_far_as_it_draws(code):
    """Compile nothing that the page doesn't draw from: such a step would fail, if it did."""
    return nullcontext() if DRAWS.search(code) else nothing_compiled()


def long_where_it_compiles(name):
    compiles = re.search(rf"{DRAWS.pattern}|Step\(|assign_steps", "".join(code_of(name)))
    return pytest.param(name, marks=pytest.mark.long if compiles else ())


def code_of(name):
    return [found["code"] for found in pages.BLOCK.finditer(PAGES[name])]


# How a model is read: one of its models takes full evaluations, and says so.
@pytest.mark.filterwarnings("ignore:DapperStep has to evaluate the model from all:UserWarning")
# PyTensor's, on a statistic with many terms: slower, not wrong.
@pytest.mark.filterwarnings("ignore:Loop fusion failed:UserWarning")
@pytest.mark.parametrize("name", [long_where_it_compiles(name) for name in PAGES])
def test_a_page_prints_what_it_says(name, registry):
    page, _ = pages.run(PAGES[name], name, as_far_as_it_draws)
    assert page == PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_is_printed_stands_below_the_code(name):
    """So that running the page compares it."""
    shown = [found["output"] for found in pages.BLOCK.finditer(PAGES[name]) if found["output"]]
    assert len(shown) == PAGES[name].count("```text\n")
    for found in pages.BLOCK.finditer(PAGES[name]):
        prints = re.search(r"^(?!def |class )(\S.*)?print\(", found["code"], re.MULTILINE)
        assert not prints or found["output"], found["code"]


def test_from_a_release_to_its_posterior_it_is_twelve_lines():
    _, *sections = [each for each in code_of("releases.md") if each.strip()]
    lengths = [len([line for line in each.splitlines() if line.strip()]) for each in sections]
    assert len([each for each in sections if "pmd.sample(" in each]) >= 5
    assert max(lengths) <= 12


def test_running_a_page_corrects_what_it_shows():
    right = "```python\nn = 1\nprint(n)\n```\n\n```text\n1\n```\n\nAnd so on.\n"
    assert pages.run(right)[0] == right
    assert pages.run(right.replace("text\n1", "text\n2"))[0] == right
    assert pages.run(right.replace("\n\n```text\n1\n```", ""))[0] == right
    silent = right.replace("print(n)", "n")
    assert pages.run(silent)[0] == silent.replace("\n\n```text\n1\n```", "")


def test_each_page_is_at_most_two_clicks_from_the_first():
    def links(page):
        text = page.read_text("utf-8")
        return {(page.parent / link).resolve() for link in re.findall(r"\]\(([\w./-]+\.md)", text)}

    first = DOCS / "index.md"
    near = {first, *links(first)}
    near |= {link for page in near if page.is_file() for link in links(page)}
    assert set(DOCS.rglob("*.md")) - set((DOCS / "_build").rglob("*")) <= near


def test_the_table_of_contents_has_each_page_once_and_ten_at_the_top():
    listed = [page for children in navigation.CHILDREN.values() for page in children]
    pages_there = set(DOCS.rglob("*.md")) - set((DOCS / "_build").rglob("*"))
    names = {path.relative_to(DOCS).with_suffix("").as_posix() for path in pages_there}
    assert sorted([*listed, "index"]) == sorted(names)
    assert len(navigation.CHILDREN["index"]) == 10


def test_the_api_page_has_every_public_name():
    page = (DOCS / "api.md").read_text()
    modules = {"conjugacy", "diagnostics", "releases", "statistics"}
    names = [name for name in pmd.__all__ if not inspect.ismodule(getattr(pmd, name))]
    names += [f"{module}.{name}" for module in modules for name in getattr(pmd, module).__all__]
    missing = [n for n in names if not re.search(rf" pymc_dapper\.(\w+\.)*{n}$", page, re.M)]
    assert not missing
