"""Whether what was released can have come from what the model describes.

A release in wrong units, or of another number of people, is sampled without complaint: the chain
sits in the corner nearest to it. So each release is compared with the range of its statistic. If
that range isn't bounded, it is compared with data sets drawn from the prior.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cache, cached_property, partial
from itertools import combinations
from math import prod

import numpy as np
from pymc import Model
from pytensor.graph import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.bounds import Bounds
from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.prior_draws import drawing
from pymc_dapper.graphs.support import bounds_by_support
from pymc_dapper.graphs.view import ModelView, view_of
from pymc_dapper.plausibility.extremes import NEVER, at_extremes
from pymc_dapper.plausibility.find import ModelRelease, find_equalities, find_releases
from pymc_dapper.plausibility.known_margins import (
    KnownMargins,
    KnownValues,
    check_adjusted,
    find_known_margins,
)
from pymc_dapper.plausibility.noise_law import NoiseLaw
from pymc_dapper.plausibility.overflow import check_overflow
from pymc_dapper.plausibility.repeated import check_cells_again, check_repeated, is_same

MOST_DEVIATIONS = 12.0
"""A release this many noise standard deviations away isn't explained by chance."""

LEAST_DROP = 20.0
"""Nor is one whose noise log-density is this far below its top, even with heavy tails."""

DROP_WHERE_FIXED = 10.0
"""The same limit for an entry that the model hardly lets vary: a chain wouldn't find it."""

LARGEST_ROUNDING = 1e-3
"""A log-density that is rounded to more than this can't tell data sets apart."""

PRIOR_SPREAD = 10.0
"""How far the prior may reach beyond its draws, in their standard deviations."""

MOST_DRAWS, FEWEST_DRAWS = 64, 8
DRAWN_RECORDS = 2_000_000
"""The prior draws have about this number of records in all. A record counts once for each release
that depends on it."""


def check_releases(model: Model, values: Sequence[TensorVariable], latent: str) -> None:
    """Compare releases with the values that their statistics can have under the model.

    Compared are mechanisms that add independent noise. So are Potentials and observed variables
    that depend on free variables only through a difference from released values. ``values`` are the
    value variables of the latent variables, and messages call these ``latent``: "400 records".

    Raises
    ------
    ReadingError
        If a release is so far out that the log-density can't tell data sets apart in double
        precision; if it was made consistent with a total after noise was added; or if it is in the
        model twice. If whole numbers overflow, too.

    Warns
    -----
    UserWarning
        If a release is further from the model's values than noise explains, or if two releases are
        the same and that can be chance.
    """
    check_overflow(model, values)
    view = view_of(model)
    releases = list(find_releases(view, values))
    found = [*releases, *find_equalities(view, values)] if releases else []
    draws = _prior_draws(view, found, values, latent) if releases else []
    known = []
    for x, drawn in zip(found, draws, strict=True):
        what = f"'{x.name}' {'was released' if x.noise else 'tells'}"
        known.append(KnownValues(what, drawn, x.known, not x.noise))
    released, exact = known[: len(releases)], known[len(releases) :]
    comparisons, laws = [], cache(NoiseLaw)
    for k, release in enumerate(found[: len(releases)]):
        extremes = partial(at_extremes, view, release.statistic, values)
        others = [*exact, *(x for i, x in enumerate(released) if i != k)]
        comparison = _Comparison(release, draws[k], latent, extremes, others, laws)
        complaint = comparison.complaint()
        if complaint is not None:
            warnings.warn(
                f"'{release.name}': {complaint}. Look for wrong units, a wrong scale or a wrong "
                "number of records",
                stacklevel=3,
            )
        comparisons.append(comparison)
    for one, other in combinations(comparisons, 2):
        one.check_repeated(other)
    check_cells_again(model)


def _prior_draws(
    view: ModelView,
    found: Sequence[ModelRelease],
    values: Sequence[TensorVariable],
    latent: str,
) -> list[np.ndarray]:
    """Draw statistics from the prior; the first axis is that of the draws.

    An improper prior has no draws, nor has a distribution with a density only.
    """
    model, statistics = view.model, [x.statistic for x in found]
    point, rvs = initial_point(model), view(model.values_to_rvs[x] for x in values)
    sizes = {rv: np.size(point[x.name]) for x, rv in zip(values, rvs, strict=True)}
    size = sum(sizes.get(x, 0) for each in statistics for x in {*ancestors([each], [*sizes])})
    n_draws = int(np.clip(DRAWN_RECORDS // max(size, 1), FEWEST_DRAWS, MOST_DRAWS))
    try:
        draw = drawing(model, statistics)
        draws = [draw(rng) for rng in np.random.default_rng(0).spawn(n_draws)]
    except FAILURES:  # whatever a distribution of the user's raises
        shapes = [x.type.shape for x in statistics]
        return [np.empty((0, *(() if None in shape else shape))) for shape in shapes]
    drawn = list(zip(*draws, strict=True))
    for x, each in zip(found, drawn, strict=True):
        if len({np.shape(value) for value in each}) > 1:
            raise ReadingError(
                f"'{x.name}': how many numbers its statistic has depends on the values of "
                f"{latent}, as that of pt.bincount does without a minlength= that no value "
                "reaches. Give it a known length"
            )
    return [np.array(each, dtype=np.float64) for each in drawn]


class _Comparison:
    """A release, and what it is compared with."""

    def __init__(
        self,
        release: ModelRelease,
        draws: np.ndarray,
        latent: str,
        extremes: Callable[[], list[np.ndarray]],
        known: Sequence[KnownValues],
        laws: Callable[..., NoiseLaw],
    ):
        self.release = release
        self._extremes = extremes
        shape = release.lowest.shape
        self._margins: list[KnownMargins] = []
        if len(draws) and draws.shape[1:] == shape and np.isfinite(draws).all():
            self._margins = list(find_known_margins(shape, draws.reshape(len(draws), -1), known))
        draws = draws[np.isfinite(draws).all(axis=tuple(range(1, draws.ndim)))]
        n_draws, *each = draws.shape
        self._shape = np.broadcast_shapes(shape, tuple(each))
        draws = draws.reshape(n_draws, *(1,) * (len(self._shape) - len(each)), *each)
        draws = np.broadcast_to(draws, (n_draws, *self._shape))
        self._draws = draws.reshape(n_draws, prod(self._shape))
        assert release.noise is not None  # releases without noise are among the others
        self._noise = laws(release.noise, self._shape)
        self._reach = _Reach(bounds_by_support(release.statistic), self._draws, latent)
        self._sums = None
        if self._noise.deviations is not None and n_draws and self._noise.size > 1:
            self._sums = _KnownSums(self._draws, self._noise)
            self._margins += self._sums.margins()

    def complaint(self) -> str | None:
        """Say what is wrong with the release; None if nothing is."""
        lowest, highest = self._range
        noise, deviations, reach = self._noise, self._noise.deviations, self._reach
        if deviations is None or not np.all(np.isfinite(lowest) | np.isfinite(highest)):
            return None
        distance = np.maximum(np.maximum(reach.lower - highest, lowest - reach.upper), 0.0)
        if distance.any():
            drops = noise.drop(distance)
            self._check_rounding(lowest, highest, drops)
            far = self._too_far(distance)
            if far.any():
                k = int(np.argmax(np.where(far, distance / deviations, 0.0)))
                others = np.count_nonzero(far) - 1
                return (
                    f"released {_number(lowest[k], highest[k])} is "
                    f"{distance[k] / deviations[k]:.0f} noise standard deviations from "
                    + reach.described(k)
                    + (f", and {others} more of its values are as far out" if others else "")
                )
        never = self._that_never_vary(lowest, highest)
        if never.any():
            k = int(np.argmax(never))
            return (
                f"released {_number(lowest[k], highest[k])}{self._at(k)}, but all data sets that "
                f"the model can give have {self._draws[0, k]:.6g} there. The probability that "
                f"any record counts in it is 0, or below {NEVER:g}"
            )
        if not np.array_equal(lowest, highest):
            return None
        for sums in self._margins:
            check_adjusted(self.release.name, lowest, noise, sums)
        return None if self._sums is None else self._sums.complaint(lowest)

    @cached_property
    def _range(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and highest value that each noisy value can have had, as vectors."""
        lowest = np.broadcast_to(self.release.lowest, self._shape)
        return lowest.ravel(), np.broadcast_to(self.release.highest, self._shape).ravel()

    def _that_never_vary(self, lowest: np.ndarray, highest: np.ndarray) -> np.ndarray:
        """Find entries that are the same in all data sets, and too far from the released value."""
        if not len(self._draws):
            return np.zeros(0, dtype=bool)
        first = self._draws[0]
        distance = np.maximum(np.maximum(first - highest, lowest - first), 0.0)
        least = DROP_WHERE_FIXED + np.log(self._noise.size)
        far = (self._noise.drop(distance) > least) & (self._draws == first).all(axis=0)
        if not far.any():
            return far
        extremes = self._extremes()
        for at in extremes:
            far &= np.broadcast_to(at, self._shape).ravel() == first
        return far & bool(extremes)

    def _too_far(self, distance: np.ndarray) -> np.ndarray:
        """Find entries whose distance from the statistic's range isn't explained by chance."""
        far = distance > MOST_DEVIATIONS * self._noise.deviations
        return far & (self._noise.drop(distance) > LEAST_DROP + np.log(self._noise.size))

    def _at(self, k: int) -> str:
        place = ", ".join(str(i) for i in np.unravel_index(k, self._shape))
        return f" is at index {place}" if place else " is its value"

    def check_repeated(self, other: "_Comparison") -> None:
        """Check whether another release is this one again."""
        deviations, of_other = self._noise.deviations, other._noise.deviations
        if deviations is None or of_other is None or self._shape != other._shape:
            return
        ranges, others = self._range, other._range
        if not all(np.array_equal(x, y) for x, y in zip(ranges, others, strict=True)):
            return
        drop, drop_of_other = (x._noise.drop(2 * deviations) for x in (self, other))
        same_noise = np.allclose(deviations, of_other, rtol=1e-9)
        same_noise &= np.allclose(drop, drop_of_other, rtol=1e-9)
        statistics = self.release.statistic, other.release.statistic
        if same_noise and is_same(*statistics, (self._draws, other._draws)):
            names = self.release.name, other.release.name
            check_repeated(names, ranges, self._noise)

    def _check_rounding(self, lowest: np.ndarray, highest: np.ndarray, drops: np.ndarray) -> None:
        lost = self._reach.bounded & np.isfinite(drops) & (np.spacing(drops) > LARGEST_ROUNDING)
        if lost.any():
            k = int(np.argmax(lost))
            raise ReadingError(
                f"'{self.release.name}': released {_number(lowest[k], highest[k])} is so far from "
                f"{self._reach.described(k)}, that in double precision all data sets have the same "
                "log-density. Nothing can be sampled: look for wrong units, a wrong scale or a "
                "wrong number of records"
            )


class _Reach:
    """The range of each entry of a statistic.

    Attributes
    ----------
    lower, upper : ndarray
        Range of each entry: its bounds; without bounds, how far the prior reaches.
    bounded : ndarray of bool
        Entries that have bounds on both sides.
    """

    def __init__(self, bounds: Bounds, draws: np.ndarray, latent: str):
        lower, upper = (np.full(draws.shape[1], end) for end in (bounds.low, bounds.high))
        self.bounded = np.isfinite(lower) & np.isfinite(upper)
        self._draws, self._latent = draws, latent
        if len(draws):
            margin = _margin(draws)
            lower = np.where(np.isfinite(lower), lower, np.min(draws, axis=0) - margin)
            upper = np.where(np.isfinite(upper), upper, np.max(draws, axis=0) + margin)
        self.lower, self.upper = lower, upper

    def described(self, k: int) -> str:
        """Describe the range of an entry, for messages."""
        if self.bounded[k]:
            lower, upper = self.lower[k], self.upper[k]
            return f"anything that {self._latent} can give, {lower:.6g} to {upper:.6g}"
        drawn = self._draws[:, k]
        return (
            "where the prior leads: data sets drawn from it give "
            f"{drawn.min():.6g} to {drawn.max():.6g}"
        )


def _margin(draws: np.ndarray) -> np.ndarray:
    """Return how far the prior may reach beyond its draws, for each entry.

    Under heavy tails, draws don't show the whole range. So the margin grows with the ratio of the
    farthest draw to the typical one. If all draws are zero, as of a vague Gamma(0.001, 0.001), they
    say nothing about the range.
    """
    with np.errstate(all="ignore"):
        distances = np.abs(draws - np.median(draws, axis=0))
        typical, farthest = np.median(distances, axis=0), distances.max(axis=0)
        heavy = np.where(farthest > 0, farthest * (farthest / typical), 0.0)
        heavy = np.where(draws.any(axis=0), heavy, np.inf)
        return np.fmax(heavy, PRIOR_SPREAD * draws.std(axis=0))


class _KnownSums:
    """Sums of a statistic that are the same in all data sets, such as the total of a table."""

    def __init__(self, draws: np.ndarray, noise: NoiseLaw):
        self._noise, deviations = noise, noise.deviations
        totals = draws.sum(axis=1)
        self._deviation = float(np.sqrt(np.sum(deviations**2)))
        seen = draws.any(axis=0)
        never_varies = np.ptp(totals) < 1e-3 * self._deviation
        self._total = totals[0] if seen.any() and never_varies else None
        self._centre = draws.mean(axis=0)
        self._fixed = np.empty((0, noise.size))
        # Fewer draws can't tell constant entries from variable ones; nor can a cell that was empty.
        if len(draws) >= 3 * noise.size and seen.all():
            scaled = (draws - self._centre) / deviations
            _, spread, directions = np.linalg.svd(scaled, full_matrices=False)
            self._fixed = directions[spread < 1e-3]

    def margins(self) -> list[KnownMargins]:
        """Return the total, if it is the same in all data sets."""
        if self._total is None:
            return []
        total = np.full((1, 1), self._total)
        known = KnownValues("they do in all data sets", total, total[0], True)
        return [KnownMargins(known, np.arange(1), (np.arange(self._noise.size),))]

    def complaint(self, released: np.ndarray) -> str | None:
        """Say how the release contradicts the known sums; None if it doesn't."""
        if self._total is not None:
            distance = abs(released.sum() - self._total) / self._deviation
            if self._too_far(distance):
                return (
                    f"the released values add up to {released.sum():.6g}, which is {distance:.0f} "
                    f"noise standard deviations from {self._total:.6g}, the total in all data sets"
                )
        scaled = (released - self._centre) / self._noise.deviations
        distance = float(np.linalg.norm(self._fixed @ scaled))
        if self._too_far(distance - np.sqrt(len(self._fixed))):
            return (
                "the released values miss linear equations that hold in all data sets, by "
                f"{distance:.0f} noise standard deviations"
            )
        return None

    def _too_far(self, distance: float) -> bool:
        if not distance > MOST_DEVIATIONS:
            return False
        # With heavy tails, a single entry may explain the whole distance.
        return bool(self._noise.drop(distance * self._noise.deviations).min() > LEAST_DROP)


def _number(lowest: float, highest: float) -> str:
    """Format a released value; if it was clamped, the limit."""
    return f"{lowest if np.isfinite(lowest) else highest:.6g}"
