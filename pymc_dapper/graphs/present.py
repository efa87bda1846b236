"""The rows that are there, of variables with room for more of them than there may be.

Rows that aren't there follow their prior, and nothing sees them. Integrated out, they leave no
trace in what parameters follow: prior terms of the present rows alone.
"""

from collections.abc import Mapping

from pymc import Model
from pytensor.tensor.variable import TensorVariable

type Present = Mapping[TensorVariable, TensorVariable]
"""Records by their random variable, and how many of their first rows are there: a free variable."""


def present_factors(
    model: Model, factors: Mapping[str, TensorVariable], present: Present
) -> dict[str, TensorVariable]:
    """Leave absent rows out of log-densities, not summed over entries, by the variable's name."""
    of_records = {rv.name: model.rvs_to_values[size] for rv, size in present.items()}
    return {
        name: factor[: of_records[name]] if name in of_records else factor
        for name, factor in factors.items()
    }


def present_rows(x: TensorVariable, n: TensorVariable, ndim: int) -> TensorVariable:
    """Leave absent rows out of what is broadcast to ``ndim`` axes, of which the first has rows."""
    return x[:n] if x.type.ndim == ndim and not x.type.broadcastable[0] else x
