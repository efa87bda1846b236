"""Which entries of an array an index takes: slices, numbers and arrays of integers."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.values import Index, Length, Value

Origin = Callable[[Index], list[Term]]


class NotWrittenError(Exception):
    """An operation that isn't written as scalars and loops."""


def unify(code: Code, lengths: Sequence[Length], error: str) -> Length:
    """Return the length that axes have in common; raise if they differ when evaluated."""
    known = [n for n in lengths if isinstance(n, int)]
    length = known[0] if known else lengths[0]
    for other in lengths:
        if other != length:
            code.once(f"if {other} != {length}: raise ValueError({error!r})")
    return length


def number(value: Value) -> int | Term:
    """Return an integer, as a number if it is constant."""
    return _integer(value, value.number())


def _integer(array: Value, term: Term) -> int | Term:
    text = term.text.strip("()")
    if text.lstrip("-").isdigit():
        return int(text)
    if array.dtype not in ("int64", "bool"):
        return array.code.evaluate(f"np.int64({term.text})", term)
    return term


def select(
    code: Code, shape: Sequence[Length], entries: Sequence[Any]
) -> tuple[list[Length], Origin]:
    """Find the shape of an indexed array, and the origin of each entry.

    Parameters
    ----------
    code : Code
        The source.
    shape : sequence
        Of the array.
    entries : sequence
        For each axis a slice of values or None, or a value: an integer or an array of them.
    """
    entries = [*entries, *[slice(None)] * (len(shape) - len(entries))]
    arrays = [k for k, x in enumerate(entries) if isinstance(x, Value) and x.ndim]
    if arrays:  # then numbers count as arrays
        arrays = [k for k, x in enumerate(entries) if isinstance(x, Value)]
    group = _broadcast(code, [entries[k] for k in arrays])
    side_by_side = not arrays or arrays == list(range(arrays[0], arrays[-1] + 1))
    group_at = 0
    if arrays and side_by_side:
        group_at = arrays[0]

    sources: list[Callable[[Index, Index], Term]] = []
    basic: list[Length] = []
    for axis, (entry, length) in enumerate(zip(entries, shape, strict=True)):
        if axis in arrays:
            sources.append(_looked_up(code, entry, length, len(group)))
        elif isinstance(entry, slice):
            taken, origin = _slice(code, entry, length)
            sources.append(_along(len(basic), origin))
            basic.append(taken)
        else:
            sources.append(_fixed(_wrapped(code, number(entry), length)))

    def origin_of(index: Index) -> list[Term]:
        own = [*index[:group_at], *index[group_at + len(group) :]]
        return [find(own, index[group_at : group_at + len(group)]) for find in sources]

    return [*basic[:group_at], *group, *basic[group_at:]], origin_of


def _along(axis: int, origin: Callable[[Term], Term]) -> Callable[[Index, Index], Term]:
    return lambda own, group: origin(own[axis])


def _fixed(term: Term) -> Callable[[Index, Index], Term]:
    return lambda own, group: term


def _broadcast(code: Code, arrays: list[Value]) -> list[Length]:
    ndim = max((x.ndim for x in arrays), default=0)
    shape: list[Length] = []
    for axis in range(ndim):
        lengths = [x.shape[axis - ndim + x.ndim] for x in arrays if axis - ndim + x.ndim >= 0]
        lengths = [n for n in lengths if n != 1] or [1]
        if any(not isinstance(n, int) for n in lengths) and len(set(lengths)) > 1:
            raise NotWrittenError  # one of them may turn out to be 1
        shape.append(unify(code, lengths, "shape mismatch: indexing arrays don't fit together"))
    return shape


def _looked_up(code: Code, array: Value, length: Length, ndim: int) -> Callable:
    if np.dtype(array.dtype).kind not in "iu":
        raise NotWrittenError
    array.ready()
    data = getattr(array, "data", None)
    checked = (
        data is not None
        and isinstance(length, int)
        and (data.size == 0 or (data.min() >= 0 and data.max() < length))
    )

    def find(_: Index, group: Index) -> Term:
        own = group[ndim - array.ndim :]
        own = [Term("0") if n == 1 else k for k, n in zip(own, array.shape, strict=True)]
        term = array.entry(own)
        return term if checked else _wrapped(code, _integer(array, term), length)

    return find


def _wrapped(code: Code, at: int | Term, length: Length) -> Term:
    """Count negative indices from the end; raise if out of bounds."""
    if isinstance(at, int) and isinstance(length, int):
        if not -length <= at < length:
            code.once("raise IndexError('index out of bounds')")
            return Term("0")
        return Term(str(at % length))
    if isinstance(at, int):
        bound = f"{length} <= {at}" if at >= 0 else f"{length} < {-at}"
        code.once(f"if {bound}: raise IndexError('index out of bounds')")
        return Term(str(at)) if at >= 0 else code.evaluate(f"{length} - {-at}")
    function = within()
    name = code.refer("r", function, function.py_func.__source__)
    # Of its type: numba compiles for each literal.
    size = code.evaluate(f"np.int64({length})") if isinstance(length, int) else Term(length)
    return code.evaluate(f"{name}({at.text}, {size.text})", at)


@cache
def within() -> Any:
    """Make the function of an index that is counted from the end if it's negative, and checked.

    A call of it compiles in a third of the time that the same lines take where they are needed.
    """
    source = """def within(index, length):
    if index < 0:
        index += length
    if index < 0 or index >= length:
        raise IndexError('index out of bounds')
    return index
"""
    return numba_njit(compile_numba_function_src(source, "within", {"__name__": __name__}))


def _slice(code: Code, entry: slice, length: Length) -> tuple[Length, Callable[[Term], Term]]:
    given = (entry.start, entry.stop, entry.step)
    ends: list[Any] = [None if x is None else number(x) for x in given]
    start, stop, step = ends
    step = 1 if step is None else step
    if not isinstance(step, int) or step == 0:
        raise NotWrittenError
    if start is None and stop is None and step == 1:
        return length, lambda k: k
    if isinstance(length, int) and not any(isinstance(x, Term) for x in ends):
        taken = range(length)[slice(start, stop, step)]
        first: Length = taken.start
        count: Length = len(taken)
    else:
        low, high = (x.text if isinstance(x, Term) else x for x in (start, stop))
        taken_at = code.evaluate(f"slice({low}, {high}, {step}).indices({length})").text
        first = 0 if start is None and step > 0 else code.evaluate(f"{taken_at}[0]").text
        count = code.evaluate(f"len(range(*{taken_at}))", kind="n").text

    def origin(k: Term) -> Term:
        if k.text.isdigit() and isinstance(first, int):
            return Term(str(first + step * int(k.text)))
        if k.text == "0":
            return Term(str(first))
        moved = k.text if step == 1 else f"{k.text} * ({step})"
        if first == 0:
            return k if step == 1 else code.evaluate(moved, k)
        return code.evaluate(f"{first} + {moved}", k)

    return count, origin
