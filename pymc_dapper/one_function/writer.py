"""A whole graph as the source of one function."""

from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from pytensor import config
from pytensor.compile.builders import OpFromGraph
from pytensor.graph import Apply, Constant, Variable
from pytensor.graph.fg import AbstractFunctionGraph
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import (
    cache_key_for_constant,
    numba_funcify_and_cache_key,
    numba_funcify_ensure_cache,
    numba_njit,
    numba_typify,
)
from pytensor.link.numba.dispatch.compile_ops import numba_funcify_OpFromGraph
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import DenseTensorType

from pymc_dapper.one_function import matrices, reductions  # noqa: F401 (they register operations)
from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.fusion import fused
from pymc_dapper.one_function.indexing import NotWrittenError
from pymc_dapper.one_function.operations import written
from pymc_dapper.one_function.repeated import Part
from pymc_dapper.one_function.values import Value, constant, in_memory, read, single

MOST_WEIGHT = 100
"""An array whose entries cost more is stored, however often they are used."""


class Other:
    """Values that aren't arrays or numbers: a generator, a slice, nothing."""

    def __init__(self, name: str):
        self.name = name


class Written(NamedTuple):
    """A function as source."""

    source: str
    """Its definition."""
    names: dict[str, Any]
    """Objects to which the source refers."""
    key: str | None
    """Identifies the machine code; None if it can't be cached."""


def write(graph: AbstractFunctionGraph, name: str, *, squeeze: bool = False) -> Written:
    """Write a graph as one function of its inputs.

    Parameters
    ----------
    graph : AbstractFunctionGraph
        Already rewritten for the backend. No input is overwritten, except generators.
    name : str
        Of the function.
    squeeze : bool, optional
        Whether to return a single output itself, not as a tuple.
    """
    code = Code()
    arguments = [f"x{k}" for k in range(len(graph.inputs))]
    values = [_argument(code, x, at) for x, at in zip(graph.inputs, arguments, strict=True)]
    _check_shapes(code, graph, arguments)
    outputs = _evaluate(code, graph, values)
    results = [_result(x, of) for x, of in zip(outputs, graph.outputs, strict=True)]
    returned = ", ".join(results)
    if len(results) != 1 or not squeeze:
        returned = f"({returned},)" if results else "()"
    head = f"def {name}({', '.join(arguments)}):"
    source = "\n    ".join([head, *fused(code.lines), f"return {returned}"])
    key = None
    if None not in code.keys.values():
        # In this module's name: numba's cache looks for the module of a function.
        identity = (source, sorted(code.keys.items()), bool(config.numba__fastmath), __name__)
        key = sha256(repr(identity).encode()).hexdigest()
    return Written(source, {"np": np, "__name__": __name__, **code.names}, key)


def compiled(graph: AbstractFunctionGraph, name: str, *, squeeze: bool = False) -> tuple[Any, Any]:
    """Make a numba function of a graph, and its cache key, as PyTensor's backend does."""
    source, names, key = write(graph, name, squeeze=squeeze)
    python = compile_numba_function_src(source, name, names, cache_key=key)
    return numba_njit(python, error_model="numpy"), key


def _argument(code: Code, x: Variable, name: str) -> Any:
    if isinstance(x.type, ScalarType):
        return single(code, x.type.dtype, Term(name))
    if not isinstance(x.type, DenseTensorType):
        return Other(name)
    return _array(code, x, name)


def _array(code: Code, x: Variable, name: str) -> Value:
    """Take an array in memory, of a variable's type."""
    if x.type.ndim == 0:
        value = single(code, x.type.dtype, read(code, name, ()))
        value.stored = name
        return value
    shape = [
        code.evaluate(f"{name}.shape[{k}]", kind="n").text if n is None else n
        for k, n in enumerate(x.type.shape)
    ]
    return in_memory(code, name, x.type.dtype, shape)


def _check_shapes(code: Code, graph: AbstractFunctionGraph, names: Sequence[str]) -> None:
    """Refuse inputs of other shapes than their types have. Parts check the lengths they know."""
    wrong = [
        f"({name}.shape[{k}] != {n})"
        for x, name in zip(graph.inputs, names, strict=True)
        if isinstance(x.type, DenseTensorType)
        for k, n in enumerate(x.type.shape)
        if n is not None
        and not all(
            isinstance(step.op, Part) and step.op.graph.inputs[at].type.shape[k] == n
            for step, at in graph.clients.get(x, ())
        )
    ]
    if wrong:
        code.add(f"if {' | '.join(wrong)}: raise ValueError('an input has another shape')")


def _result(value: Any, of: Variable) -> str:
    if isinstance(value, Other):
        return value.name
    if isinstance(of.type, ScalarType):
        return value.number().text
    return value.store()


def _evaluate(code: Code, graph: AbstractFunctionGraph, inputs: Sequence[Any]) -> list[Any]:
    """Write a graph, and return its outputs."""
    values: dict[Variable, Any] = dict(zip(graph.inputs, inputs, strict=True))
    steps = graph.toposort()
    uses = Counter(x for step in steps for x in step.inputs)
    uses.update(graph.outputs)

    def value(x: Variable) -> Any:
        if x not in values and isinstance(x, Constant):
            values[x] = _constant(code, x)
        return values[x]

    functions: dict[Part, str] = {}
    for step in steps:
        inputs = [value(x) for x in step.inputs]
        if isinstance(step.op, Part):
            if step.op not in functions:
                function = compiled(step.op.graph, "repeated", squeeze=True)
                functions[step.op] = code.refer("r", *function)
            outputs = _called(code, functions[step.op], step, inputs)
        else:
            outputs = _apply(code, step, inputs)
        for x, result in zip(step.outputs, outputs, strict=True):
            values[x] = result
            if not isinstance(result, Value):
                continue
            if uses[x] > 1 or result.weight > MOST_WEIGHT:
                result.ready()
            if not any(result is known for known in inputs):
                result.through([known for known in inputs if isinstance(known, Value)])
    return [value(x) for x in graph.outputs]


def _constant(code: Code, x: Constant) -> Any:
    if isinstance(x.type, ScalarType | DenseTensorType) and np.asarray(x.data).dtype.kind in "biuf":
        return constant(code, np.asarray(x.data))
    if x.data is None:
        return Other("None")
    name = code.refer("c", numba_typify(x.data, variable=x), cache_key_for_constant(x.data))
    return Other(name)


def _apply(code: Code, node: Apply, inputs: list[Any]) -> list[Any]:
    if _is_inlined(node):
        return _evaluate(code, node.op.fgraph, inputs)
    simple = all(
        np.dtype(x.type.dtype).kind in "biuf"
        for x in [*node.inputs, *node.outputs]
        if isinstance(x.type, DenseTensorType | ScalarType)
    )
    if simple:
        try:
            usual: list[Any] = [None if isinstance(x, Other) else x for x in inputs]
            outputs = written(node.op, node, code, usual)
        except NotWrittenError:
            pass
        else:
            return outputs if isinstance(outputs, list) else [outputs]
    return _called(code, _function_of(code, node), node, inputs)


def _is_inlined(node: Apply) -> bool:
    own = numba_funcify_and_cache_key.dispatch(type(node.op))
    return isinstance(node.op, OpFromGraph) and own is numba_funcify_OpFromGraph


def _function_of(code: Code, node: Apply) -> str:
    """Refer to PyTensor's function of an operation."""
    function, key = numba_funcify_ensure_cache(node.op, node=node)
    if key is not None:  # PyTensor's key is of the operation, whatever its inputs
        arrays = (x for x in node.inputs if isinstance(x.type, DenseTensorType))
        key = f"{key} {[(x.type.ndim, x.type.dtype) for x in arrays]}"
    return code.refer("f", function, key)


def _typed(text: str, dtype: str) -> str:
    """Say the type of a number: numba compiles a function again for each integer in the source."""
    return f"np.{dtype}({text})" if text.lstrip("-").isdigit() else text


def _called(code: Code, name: str, node: Apply, inputs: list[Any]) -> list[Any]:
    """Call the function of an operation, or of a part."""
    arguments = []
    for x, value in zip(node.inputs, inputs, strict=True):
        if isinstance(value, Other):
            arguments.append(value.name)
        elif isinstance(x.type, ScalarType):
            arguments.append(_typed(value.number().text, x.type.dtype))
        else:
            arguments.append(value.store())
    for overwritten in chain.from_iterable(node.op.destroy_map.values()):
        if isinstance(node.inputs[overwritten].type, DenseTensorType):
            arguments[overwritten] = f"np.copy({arguments[overwritten]})"
    results = [code.new_name("a") for _ in node.outputs]
    code.add(f"{', '.join(results)} = {name}({', '.join(arguments)})")
    outputs: list[Any] = []
    for x, result in zip(node.outputs, results, strict=True):
        if isinstance(x.type, ScalarType):
            outputs.append(single(code, x.type.dtype, Term(result)))
        elif isinstance(x.type, DenseTensorType):
            outputs.append(_array(code, x, result))
        else:
            outputs.append(Other(result))
    return outputs
