"""HTML for notebooks: tables, and text that unfolds."""

from collections.abc import Iterable, Sequence
from html import escape


def table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a title; without a header if that is empty."""
    head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
    head = f"<thead><tr>{head}</tr></thead>" if header else ""
    cells = ("".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{each}</tr>" for each in cells)
    return f"<p>{escape(title)}</p><table>{head}<tbody>{body}</tbody></table>"


def aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    """Return rows as lines of text, with their columns below each other."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def unfolding(summary: str, text: str) -> str:
    """Return a line that unfolds to a text, with the text's line breaks."""
    return f"<details><summary>{escape(summary)}</summary><pre>{escape(text)}</pre></details>"
