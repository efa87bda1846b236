"""Present rows of padded variables, which have room for more rows than there are.

Absent rows follow their prior, and nothing else depends on them. Once they are marginalised, only
prior terms of the present rows remain.
"""

from collections.abc import Mapping

from pymc import Model
from pytensor.tensor.variable import TensorVariable

type Present = Mapping[TensorVariable, TensorVariable]
"""Records by random variable, and the number of their first rows that are present."""


def present_factors(
    model: Model, factors: Mapping[str, TensorVariable], present: Present
) -> dict[str, TensorVariable]:
    """Leave absent rows out of log-densities, which aren't summed; by the variable's name."""
    of_records = {rv.name: model.rvs_to_values[size] for rv, size in present.items()}
    return {
        name: factor[: of_records[name]] if name in of_records else factor
        for name, factor in factors.items()
    }


def present_rows(x: TensorVariable, n: TensorVariable, ndim: int) -> TensorVariable:
    """Leave absent rows out of an array broadcast to ``ndim`` axes, the first of which has rows."""
    return x[:n] if x.type.ndim == ndim and not x.type.broadcastable[0] else x
