"""Loops over the records (``scan``), rewritten as operations on whole arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable, ancestors, vectorize_graph
from pytensor.scalar.basic import Add
from pytensor.scan.op import Scan
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.subtensor import Subtensor, indices_from_subtensor
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import rebuild, with_inputs


def without_loops[V: Variable](graphs: Sequence[V]) -> list[V]:
    """Write stateless loops, and the final value of summing loops, as array operations.

    Other loops stay unchanged.
    """

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        new: Sequence[Variable] | None = None
        if isinstance(node.op, Scan):
            new = _mapped(node.op, inputs)
        elif isinstance(node.op, Subtensor):
            new = _last_of_sums(node, inputs)
        return with_inputs(node, inputs) if new is None else new

    return rebuild(graphs, replace_node=replace_node)


class _Step(NamedTuple):
    """One step of a loop."""

    sequences: dict[Variable, Variable]
    """Each sequence, by the variable for its entry."""
    states: list[Variable]
    """Variables for results of earlier steps."""
    results: list[Variable]
    """The results of the step."""

    def for_all(self, graphs: Sequence[Variable]) -> list[Variable] | None:
        """Evaluate graphs for all steps at once; None if one is the same in each step."""
        if any(set(self.sequences).isdisjoint(ancestors([x])) for x in graphs):
            return None
        return list(vectorize_graph(graphs, replace=self.sequences))


def _step(op: Scan, inputs: Sequence[Variable]) -> _Step | None:
    """Extract the step of a loop that runs through whole sequences."""
    sequences = [_whole(x) for x in op.outer_seqs(inputs)]
    n_steps = known_value(inputs[0])
    lengths = {x.type.shape[0] for x in sequences}
    if op.info.as_while or n_steps is None or lengths != {int(n_steps)}:
        return None
    inner = op.fgraph
    stand_ins = {x: x.type() for x in inner.inputs}
    fixed = dict(zip(op.inner_non_seqs(inner.inputs), op.outer_non_seqs(inputs), strict=True))
    results = inner.bind({**stand_ins, **fixed})
    entries = [stand_ins[x] for x in op.inner_seqs(inner.inputs)]
    states = [x for x in stand_ins.values() if x not in entries]
    return _Step(dict(zip(entries, sequences, strict=True)), states, results)


def _mapped(op: Scan, inputs: list[Variable]) -> list[Variable] | None:
    """Return the outputs of a loop with independent steps; None for other loops."""
    if op.info.n_nit_sot != len(op.inner_outputs):
        return None
    step = _step(op, inputs)
    return None if step is None else step.for_all(step.results)


def _last_of_sums(node: Apply, inputs: list[Variable]) -> list[Variable] | None:
    """Return the last value of a loop that adds a term in each step; None for other nodes."""
    scan = _looked_at_from_the_end(node, inputs)
    if scan is None or scan.op.info.n_sit_sot != 1 or len(scan.op.inner_outputs) != 1:
        return None
    step = _step(scan.op, scan.inputs)
    if step is None:
        return None
    match step.results[0].owner:
        case Apply(op=Elemwise(scalar_op=Add()), inputs=added):
            terms = [x for x in added if x not in step.states]
        case _:
            return None
    if len(terms) != len(added) - 1 or not set(step.states).isdisjoint(ancestors(terms)):
        return None
    found = step.for_all(terms)
    if found is None:
        return None
    [buffer] = scan.op.outer_sitsot(scan.inputs)
    total = pt.add(buffer[0], *(each.sum(axis=0) for each in found))
    return [total.astype(node.outputs[0].dtype)]


def _looked_at_from_the_end(node: Apply, inputs: list[Variable]) -> Apply | None:
    """Return the loop whose last value an operation selects."""
    indices = indices_from_subtensor(inputs[1:], node.op.idx_list)
    if len(indices) != 1 or isinstance(indices[0], slice):
        return None
    if known_value(pt.as_tensor(indices[0])) != -1:
        return None
    trace = inputs[0]
    if trace.owner is not None and isinstance(trace.owner.op, Subtensor):
        # The trace begins with the start, which is sliced off.
        [first, *others] = indices_from_subtensor(trace.owner.inputs[1:], trace.owner.op.idx_list)
        if others or not isinstance(first, slice) or first.stop is not None:
            return None
        trace = trace.owner.inputs[0]
    return trace.owner if trace.owner is not None and isinstance(trace.owner.op, Scan) else None


def _whole(sequence: TensorVariable) -> TensorVariable:
    """Remove slices that keep everything."""
    node = sequence.owner
    while node is not None and isinstance(node.op, Subtensor):
        x = node.inputs[0]
        indices = indices_from_subtensor(node.inputs[1:], node.op.idx_list)
        length = x.type.shape[0]
        if length is None or len(indices) != 1 or not isinstance(indices[0], slice):
            break
        kept = known_value(pt.arange(length)[indices[0]])
        if kept is None or not np.array_equal(kept, np.arange(length)):
            break
        sequence, node = x, x.owner
    return sequence
