"""How long the package is, by folder, and that its functions, modules and design page are short.

A line counts if it holds code: no blank lines, no comments, no docstrings.
`pytest tests/test_size.py -s` prints the table.
"""

import ast
import io
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "pymc_dapper"
NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
LINES = 41_101
"""The package's lines at most: who adds some finds others that nobody needs."""
FUNCTION, MODULE = 60, 400
DESIGN = 15_000
"""Bytes of docs/design.md, which is read in one go."""
KERNELS = {
    "counts/trees/messages.py: ascend",
    "counts/trees/tables.py: find_tilts",
    "counts/trees/tables.py: tabulate",
    "interweaving/kernels/moves.py: move_parameters",
    "reference/reversible_jump.py: _cycles",
}
"""Loops that are compiled as a whole."""


tree = cache(ast.parse)


@cache
def lines_of_code(source):
    """Line numbers that hold code."""
    docstrings = {
        line
        for node in ast.walk(tree(source))
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    found = {
        line
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type not in NO_CODE
        for line in range(token.start[0], token.end[0] + 1)
    }
    return found - docstrings


def functions(source):
    """Functions by name, with the numbers of their lines."""
    for node in ast.walk(tree(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, range(node.lineno, node.end_lineno + 1)


def modules():
    return {file.relative_to(PACKAGE): file.read_text("utf-8") for file in PACKAGE.rglob("*.py")}


def test_the_package_is_no_longer_than_it_was():
    folders = Counter()
    for path, source in modules().items():
        folders[path.parts[0]] += len(lines_of_code(source))
    for folder, n in folders.most_common():
        print(f"{n:6,} {folder}")
    print(f"{folders.total():6,}")
    assert folders.total() <= LINES


def test_modules_and_functions_are_short():
    long_modules, long_functions = set(), set()
    for path, source in modules().items():
        lines = lines_of_code(source)
        if len(lines) > MODULE:
            long_modules.add(path.as_posix())
        for name, of in functions(source):
            if len(lines & set(of)) > FUNCTION:
                long_functions.add(f"{path.as_posix()}: {name}")
    assert long_modules == set()
    # What is short by now is taken off the list, too.
    assert long_functions == KERNELS


def test_the_design_page_is_short():
    assert (PACKAGE.parent / "docs" / "design.md").stat().st_size <= DESIGN


def test_comments_docstrings_and_blank_lines_do_not_count():
    source = '"""It."""\n\n# Why.\nx = (\n    1\n)\ndef f():\n    """Docs."""\n    return x\n'
    assert lines_of_code(source) == {4, 5, 6, 7, 9}
    assert dict(functions(source)) == {"f": range(7, 10)}
