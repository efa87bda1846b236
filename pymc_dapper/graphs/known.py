"""What of a graph is known before anything is computed."""

from math import prod

import numpy as np
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import constant_fold


def known_value(variable: Variable) -> np.ndarray | None:
    """Value of a variable that depends on constants and static shapes only; None for others."""
    [value] = constant_fold([variable], raise_not_constant=False)
    return None if isinstance(value, Variable) else np.asarray(value)


def known_size(variable: TensorVariable) -> int | None:
    """Return the number of entries, where the shape is static."""
    shape = variable.type.shape
    return None if None in shape else prod(shape)
