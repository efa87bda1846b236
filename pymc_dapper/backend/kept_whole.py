"""PyTensor's numba backend, where functions are kept on disk as a whole, and none of their parts.

PyTensor keeps each operation by itself, too: that is a second function around each, which numba
optimises with all that it calls, and a file. Models have few operations in common.
"""

from typing import Any

from numba import njit
from pytensor import config
from pytensor.compile.mode import Mode
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.link.numba.linker import NumbaLinker

from pymc_dapper.backend.flags import changed_flag


class KeptWholeLinker(NumbaLinker):
    """Compiles a graph as PyTensor does, and keeps the whole of it."""

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> tuple[Any, str | None]:
        """Make a numba function of a graph, and the key that it's cached by."""
        function, key = numba_funcify_and_cache_key(fgraph, **kwargs)
        if key is None:
            return function, key
        with changed_flag("numba__cache", False):
            function, _ = numba_funcify_and_cache_key(fgraph, **kwargs)
        source = getattr(function.py_func, "__source__", None)
        if source is None:  # which PyTensor writes there, and doesn't promise to
            converted: tuple[Any, str | None] = super().fgraph_convert(fgraph, **kwargs)
            return converted
        name, names = function.__name__, function.py_func.__globals__
        key = f"{key}_kept_whole_fastmath{int(config.numba__fastmath)}"
        return njit(compile_numba_function_src(source, name, names, cache_key=key)), key


KEPT_WHOLE = Mode(KeptWholeLinker(), RewriteDatabaseQuery(include=["fast_run", "numba"]))
