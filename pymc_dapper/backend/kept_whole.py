"""PyTensor's numba backend, with whole functions cached on disk, without their parts.

PyTensor also caches each operation: that means a second function around each, which numba optimises
with all that it calls, and a file. Models have few operations in common. Here equal operations in a
process are one function.
"""

from typing import Any
from weakref import WeakValueDictionary

from numba import njit
from pytensor import config
from pytensor.compile.mode import Mode
from pytensor.graph.basic import Apply
from pytensor.graph.op import HasInnerGraph, Op
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import (
    numba_funcify_and_cache_key,
    numba_njit,
    numba_typify,
)
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.type_other import NoneTypeT

from pymc_dapper.backend.flags import changed_flag

try:
    from pytensor.link.utils import fgraph_to_python
except ImportError:  # then each operation is a function of its own
    fgraph_to_python = None

ALIKE: WeakValueDictionary[tuple, Any] = WeakValueDictionary()
"""Functions of operations, by PyTensor's keys and the types of their inputs."""


def of_graph(graph: Any, name: str, **options: Any) -> tuple[Any, str | None]:
    """Make a numba function of a graph, and its cache key, as PyTensor's backend does."""
    function, key = numba_funcify_and_cache_key(graph, fgraph_name=name, **options)
    if fgraph_to_python is None:
        return function, key
    made = fgraph_to_python(
        graph,
        op_conversion_fn=_of_operation,
        type_conversion_fn=numba_typify,
        fgraph_name=name,
        **options,
    )
    return numba_njit(made), key


def _of_operation(op: Op, *, node: Apply, **options: Any) -> Any:
    if isinstance(op, SpecifyShape):
        return _specify_shape(node)
    function, key = numba_funcify_and_cache_key(op, node=node, **options)
    of = [(getattr(x.type, "ndim", None), getattr(x.type, "dtype", None)) for x in node.inputs]
    alike = key, *of, config.numba__fastmath
    if key is not None and alike in ALIKE:
        return ALIKE[alike]
    parts = (op, getattr(op, "scalar_op", None), getattr(op, "core_op", None))
    if any(isinstance(part, HasInnerGraph) for part in parts):
        with changed_flag("numba__cache", False):  # else their operations are kept on disk
            function, _ = numba_funcify_and_cache_key(op, node=node, **options)
    if key is not None:
        ALIKE[alike] = function
    return function


def _specify_shape(node: Apply) -> Any:
    """Check a shape without telling which it is: numba takes seconds to compile such texts."""
    known = [k for k, n in enumerate(node.inputs[1:]) if not isinstance(n.type, NoneTypeT)]
    wrong = " or ".join(f"x.shape[{k}] != n{k}.item()" for k in known) or "False"
    names = ", ".join(["x", *(f"n{k}" for k in range(len(node.inputs) - 1))])
    source = f"""
def specify_shape({names}):
    if {wrong}:
        raise AssertionError("SpecifyShape: an axis has another length")
    return x
"""
    return numba_njit(compile_numba_function_src(source, "specify_shape"))


class KeptWholeLinker(NumbaLinker):
    """Compiles a graph as PyTensor does, and keeps the whole of it."""

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> tuple[Any, str | None]:
        """Make a numba function of a graph, and the key that it's cached by."""
        name = "numba_funcified_fgraph"  # by which PyTensor leaves out some of numba's warnings
        function, key = of_graph(fgraph, name, **kwargs)
        source = getattr(function.py_func, "__source__", None)
        if key is None or source is None:
            return function, None
        names = function.py_func.__globals__
        key = f"{key}_kept_whole_fastmath{int(config.numba__fastmath)}"
        return njit(compile_numba_function_src(source, name, names, cache_key=key)), key


KEPT_WHOLE = Mode(KeptWholeLinker(), RewriteDatabaseQuery(include=["fast_run", "numba"]))
