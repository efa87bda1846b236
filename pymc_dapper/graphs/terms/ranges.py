"""Between which values of a sum a term of the log-density is possible.

Where noise is bounded, a released value is possible for few values of a sum, and a chain that
starts elsewhere may never find them. They are found here, by a look at the terms themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc import Model
from pytensor.graph.basic import Constant, Variable
from pytensor.graph.traversal import ancestors

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.terms.of_sums import Terms

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Possible = Callable[[Array, Indices], NDArray[np.bool_]]
"""``possible(at, which)``: where some of the terms are finite, a row of sums for each."""

NEAR = np.concatenate([np.arange(20), 2.0 ** np.arange(5, 21)])
"""How far from what a term depends on its possible values are looked for."""

FAR = 2.0**40
"""Beyond this number, possible values aren't searched for."""

FARTHEST = 2.0**45
"""A range that goes on so far has no end."""

HALVINGS = 60
"""Until double precision tells two ends apart no more, in steps of one."""


@dataclass(frozen=True)
class Range:
    """For each of several terms, the lowest and the highest possible value of its sum."""

    low: Array
    high: Array

    @property
    def known(self) -> NDArray[np.bool_]:
        """Which terms have a possible value that was found."""
        return self.low <= self.high


class PossibleRanges:
    """Finds the ranges of sums in which the terms of a model are possible.

    Terms must each see one sum. ``inputs`` are the variables that their fixed values depend on, and
    ``whole`` says of which terms the sums are whole numbers.
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

    def __call__(self, given: Sequence[np.ndarray], sums: Sequence[Array]) -> list[Range]:
        """Return the range of each sum about the present ones, which are the nearest possible."""
        return [find(given, at) for find, at in zip(self._terms, sums, strict=True)]

    def with_gaps(self, given: Sequence[np.ndarray], sums: Sequence[Array]) -> list[Range]:
        """Return ranges from the lowest possible value to the highest, with gaps between.

        Of ``sums``, only how many there are matters.
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

    def __call__(self, given: Sequence[np.ndarray], present: Array) -> Range:
        fixed = [
            np.asarray(x).astype(dtype).reshape(-1, 1)
            for x, dtype in zip(self._fixed(*given), self._types, strict=True)
        ]
        n = len(present)
        low, high = np.full(n, np.inf), np.full(n, -np.inf)

        def possible(at: Array, which: Indices) -> NDArray[np.bool_]:
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
    """Return the different numbers among constants, by their size."""
    values = [np.asarray(x) for x in constants]
    numbers = [x.astype(float).ravel() for x in values if x.size == 1 and x.dtype.kind in "iuf"]
    found = np.unique(np.abs(np.concatenate([np.zeros(0), *numbers])))
    return found[np.isfinite(found) & (found < FARTHEST)].tolist()


def _nearest(
    possible: Possible, present: Array, which: Indices, seen: Sequence[Array], whole: bool
) -> Array:
    """Look for possible values around what terms depend on; the nearest to the present one."""
    # Of a difference, a term depends on what is subtracted with either sign.
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


def _end(possible: Possible, seeds: Array, which: Indices, sign: float, whole: bool) -> Array:
    """Go on from possible values as long as there are others, in ever larger steps, and back."""
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
        # Whole numbers first: others may be impossible, as between counts.
        wide = outside[bounded] - inside[bounded] > 1
        middle = np.where(wide | whole, np.floor(middle), middle)
        apart = (middle > inside[bounded]) & (middle < outside[bounded])
        bounded, middle = bounded[apart], middle[apart]
        if not len(bounded):
            break
        ok = possible((seeds[bounded] + sign * middle)[:, None], which[bounded])[:, 0]
        inside[bounded[ok]], outside[bounded[~ok]] = middle[ok], middle[~ok]
    return np.where(np.isinf(outside), sign * np.inf, seeds + sign * inside)
