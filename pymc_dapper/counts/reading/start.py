"""Find a table with the known totals and margins for which the release is possible."""

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from pymc_dapper.counts.reading.model import CountReading
from pymc_dapper.counts.reading.moves import classes_of, components_of
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.nearest_counts import nearest_counts
from pymc_dapper.graphs.terms.ranges import PossibleRanges, Range


class PossibleStart:
    """Finds a table for which the released values are possible, by the terms of the log-density.

    Terms of several sums are left out.
    """

    def __init__(self, reading: CountReading):
        self._known = reading.known.matrix
        terms = [each for each in reading.terms if len(each.linear) == 1]
        self._sums = [next(iter(each.linear.values())) for each in terms]
        inputs = [*reading.parameters, *reading.data.values()]
        self._ranges = PossibleRanges(reading.model, inputs, terms, [True] * len(terms))

    def __call__(
        self, counts: np.ndarray, totals: np.ndarray, given: Sequence[np.ndarray]
    ) -> np.ndarray | None:
        """Change a table so that each sum is in the range of its term; None if none is found.

        ``totals`` are known totals, which the table has already.
        """
        # First move into the range, then out of gaps: the nearest values may not be jointly
        # possible.
        found = self._changed(counts, totals, self._ranges.with_gaps(given, self._at(counts)))
        if found is None:
            return None
        return self._changed(found, totals, self._ranges(given, self._at(found)))

    def _at(self, counts: np.ndarray) -> list[np.ndarray]:
        return [matrix @ counts for matrix in self._sums]

    def _changed(
        self, counts: np.ndarray, totals: np.ndarray, ranges: Sequence[Range]
    ) -> np.ndarray | None:
        if not all(each.known.all() for each in ranges):
            return None
        low = np.concatenate([totals, *(each.low for each in ranges)])
        high = np.concatenate([totals, *(each.high for each in ranges)])
        matrix = sparse.vstack([self._known, *self._sums], format="csr")
        try:
            return find_start(matrix, (low, high), [""] * len(low), counts)
        except ReadingError:
            return None


def find_start(
    functions: sparse.csr_array,
    ends: tuple[np.ndarray, np.ndarray],
    names: Sequence[str],
    counts: np.ndarray,
) -> np.ndarray:
    """Change a table with few changes, so that linear functions of it lie in ranges.

    A table for which they do already is returned unchanged. ``ends`` are the least and the largest
    values; ``names`` of functions are for messages.

    Raises
    ------
    ReadingError
        If there is no such table.
    """
    low, high = ends
    present = functions @ counts
    wrong = (present < low) | (present > high)
    if not wrong.any():
        return counts
    counts = counts.copy()
    classes = classes_of(functions)
    for component in components_of(functions, classes):
        if not wrong[component.equations].any():
            continue
        inside = [classes[k] for k in component.classes]
        of_classes = np.array([counts[cells].sum() for cells in inside])
        within = low[component.equations], high[component.equations]
        totals = nearest_counts(component.rows, within, of_classes)
        if totals is None:
            listed = sorted({f"'{names[k]}'" for k in component.equations})
            raise ReadingError(
                f"no table of counts has the totals that {' and '.join(listed)} fix: the totals "
                f"contradict each other, or are negative or fractional. In question are "
                f"{_listed(within[0])}"
            )
        for cells, total in zip(inside, totals, strict=True):
            counts[cells] = _scaled(counts[cells], int(total))
    return counts


def _scaled(counts: np.ndarray, total: int) -> np.ndarray:
    """Scale counts to a total, by largest remainders."""
    if counts.sum() == total:
        return counts
    weights = counts + 1.0  # so that empty cells may get people
    exact = weights / weights.sum() * total
    scaled = np.floor(exact).astype(np.int64)
    order = np.argsort(scaled - exact, kind="stable")
    scaled[order[: total - scaled.sum()]] += 1
    return scaled


def _listed(values: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return shown + (", ..." if len(values) > 6 else "")
