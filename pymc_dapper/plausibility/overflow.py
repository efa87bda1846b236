"""Whole numbers that their type can't hold: NumPy and compiled code wrap them around silently."""

from collections.abc import Sequence

import numpy as np
import pytensor.scalar as ps
from pymc import Model
from pytensor.graph import Apply, Variable, ancestors
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import AdvancedIncSubtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.bounds import Bounds, bounds_in
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.support import bounds_by_support

BEYOND_START = 10.0
"""Records without a largest value are taken to reach this many times their largest start."""


def check_overflow(model: Model, values: Sequence[TensorVariable]) -> None:
    """Refuse products and counts of whole numbers that leave the range of their type.

    ``values`` are the value variables of the latent variables.

    Raises
    ------
    ReadingError
        If whole numbers of a Potential, or of an observed variable's parameters, can be too large.
    """
    graphs: dict[str, list[Variable]] = {x.name: [x] for x in model.potentials}
    graphs |= {rv.name: rv.owner.inputs for rv in model.observed_RVs}
    nodes = io_toposort([], [x for each in graphs.values() for x in each])
    if not any(_grows(node) and _is_whole(node.outputs[0]) for node in nodes):
        return
    point, known = initial_point(model), {}
    for value in values:
        rv = model.values_to_rvs[value]
        low, high, _ = bounds_by_support(rv)
        end = BEYOND_START * max(1.0, float(np.max(np.abs(point[value.name]), initial=0.0)))
        known[rv] = Bounds(max(low, -end), high if high < np.inf else end)
    for name, each in graphs.items():
        for x, bounds in bounds_in(each, known).items():
            if bounds is None or not _is_whole(x) or not np.isfinite([*bounds[:2]]).all():
                continue
            largest, limit = max(-bounds.low, bounds.high), float(np.iinfo(x.type.dtype).max)
            if largest > limit:
                above = set(ancestors([x]))
                wider = "int64" if largest <= np.iinfo(np.int64).max else "float64"
                of = [f"{rv.name}.astype('{wider}')" for rv in known if rv in above]
                raise ReadingError(
                    f"'{name}' computes whole numbers of up to {largest:.2g} in "
                    f"{x.type.dtype}, which holds {limit:.2g} at most: larger ones become other "
                    f"numbers without an error. Compute it from {' and '.join(of) or 'floats'}"
                )


def _grows(node: Apply) -> bool:
    """Whether an operation multiplies, or counts in a small type, as ``pt.bincount`` may."""
    if isinstance(node.op, AdvancedIncSubtensor):
        return np.dtype(node.outputs[0].type.dtype).itemsize < 8
    return isinstance(node.op, Elemwise) and isinstance(node.op.scalar_op, ps.Mul | ps.Sqr | ps.Pow)


def _is_whole(x: Variable) -> bool:
    return np.dtype(getattr(x.type, "dtype", None) or "float64").kind in "iu"
