"""The tests mirror the package.

What is in `pymc_dapper/x/y.py` is tested in `tests/x/test_y.py`. Tests of whole samplers are in
`tests/statistical/`, and those of what goes through several folders beside them. All other modules
give tests something, and `tests/README.md` says what.
"""

import ast
import re
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "pymc_dapper", ROOT / "tests"

ELSEWHERE = {
    "backend/accelerate/external.py": "backend/accelerate/test_addresses.py",
    "one_function/matrices.py": "one_function/test_operations.py",
    "one_function/reductions.py": "one_function/test_operations.py",
    "records/compiled/exchange.py": "statistical/test_known_totals.py",
}
"""Modules that are tested through whole samplers, or through what they are a part of, and where."""

SEVERAL = {"statistical"}
"""Folders of tests that are about whole samplers; and so are those beside this one."""


def has_code(file):
    """Whether a module does anything: it isn't names, exceptions or containers of data alone."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return any(isinstance(node, functions) for node in ast.walk(ast.parse(file.read_text())))


@cache
def modules():
    """Modules by their path. One with an underscore is a part of its folder's others."""
    files = (file for file in PACKAGE.rglob("*.py") if not file.name.startswith("_"))
    return {file.relative_to(PACKAGE).as_posix(): file for file in files if has_code(file)}


def mirror(module):
    """Where a module is tested."""
    path = Path(module)
    return (path.parent / f"test_{path.name.lstrip('_')}").as_posix()


@pytest.mark.parametrize("module", sorted(modules()))
def test_each_module_is_tested_where_one_looks_for_it(module):
    expected = ELSEWHERE.get(module, mirror(module))
    assert (TESTS / expected).is_file(), f"pymc_dapper/{module} has no tests/{expected}"


def test_each_test_file_has_a_module():
    mirrors = {mirror(file.relative_to(PACKAGE)) for file in PACKAGE.rglob("*.py")}
    files = [file.relative_to(TESTS) for file in TESTS.rglob("test_*.py")]
    without = [
        file.as_posix()
        for file in files
        if file.as_posix() not in mirrors and len(file.parts) > 1 and file.parts[0] not in SEVERAL
    ]
    assert without == []


@pytest.mark.parametrize("module", ELSEWHERE)
def test_what_is_tested_elsewhere_is_named_there(module):
    assert module in modules()
    assert not (TESTS / mirror(module)).exists()
    assert re.search(rf"\b{Path(module).stem}\b", (TESTS / ELSEWHERE[module]).read_text())


def test_there_are_few_of_these():
    assert len(ELSEWHERE) < 0.1 * len(modules())


def test_the_index_has_each_module_that_gives_tests_something_and_no_other():
    text = re.sub(r"`python -m tests\.", "`", (TESTS / "README.md").read_text("utf-8"))
    listed = set(re.findall(r"`([a-z_0-9/*]+)`", text))
    files = {file.relative_to(TESTS).with_suffix("").as_posix() for file in TESTS.rglob("*.py")}
    helpers = {x for x in files if not Path(x).name.startswith(("test_", "__init__"))}
    assert [x for x in sorted(helpers) if not any(fnmatch(x, name) for name in listed)] == []
    paths = {name for name in listed if "/" in name.rstrip("/")}
    assert [x for x in sorted(paths) if not any(fnmatch(y, x) for y in files)] == []
