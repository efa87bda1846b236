"""A model of the same form with few records, small enough to be evaluated."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from pytensor.compile.builders import OpFromGraph
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Apply, Constant, Variable, ancestors
from pytensor.tensor.basic import Alloc, MakeVector
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.rebuild import rebuild, with_inputs
from pymc_dapper.graphs.view import view_of
from pymc_dapper.tabulation.rows import DistinctRows

ROWS = 16
"""Most distinct rows from which records are taken."""
OF_EACH = 3
"""Records of each row; a single row has as many as all rows together."""


def few_records(rows: DistinctRows) -> np.ndarray:
    """Choose records, some more than once, so that several have the same row."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, ROWS).round().astype(int))
    return np.repeat(rows.first[chosen], OF_EACH if len(chosen) > 1 else OF_EACH * ROWS)


class _Shorter(NamedTuple):
    """Rewrites graphs of n records for some of them."""

    n: int
    chosen: np.ndarray

    def values(self, values: np.ndarray) -> np.ndarray:
        """Cut axes of length n to the chosen records."""
        for axis in (k for k, length in enumerate(values.shape) if length == self.n):
            values = values.take(self.chosen, axis=axis)
        return values

    def length(self, x: Variable) -> Variable:
        """Replace n by the number of chosen records in a constant length."""
        if not isinstance(x, Constant) or not np.any(np.equal(x.data, self.n)):
            return x
        data = np.where(np.equal(x.data, self.n), len(self.chosen), x.data)
        return pt.constant(data.astype(x.dtype))

    def node(self, node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        """Apply an operation to inputs of the new length."""
        lengths: range | tuple[int, ...] = ()
        match node.op:
            case OpFromGraph() if not isinstance(node.op, pm.SymbolicRandomVariable):
                # Operations that wrap a graph are for arrays of the old length.
                inner = node.op.fgraph
                outputs = inner.bind(dict(zip(inner.inputs, node.inputs, strict=True)))
                at = dict(zip(node.inputs, inputs, strict=True))
                return rebuild(outputs, at, self.node)
            case RandomVariable() | Reshape():
                lengths = (1,)
            case Alloc() | SpecifyShape():
                lengths = range(1, len(inputs))
            case MakeVector():
                lengths = range(len(inputs))
        inputs = [self.length(x) if k in lengths else x for k, x in enumerate(inputs)]
        return with_inputs(node, inputs)


def register_again(
    rv: TensorVariable,
    old: pm.Model,
    written: Callable[[Variable], Variable],
    apply: Callable[[Apply, list[Variable]], Sequence[Variable]] = with_inputs,
    **options: Any,
) -> TensorVariable:
    """Add a random variable of another model to the model in context.

    ``written`` writes variables of the old model in terms of the new one; ``options`` are those of
    ``Model.register_rv``.
    """
    inputs = [
        pytensor.shared(np.random.default_rng()) if isinstance(x.type, RandomType) else written(x)
        for x in rv.owner.inputs
    ]
    made = apply(rv.owner, inputs)[rv.owner.outputs.index(rv)]
    if rv in old.observed_RVs:
        observed = written(old.rvs_to_values[rv])
        options["observed"] = observed.data if isinstance(observed, Constant) else observed
    else:
        options |= {"transform": old.rvs_to_transforms[rv], "default_transform": None}
    return pm.modelcontext(None).register_rv(made, rv.name, **options)


def with_few_records(model: pm.Model, n: int, chosen: np.ndarray) -> pm.Model:
    """Write the model again with some of its n records.

    Axes of length n are cut to the chosen records, and shapes are changed accordingly. Other
    numbers stay, such as the divisor of a total. An observed variable whose distribution is a graph
    becomes a Potential.
    """
    shorter = _Shorter(n, chosen)
    values = [model.rvs_to_values[rv] for rv in model.observed_RVs]
    densities = {
        rv: pm.logp(rv, value)
        for rv, value in zip(model.observed_RVs, values, strict=True)
        if isinstance(rv.owner.op, pm.SymbolicRandomVariable)
    }
    variables = [*model.basic_RVs, *model.potentials, *model.deterministics, *values]
    variables += densities.values()
    dims = view_of(model).dims.items()
    new: dict[Variable, Variable] = {old: shorter.length(length) for old, length in dims}
    few = pm.Model(model=None, check_bounds=model.check_bounds)

    def written(x: Variable) -> Variable:
        return rebuild([x], new, shorter.node)[0]

    def untold(x: Variable) -> Variable:
        """Remove what mechanisms store with a release: it refers to all records."""
        for name in ("mechanism", "released", "statistic", "check_data"):
            x.tag.__dict__.pop(name, None)
        return x

    with few:
        for x in ancestors(variables):
            if isinstance(x, Constant) and n in getattr(x.type, "shape", ()):
                new[x] = pt.constant(shorter.values(x.data), dtype=x.dtype)
        for data in model.data_vars:
            if isinstance(data, SharedVariable):
                new[data] = pm.Data(data.name, shorter.values(data.get_value(borrow=True)))
        for rv in model.basic_RVs:
            if rv in densities:
                pm.Potential(rv.name, untold(written(densities[rv])))
                continue
            new[rv] = untold(register_again(rv, model, written, shorter.node))
        for x in model.deterministics:
            pm.Deterministic(x.name, written(x))
        for x in model.potentials:
            pm.Potential(x.name, untold(written(x)))
    return few
