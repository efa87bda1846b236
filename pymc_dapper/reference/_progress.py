"""A progress bar for long runs, or nothing in its place."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


class Report(Protocol):
    """Show the progress of a run."""

    def __call__(self, completed: float, note: str) -> None:
        """Update the amount of work done, and the text beside the bar."""


@contextmanager
def progress(description: str, total: float | None, *, show: bool) -> Iterator[Report]:
    """Show a progress bar while the context lasts; total None if it isn't known."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[note]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, disable=not show) as bar:
        task = bar.add_task(description, total=total, note="")

        def report(completed: float, note: str) -> None:
            bar.update(task, completed=completed, note=note)

        yield report
