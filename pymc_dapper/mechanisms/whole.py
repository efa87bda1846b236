"""Which statistics hold fractions; discrete noise is added to whole numbers only."""

import pytensor.scalar as ps
from pytensor.graph import Variable
from pytensor.tensor.basic import Join, MakeVector
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.reshape import JoinDims
from pytensor.tensor.shape import Reshape, SpecifyShape
from pytensor.tensor.subtensor import Subtensor

_KEEPS_FRACTIONS = (ps.Add, ps.Sub, ps.Neg, ps.Abs, ps.Clip, ps.Identity)
_KEEPS_ENTRIES = (DimShuffle, Join, JoinDims, MakeVector, Reshape, SpecifyShape, Subtensor)


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
    pending, seen = [statistic], set()
    while pending:
        x = pending.pop()
        node = x.owner
        if x in seen or node is None or not str(getattr(x.type, "dtype", "")).startswith("float"):
            continue
        seen.add(x)
        op = node.op
        if isinstance(op, RandomVariable):
            return True
        scalar_op = op.scalar_op if isinstance(op, Elemwise | CAReduce) else None
        if isinstance(scalar_op, ps.TrueDiv):
            return True
        if isinstance(scalar_op, _KEEPS_FRACTIONS) or isinstance(op, _KEEPS_ENTRIES):
            pending.extend(node.inputs)
    return False
