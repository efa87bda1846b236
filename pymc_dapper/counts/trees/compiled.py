"""The kernels of trees, compiled: machine code is kept on disk."""

from typing import Any

from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.counts.trees import downward, draws, messages, nodes, weights

KERNELS = {
    kernel.py_func.__name__: kernel
    for kernel in (
        *(nodes.in_post_order, nodes.cut, weights.limit, messages.ascend, messages.bound_neglected),
        *(downward.descend, downward.summarise, draws.draw_roots, draws.split_draws),
    )
}


def __getattr__(name: str) -> Any:
    """Make a kernel when it's used: `CountStep` imports this also if its counts are on no tree."""
    if name not in KERNELS:
        raise AttributeError(name)
    return kept_on_disk(KERNELS[name])
