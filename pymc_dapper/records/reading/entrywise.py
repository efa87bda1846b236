"""Log-densities that treat each entry of a sum by itself, such as independent noise on each.

Such a density is sum_k g_k(s_k) of the entries s_k. An update that changes two counts of a table
then needs two of its terms, however large the table is.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph.basic import Apply, Variable
from pytensor.graph.traversal import ancestors, io_toposort
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import dependent_variables
from pymc_dapper.records.reading.factors import AdditiveFactor, RecordSum


@dataclass(frozen=True)
class EntrywiseDensity:
    """A log-density that is a sum of one term for each entry of a sum over records.

    Attributes
    ----------
    sum : RecordSum
        The sum over records.
    entry : ScalarVariable
        Stands for an entry of it.
    context : tuple of TensorVariable, each of shape (number of entries,)
        What the terms depend on besides.
    values : tuple of ScalarVariable
        Stand for an entry's values of ``context``.
    term : ScalarVariable
        The term, a function of ``entry`` and ``values``.
    offset : TensorVariable
        What is added to the terms, whatever the sum is.
    """

    sum: RecordSum
    entry: Variable
    context: tuple[TensorVariable, ...]
    values: tuple[Variable, ...]
    term: Variable
    offset: TensorVariable


class _NotEntrywiseError(Exception):
    """The log-density combines entries in another way than by a sum."""


def read_entrywise(factors: Sequence[AdditiveFactor]) -> EntrywiseDensity | None:
    """Take the factors' log-density apart into a term for each entry of the sum they see.

    Parameters
    ----------
    factors : sequence of AdditiveFactor
        The factors.

    Returns
    -------
    EntrywiseDensity or None
        None where it can't be taken apart, or where there are several sums.
    """
    sums = {sum_.total: sum_ for factor in factors for sum_ in factor.sums}
    if len(sums) != 1:
        return None
    [sum_] = sums.values()
    if None in sum_.total.type.shape:
        return None
    try:
        parts = [_parts(factor.log_density, sum_.total) for factor in factors]
        terms = pt.add(*(terms for terms, _ in parts))
        offset = pt.add(pt.constant(0.0), *(offset for _, offset in parts))
        return _scalar_terms(sum_, terms, offset)
    except _NotEntrywiseError:
        return None


def _parts(
    log_density: TensorVariable, total: TensorVariable
) -> tuple[TensorVariable, TensorVariable]:
    """Write a scalar as the sum of terms in the shape of the total, and an offset."""
    zero = pt.constant(0.0)
    if log_density.type.ndim == 0 and prod(total.type.shape) == 1:
        return log_density, zero
    node = log_density.owner
    if node is None or log_density.type.ndim > 0:
        raise _NotEntrywiseError
    if isinstance(node.op, CAReduce) and isinstance(node.op.scalar_op, ps.Add):
        [terms] = node.inputs
        return terms, zero
    scalar_op = node.op.scalar_op if isinstance(node.op, Elemwise) else None
    dependent = [x for x in node.inputs if total in ancestors([x])]
    others = [x for x in node.inputs if x not in dependent]
    if isinstance(scalar_op, ps.Add):
        parts = [_parts(x, total) for x in dependent]
        offset = pt.add(zero, *others, *(offset for _, offset in parts))
        return pt.add(*(terms for terms, _ in parts)), offset
    if len(dependent) != 1:
        raise _NotEntrywiseError
    terms, offset = _parts(dependent[0], total)
    if isinstance(scalar_op, ps.Mul):
        factor = pt.mul(*others)
        return terms * factor, offset * factor
    if isinstance(scalar_op, ps.Neg):
        return -terms, -offset
    if isinstance(scalar_op, ps.Sub) and dependent[0] is node.inputs[0]:
        return terms, offset - others[0]
    if isinstance(scalar_op, ps.Sub):
        return -terms, others[0] - offset
    if isinstance(scalar_op, ps.TrueDiv) and dependent[0] is node.inputs[0]:
        return terms / others[0], offset / others[0]
    raise _NotEntrywiseError


def _scalar_terms(
    sum_: RecordSum, terms: TensorVariable, offset: TensorVariable
) -> EntrywiseDensity:
    """Turn the graph of all terms into that of one."""
    total = sum_.total
    dependent = dependent_variables([total], [terms])
    entry = ps.float64("entry")
    scalars: dict[Variable, TensorVariable] = {
        total: pt.tensor_from_scalar(entry).astype(total.dtype)
    }
    context: dict[tuple[Variable, tuple[int, ...]], Variable] = {}

    def scalar(x: Variable, shape: tuple[int, ...]) -> TensorVariable:
        """Return what stands for an entry of a variable that is broadcast to a shape."""
        if x in scalars:
            return scalars[x]
        # Conditions of parameter checks are scalars of a type of their own.
        tensor = x if isinstance(x.type, TensorType) else pt.tensor_from_scalar(x)
        known = known_value(tensor)
        if known is not None and known.size > 0 and _all_equal(known):
            return pt.constant(known.flat[0], dtype=tensor.dtype)
        value = context.setdefault((tensor, shape), ps.float64(f"value_{len(context)}"))
        return pt.tensor_from_scalar(value).astype(tensor.dtype)

    for node in io_toposort([total], [terms]):
        if dependent.isdisjoint(node.outputs):
            continue
        [output, *others] = node.outputs
        shape = output.type.shape
        kept = [x for x in node.inputs if x in dependent]
        if others or any(_lengths(x) != _lengths(total) for x in (output, *kept)):
            raise _NotEntrywiseError
        if isinstance(node.op, Elemwise | CheckAndRaise):
            scalars[output] = node.op(*(scalar(x, shape) for x in node.inputs))
        elif isinstance(node.op, DimShuffle) and _keeps_order(node):
            scalars[output] = scalars[node.inputs[0]]
        else:
            raise _NotEntrywiseError
    return EntrywiseDensity(
        sum=sum_,
        entry=entry,
        context=tuple(pt.broadcast_to(x, shape).flatten() for x, shape in context),
        values=tuple(context.values()),
        term=pt.scalar_from_tensor(scalars[terms].astype("float64")),
        offset=offset,
    )


def _lengths(x: Variable) -> list[int | None]:
    """Return the shape without the axes of length 1."""
    return [length for length in x.type.shape if length != 1]


def _keeps_order(node: Apply) -> bool:
    """Whether only axes of length 1 are moved, inserted or dropped."""
    [x] = node.inputs
    axes = [k for k in node.op.new_order if k != "x" and x.type.shape[k] != 1]
    return axes == sorted(axes)


def _all_equal(values: np.ndarray) -> bool:
    first = values.flat[0]
    return bool(np.all((values == first) | ((values != values) & (first != first))))
