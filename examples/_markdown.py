"""Markdown tables, and a page whose tables a script fills in."""

import re
from pathlib import Path


def table(header, rows, words=None):
    """A Markdown table; cells are text already.

    The columns after the first ``words`` ones hold numbers, where it is given.
    """
    words = len(header) if words is None else words
    lines = [header, ["---"] * words + ["---:"] * (len(header) - words), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def numbers(values, digits=3):
    """Numbers as cells."""
    return [f"{value:.{digits}f}" for value in values]


def _block(name):
    return re.compile(rf"(<!-- table: {re.escape(name)} -->\n\n)(.*?)(?=\n\n|\Z)", flags=re.DOTALL)


def read(page, name):
    """The table that a page shows under a name: its rows, each a list of cells."""
    found = _block(name).search(page)
    if found is None:
        raise KeyError(f"the page has no table '{name}'")
    return rows(found[2])


def rows(table):
    """The rows of a table, each a list of cells."""
    return [
        [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
        for line in table.splitlines()
    ]


def fill_file(path, tables):
    """Fill the tables of a page that is a file; do nothing without a page."""
    if path is not None:
        path = Path(path)
        path.write_text(fill(path.read_text(encoding="utf-8"), tables), encoding="utf-8")


def fill(page, tables):
    """The page with each of its tables replaced by the one of the same name."""
    for name, text in tables.items():
        read(page, name)
        page = _block(name).sub(lambda found, text=text: found[1] + text, page)
    return page
