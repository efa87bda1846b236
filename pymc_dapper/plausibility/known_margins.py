"""Released values that were adjusted to totals, which the model states elsewhere.

Values with independent noise don't add up exactly to a total that is known from elsewhere. If they
do, they were adjusted after noise was added, and have another law.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.plausibility.noise_law import NoiseLaw

MOST_SUMS = 2_000
"""At most this number of sums, and of known totals, is compared."""

SAME_DRAWS = 1e-9
"""Two sums are the same if all prior draws agree to this relative difference."""

LIKELY = 1e-3
"""Agreement that is rarer than this by chance is reported."""


@dataclass(frozen=True)
class KnownValues:
    """Known values of functions of the latent variables."""

    by: str
    """Where the values come from, as in "as the potential 'total' says"."""
    draws: np.ndarray
    """The functions at draws from the prior; the first axis is that of the draws."""
    values: np.ndarray
    """The known values; their shape is that of a draw, or broadcasts to it."""
    exact: bool
    """Whether the values are exact, without noise."""


@dataclass(frozen=True)
class KnownMargins:
    """Sums of a release along some of its axes, whose totals are known."""

    known: KnownValues
    which: np.ndarray
    """Indices of the known values, flattened."""
    places: tuple[np.ndarray, ...]
    """Indices of the entries in each sum."""


def find_known_margins(
    shape: tuple[int, ...], draws: np.ndarray, known: Sequence[KnownValues]
) -> Iterator[KnownMargins]:
    """Find margins of a release whose totals are known from elsewhere.

    The margins are compared with the totals at prior draws of the flattened statistic.
    """
    known = [x for x in known if len(x.draws) == len(draws) and x.draws[:1].size <= MOST_SUMS]
    if len(draws) < 3 or not known:
        return
    totals = [x.draws.reshape(len(draws), -1) for x in known]
    starts = np.cumsum([0, *(x.shape[1] for x in totals)])
    joined = np.concatenate(totals, axis=1)
    tables = draws.reshape(len(draws), *shape)
    numbers = np.arange(draws.shape[1]).reshape(shape)
    axes = [k for k, n in enumerate(shape) if n > 1]
    for k in range(1, len(axes) + 1):
        for over in combinations(axes, k):
            sums = tables.sum(axis=tuple(1 + axis for axis in over)).reshape(len(draws), -1)
            if sums.shape[1] > MOST_SUMS:
                continue
            kept = [axis for axis in range(len(shape)) if axis not in over]
            places = numbers.transpose(*kept, *over).reshape(sums.shape[1], -1)
            which, of_sums = _same(sums, joined)
            of = np.searchsorted(starts, which, side="right") - 1
            for j, own in ((j, of == j) for j in np.unique(of).tolist()):
                at = which[own] - starts[j]
                yield KnownMargins(known[j], at, tuple(places[of_sums[own]]))


def _same(sums: np.ndarray, totals: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair known values with the sums that equal them in all draws."""
    limits = SAME_DRAWS * np.abs(totals).max(axis=0)
    candidates = np.flatnonzero(np.ptp(totals, axis=0) > 0)
    for draw, known in zip(sums, totals, strict=True):
        if not len(candidates):
            break
        values, given = np.sort(draw), known[candidates]
        above = np.searchsorted(values, given).clip(1, len(values)) - 1
        near = np.abs(values[[above, (above + 1).clip(max=len(values) - 1)]] - given).min(axis=0)
        candidates = candidates[near <= limits[candidates]]
    off = np.array([np.abs(sums - totals[:, j, None]).max(axis=0) for j in candidates])
    off = off.reshape(len(candidates), sums.shape[1])
    same = off.min(axis=1) <= limits[candidates]
    return candidates[same], off.argmin(axis=1)[same]


def check_adjusted(name: str, released: np.ndarray, noise: NoiseLaw, sums: KnownMargins) -> None:
    """Refuse values that were made consistent with totals after noise was added.

    If the entries of sums add up to the known totals exactly, and are too fine for that to be
    chance, the released values were adjusted. Normal noise is an exception: values adjusted to an
    exact total by least squares have the likelihood of noisy ones.

    Raises
    ------
    ReadingError
        If independent noise gives such sums with probability zero.

    Warns
    -----
    UserWarning
        If it gives them with a probability of 1/1000 or less.
    """
    known, places = sums.known, sums.places
    values = np.broadcast_to(known.values, known.draws.shape[1:]).ravel()[sums.which]
    totals = np.array([released[each].sum() for each in places])
    if not np.all(np.abs(totals - values) <= 1e-9 * np.maximum(1.0, np.abs(values))):
        return
    entries = np.concatenate(places)
    if known.exact and noise.is_normal and released[entries].all():
        return
    step = 1.0 if noise.is_whole else step_of(released[entries])
    spread = np.array([np.sqrt(np.sum(noise.deviations[each] ** 2)) for each in places])
    chance = float(np.prod(np.minimum(step / (np.sqrt(2 * np.pi) * spread), 1.0)))
    if chance > LIKELY:
        return
    what = f"{totals[0]:.6g}" + (f" and {len(totals) - 1} more totals" if len(totals) > 1 else "")
    how_often = f"do so once in {1 / chance:,.0f} times" if chance else "don't"
    origin = "" if known.exact else ", or one was computed from the others: then leave it out"
    message = (
        f"'{name}': the released values add up to exactly {what}, as {known.by}. Values with "
        f"independent noise {how_often}. So these values were made consistent with the total, or "
        "non-negative, after noise was added, and their likelihood isn't known. Use the noisy "
        f"values from before that step, which are mostly published, too{origin}"
    )
    if not chance:
        raise ReadingError(message)
    warnings.warn(message, UserWarning, stacklevel=4)


def step_of(values: np.ndarray) -> float:
    """Return the step of the grid that values lie on, a power of ten from 1 to 0.001; else 0."""
    for places in range(4):
        scaled = 10**places * values
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-5):
            return float(10.0**-places)
    return 0.0
