"""What readers go on after: failures of a model's graphs, and never an error of programming."""

import ast
from functools import cache
from pathlib import Path

import pymc_dapper

PACKAGE = Path(pymc_dapper.__file__).parent
WHATEVER_HAPPENS = {
    "steps/building.py": "adds a note, and raises it again",
    "steps/function.py": "raises again what a user's function raised",
    "steps/gibbs.py": "calls the steps one by one, and the one that fails says why",
    "studies": "a cell of a study that fails is kept with its message, and told",
    "tabulation/choice.py": "adds a note, and raises it again",
}
"""Where all exceptions are caught, and why."""
ALL = {"Exception", "BaseException", "TypeError", "AttributeError", "NameError", "KeyError"}
READERS = ("conjugacy", "marginalised", "counts", "graphs", "interweaving", "plausibility")
READERS += ("records", "sizes", "steps", "studies", "tabulation")


def caught(handler):
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return {ast.unparse(kind) if kind is not None else "Exception" for kind in kinds}


@cache
def handlers():
    """Files of readers and steps, and the exceptions that are caught there: handler by handler."""
    return [
        (file.relative_to(PACKAGE).as_posix(), caught(node))
        for folder in READERS
        for file in sorted((PACKAGE / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ExceptHandler)
    ]


def places(kinds):
    """Files of readers and steps in which one of some exceptions is caught."""
    return [file for file, exceptions in handlers() if exceptions & kinds]


def test_readers_catch_what_graphs_raise_and_nothing_else():
    found = set(places({"Exception", "BaseException"}))
    assert {x if not x.startswith("studies/") else "studies" for x in found} == {*WHATEVER_HAPPENS}
    # Our own calls that take any input: their errors are meant for users.
    assert set(places(ALL - {"Exception", "BaseException"})) == {
        "counts/reading/invariant.py",
        "studies/store.py",
    }
    assert len(set(places({"FAILURES"}))) > 10
