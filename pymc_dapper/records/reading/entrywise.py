"""Log-densities that are sums over entries, such as independent noise on each entry.

Such a density is sum_k g_k(s_k) of the entries s_k. An update that changes two counts of a table
then needs two of its terms, whatever the size of the table. Sums over records are treated like
counts, so the walk through a table's factors finds the terms.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pytensor.scalar as ps
import pytensor.tensor as pt
from pytensor.graph import Apply, Variable
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.rebuild import rebuild, with_inputs
from pymc_dapper.graphs.terms.of_sums import Terms, terms_of
from pymc_dapper.graphs.terms.roles import Mixed, Reduced, take_values
from pymc_dapper.graphs.terms.walk import CountWalk, as_terms
from pymc_dapper.records.reading.factors import AdditiveFactor, sums_of


@dataclass(frozen=True)
class EntryTerm:
    """A term for each entry of a sum over records."""

    n_entries: int
    """Number of entries of the sum."""
    entry: Variable
    """Variable for an entry of the sum."""
    context: tuple[TensorVariable, ...]
    """Further inputs of the term, each of shape (number of entries,)."""
    values: tuple[Variable, ...]
    """Variables for an entry's values of ``context``."""
    term: Variable
    """The term, a function of ``entry`` and ``values``."""


@dataclass(frozen=True)
class EntrywiseDensity:
    """A log-density with one term for each entry of sums over records."""

    terms: tuple[EntryTerm, ...]
    """The terms of each sum."""
    offset: TensorVariable
    """A part that doesn't depend on the sums."""


def read_entrywise(factors: Sequence[AdditiveFactor]) -> EntrywiseDensity | None:
    """Split factors into a term for each entry of the sums; None if that isn't possible."""
    totals = [sum_.total for sum_ in sums_of(factors)]
    if any(None in total.type.shape for total in totals):
        return None
    walk = CountWalk(totals, {}, keeps_fixed=True)
    starts = np.cumsum([0, *(prod(total.type.shape) for total in totals)])
    found: list[list[tuple[Terms, np.ndarray]]] = [[] for _ in totals]
    offset: TensorVariable = pt.constant(0.0)
    for factor in factors:
        role = walk.follow(factor.log_density)
        if isinstance(role, Mixed) or (isinstance(role, Reduced) and role.by != "add"):
            return None
        for part in as_terms(role, walk, factor.log_density):
            terms = terms_of(factor.name, part)
            seen = [np.diff(matrix.indptr) for matrix in terms.linear.values()]
            alone = np.flatnonzero(np.sum([np.zeros(len(part.targets)), *seen], axis=0) == 0)
            if len(alone):
                offset = offset + _sum(terms, alone)
            if not terms.linear:
                continue
            places = _places(terms, starts)
            if places is None:
                return None
            for which, order in places.items():
                found[which].append((terms, order))
    if not all(found):
        return None
    return EntrywiseDensity(tuple(map(_entry_term, found)), offset)


def _sum(terms: Terms, which: np.ndarray) -> TensorVariable:
    """Add up the terms that don't depend on the sums."""

    def replace_node(node: Apply, inputs: list[Variable]) -> Sequence[Variable]:
        if isinstance(node.op, CheckAndRaise):
            # Values shared by all terms are still scalars.
            value, *conditions = map(_as_tensor, inputs)
            inputs = [value, *(condition.all() for condition in conditions)]
        return with_inputs(node, inputs)

    at: dict[Variable, Variable] = {x: pt.constant(0.0) for x in terms.linear}
    at |= {x: take_values(values, which) for x, values in terms.fixed.items()}
    [each] = rebuild([terms.function], at, replace_node)
    return pt.broadcast_to(_as_tensor(each).astype("float64"), (len(which),)).sum()


def _as_tensor(x: Variable) -> TensorVariable:
    return pt.tensor_from_scalar(x) if isinstance(x.type, ps.ScalarType) else x


def _places(terms: Terms, starts: np.ndarray) -> dict[int, np.ndarray] | None:
    """Assign terms to the entries of each sum, one to each, in order.

    None if a term depends on several entries, or a sum isn't covered exactly once.
    """
    matrix, *others = terms.linear.values()
    lengths = np.diff(matrix.indptr)
    if others or np.any(lengths > 1):
        return None
    order = np.argsort(matrix.indices, kind="stable")
    entries, order, places = matrix.indices[order], np.flatnonzero(lengths)[order], {}
    for which in np.unique(np.searchsorted(starts, entries, side="right") - 1).tolist():
        first, stop = starts[which], starts[which + 1]
        own = (entries >= first) & (entries < stop)
        if not np.array_equal(entries[own], np.arange(first, stop)):
            return None
        places[which] = order[own]
    return places


def _entry_term(found: Sequence[tuple[Terms, np.ndarray]]) -> EntryTerm:
    """Add up the terms of the same entries."""
    entry, total = ps.float64("entry"), pt.constant(0.0)
    context: dict[TensorVariable, Variable] = {}
    for terms, order in found:
        [own] = terms.linear
        at: dict[Variable, Variable] = {own: pt.tensor_from_scalar(entry)}
        for scalar, values in terms.fixed.items():
            vector = take_values(values, order)
            known = known_value(vector)
            if known is not None and np.array_equal(known, np.full_like(known, known[0]), True):
                at[scalar] = pt.constant(known[0], dtype=values.dtype)
                continue
            value = context.setdefault(vector, ps.float64(f"value_{len(context)}"))
            at[scalar] = pt.tensor_from_scalar(value).astype(values.dtype)
        total = total + rebuild([terms.function], at)[0].astype("float64")
    return EntryTerm(
        n_entries=len(found[0][1]),
        entry=entry,
        context=tuple(context),
        values=tuple(context.values()),
        term=pt.scalar_from_tensor(total),
    )
