"""What the package says of itself when it is installed or shown on a package index."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
README = (ROOT / "README.md").read_text()

PLAIN_INSTALL = """
import sys
from importlib.machinery import PathFinder

class Installed(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] not in {missing}:
            return super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Installed
"""

SAMPLE = """
import numpy as np
import pymc as pm
import pymc_dapper as pmd

with pm.Model() as model:
    x = pm.Bernoulli("x", 0.5)
    step = pmd.FunctionStep([x], lambda rng, point: {"x": rng.integers(2)})
    pm.sample(5, tune=5, chains=1, cores=1, step=step, compute_convergence_checks=False)
    pmd.plot_analyses
"""


def test_a_plain_install_has_what_sampling_needs():
    run_with_plain_install(SAMPLE)


@pytest.mark.parametrize("name", ["pymc", "pytensor"])
def test_newer_major_releases_than_the_tested_one_are_not_installed(name):
    """What is documented may change with them."""
    [wanted] = [
        requirement.specifier
        for requirement in map(Requirement, PROJECT["project"]["dependencies"])
        if requirement.name == name
    ]
    tested = Version(importlib.metadata.version(name))
    assert wanted.contains(tested, prereleases=True)
    assert wanted.contains(f"{tested.major}.{tested.minor + 1}")
    assert not wanted.contains(f"{tested.major + 1}.0")


@pytest.mark.long
def test_a_plain_install_runs_the_readme():
    blocks = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    for code, printed in blocks:
        assert run_with_plain_install(code).endswith(printed)


def run_with_plain_install(code):
    """Run code where only what the project requires can be imported, and what that requires."""
    required = set()
    wanted = [Requirement(line) for line in PROJECT["project"]["dependencies"]]
    while wanted:
        requirement = wanted.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in required:
            continue
        required.add((name, extras))
        wanted += [
            needed
            for needed in map(Requirement, importlib.metadata.requires(name) or [])
            if needed.marker is None
            or any(needed.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        ]
    installed = {name for name, _ in required}
    # Not what setuptools holds in a folder of its own, which it puts on the path when imported.
    present = {
        canonicalize_name(distribution.name)
        for distribution in importlib.metadata.distributions()
        if Path(str(distribution.locate_file(""))).name != "_vendor"
    }
    missing = {
        module
        for module, names in importlib.metadata.packages_distributions().items()
        if (found := present & {canonicalize_name(name) for name in names})
        and module != "pymc_dapper"
        and not installed & found
    }
    script = PLAIN_INSTALL.format(missing=missing) + code
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def shown_on_the_index():
    """The README after the substitutions that the build makes."""
    page = README
    for rule in PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]["substitutions"]:
        page = re.sub(rule["pattern"], rule["replacement"], page)
    return page


def test_links_on_the_index_are_absolute_and_lead_to_files_of_the_project():
    address = PROJECT["project"]["urls"]["Source"]
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]*)\)", shown_on_the_index())
    assert len(links) == len(re.findall(r"\]\(", README)) > 10
    for picture, link in links:
        kind = "raw" if picture else "blob"
        path, n_changed = re.subn(rf"^{re.escape(address)}/{kind}/main/", "", link)
        assert n_changed == 1, link
        assert (ROOT / path.partition("#")[0]).is_file(), link


def test_the_address_is_the_same_throughout():
    urls = PROJECT["project"]["urls"]
    assert all(url.startswith(urls["Source"]) for url in urls.values())
    for url in urls.values():
        path = url.removeprefix(urls["Source"]).removeprefix("/blob/main").lstrip("/")
        assert (ROOT / path).exists(), url


def test_nothing_is_published_before_there_is_an_address():
    placeholder = ".example" in PROJECT["project"]["urls"]["Source"]
    assert placeholder == ("Private :: Do Not Upload" in PROJECT["project"]["classifiers"])


def test_the_citation_and_the_recipe_agree_with_the_project():
    version = PROJECT["project"]["version"]
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == version
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    assert re.search(r'^  version: "(.*)"$', recipe, re.MULTILINE)[1] == version
    assert PROJECT["project"]["urls"]["Source"] in recipe


def test_the_changelog_is_of_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    [version, *_] = re.findall(r"^## ([\d.]+) - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)
    assert version == PROJECT["project"]["version"]


def test_the_recipe_asks_for_what_the_project_does():
    """By conda-forge's names: the packages without what only their figures or compilers need."""
    named = {"matplotlib": "matplotlib-base", "pymc": "pymc-base", "pytensor": "pytensor-base"}
    recipe = (ROOT / "recipe" / "recipe.yaml").read_text()
    [run] = re.findall(r"^  run:\n((?:    - .*\n)*)", recipe, re.MULTILINE)
    asked = {line.removeprefix("    - ") for line in run.splitlines()}
    python = PROJECT["project"]["requires-python"].removeprefix(">=")
    assert re.search(r'^  python_min: "(.*)"$', recipe, re.MULTILINE)[1] == python
    wanted = {"python >=${{ python_min }}"}
    for requirement in map(Requirement, PROJECT["project"]["dependencies"]):
        name = named.get(requirement.name, requirement.name)
        bounds = sorted(str(requirement.specifier).split(","), reverse=True)
        wanted.add(f"{name} {','.join(bounds)}".strip())
    assert asked == wanted
