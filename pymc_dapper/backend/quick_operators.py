"""numba's operators of arrays, asked for arrays only.

While numba finds out types, it asks each operator between two numbers whether it is one of arrays,
too. It looks for a loop of NumPy's over such numbers, and refuses it then, as there is no array.
"""

from typing import Any

from numba import types
from numba.core.typing.npydecl import NumpyRulesArrayOperator

OF_ARRAYS = NumpyRulesArrayOperator.generic
"""numba's own."""


def of_arrays(self: Any, args: Any, kws: Any) -> Any:
    """Give the type of an operator's result, if there is an array among what it is of."""
    kinds = [x.type if isinstance(x, types.Optional) else x for x in args]
    if not any(isinstance(kind, types.ArrayCompatible) for kind in kinds):
        return None
    return OF_ARRAYS(self, args, kws)
