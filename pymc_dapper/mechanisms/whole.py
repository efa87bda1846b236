"""Which statistics hold fractions; discrete noise is added to whole numbers only."""

from collections.abc import Sequence
from typing import Any

import pytensor.scalar as ps
from pytensor.graph import Variable
from pytensor.graph.traversal import walk
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.reshape import JoinDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor

_KEEP_FRACTIONS = (
    *(ps.Add, ps.Sub, ps.Neg, ps.Abs, ps.Clip, ps.Identity),
    *(DimShuffle, Join, JoinDims, MakeVector, Reshape, SpecifyShape, Subtensor),
)


def refuse_fractions(statistic: Variable, rule: str) -> None:
    """Refuse a statistic that is known to hold fractions: a ValueError begins with the rule."""
    if has_fractions(statistic):
        raise ValueError(
            f"{rule}, but the statistic is a mean, a ratio or a sum of real numbers. Give it the "
            "sum or the counts that were released, or use a mechanism with continuous noise. A "
            "latent count has a discrete prior, such as pm.DiscreteUniform or pm.Poisson. If the "
            "statistic holds whole numbers all the same, write pt.round(statistic).astype('int64')"
        )


def has_fractions(statistic: Variable) -> bool:
    """Whether a statistic is a quotient, or a real random number, or a sum of such.

    False also if that isn't known: floats may hold counts.
    """
    made_by = map(_op_of, walk([statistic], _parts))
    return any(isinstance(op, RandomVariable | ps.TrueDiv) for op in made_by)


def _parts(x: Variable) -> Sequence[Variable]:
    """Return the variables whose fractions a variable has."""
    return x.owner.inputs if isinstance(_op_of(x), _KEEP_FRACTIONS) else ()


def _op_of(x: Variable) -> Any:
    """Return the operation behind floats, or what it does to each entry; None of others."""
    if x.owner is None or not str(getattr(x.type, "dtype", "")).startswith("float"):
        return None
    op = x.owner.op
    return op.scalar_op if isinstance(op, Elemwise | CAReduce) else op
