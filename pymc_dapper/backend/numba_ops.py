"""Operations of ours in PyTensor's numba backend, each with the key of its code."""

from collections.abc import Callable
from functools import singledispatch
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from pytensor.graph import Apply, Op
from pytensor.graph.fg import FrozenFunctionGraph
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    register_funcify_and_cache_key,
)
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.scalar.basic import Composite
from pytensor.tensor.random.op import RandomVariable

from pymc_dapper.backend import accelerate
from pymc_dapper.backend.entries import CellOf, EntryOf, LookUp
from pymc_dapper.backend.kernel_key import MODEL_KEYS, kernel_key

__all__ = ["compiles", "draws", "from_source", "function_of", "given_once", "numba_njit"]

MODEL_PARTS: WeakKeyDictionary[Callable, FrozenFunctionGraph | Composite] = WeakKeyDictionary()
"""Contents of the functions of a model's graphs."""


@singledispatch
def numba_function(op: Op) -> Callable:
    """Make the numba function of an operation, as registered by `compiles`."""
    raise NotImplementedError(f"no numba function is registered for {op}")


def compiles[F: Callable[[Any], Callable]](op_type: type[Op]) -> Callable[[F], F]:
    """Register the function that makes an operation's numba function.

    Parameters
    ----------
    op_type : type
        The operation's.

    Returns
    -------
    callable
        Decorator of a function that takes an operation and returns its numba function. It is
        cached on disk, by :func:`~pymc_dapper.backend.kernel_key.kernel_key`.
    """

    def register(make: F) -> F:
        @register_funcify_and_cache_key(op_type)
        def with_key(op: Op, node: Apply, **kwargs: Any) -> tuple[Callable, str | None]:
            function = numba_function(op)
            accelerate.load_kernels(function)
            return function, kernel_key(function)

        numba_function.register(op_type)(make)
        return make

    return register


def draws[F: Callable](rv_type: type[RandomVariable]) -> Callable[[F], F]:
    """Register the function of one draw, which numba compiles: of a generator and parameters."""

    def register(draw: F) -> F:
        @numba_core_rv_funcify.register(rv_type)
        def with_key(op: RandomVariable, node: Apply) -> tuple[Callable, int]:
            function = numba_njit(draw)
            key = kernel_key(function)
            assert key is not None  # as a draw calls no function of a graph
            return function, int(key, 16)

        return draw

    return register


def function_of(part: FrozenFunctionGraph | Composite, name: str = "scalar") -> Callable:
    """Make a numba function of a graph, or of a scalar operation.

    Parameters
    ----------
    part : FrozenFunctionGraph or Composite
        The graph to evaluate, already rewritten for the numba backend. A single output is returned
        itself.
    name : str
        Name of a graph's function.
    """
    whole = accelerate.whole_graphs()
    if whole is not None:
        graph = part.fgraph if isinstance(part, Composite) else part
        function, key = whole.compiled(graph, name, squeeze=True)
    elif isinstance(part, Composite):
        node = part.make_node(*part.fgraph.inputs)
        function, key = numba_funcify_and_cache_key(part, node=node)
    else:
        function, key = numba_funcify_and_cache_key(part, fgraph_name=name, squeeze_output=True)
    MODEL_KEYS[function], MODEL_PARTS[function] = key, part
    return function


def given_once(kernel: Any, function: Any, of: Any, signature: Any) -> Callable:
    """Compile a kernel once for all models, and give it a function of one.

    Arguments are those of :func:`pymc_dapper.backend.accelerate.given_function`.
    """
    key = kernel_key(kernel)
    assert key is not None  # it has nothing of a model
    return accelerate.given_function(kernel, function, of, signature, key)


def from_source(source: str, name: str, **names: Any) -> Callable:
    """Define a function for numba by its text.

    Parameters
    ----------
    source : str
        Definition of the function.
    name : str
        Its name.
    **names
        Objects to which it refers.
    """
    defined = {"__name__": __name__, **names}
    exec(compile(source, f"<{name}>", "exec"), defined)
    return defined[name]


@compiles(EntryOf)
def _entry_of(op: EntryOf) -> Callable:
    """Call the operation with arrays of one entry."""
    on_arrays, MODEL_KEYS[on_arrays] = numba_funcify_and_cache_key(op.op, node=op.node)
    numbers = [f"x{k}" for k in range(len(op.types))]
    arrays = [
        f"np.full({(1,) * of.ndim}, {x})" if of.ndim else f"np.asarray({x})"
        for x, of in zip(numbers, op.types, strict=True)
    ]
    first = (0,) * op.node.outputs[0].type.ndim
    source = f"def entry_of({', '.join(numbers)}): return on_arrays({', '.join(arrays)})[{first}]"
    return numba_njit(from_source(source, "entry_of", np=np, on_arrays=on_arrays))


@compiles(LookUp)
def _look_up(op: LookUp) -> Callable:
    table, numbers = op.table, ", ".join(f"k{k}" for k in range(op.nin))
    source = f"def look_up({numbers}): return table[{numbers}]"
    return numba_njit(from_source(source, "look_up", table=table))


@compiles(CellOf)
def _cell_of(op: CellOf) -> Callable:
    cuts, n_cuts = op.table, len(op.table)

    @numba_njit
    def cell_of(x):  # type: ignore[no-untyped-def]
        # Branch-free: in a search, the direction is as random as the records.
        cell = np.int64(0)
        for k in range(n_cuts):
            cell += not x < cuts[k]  # nan is above all cuts, as NumPy sorts it
        return cell

    return cell_of
