"""The cost of evaluating a graph, by counting entries, without timing.

Choices that depend on costs are then the same on all machines, so a seed gives the same draws. The
unit is a nanosecond of the machine on which `benchmarks/move_costs.py` ran last.
"""

from math import prod

from pytensor.graph import FunctionGraph, Variable
from pytensor.scalar import math as special

ENTRY = 0.3
"""Cost of an entry of an operation's output. It lies between that of a sum, of which several are
computed at a time, and that of a logarithm. Most moves have few logarithms, and ten times as many
sums."""
ITERATED = 500.0
"""Cost of an incomplete gamma or beta function, or its inverse: by a series or a search."""

SERIES = (
    *(special.GammaInc, special.GammaIncC, special.GammaIncInv, special.GammaIncCInv),
    *(special.BetaInc, special.BetaIncInv),
)


def nanoseconds(graph: FunctionGraph, largest: float | None) -> float:
    """Estimate the cost of a graph, without the overhead of a call.

    An axis of unknown length is taken to be as long as the input's. ``largest`` is the largest
    count: an operation whose cost depends on it says so. If it is None, cumulative probabilities
    and quantiles cost no more than other entries.
    """
    sizes: dict[Variable, int] = {}
    total = 0.0
    for node in graph.toposort():
        entering = max((sizes.get(x) or _size(x) for x in node.inputs), default=1)
        scalar_op = getattr(node.op, "scalar_op", None)
        of_counts, each = getattr(scalar_op, "nanoseconds", None), ENTRY
        if largest is not None and of_counts is not None:
            each = of_counts(largest)
        elif largest is not None and isinstance(scalar_op, SERIES):
            each = ITERATED
        for x in node.outputs:
            sizes[x] = entering if None in getattr(x.type, "shape", ()) else _size(x)
            total += each * sizes[x]
    return total


def _size(x: Variable) -> int:
    return prod(n or 1 for n in getattr(x.type, "shape", ()))
