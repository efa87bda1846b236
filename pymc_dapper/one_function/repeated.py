"""Parts of a graph that are alike: rewritten, written and compiled once, and called for each.

Ten columns of a data set with priors of the same form are the same operations ten times, on
different arrays, or on different entries of one. The lengths of axes may differ, as columns have
different numbers of categories: the part's function takes any. Only an axis of length one is
another kind, as it is broadcast.

Parts are found from their last operations: equal operations on equally made arrays, from graph
inputs of the same types. From there they grow upwards, as long as their operations belong to one
part only, and none of their inputs depends on their outputs.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from typing import Any

import numpy as np
from pytensor import In
from pytensor.compile.aliasing import add_supervisor_to_fgraph
from pytensor.graph import Apply, Constant, FunctionGraph, Op, Variable, graph_inputs
from pytensor.graph.fg import AbstractFunctionGraph, FrozenFunctionGraph
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.shape import Reshape
from pytensor.tensor.subtensor import AdvancedSubtensor, Subtensor
from pytensor.tensor.type import DenseTensorType

FUNCTION, CALL, NUMBER = 8.0, 0.5, 0.1
"""Costs for numba of a function, of a call of it, and of an operation that makes no loop of its
own, if others cost 1: one of numbers, or one that takes entries from elsewhere."""
TAKE_ENTRIES = (Reshape, DimShuffle, Subtensor)
IN_SOURCE = 16
"""Integer constants with at most this number of entries distinguish parts: shapes, axes."""


@dataclass(frozen=True, eq=False)
class Call:
    """One of several parts that are alike."""

    graph: FunctionGraph
    """The function that all of them compute."""
    inputs: list[Variable]
    outputs: list[Variable]


class Part(Op):
    """A part of a graph that is alike with others."""

    __props__ = ("graph",)

    def __init__(self, graph: FrozenFunctionGraph):
        self.graph = graph

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the part to other inputs."""
        return Apply(self, [*inputs], [x.type() for x in self.graph.outputs])

    def perform(self, node: Apply, inputs: list[Any], output_storage: list[Any]) -> None:
        """Refuse: parts are written out."""
        raise NotImplementedError

    def do_constant_folding(self, *_: Any) -> bool:
        """Nothing is to be evaluated before."""
        return False


class CallParts(GraphRewriter):
    """Rewrites one of several equal parts of a graph, and replaces each of them by a call."""

    def __init__(self, rewrite: Callable[[FunctionGraph], Any]):
        self._rewrite = rewrite

    def apply(self, fgraph: FunctionGraph) -> None:
        """Put calls in the place of parts."""
        part_of, new = cache(self._part), dict[Variable, Variable]()
        for step in steps_of(fgraph):
            if isinstance(step, Call):
                inputs = [new.get(x, x) for x in step.inputs]
                call = Apply(part_of(step.graph), inputs, [x.type() for x in step.outputs])
                pairs = list(zip(step.outputs, call.outputs, strict=True))
                new |= pairs
                fgraph.replace_all(pairs, reason="call_parts")

    def _part(self, graph: FunctionGraph) -> Part:
        specs = [In(x, borrow=True, mutable=False) for x in graph.inputs]
        add_supervisor_to_fgraph(graph, specs, accept_inplace=True)
        self._rewrite(graph)
        return Part(graph.freeze())


type Step = Apply | Call
type Alike = tuple[Any, ...]
"""Operations or variables that correspond, one of each part."""


def steps_of(graph: AbstractFunctionGraph) -> Sequence[Step]:
    """List the operations of a graph in order, with calls of repeated parts.

    If an operation overwrites its inputs, the order isn't changed. Operations on numbers only stay
    in an inner loop, where calls would be slow.
    """
    nodes = graph.toposort()
    of_numbers = all(isinstance(x.type, ScalarType) for node in nodes for x in node.outputs)
    if of_numbers or len(nodes) <= FUNCTION or any(node.op.destroy_map for node in nodes):
        return nodes
    groups = list(_same_operations(nodes))
    order = _Order(graph, nodes, groups)
    for alike in groups:
        members = tuple(x for x in alike if order.steps[x] is x)
        if len(members) > 1:
            found = _grown(members, order)
            spared = (len(members) - 1) * sum(_cost(node) for node, *_ in found)
            if spared > FUNCTION + CALL * len(members):
                order.call(found)
    return order.sorted()


def _cost(node: Apply) -> float:
    loops = any(x.type.ndim for x in node.outputs) and not isinstance(node.op, TAKE_ENTRIES)
    return 1.0 if loops else NUMBER


def _same_operations(nodes: Sequence[Apply]) -> Iterator[list[Apply]]:
    """Group equal operations on equally made arrays; the last come first."""
    kinds: dict[Any, int] = {}
    of: dict[Variable, int] = {}
    groups: dict[int, list[Apply]] = defaultdict(list)

    def kind(x: Variable) -> int:
        if x not in of:
            of[x] = kinds.setdefault(_kind_of_input(x), len(kinds))
        return of[x]

    for node in nodes:
        depends_on_model = hasattr(node.op, "can_be_replaced_by_ninf")  # a check of parameters
        if depends_on_model or not all(_is_number(x) for x in (*node.inputs, *node.outputs)):
            continue  # what it makes counts as the graph's inputs do: draws are alike, in any order
        takes = [kind(x) for x in node.inputs]
        if isinstance(node.op, Subtensor | AdvancedSubtensor):
            takes[1:] = [_any_number(x) or kind(x) for x in node.inputs[1:]]
        own = kinds.setdefault((node.op, *takes), len(kinds))
        for k, x in enumerate(node.outputs):
            of[x] = kinds.setdefault((own, k, _of_any_length(x)), len(kinds))
        groups[own].append(node)
    place = {node: k for k, node in enumerate(nodes)}
    return iter(sorted(groups.values(), key=lambda group: -place[group[-1]]))


def _any_number(x: Variable) -> Any:
    """Return the type of a number that is known, whatever it is."""
    known = all(isinstance(y, Constant) for y in graph_inputs([x]))
    return x.type if known and not getattr(x.type, "ndim", 0) else None


def _kind_of_input(x: Variable) -> Any:
    if not isinstance(x, Constant):
        return _of_any_length(x)
    data = np.asarray(x.data)
    if data.ndim and (data.dtype.kind == "f" or data.size > IN_SOURCE):
        return "constant", _of_any_length(x)
    return "constant", x.type, data.tobytes()


def _of_any_length(x: Variable) -> Any:
    """Return a variable's type without the lengths of its axes, but for those of length one."""
    if not isinstance(x.type, DenseTensorType):
        return x.type
    return x.type.clone(shape=[1 if n == 1 else None for n in x.type.shape])


def _common_type(x: Alike) -> Any:
    """Return the type of variables that correspond: with the lengths that all of them have."""
    first = x[0].type
    if not isinstance(first, DenseTensorType):
        return first
    lengths = zip(*(each.type.shape for each in x), strict=True)
    return first.clone(shape=[n[0] if len(set(n)) == 1 else None for n in lengths])


def _is_number(x: Variable) -> bool:
    known = isinstance(x.type, DenseTensorType | ScalarType)
    return known and np.dtype(x.type.dtype).kind in "biuf"


class _Order:
    """The steps of a graph, and which come before which."""

    def __init__(
        self, graph: AbstractFunctionGraph, nodes: Sequence[Apply], groups: Sequence[list[Apply]]
    ):
        self.same = {node: group for group in groups for node in group}
        """All operations that an operation is the same as."""
        self.steps: dict[Apply, Step] = {node: node for node in nodes}
        """The step that each operation is done in."""
        self.bit = {node: 1 << k for k, node in enumerate(nodes)}
        self.uses: dict[Variable, list[Apply | None]] = defaultdict(list)
        """Which operations take a variable; None for the graph's result."""
        for node in nodes:
            for x in node.inputs:
                self.uses[x].append(node)
        for x in graph.outputs:
            self.uses[x].append(None)
        self._find_above()

    def step(self, x: Variable) -> Step | None:
        """Return the step that a variable is made in."""
        return None if x.owner is None else self.steps[x.owner]

    def sorted(self) -> list[Step]:
        """Return the steps, each after those that it depends on."""
        before = {step: [self.step(x) for x in step.inputs] for step in self.steps.values()}
        return [step for step in TopologicalSorter(before).static_order() if step is not None]

    def _find_above(self) -> None:
        own: dict[Step, int] = defaultdict(int)
        for node, step in self.steps.items():
            own[step] |= self.bit[node]
        self.above: dict[Step, int] = {}
        """The operations that a step depends on, and its own, as bits."""
        for step in self.sorted():
            bits = own[step]
            for x in step.inputs:
                if (before := self.step(x)) is not None:
                    bits |= self.above[before]
            self.above[step] = bits

    def call(self, parts: dict[Alike, None]) -> None:
        """Do parts of the graph, given as operations that correspond, as calls of one function."""
        new: dict[Alike, Variable] = {}
        taken: list[Alike] = []
        for alike in sorted(parts, key=lambda nodes: self.bit[nodes[0]]):
            inputs = []
            for x in _inputs(alike):
                if x not in new and _same_known(x):
                    new[x] = x[0]
                elif x not in new:
                    new[x] = _common_type(x)()
                    taken.append(x)
                inputs.append(new[x])
            node = Apply(alike[0].op, inputs, [_common_type(x)() for x in _outputs(alike)])
            new |= zip(_outputs(alike), node.outputs, strict=True)
        part = {node: k for alike in parts for k, node in enumerate(alike)}
        given = [x for alike in parts for x in _outputs(alike) if self._is_used_outside(x, part)]
        graph = FunctionGraph([new[x] for x in taken], [new[x] for x in given], clone=True)
        [first, *_] = parts
        for k in range(len(first)):
            call = Call(graph, [x[k] for x in taken], [x[k] for x in given])
            self.steps |= {alike[k]: call for alike in parts}
        self._find_above()

    def _is_used_outside(self, x: Alike, part: dict[Apply | None, int]) -> bool:
        return any(part.get(user) != k for k, each in enumerate(x) for user in self.uses[each])


def _inputs(alike: Alike) -> Iterator[Alike]:
    return zip(*(node.inputs for node in alike), strict=True)


def _outputs(alike: Alike) -> Iterator[Alike]:
    return zip(*(node.outputs for node in alike), strict=True)


def _grown(last: Alike, order: _Order) -> dict[Alike, None]:
    """Find the contents of the parts that end in these operations."""
    outside = 0
    while True:
        found: dict[Alike, None] = {last: None}
        part = {node: k for k, node in enumerate(last)}
        left, before = [last], outside
        while left:
            for x in _inputs(left.pop()):
                owners = tuple(each.owner for each in x)
                if owners in found:
                    continue
                if _may_hold(x, owners, part, outside, order):
                    found[owners] = None
                    part |= {node: k for k, node in enumerate(owners)}
                    left.append(owners)
                    continue
                for each in x:
                    step = order.step(each)
                    outside |= 0 if step is None else order.above[step]
        if outside == before or not any(order.bit[node] & outside for node in part):
            return found


def _may_hold(x: Alike, owners: Alike, part: dict[Apply, int], outside: int, order: _Order) -> bool:
    if None in owners or len(set(owners)) < len(owners) or len({y.index for y in x}) > 1:
        return False
    return all(
        node not in part and order.steps[node] is node and not order.bit[node] & outside
        for node in owners
    ) and len(owners) == sum(order.steps[node] is node for node in order.same.get(owners[0], ()))


def _same_known(x: Alike) -> bool:
    """Whether variables that correspond are computed alike from constants alone."""
    first, known = x[0], all(isinstance(y, Constant) for y in graph_inputs([x[0]]))
    return known and all(y is first or (isinstance(first, Constant) and first.equals(y)) for y in x)
