"""Cumulated sums and products in PyTensor's numba backend, under a key that tells them apart.

PyTensor writes another function for vectors than for arrays, and keeps both on disk under one key:
of two models, the second to be compiled would get the first one's.
"""

from collections.abc import Callable
from typing import Any

from pytensor.graph.basic import Apply
from pytensor.link.numba.dispatch.basic import (
    default_hash_key_from_props,
    register_funcify_and_cache_key,
)
from pytensor.link.numba.dispatch.extra_ops import numba_funcify_CumOp
from pytensor.tensor.extra_ops import CumOp


@register_funcify_and_cache_key(CumOp)
def with_key(op: CumOp, node: Apply, **kwargs: Any) -> tuple[Callable, str]:
    """Return PyTensor's function, and a key with the number of axes in it."""
    ndim = node.outputs[0].type.ndim
    return numba_funcify_CumOp(op, node, **kwargs), default_hash_key_from_props(op, ndim=ndim)
