"""The cost of evaluating a graph, by counting operations, without timing.

Choices that depend on costs are then the same on all machines, so a seed gives the same draws. The
unit is a nanosecond of the machine on which `benchmarks/move_costs.py` ran last.
"""

from math import prod, sqrt

import pytensor.scalar as ps
from pytensor.graph import FunctionGraph
from pytensor.graph.basic import Apply, Constant, Variable
from pytensor.scalar import math as special
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.linalg.solvers.triangular import SolveTriangular
from pytensor.tensor.subtensor import Subtensor

from pymc_dapper.graphs import ops

ARITHMETIC = 0.03
"""A sum, product, comparison or choice; several entries are processed at a time."""
ELEMENTARY = 6.0
"""An exponential, a logarithm, a power."""
SPECIAL = 12.0
"""An error function, its inverse, a log-gamma function."""
ITERATED = 500.0
"""An incomplete gamma or beta function, or its inverse: computed by a series or a search."""
OF_OURS = 15.0
"""A scalar operation that isn't PyTensor's, such as a quantile of counts."""
MOVED = 0.5
"""An entry that is looked up or moved."""
OTHER = 20.0
"""An entry in any other operation, such as sorting or solving."""

TRANSCENDENTAL = (
    *(ps.Exp, ps.Exp2, ps.Expm1, ps.Log, ps.Log10, ps.Log1p, ps.Log2, ps.Pow),
    *(ps.Sin, ps.Cos, ps.Tan, ps.ArcSin, ps.ArcCos, ps.ArcTan, ps.ArcTan2),
    *(ps.Sinh, ps.Cosh, ps.Tanh, ps.ArcSinh, ps.ArcCosh, ps.ArcTanh),
)
SERIES = (
    *(special.GammaInc, special.GammaIncC, special.GammaIncInv, special.GammaIncCInv),
    *(special.BetaInc, special.BetaIncInv),
)


def nanoseconds(graph: FunctionGraph) -> float:
    """Estimate the cost of a graph, without the overhead of a call.

    An axis of unknown length is taken to be as long as the input's.
    """
    sizes: dict[Variable, float] = {}
    total = 0.0
    for node in graph.toposort():
        entering = max((_size(x, sizes) for x in node.inputs), default=1.0)
        for x in node.outputs:
            known = getattr(x.type, "shape", ())
            sizes[x] = entering if None in known else float(prod(known))
        total += _of_node(node, sizes, entering)
    return total


def _size(x: Variable, sizes: dict[Variable, float]) -> float:
    if isinstance(x, Constant):
        return float(getattr(x.data, "size", 1))
    if x not in sizes:
        sizes[x] = float(prod(n or 1 for n in getattr(x.type, "shape", ())))
    return sizes[x]


def _of_node(node: Apply, sizes: dict[Variable, float], entering: float) -> float:
    made = sizes[node.outputs[0]]
    if isinstance(node.op, Elemwise):
        return made * _of_scalar(node.op.scalar_op)
    match ops.action_of(node.op, node):
        case ops.Keeps() | ops.Measures():
            return 0.0
        case ops.Moves(all=True):
            return 0.0
        case ops.Moves():
            return 0.0 if isinstance(node.op, Subtensor) else made * MOVED
        case ops.Multiplies():
            # For n by k times k by m: the product of the three sizes is the square of n k m.
            return 2 * ARITHMETIC * sqrt(made * prod(_size(x, sizes) for x in node.inputs))
        case ops.Reduces(by=by):
            return entering * _of_scalar(by)
    core = node.op.core_op if isinstance(node.op, Blockwise) else node.op
    if isinstance(core, SolveTriangular):  # costs half a matrix product
        rows = node.inputs[0].type.shape[-1] or 1
        return made * rows * ARITHMETIC
    return entering * OTHER


def _of_scalar(op: ps.ScalarOp) -> float:
    if isinstance(op, ps.Composite):
        return sum(_of_scalar(node.op) for node in op.fgraph.apply_nodes)
    if isinstance(op, TRANSCENDENTAL):
        return ELEMENTARY
    if isinstance(op, SERIES):
        return ITERATED
    known = {ps.basic.__name__: ARITHMETIC, special.__name__: SPECIAL}
    return known.get(type(op).__module__, OF_OURS)
