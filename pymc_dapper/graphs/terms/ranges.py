"""Ranges of sums in which a term of the log-density is possible.

With bounded noise, a released value is possible for few values of a sum. A chain that starts
elsewhere may never find them. So the terms themselves are searched for them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.graph import Constant, Variable, ancestors

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.of_sums import Terms

Possible = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``possible(at, which)``: where chosen terms are finite; ``at`` has a row of sums for each."""

NEAR = np.concatenate([np.arange(20), 2.0 ** np.arange(5, 21)])
"""Distance, from the numbers in a term, up to which possible values are searched for."""

FAR = 2.0**40
"""Possible values aren't searched for beyond this number."""

FARTHEST = 2.0**45
"""A range that extends this far has no end."""

HALVINGS = 60
"""Number of halvings after which double precision doesn't separate two ends."""


@dataclass(frozen=True)
class Range:
    """The lowest and highest possible value of the sum, for several terms."""

    low: np.ndarray
    high: np.ndarray

    @property
    def known(self) -> np.ndarray:
        """Terms for which a possible value was found."""
        return self.low <= self.high


class PossibleRanges:
    """Finds the ranges of sums in which the terms of a model are possible.

    Each term must depend on one sum. ``inputs`` are the variables on which the terms' fixed values
    depend, and ``whole`` marks terms whose sums are whole numbers.
    """

    def __init__(
        self,
        model: Model,
        inputs: Sequence[Variable],
        terms: Sequence[Terms],
        whole: Sequence[bool],
    ):
        each = zip(terms, whole, strict=True)
        self._terms = [_OfTerms(model, inputs, *arguments) for arguments in each]

    def __call__(self, given: Sequence[np.ndarray], sums: Sequence[np.ndarray]) -> list[Range]:
        """Return the range of each sum that contains the present one, or is nearest to it."""
        return [find(given, at) for find, at in zip(self._terms, sums, strict=True)]

    def with_gaps(self, given: Sequence[np.ndarray], sums: Sequence[np.ndarray]) -> list[Range]:
        """Return ranges from the lowest possible value to the highest, including gaps.

        Only the lengths of ``sums`` matter.
        """
        low, high = (self(given, [np.full(len(x), at) for x in sums]) for at in (-FAR, FAR))
        return [Range(x.low, y.high) for x, y in zip(low, high, strict=True)]


class _OfTerms:
    """Terms as a function of their sums."""

    def __init__(self, model: Model, inputs: Sequence[Variable], terms: Terms, whole: bool):
        [scalar] = terms.linear
        at = pt.dmatrix("sums")
        columns = {x: pt.tensor(dtype=x.type.dtype, shape=(None, 1)) for x in terms.fixed}
        [function] = rebuild([terms.function], {scalar: at, **columns})
        self._fixed = compile_in_python(model, inputs, list(terms.fixed.values()))
        self._evaluate = compile_in_python(model, [at, *columns.values()], [function])
        self._types = [x.type.dtype for x in columns]
        self._whole = whole
        constants = [x.data for x in ancestors([function]) if isinstance(x, Constant)]
        self._constants = _numbers_in(constants)

    def __call__(self, given: Sequence[np.ndarray], present: np.ndarray) -> Range:
        pairs = zip(self._fixed(*given), self._types, strict=True)
        fixed = [np.asarray(x).astype(dtype).reshape(-1, 1) for x, dtype in pairs]
        n = len(present)
        low, high = np.full(n, np.inf), np.full(n, -np.inf)

        def possible(at: np.ndarray, which: np.ndarray) -> np.ndarray:
            values = self._evaluate(at, *(x[which] for x in fixed))[0]
            return np.broadcast_to(np.isfinite(values), at.shape)

        everywhere = np.arange(n)
        seeds = present.astype(float).copy()
        lost = np.flatnonzero(~possible(seeds[:, None], everywhere)[:, 0])
        if len(lost):
            seen = [x[lost].astype(float) for x in fixed]
            seen += [np.full((len(lost), 1), x) for x in self._constants]
            seeds[lost] = _nearest(possible, seeds[lost], lost, seen, self._whole)
        found = np.flatnonzero(np.isfinite(seeds))
        if len(found):
            for end, sign in ((low, -1.0), (high, 1.0)):
                end[found] = _end(possible, seeds[found], found, sign, self._whole)
        return Range(low, high)


def _numbers_in(constants: Sequence[Any]) -> list[float]:
    """Return the different numbers among constants, ordered by size."""
    values = [np.asarray(x) for x in constants]
    numbers = [x.astype(float).ravel() for x in values if x.size == 1 and x.dtype.kind in "iuf"]
    found = np.unique(np.abs(np.concatenate([np.zeros(0), *numbers])))
    return found[np.isfinite(found) & (found < FARTHEST)].tolist()


def _nearest(
    possible: Possible,
    present: np.ndarray,
    which: np.ndarray,
    seen: Sequence[np.ndarray],
    whole: bool,
) -> np.ndarray:
    """Search for possible values around a term's numbers; return the nearest to the present one."""
    # In a difference, the subtracted number may have either sign.
    signed = [sign * x for x in seen for sign in (1.0, -1.0)]
    centres = [present[:, None], np.zeros((len(present), 1)), *signed]
    centres = [np.where(np.isfinite(x), x, 0.0) for x in centres]
    steps = np.concatenate([-NEAR[:0:-1], NEAR])
    at = np.concatenate([np.round(x) + steps for x in centres], axis=1)
    at = at if whole else np.concatenate([at, *centres], axis=1)
    distance = np.abs(at - present[:, None])
    distance[~possible(at, which)] = np.inf
    best = distance.argmin(axis=1)[:, None]
    found = np.take_along_axis(at, best, axis=1)[:, 0]
    nothing = np.isinf(np.take_along_axis(distance, best, axis=1)[:, 0])
    return np.where(nothing, np.nan, found)


def _end(
    possible: Possible, seeds: np.ndarray, which: np.ndarray, sign: float, whole: bool
) -> np.ndarray:
    """Extend a range from its possible values, in growing steps, then bisect."""
    inside, outside = np.zeros(len(seeds)), np.full(len(seeds), np.inf)
    going = np.arange(len(seeds))
    step = 1.0
    while len(going) and step <= FARTHEST:
        ok = possible((seeds[going] + sign * step)[:, None], which[going])[:, 0]
        inside[going[ok]] = step
        outside[going[~ok]] = step
        going = going[ok]
        step *= 2
    bounded = np.flatnonzero(np.isfinite(outside))
    for _ in range(HALVINGS):
        middle = (inside[bounded] + outside[bounded]) / 2
        # Whole numbers first: numbers between counts may be impossible.
        wide = outside[bounded] - inside[bounded] > 1
        middle = np.where(wide | whole, np.floor(middle), middle)
        apart = (middle > inside[bounded]) & (middle < outside[bounded])
        bounded, middle = bounded[apart], middle[apart]
        if not len(bounded):
            break
        ok = possible((seeds[bounded] + sign * middle)[:, None], which[bounded])[:, 0]
        inside[bounded[ok]], outside[bounded[~ok]] = middle[ok], middle[~ok]
    return np.where(np.isinf(outside), sign * np.inf, seeds + sign * inside)
