"""Log-densities that treat each entry of sums by itself, such as independent noise on each.

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
from pytensor.tensor.basic import Alloc
from pytensor.tensor.elemwise import CAReduce, DimShuffle, Elemwise
from pytensor.tensor.shape import Reshape
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.ops import Keeps, action_of
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild
from pymc_dapper.graphs.scalars import read_entries
from pymc_dapper.records.reading.factors import AdditiveFactor, sums_of


@dataclass(frozen=True)
class EntryTerm:
    """A term for each entry of a sum over records."""

    n_entries: int
    """Number of entries of the sum."""
    entry: Variable
    """Stands for an entry of it."""
    context: tuple[TensorVariable, ...]
    """Each of shape (number of entries,): what the terms depend on besides."""
    values: tuple[Variable, ...]
    """Stand for an entry's values of ``context``."""
    term: Variable
    """The term, a function of ``entry`` and ``values``."""


@dataclass(frozen=True)
class EntrywiseDensity:
    """A log-density that is a sum of one term for each entry of sums over records."""

    terms: tuple[EntryTerm, ...]
    """Those of each sum."""
    offset: TensorVariable
    """What is added to the terms, whatever the sums are."""


Parts = dict[TensorVariable, TensorVariable]
"""Terms to be added up, in the shape of a total, by total."""


class _NotEntrywiseError(Exception):
    """The log-density combines entries in another way than by a sum."""


def read_entrywise(factors: Sequence[AdditiveFactor]) -> EntrywiseDensity | None:
    """Take factors apart into a term for each entry of the sums they see; None if they can't be."""
    totals = [sum_.total for sum_ in sums_of(factors)]
    if any(None in total.type.shape for total in totals):
        return None
    try:
        terms, offset = _sum([(factor.log_density, False) for factor in factors], totals)
        in_order = [(total, terms[total]) for total in totals]
        return EntrywiseDensity(tuple(_scalar_term(*each) for each in in_order), offset)
    except _NotEntrywiseError:
        return None


def _parts(
    log_density: TensorVariable, totals: Sequence[TensorVariable]
) -> tuple[Parts, TensorVariable]:
    """Write a scalar as the sum of terms in the shape of each total, and an offset."""
    zero = pt.constant(0.0)
    node, seen = log_density.owner, _seen(log_density, totals)
    if log_density.type.ndim == 0 and len(seen) == 1 and prod(seen[0].type.shape) == 1:
        return {seen[0]: log_density}, zero
    if node is None or log_density.type.ndim > 0:
        raise _NotEntrywiseError
    if isinstance(node.op, CAReduce) and isinstance(node.op.scalar_op, ps.Add):
        if len(seen) == 1:
            if _lengths(node.inputs[0]) != _lengths(seen[0]):
                raise _NotEntrywiseError  # sums of its entries, such as the margins of a table
            return {seen[0]: node.inputs[0]}, zero
        return _sum([(x, False) for x in _entries(node.inputs[0], totals)], totals)
    scalar_op = node.op.scalar_op if isinstance(node.op, Elemwise) else None
    if isinstance(scalar_op, ps.Add):
        return _sum([(x, False) for x in node.inputs], totals)
    if isinstance(scalar_op, ps.Sub | ps.Neg):
        *first, last = node.inputs
        return _sum([*((x, False) for x in first), (last, True)], totals)
    dependent = [x for x in node.inputs if _seen(x, totals)]
    others = [x for x in node.inputs if x not in dependent]
    if len(dependent) != 1:
        raise _NotEntrywiseError
    terms, offset = _parts(dependent[0], totals)
    if isinstance(scalar_op, ps.Mul):
        factor = pt.mul(*others)
        return {total: x * factor for total, x in terms.items()}, offset * factor
    if isinstance(scalar_op, ps.TrueDiv) and dependent[0] is node.inputs[0]:
        return {total: x / others[0] for total, x in terms.items()}, offset / others[0]
    raise _NotEntrywiseError


def _entries(array: TensorVariable, totals: Sequence[TensorVariable]) -> list[TensorVariable]:
    """Write the entries of an array as functions of single sums that were put side by side."""
    node = array.owner
    if isinstance(node.op, CheckAndRaise) and not _seen_by(node.inputs[1:], totals):
        return [node.op(x, *node.inputs[1:]) for x in _entries(node.inputs[0], totals)]
    found = read_entries(array, totals)
    if found is None or any(index for _, index in found.scalars):
        raise _NotEntrywiseError
    tensors = {scalar: x for (x, _), scalar in found.scalars.items()}
    tensors |= {scalar: x for x, scalar in found.context.items()}
    stand_for = {
        x: tensors[x.owner.inputs[0]]
        for x in ancestors(found.entries)
        if x.owner is not None and x.owner.inputs[0] in tensors
    }
    return rebuild(found.entries, stand_for)


def _sum(
    summands: Sequence[tuple[TensorVariable, bool]], totals: Sequence[TensorVariable]
) -> tuple[Parts, TensorVariable]:
    """Do the same with a sum of scalars, of which some are subtracted."""
    terms: Parts = {}
    offset: TensorVariable = pt.constant(0.0)
    for x, minus in summands:
        of_x, rest = _parts(x, totals) if _seen(x, totals) else ({}, x)
        offset = offset - rest if minus else offset + rest
        for total, each in of_x.items():
            signed = -each if minus else each
            terms[total] = terms[total] + signed if total in terms else signed
    return terms, offset


def _seen(x: Variable, totals: Sequence[TensorVariable]) -> list[TensorVariable]:
    above = set(ancestors([x]))
    return [total for total in totals if total in above]


def _seen_by(conditions: Sequence[Variable], totals: Sequence[TensorVariable]) -> bool:
    return any(_seen(x, totals) for x in conditions)


def _scalar_term(total: TensorVariable, terms: TensorVariable) -> EntryTerm:
    """Turn the graph of all terms of a total into that of one."""
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
        elif _keeps_entries(node):
            scalars[output] = scalars[node.inputs[0]].astype(output.dtype)
        else:
            raise _NotEntrywiseError
    return EntryTerm(
        n_entries=prod(total.type.shape),
        entry=entry,
        context=tuple(pt.broadcast_to(x, shape).flatten() for x, shape in context),
        values=tuple(context.values()),
        term=pt.scalar_from_tensor(scalars[terms].astype("float64")),
    )


def _lengths(x: Variable) -> list[int | None]:
    """Return the shape without the axes of length 1."""
    return [length for length in x.type.shape if length != 1]


def _keeps_entries(node: Apply) -> bool:
    """Whether entries stay what and where they are, if their number does."""
    if isinstance(action_of(node.op, node), Keeps):
        return True
    match node.op:
        case DimShuffle(new_order=new_order):
            # Only axes of length 1 are moved, inserted or dropped.
            shape = node.inputs[0].type.shape
            axes = [k for k in new_order if k != "x" and shape[k] != 1]
            return axes == sorted(axes)
        case CAReduce(scalar_op=ps.Add() | ps.Mul() | ps.AND() | ps.OR()):
            return True  # of entries one by one
    return isinstance(node.op, Alloc | Reshape)


def _all_equal(values: np.ndarray) -> bool:
    first = values.flat[0]
    return bool(np.all((values == first) | ((values != values) & (first != first))))
