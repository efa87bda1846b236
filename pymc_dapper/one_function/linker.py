"""PyTensor's numba backend, with each graph compiled as one function."""

from typing import Any

from pytensor import config
from pytensor.compile.mode import Mode
from pytensor.graph import FunctionGraph, RewriteDatabaseQuery
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.linker import NumbaLinker

from pymc_dapper.backend.accelerate import outermost
from pymc_dapper.one_function.repeated import CallParts
from pymc_dapper.one_function.writer import compiled

NOT_NEEDED = (
    "elemwise_fusion",
    "fuse_indexed_into_elemwise",
    "inplace_elemwise",
    "local_inplace_setsubtensor",
    "local_inplace_AdvancedIncSubtensor",
    "InplaceBlasOpt",
    "blockwise_inplace",
    "cond_make_inplace",
)
"""Rewrites that join operations, or have them overwrite arrays."""

AFTER_MERGING = 0.05
"""Position of the search for equal parts: after merging of what is computed twice, before other
rewrites."""


class OneFunctionLinker(NumbaLinker):
    """Compiles a graph as one function of scalars and loops."""

    def fgraph_convert(self, fgraph: Any, **kwargs: Any) -> tuple[Any, str | None]:
        """Make a numba function of a graph, and the key that it's cached by."""
        return compiled(fgraph, "one_function")

    def jit_compile(self, fn_and_cache: tuple[Any, str | None]) -> Any:
        """Have it compiled at the first call."""
        function, key = fn_and_cache
        return outermost(
            numba_njit(
                function.py_func,
                final_function=True,
                cache=key is not None and config.numba__cache,
                error_model="numpy",
            )
        )


def _rewrite(graph: FunctionGraph) -> None:
    ONE_FUNCTION.optimizer.rewrite(graph)


call_parts = CallParts(_rewrite)
ONE_FUNCTION = Mode(
    OneFunctionLinker(), RewriteDatabaseQuery(include=["fast_run", "numba"], exclude=[*NOT_NEEDED])
).register((call_parts, AFTER_MERGING))
