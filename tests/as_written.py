"""PyTensor's own way to evaluate a graph in Python, as it is written."""

from pytensor.compile.mode import OPT_MINIMUM, Mode
from pytensor.graph import node_rewriter
from pytensor.graph.rewriting.basic import WalkingGraphRewriter
from pytensor.link.vm import VMLinker
from pytensor.tensor.basic import cast
from pytensor.tensor.elemwise import Elemwise

from pymc_dapper.backend.evaluated import IN_TURN, NUMPY_OPERANDS


@node_rewriter([Elemwise])
def in_two(_, node):
    """Split a sum or product of many arrays into two halves: PyTensor's Python takes few."""
    if node.nin < NUMPY_OPERANDS or type(node.op.scalar_op) not in IN_TURN:
        return None
    operands, half = [cast(x, node.outputs[0].type.dtype) for x in node.inputs], node.nin // 2
    return [node.op(node.op(*operands[:half]), node.op(*operands[half:]))]


# The other rewrite that runs handles invalid parameters.
AS_WRITTEN = Mode(
    VMLinker(use_cloop=False, c_thunks=False), OPT_MINIMUM.including("canonicalize_db")
).register((WalkingGraphRewriter(in_two), 0.0))
"""Operations are evaluated one after the other, without rewriting.

Rewriting takes longer than a few evaluations, and may change the values: ``x / x`` becomes 1.
"""
