"""Graphs that are compiled into an operation of ours."""

from collections.abc import Sequence

from pytensor import In
from pytensor.compile.aliasing import add_supervisor_to_fgraph
from pytensor.compile.mode import Mode
from pytensor.graph import FunctionGraph, Variable
from pytensor.graph.fg import FrozenFunctionGraph


def rewritten(
    inputs: Sequence[Variable], outputs: Sequence[Variable], mode: Mode
) -> FrozenFunctionGraph:
    """Optimise a graph for the backend; its inputs stay untouched when it is evaluated."""
    graph = FunctionGraph(list(inputs), list(outputs), clone=True)
    specs = [In(x, borrow=True, mutable=False) for x in graph.inputs]
    add_supervisor_to_fgraph(graph, specs, accept_inplace=True)
    mode.optimizer.rewrite(graph)
    return graph.freeze()


JOINING = ("elemwise_fusion", "fuse_indexed_into_elemwise")
"""Rewrites that join operations."""


def joins_operations(mode: Mode) -> bool:
    """Whether a mode joins operations, so that those in a graph can't be counted."""
    return not {*JOINING} <= {*mode.provided_optimizer.exclude}
