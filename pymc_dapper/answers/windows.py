"""Tables of what was released: log-weights of true values, on windows that hold all that matters.

Windows are found by looking: from a likely value on, uphill, then to either side until the
log-weight is ``drop`` below the largest, and then at ever greater distances, twice as far each
time. Between what is looked at there, weights are taken to lie between those at both ends. A law
that knows where all possible counts are, and may have gaps, is tabulated there. So is one of a
user's own, where all counts that are near are looked at first.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pymc_dapper.answers.law import CellLaw

LARGEST = 2**53
"""Largest count: beyond, float64 doesn't tell counts apart."""
DROP = 30.0
"""Windows end where log-weights are that much below the largest; more where tails are heavy."""
LARGEST_DROP = 690.0
"""Logarithm of what windows cut off at most: float64 ends there."""
TAIL = 1e-10
"""Share of the posterior that a window neglects, at most."""
UNLIKELY = 1e6
"""A release is refused if a value's noise would be so much likelier for an impossible true value
than for any possible one, and more so among many cells."""
PIECES = 4096
"""Pieces of a window of counts, at most; with so many counts or fewer, each is a piece."""
MOST_COUNTS = 2**27
"""Entries of tables of which each piece is a count, at most."""
PIECES_OF_REALS = 1024
"""Pieces of a window of real numbers."""
NEAR, NOT_NEAR = 2**12, 2**17
"""Of a law that may have gaps, all counts are looked at up to the first distance, or to the second
if rows are few or until what is farther than a half of it weighs nothing."""
AT_ONCE = 2**8
"""Counts of each row that are looked at together."""
UNEVEN = 0.005
"""Share of a posterior that may lie otherwise than between two nodes."""


@dataclass(frozen=True)
class Support:
    """Where true values may lie: from ``lowest`` to ``highest``, whole numbers or real ones.

    Limits are numbers, or arrays of one for each row of a law.
    """

    lowest: Any
    highest: Any
    whole: bool

    @property
    def unit(self) -> Any:
        """The smallest step to look at."""
        return 1 if self.whole else (self.highest - self.lowest) * 2.0**-50

    def clip(self, values: np.ndarray) -> np.ndarray:
        """Bring values into it."""
        clipped = np.clip(values, self.lowest, self.highest)
        return np.round(clipped).astype(np.int64) if self.whole else clipped


@dataclass(frozen=True)
class Tables:
    """Log-weights of true values at the nodes of a window, a row for each law.

    Between two nodes the logarithm is straight. Where nodes are one count apart, each piece is one
    count, and nothing is interpolated.
    """

    nodes: np.ndarray
    """Shape (rows, pieces + 1), int64 or float64, ascending: a piece is from one node to below the
    next. Where two are the same there is no piece; if each piece is one count, these come last."""
    logs: np.ndarray
    """Shape (rows, pieces + 1): log-weights, the largest of which is about 0."""
    tops: np.ndarray
    """Shape (rows,): what was taken from them."""
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

        Near an end, log-weights are below ``level``. Where nothing is possible beyond a window, its
        end isn't meant. Shape (2, rows).
        """
        inside = (np.diff(self.nodes) > 0) & (self.logs[:, :-1] >= level)
        low, high = self.nodes[:, 0], self.nodes[:, -1] - 1
        last = inside.shape[1] - 1 - inside[:, ::-1].argmax(axis=1)
        return np.stack(
            [
                np.where(low == support.lowest, low, low + inside.argmax(axis=1)),
                np.where(high == support.highest, high, low + last),
            ]
        )

    def weights(self) -> np.ndarray:
        """Weights of all pieces, of shape (rows, pieces), before they are made to add up to 1."""
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
    """Return changes of log-weights over pieces; 0 where one end is impossible."""
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
        What was released.
    support : Support
        Where true values may lie.
    drop : float
        Windows end where log-weights are that much below the largest, or more.
    pieces : int, optional
        Pieces of a window of counts, at most; if None, each count is a piece.

    Raises
    ------
    ValueError
        If no true value could have led to what was released, or if nothing ends what it may be.
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
        if endless or drop > LARGEST_DROP:
            raise ValueError(_endless(law))
        tables = _at_nodes(law, support, peak, top, edges, pieces)
        log_total = np.log(tables.weights().sum(axis=1))
        beyond = [
            log_beyond(law, support, edge, top, sign)
            for edge, sign in zip(edges, (-1, 1), strict=True)
        ]
        worst = float(np.max(np.logaddexp(*beyond) - log_total))
        if worst <= np.log(TAIL):
            if not law.has_peak:
                _check_between(law, support, tables)
            return tables
        drop = LARGEST_DROP if drop < LARGEST_DROP < 2 * drop else 2 * drop


def _within_ends(law: CellLaw, support: Support, ends: tuple[np.ndarray, np.ndarray]) -> Tables:
    """Tabulate all counts between the ends that the law has."""
    low, high = np.maximum(ends[0], support.lowest), np.minimum(ends[1], support.highest)
    if np.any(low > high):
        raise ValueError(_impossible(law))
    if np.any(high >= LARGEST):
        raise ValueError(_endless(law))
    edges = [low.astype(np.int64), high.astype(np.int64)]
    tables = _at_nodes(law, support, edges[0], np.zeros(low.size), edges, None)
    top = np.where(np.diff(tables.nodes) > 0, tables.logs[:, :-1], -np.inf).max(axis=1)
    if np.any(top == -np.inf):
        raise ValueError(_impossible(law))
    return replace(tables, logs=tables.logs - top[:, None], tops=top)


def _look_for_ends(
    law: CellLaw, support: Support, drop: float
) -> tuple[np.ndarray, np.ndarray] | None:
    """Look at all counts near, and return between which they matter; None if that goes on."""
    middle = support.clip(law.near)
    reach = int(np.clip(2**22 // middle.size, NEAR, NOT_NEAR))
    while reach <= NOT_NEAR:
        low, high = support.clip(middle - reach), support.clip(middle + reach)
        steps = np.arange(int((high - low).max()) + 1)[:, None]
        blocks = [
            np.minimum(low + steps[k : k + AT_ONCE], high) for k in range(0, len(steps), AT_ONCE)
        ]
        top = np.max([law(counts).max(axis=0) for counts in blocks], axis=0)
        if np.any(top == -np.inf):
            raise ValueError(_impossible(law))
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
    """Check that weights between nodes are between those at the nodes."""
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
            f"'{law.name}': the mechanism's log-density has gaps or peaks that are narrow beside "
            "the whole of it, so that there are no answers without a model. Is it right for all "
            "true values? If so, write a model, and put the release into it by "
            "release.potential(...)"
        )


def _endless(law: CellLaw) -> str:
    return (
        f"'{law.name}': what was released doesn't end what a true value may be, and neither does "
        "the prior: give the total=, or a prior with an end, such as prior=range(0, 1_000_001)"
    )


def _impossible(law: CellLaw) -> str:
    return (
        f"'{law.name}': no true value can have led to what was released of some cells: look for a "
        "wrong scale, a wrong mechanism, or a prior that ends too early"
    )


def find_peaks(law: CellLaw, support: Support) -> tuple[np.ndarray, np.ndarray]:
    """Return the most likely true value of each row, about, and its log-weight."""
    start = support.clip(law.near)
    steps = 2.0 ** np.arange(54)[:, None] * support.unit
    first = support.clip(np.concatenate([start[None], start + steps, start - steps]))
    logs = law(first)
    best = logs.argmax(axis=0)
    peak, top = (np.take_along_axis(x, best[None], axis=0)[0] for x in (first, logs))
    if np.any(top == -np.inf):
        raise ValueError(_impossible(law))
    for step in steps[::-1]:
        for sign in (-1, 1):
            tried = support.clip(peak + sign * step)
            value = law(tried[None])[0]
            better = value > top
            peak, top = np.where(better, tried, peak), np.where(better, value, top)
    return peak, top


def _check_reach(law: CellLaw, support: Support, top: np.ndarray) -> None:
    """Check that noise could well have led from where true values may lie to what was released."""
    outside = (law.near < support.lowest) | (law.near > support.highest)
    if not outside.any():
        return
    near = np.round(law.near) if support.whole else law.near
    lost = np.nan_to_num(law.anywhere(near[None])[0] - top, nan=0.0, neginf=0.0)[outside]
    if lost.max() > np.log(UNLIKELY * law.which.size):
        raise ValueError(
            f"'{law.name}': a released value is {law.near[outside][lost.argmax()]:g}, so far from "
            "what true values may be that such noise hardly ever leads there: look for a wrong "
            "scale, or give another prior"
        )


def find_edges(
    law: CellLaw, support: Support, peak: np.ndarray, top: np.ndarray, drop: float, sign: int
) -> np.ndarray:
    """Return where the log-weights of each row are ``drop`` below the largest, to one side."""
    reach = 2.0 ** np.arange(54)[:, None] * support.unit
    tried = support.clip(peak + sign * reach)
    inside = np.concatenate([np.ones((1, peak.size), bool), law(tried) >= top - drop])
    last = inside.shape[0] - 1 - inside[::-1].argmax(axis=0)
    places = np.concatenate([peak[None], tried])
    near = np.take_along_axis(places, last[None], axis=0)[0]
    far = np.take_along_axis(places, np.minimum(last + 1, len(tried))[None], axis=0)[0]
    # To within a hundredth of the window: it may as well be somewhat wider.
    for _ in range(8):
        middle = support.clip((near + far) / 2)
        is_inside = law(middle[None])[0] >= top - drop
        near, far = np.where(is_inside, middle, near), np.where(is_inside, far, middle)
    return far


def log_beyond(
    law: CellLaw, support: Support, edge: np.ndarray, top: np.ndarray, sign: int
) -> np.ndarray:
    """Bound the logarithm of the weight beyond a window, relative to the largest log-weight."""
    reach = 2.0 ** np.arange(54)[:, None] * support.unit
    ends = support.clip(edge + sign * np.concatenate([reach[:1], reach]))
    ends[0] = edge
    room = np.abs(np.diff(ends.astype(np.float64), axis=0))
    with np.errstate(divide="ignore"):
        # From one place to the next weights are no larger than at the first.
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
    """Evaluate the law at nodes, of which the peak is one: densities may have a kink there."""
    low, high = edges
    if support.whole:
        if pieces is None and float((high - low).max()) * low.size > MOST_COUNTS:
            raise ValueError(
                f"'{law.name}': the noise is so wide that tables of all likely counts would have "
                f"more than {MOST_COUNTS:,} entries: take the flat prior, without total= or "
                "margins, or count in larger units"
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
