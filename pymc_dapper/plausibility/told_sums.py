"""Sums over the entries of a release that something else in the model tells, and adjusted values.

Values with independent noise don't add up to a total that is told elsewhere. Where they do, they
were made to after noise was added, and have another law.
"""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.plausibility.noise_law import NoiseLaw

MOST_SUMS = 2_000
"""So many sums of a release, and of what tells of them, are compared at most."""

SAME_DRAWS = 1e-9
"""Sums are the same if no draw from the prior tells them apart, relative to their size."""

LIKELY = 1e-3
"""What adds up by chance less often than this is told of."""

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Told:
    """What a model tells of functions of its latent variables."""

    by: str
    """What tells it, as in "as the potential 'total' says"."""
    draws: np.ndarray
    """The functions, by draws from the prior: the first axis is theirs."""
    values: np.ndarray
    """What is told, of the shape of a draw or of one that goes with it."""
    exact: bool
    """Whether there is no noise in it."""


@dataclass(frozen=True)
class ToldSums:
    """Sums over entries of a release that are told, along some of its axes."""

    told: Told
    which: Indices
    """Of what is told, flat."""
    places: tuple[Indices, ...]
    """Of the entries in each sum."""


def find_told_sums(
    shape: tuple[int, ...], draws: np.ndarray, told: Sequence[Told]
) -> Iterator[ToldSums]:
    """Find margins of a release that are told elsewhere, by draws of its statistic, flattened."""
    if len(draws) < 3 or not told:
        return
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
            for each in told:
                pairs = list(_same(sums, each.draws.reshape(len(each.draws), -1)))
                if pairs:
                    which, of_sums = (np.array(x) for x in zip(*pairs, strict=True))
                    yield ToldSums(each, which, tuple(places[of_sums]))


def _same(sums: np.ndarray, told: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pair columns of what is told with the sums that are the same in all draws."""
    if told.shape[1] > MOST_SUMS or len(told) != len(sums):
        return
    for j, column in enumerate(told.T):
        if np.ptp(column) > 0:
            off = np.abs(sums - column[:, None]).max(axis=0)
            k = int(np.argmin(off))
            if off[k] <= SAME_DRAWS * np.abs(column).max():
                yield j, k


def check_told(name: str, released: np.ndarray, noise: NoiseLaw, sums: ToldSums) -> None:
    """Refuse values that were made consistent with what is told: see :func:`check_adjusted`."""
    told = sums.told
    values = np.broadcast_to(told.values, told.draws.shape[1:]).ravel()[sums.which]
    check_adjusted(name, released, noise, sums.places, values, told.by, told.exact)


def check_adjusted(
    name: str,
    released: np.ndarray,
    noise: NoiseLaw,
    places: Sequence[Indices],
    values: np.ndarray,
    by: str,
    exact: bool = True,
) -> None:
    """Refuse values that were made consistent with totals after noise was added.

    Released values of which the entries at ``places`` add up to ``values`` exactly are adjusted, if
    they are fine enough for that not to be chance. Of normal noise, values that were adjusted to an
    exact total by least squares have the likelihood of noisy ones.

    Raises
    ------
    ReadingError
        If they do so with probability zero.

    Warns
    -----
    UserWarning
        If they do so by chance once in a thousand times, or less often.
    """
    totals = np.array([released[each].sum() for each in places])
    if not np.all(np.abs(totals - values) <= 1e-9 * np.maximum(1.0, np.abs(values))):
        return
    entries = np.concatenate(places)
    if exact and noise.is_normal and released[entries].all():
        return
    step = 1.0 if noise.is_whole else step_of(released[entries])
    spread = np.array([np.sqrt(np.sum(noise.known_deviations[each] ** 2)) for each in places])
    chance = float(np.prod(np.minimum(step / (np.sqrt(2 * np.pi) * spread), 1.0)))
    if chance > LIKELY:
        return
    what = f"{totals[0]:.6g}" + (f" and {len(totals) - 1} more totals" if len(totals) > 1 else "")
    how_often = f"do so once in {1 / chance:,.0f} times" if chance else "don't"
    origin = "" if exact else ", or one was computed from the others: then leave it out"
    message = (
        f"'{name}': the released values add up to exactly {what}, as {by}. Values with independent "
        f"noise {how_often}: these were made consistent with the total, or non-negative, after "
        "noise was added, and have no likelihood that is known. Use the noisy values from before "
        f"that, which are mostly published, too{origin}"
    )
    if not chance:
        raise ReadingError(message)
    warnings.warn(message, UserWarning, stacklevel=5)


def step_of(values: np.ndarray) -> float:
    """Return the step of the grid that values lie on, a power of ten from 1 to 0.001; else 0."""
    for places in range(4):
        scaled = 10**places * values
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-5):
            return float(10.0**-places)
    return 0.0
