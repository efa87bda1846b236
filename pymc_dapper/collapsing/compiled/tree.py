"""From a model with counts on a tree to the log-density without them, and its gradient."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pymc import NUTS
from pytensor.compile.sharedvalue import SharedVariable

from pymc_dapper.backend.internals import PointType, ValueGradFunction
from pymc_dapper.collapsing.reading.tree import CollapsedTree
from pymc_dapper.counts.compiled.sweep import context_of
from pymc_dapper.counts.reading.known_totals import KnownTotals
from pymc_dapper.counts.reading.start import PossibleStart, find_start
from pymc_dapper.counts.trees.model import ModelTree, NoTreeError, compile_tree
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.steps.base import arrays_of
from pymc_dapper.steps.lean_nuts import nuts_on


class WithCountsSummedOut:
    """A log-density at possible counts with its gradient, made into that without the counts.

    PyMC's NUTS calls it instead.

    Parameters
    ----------
    sums : TreeSums
        Sums the counts out.
    inner : callable
        Returns the log-density at the anchors, with its gradient and the gradient of the terms'
        inputs times ``sums.slopes``.
    shapes : dict of str to tuple
        Shapes of the parameters that it is a function of, in their order.
    others : dict of str to SharedVariable
        All other parameters.
    """

    def __init__(
        self,
        sums: "TreeSums",
        inner: Any,
        shapes: Mapping[str, tuple[int, ...]],
        others: Mapping[str, SharedVariable],
    ):
        self._sums, self._inner = sums, inner
        self._shapes, self._others = dict(shapes), others

    def __call__(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the log-density and its gradient; -inf if the sum can't be bounded."""
        point: PointType = {x: shared.get_value() for x, shared in self._others.items()}
        parts = split(np.ascontiguousarray(values), self._shapes.values())
        point |= zip(self._shapes, parts, strict=True)
        try:
            log_sum = self._sums.expand(point)
        except NoTreeError:  # NUTS counts it as a divergence
            return np.asarray(-np.inf), np.zeros(values.size)
        at_anchors, gradient = self._inner(values)
        return at_anchors + log_sum, gradient

    def __getattr__(self, name: str) -> Any:
        """Answer as the function itself does otherwise."""
        if name.startswith("__") or "_inner" not in self.__dict__:
            raise AttributeError(name)
        return getattr(self._inner, name)


@dataclass
class TreeSums:
    """Sums over counts on a tree, which replace the counts.

    Attributes
    ----------
    reading : CollapsedTree
        The reading of parameters and counts.
    tree : ModelTree
        Sums and draws the counts.
    anchors, slopes, present : SharedVariable
        Possible counts; derivatives with respect to the terms' other inputs; and these inputs.
    data : sequence of ndarray
        Values of the shared data.
    """

    reading: CollapsedTree
    tree: ModelTree
    anchors: SharedVariable
    slopes: SharedVariable
    present: SharedVariable
    _known: KnownTotals
    data: Sequence[np.ndarray] = ()

    def tabulate(self, counts: np.ndarray, given: Sequence[np.ndarray]) -> np.ndarray:
        """Continue from nearby counts that have the known totals and make the release possible.

        Parameters
        ----------
        counts : ndarray of int64, shape (number of cells,)
            Counts.
        given : sequence of ndarray
            Parameters, and the values of the shared data.

        Raises
        ------
        ReadingError
            If no table has the known totals.
        """
        noise = self.reading.noise
        known = self._known.known(given)
        found = find_start(self._known.matrix, known, self._known.names, counts)
        possible = PossibleStart(noise, self._known.matrix)(found, known, given)
        anchors = noise.totals.completed(found if possible is None else possible)
        self.anchors.set_value(anchors)
        self.data = list(given[len(noise.parameters) :])
        return anchors

    def expand(self, point: PointType) -> float:
        """Return the log-sum at some parameters, and keep its derivatives by the terms' inputs."""
        names = [x.name for x in self.reading.noise.parameters]
        given = arrays_of(point, names) + list(self.data)
        solved = self.tree.solve(self.anchors.get_value(borrow=True), given)
        for shared, values in zip(
            (self.slopes, self.present), self.tree.derivatives(solved, given), strict=True
        ):
            shared.set_value(values, borrow=True)
        return solved.log_sum

    def draw(
        self, rng: np.random.Generator, given: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, float]:
        """Draw all counts given parameters; return the log-probability of the draw, too."""
        solved = self.tree.solve(self.anchors.get_value(borrow=True), given)
        counts = self.tree.draw(rng, solved)
        self.anchors.set_value(counts)  # windows are found from there
        return counts, self.tree.log_weight(solved, counts) - solved.log_sum

    def nuts(self, point: PointType, compile_kwargs: dict[str, Any], **options: Any) -> NUTS:
        """Build PyMC's NUTS for the parameters."""
        reading, noise = self.reading, self.reading.noise
        model = reading.model
        # Nothing but a gradient.
        change = self.slopes * (context_of(noise) - self.present)
        cost = pt.switch(pt.eq(self.slopes, 0), 0.0, change).sum()
        [at_anchors] = rebuild([reading.log_density], {reading.anchors: self.anchors})
        [log_density] = noise.view.in_model([at_anchors + cost])
        shapes = {x.name: np.shape(point[x.name]) for x in reading.moved}

        def around(function: ValueGradFunction) -> WithCountsSummedOut:
            inner, others = function._pytensor_function, function._extra_vars_shared
            return WithCountsSummedOut(self, inner, shapes, others)

        return nuts_on(
            log_density,
            reading.moved,
            model.value_vars,
            model,
            point,
            around=around,
            compile_kwargs=compile_kwargs,
            **options,
        )


def compile_tree_sums(
    reading: CollapsedTree, *, compile_kwargs: dict[str, Any] | None = None
) -> TreeSums:
    """Compile the sums over a model's counts on a tree.

    Parameters
    ----------
    reading : CollapsedTree
        The reading of the model.
    compile_kwargs : dict, optional
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    """
    names = {x.name for x in reading.moved}
    moved = [x for x in reading.noise.parameters if x.name in names]
    tree = compile_tree(reading.noise, reading.tree, moved=moved, compile_kwargs=compile_kwargs)
    length = sum(terms.size * len(terms.fixed) for terms in reading.noise.terms)
    anchors = pytensor.shared(np.zeros(reading.noise.n_cells, dtype=np.int64), "anchors")
    slopes, present = (pytensor.shared(np.zeros(length), name) for name in ("slopes", "present"))
    known = KnownTotals(reading.noise)
    return TreeSums(reading, tree, anchors, slopes, present, known)
