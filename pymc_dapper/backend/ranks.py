"""The choice among candidates of a quantile, as an operation that readers of models recognise."""

from collections.abc import Callable
from typing import Any

from pytensor.compile.builders import OpFromGraph
from pytensor.tensor.variable import TensorVariable


class RankChoice(OpFromGraph):
    """Log-probability that a candidate is chosen, by its number, given counts; -1 for none.

    It wraps the graph that computes it. Most readers replace it by this graph. Its mechanism is
    report noisy max, with Gumbel or exponential noise, of scores -abs((1 - alpha) * below - alpha *
    above). ``mechanism.columns`` are the first column of counts not below each candidate, the first
    above it, and the number of columns.
    """

    mechanism: Any


def rank_choice(
    mechanism: Any, logp: Callable[..., TensorVariable], *inputs: TensorVariable
) -> TensorVariable:
    """Wrap the graph that ``logp(number, counts)`` makes."""
    inner = [x.type() for x in inputs]
    op = RankChoice(inner, [logp(*inner)])
    op.mechanism = mechanism
    return op(*inputs)
