"""Tables of likelihoods: log-weights of true values, on windows that hold all relevant values.

Windows are found by search. It goes uphill from a likely value; then to either side until the
log-weight is ``drop`` below the maximum; then to ever greater distances, twice as far each time.
Weights between two points evaluated there are taken to lie between the weights at both. A law that
knows its range of possible counts, and may have gaps, is tabulated on that range. So is a user's
own law, after all nearby counts have been evaluated.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dapper.answers.law import CellLaw

LARGEST = 2**53
"""Largest count: float64 isn't exact beyond it."""
DROP = 30.0
"""Windows end where log-weights are this far below the maximum, or further with heavy tails."""
LARGEST_DROP = 690.0
"""Largest logarithm of what windows cut off: the limit of float64."""
TAIL = 1e-10
"""Largest share of the posterior outside of a window."""
UNLIKELY = 1e6
"""A release is refused if its noise is likelier by this much for an impossible true value than for
any possible one; more is allowed with many cells."""
PIECES = 4096
"""Most pieces of a window of counts; with at most this number of counts, each is a piece."""
MOST_COUNTS = 2**27
"""Most entries of tables with one count in each piece."""
PIECES_OF_REALS = 1024
"""Number of pieces of a window of real numbers."""
NEAR, NOT_NEAR = 2**12, 2**17
"""For a law that may have gaps, all counts are evaluated up to the first distance. They are
evaluated up to the second distance if there are few rows, or until counts beyond half of it have no
weight."""
AT_ONCE = 2**8
"""Number of counts in each row that are evaluated together."""
UNEVEN = 0.005
"""Share of a posterior that may violate interpolation between two nodes."""


@dataclass(frozen=True)
class Support:
    """The range of true values, from ``lowest`` to ``highest``; whole numbers or real ones.

    Limits are numbers, or arrays with one number for each row of a law.
    """

    lowest: Any
    highest: Any
    whole: bool

    @property
    def unit(self) -> Any:
        """The smallest step of a search."""
        return 1 if self.whole else (self.highest - self.lowest) * 2.0**-50

    def clip(self, values: np.ndarray) -> np.ndarray:
        """Move values into the range."""
        clipped = np.clip(values, self.lowest, self.highest)
        return np.round(clipped).astype(np.int64) if self.whole else clipped


@dataclass(frozen=True)
class Tables:
    """Log-weights of true values at the nodes of a window, a row for each law.

    Between two nodes the log-weight is linear. If nodes are one count apart, each piece is one
    count, and nothing is interpolated.
    """

    nodes: np.ndarray
    """Shape (rows, pieces + 1), int64 or float64, ascending: a piece is from one node to below the
    next. Two equal nodes have no piece between them; if each piece is one count, these are last."""
    logs: np.ndarray
    """Shape (rows, pieces + 1): log-weights with a maximum of about 0."""
    tops: np.ndarray
    """Shape (rows,): the constants subtracted from the log-weights."""
    which: np.ndarray
    """Shape (cells,): the row of each cell."""

    @property
    def whole(self) -> bool:
        """Whether true values are whole numbers."""
        return self.nodes.dtype.kind == "i"

    @property
    def each_count(self) -> bool:
        """Whether each piece is one count."""
        return self.whole and bool(np.all(np.diff(self.nodes) <= 1))

    def inner(self, support: Support, level: float) -> np.ndarray:
        """Return the first and the last count of each row that aren't near an end of its window.

        Near an end, log-weights are below ``level``. An end beyond which nothing is possible
        doesn't count. Shape (2, rows).
        """
        inside = (np.diff(self.nodes) > 0) & (self.logs[:, :-1] >= level)
        low, high = self.nodes[:, 0], self.nodes[:, -1] - 1
        last = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        lowest = np.where(low == support.lowest, low, low + inside.argmax(axis=1))
        return np.stack([lowest, np.where(high == support.highest, high, low + last)])

    def weights(self) -> np.ndarray:
        """Weights of all pieces, of shape (rows, pieces), not normalised."""
        lengths, start = np.diff(self.nodes), self.logs[:, :-1]
        if self.each_count:
            return np.where(lengths > 0, np.exp(start), 0.0)
        change = slopes(self.logs)
        with np.errstate(all="ignore"):
            if self.whole:
                steps = np.expm1(change) / np.expm1(change / lengths)
            else:
                steps = lengths * np.expm1(change) / change
            steps = np.where(np.abs(change) < 1e-9, lengths, steps)
            return np.where(lengths > 0, np.exp(start) * steps, 0.0)


def slopes(logs: np.ndarray) -> np.ndarray:
    """Return changes of log-weights over pieces; 0 if one end is impossible."""
    with np.errstate(invalid="ignore"):
        change = np.diff(logs)
    return np.where(np.isfinite(change), change, 0.0)


def tabulate(
    law: CellLaw, support: Support, *, drop: float = DROP, pieces: int | None = PIECES
) -> Tables:
    """Tabulate the log-weights of each row of a law.

    Parameters
    ----------
    law : CellLaw
        The law of the released values.
    support : Support
        The range of true values.
    drop : float
        Windows end where log-weights are at least this far below the maximum.
    pieces : int, optional
        Most pieces of a window of counts; None means one count in each piece.

    Raises
    ------
    ValueError
        If no true value can have led to a released one, or if true values are unbounded.
    """
    if law.ends is not None:
        return _within_ends(law, support, law.ends)
    if support.whole and not law.has_peak and (ends := _look_for_ends(law, support, drop)):
        tables = _within_ends(law, support, ends)
        _check_reach(law, support, tables.tops)
        return tables
    peak, top = find_peaks(law, support)
    _check_reach(law, support, top)
    while True:
        edges = [find_edges(law, support, peak, top, drop, sign) for sign in (-1, 1)]
        endless = support.whole and bool(np.any(edges[1] >= LARGEST))
        _check_ends(law, endless or drop > LARGEST_DROP)
        tables = _at_nodes(law, support, peak, top, edges, pieces)
        log_total = np.log(tables.weights().sum(axis=1))
        sides = zip(edges, (-1, 1), strict=True)
        beyond = [log_beyond(law, support, edge, top, sign) for edge, sign in sides]
        worst = float(np.max(np.logaddexp(*beyond) - log_total))
        if worst <= np.log(TAIL):
            if not law.has_peak:
                _check_between(law, support, tables)
            return tables
        drop = LARGEST_DROP if drop < LARGEST_DROP < 2 * drop else 2 * drop


def _within_ends(law: CellLaw, support: Support, ends: tuple[np.ndarray, np.ndarray]) -> Tables:
    """Tabulate all counts between the ends of the law's range."""
    low, high = np.maximum(ends[0], support.lowest), np.minimum(ends[1], support.highest)
    _check_possible(law, low <= high)
    _check_ends(law, bool(np.any(high >= LARGEST)))
    edges = [low.astype(np.int64), high.astype(np.int64)]
    tables = _at_nodes(law, support, edges[0], np.zeros(low.size), edges, None)
    top = np.where(np.diff(tables.nodes) > 0, tables.logs[:, :-1], -np.inf).max(axis=1)
    _check_possible(law, top != -np.inf)
    return replace(tables, logs=tables.logs - top[:, None], tops=top)


def _look_for_ends(
    law: CellLaw, support: Support, drop: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Evaluate all nearby counts, and return the range that matters; None if it doesn't end."""
    middle = support.clip(law.near)
    reach = int(np.clip(2**22 // middle.size, NEAR, NOT_NEAR))
    while reach <= NOT_NEAR:
        low, high = support.clip(middle - reach), support.clip(middle + reach)
        steps = np.arange(int((high - low).max()) + 1)[:, None]
        parts = (steps[k : k + AT_ONCE] for k in range(0, len(steps), AT_ONCE))
        blocks = [np.minimum(low + part, high) for part in parts]
        top = np.max([law(counts).max(axis=0) for counts in blocks], axis=0)
        _check_possible(law, top != -np.inf)
        first, last = high, low
        for counts in blocks:
            matters = law(counts) >= top - drop
            first = np.minimum(first, np.where(matters, counts, high).min(axis=0))
            last = np.maximum(last, np.where(matters, counts, low).max(axis=0))
        goes_on = (first < middle - reach // 2) & (low > support.lowest)
        goes_on |= (last > middle + reach // 2) & (high < support.highest)
        if not goes_on.any():
            return first, last
        reach *= 2
    return None


def _check_between(law: CellLaw, support: Support, tables: Tables) -> None:
    """Check that weights between nodes lie between those at the nodes."""
    if tables.each_count:
        return
    start, lengths = tables.nodes[:, :-1], np.diff(tables.nodes)
    middle = support.clip(start + lengths / 2)
    share = np.where(lengths > 0, (middle - start) / np.maximum(lengths, 1e-300), 0.0)
    with np.errstate(invalid="ignore"):
        straight = np.exp(tables.logs[:, :-1] + share * slopes(tables.logs))
        found = np.exp(law(middle.T).T - tables.tops[:, None])
    uneven = (lengths * np.abs(found - straight)).sum(axis=1) / tables.weights().sum(axis=1)
    if uneven.max() > UNEVEN:
        raise ValueError(
            f"'{law.name}': the mechanism's log-density has narrow gaps or peaks, which a table of "
            "it would miss. Check the log-density for all true values. If it is right, write a "
            "model, and add the release to it by release.potential(...)"
        )


def _check_ends(law: CellLaw, endless: bool) -> None:
    if endless:
        raise ValueError(
            f"'{law.name}': neither the release nor the prior bounds the true values. Give total=, "
            "or a prior with an end, such as prior=range(0, 1_000_001)"
        )


def _check_possible(law: CellLaw, possible: np.ndarray) -> None:
    if not np.all(possible):
        raise ValueError(
            f"'{law.name}': no true value can have led to some of the released values. Look for a "
            "wrong scale, a wrong mechanism, or a prior that ends too early"
        )


def find_peaks(law: CellLaw, support: Support) -> tuple[np.ndarray, np.ndarray]:
    """Return the approximately most likely true value of each row, and its log-weight."""
    start = support.clip(law.near)
    steps = 2.0 ** np.arange(54)[:, None] * support.unit
    first = support.clip(np.concatenate([start[None], start + steps, start - steps]))
    logs = law(first)
    best = logs.argmax(axis=0)
    peak, top = (np.take_along_axis(x, best[None], axis=0)[0] for x in (first, logs))
    _check_possible(law, top != -np.inf)
    for step in steps[::-1]:
        for sign in (-1, 1):
            tried = support.clip(peak + sign * step)
            value = law(tried[None])[0]
            better = value > top
            peak, top = np.where(better, tried, peak), np.where(better, value, top)
    return peak, top


def _check_reach(law: CellLaw, support: Support, top: np.ndarray) -> None:
    """Check that noise can plausibly lead from possible true values to the released ones."""
    outside = (law.near < support.lowest) | (law.near > support.highest)
    if not outside.any():
        return
    near = np.round(law.near) if support.whole else law.near
    lost = np.nan_to_num(law.anywhere(near[None])[0] - top, nan=0.0, neginf=0.0)[outside]
    if lost.max() > np.log(UNLIKELY * law.which.size):
        raise ValueError(
            f"'{law.name}': the released value {law.near[outside][lost.argmax()]:g} is too far "
            "from all possible true values for this noise. Look for a wrong scale, or give another "
            "prior"
        )


def find_edges(
    law: CellLaw, support: Support, peak: np.ndarray, top: np.ndarray, drop: float, sign: int
) -> np.ndarray:
    """Return where, on one side, the log-weights of each row are ``drop`` below the maximum."""
    reach = 2.0 ** np.arange(54)[:, None] * support.unit
    places = np.concatenate([peak[None], support.clip(peak + sign * reach)])
    inside = law(places) >= top - drop
    last = len(inside) - 1 - inside[::-1].argmax(axis=0)
    near = np.take_along_axis(places, last[None], axis=0)[0]
    far = np.take_along_axis(places, np.minimum(last + 1, len(places) - 1)[None], axis=0)[0]
    # Precise to a hundredth of the window, since it may be a little too wide.
    for _ in range(8):
        middle = support.clip((near + far) / 2)
        is_inside = law(middle[None])[0] >= top - drop
        near, far = np.where(is_inside, middle, near), np.where(is_inside, far, middle)
    return far


def log_beyond(
    law: CellLaw, support: Support, edge: np.ndarray, top: np.ndarray, sign: int
) -> np.ndarray:
    """Bound the logarithm of the weight beyond a window, relative to the maximum log-weight."""
    reach = 2.0 ** np.arange(54)[:, None] * support.unit
    ends = np.concatenate([edge[None], support.clip(edge + sign * reach)])
    room = np.abs(np.diff(ends.astype(np.float64), axis=0))
    with np.errstate(divide="ignore"):
        # Between two points, weights are at most the weight at the first.
        logs = np.log(room) + law(ends)[:-1] - top
    return np.logaddexp.reduce(logs, axis=0)


def _at_nodes(
    law: CellLaw,
    support: Support,
    peak: np.ndarray,
    top: np.ndarray,
    edges: list[np.ndarray],
    pieces: int | None,
) -> Tables:
    """Evaluate the law at nodes; the peak is a node, because densities may have a kink there."""
    low, high = edges
    if support.whole:
        if pieces is None and float((high - low).max()) * low.size > MOST_COUNTS:
            raise ValueError(
                f"'{law.name}': the noise is too wide: tables of all likely counts would have more "
                f"than {MOST_COUNTS:,} entries. Use the flat prior without total= and margins, or "
                "count in larger units"
            )
        length = np.maximum(-(-(high - low + 1) // (pieces or LARGEST)), 1)
        end = high + 1
    else:
        end = high
        length = (high - low) / PIECES_OF_REALS
    before = np.ceil((peak - low) / length).astype(np.int64)
    after = np.ceil((end - peak) / length).astype(np.int64)
    k = np.arange(int((before + after).max()) + 1)[:, None]
    nodes = np.clip(peak + length * (k - before), low, end)
    logs = law(support.clip(nodes)) - top
    return Tables(np.ascontiguousarray(nodes.T), np.ascontiguousarray(logs.T), top, law.which)
