"""Find a table that has the totals and margins that are known."""

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy import sparse

from pymc_dapper.counts.reading.moves import classes_of, components_of
from pymc_dapper.graphs.errors import ReadingError

Counts = NDArray[np.int64]


def find_start(
    invariants: sparse.csr_array,
    known: NDArray[np.float64],
    names: list[str],
    counts: Counts,
) -> Counts:
    """Change a table, as little as is easily done, so that ``invariants @ counts == known``.

    It is left as it is if it does so already. Messages call the equations by their ``names``.

    Raises
    ------
    ReadingError
        If there is no such table.
    """
    wrong = invariants @ counts != known
    if not wrong.any():
        return counts
    counts = counts.copy()
    classes = classes_of(invariants)
    for component in components_of(invariants, classes):
        if not wrong[component.equations].any():
            continue
        inside = [classes[k] for k in component.classes]
        present = np.array([counts[cells].sum() for cells in inside])
        totals = _totals(component.matrix, known[component.equations], present)
        if totals is None:
            listed = sorted({f"'{names[k]}'" for k in component.equations})
            raise ReadingError(
                f"no table of counts has the totals that {' and '.join(listed)} say are known: "
                f"they contradict each other, or are negative or fractional. In question are "
                f"{_listed(known[component.equations])}"
            )
        for cells, total in zip(inside, totals, strict=True):
            counts[cells] = _scaled(counts[cells], int(total))
    return counts


def _totals(
    matrix: NDArray[np.float64], known: NDArray[np.float64], present: Counts
) -> Counts | None:
    """Solve for the totals of classes of cells, not far from those at present."""
    n = len(present)
    # Minimise the sum of |totals - present|: as totals = present + more - less.
    found = scipy.optimize.milp(
        np.ones(2 * n),
        constraints=[
            scipy.optimize.LinearConstraint(
                np.hstack([matrix, -matrix]), *(2 * [known - matrix @ present])
            ),
            scipy.optimize.LinearConstraint(np.hstack([np.eye(n), -np.eye(n)]), -present, np.inf),
        ],
        integrality=np.ones(2 * n),
    )
    if found.x is None:
        return None
    change = np.round(found.x).astype(np.int64)
    totals = present + change[:n] - change[n:]
    return totals if np.array_equal(matrix @ totals, known) and totals.min() >= 0 else None


def _scaled(counts: Counts, total: int) -> Counts:
    """Scale counts to a total, by largest remainders."""
    if counts.sum() == total:
        return counts
    weights = counts + 1.0  # a start shouldn't rest on an empty cell staying empty
    exact = weights / weights.sum() * total
    scaled = np.floor(exact).astype(np.int64)
    order = np.argsort(scaled - exact, kind="stable")
    scaled[order[: total - scaled.sum()]] += 1
    return scaled


def _listed(values: NDArray[np.float64]) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return shown + (", ..." if len(values) > 6 else "")
