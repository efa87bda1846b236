"""Arrays as functions from indices to terms of the source."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from math import prod
from typing import Any

import numpy as np
from pytensor.link.numba.dispatch.basic import cache_key_for_constant

from pymc_dapper.one_function.code import Code, Term
from pymc_dapper.one_function.scalars import converted, literal

Length = int | str
"""Length of an axis: a number, or the name of one."""
Index = Sequence[Term]

SMALL = 4
"""Most entries of a vector, or rows and columns of a table, that are separate, named numbers: all
of a vector's, and those of one row of a table in a loop over its rows."""
FREE = 4
"""An entry of this weight at most is worked out again rather than stored."""
NOTHING = Term("0")
REFERRED = 1_000
"""A constant array with at most this number of entries isn't filled in each call. So functions get
all short constants as the same type of array, and are compiled for one type."""
DEEPEST = 30
"""An entry is computed through at most this number of arrays; then one of them is stored."""


class Value:
    """An array, or a number, while the source is written.

    Parameters
    ----------
    code : Code
        The source.
    dtype : str
        Type of the entries.
    shape : sequence of int or str
        Lengths of the axes.
    entry : callable
        Takes an index of terms and returns the entry's.
    weight : int
        How long an entry takes to work out; 0 if it's only read.
    fast : int, optional
        The contiguous axis.
    """

    def __init__(
        self,
        code: Code,
        dtype: str,
        shape: Sequence[Length],
        entry: Callable[[Index], Term],
        weight: int = 0,
        fast: int | None = None,
    ):
        self.code, self.dtype, self.shape, self.weight = code, dtype, tuple(shape), weight
        self.fast = len(self.shape) - 1 if fast is None else fast
        lengths = [n for n in self.shape if isinstance(n, int)]
        known = len(lengths) == len(self.shape)
        self.small = known and prod(lengths) <= SMALL**2 and [1, *lengths][-1] <= SMALL
        """Whether each entry is a number with a name, rather than a place in memory."""
        self.is_table = self.small and sum(n > 1 for n in lengths) > 1
        """Whether it's small, and has rows."""
        self._entry = entry
        self._known: dict[tuple[str, ...], Term] = {}
        self.stored: str | None = None
        """Name of the array, if there is one in memory."""
        self.is_copied = False
        """Whether entries are read from another array in memory, or are all the same number."""
        self.depth = 0
        """Through how many arrays an entry is worked out."""

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    def entry(self, index: Index) -> Term:
        """Return an entry, which is worked out once in each loop."""
        at = tuple(k.text for k in index)
        separate = self.small and all(k.text.isdigit() or k.of_row for k in index)
        if self.small and self.weight > FREE and not separate:
            self.store()
        if self.stored is not None and (self.is_table or not separate):
            return read(self.code, self.stored, index)
        if at not in self._known:
            self._known[at] = self._entry(index)
        return self._known[at]

    def number(self) -> Term:
        """Return the only entry of an array of shape ()."""
        with self.code.outside():
            return self.entry(())

    def store(self) -> str:
        """Have the array in memory, C-contiguous if it's written here, and return its name."""
        if self.stored is None:
            with self.code.outside():
                self.stored = self._stored()
                self.fast, self.weight = self.ndim - 1, 0
        return self.stored

    def _stored(self) -> str:
        name = empty(self.code, self.shape, self.dtype)
        self.write(name, [NOTHING] * self.ndim)
        return name

    def write(self, name: str, first: Index) -> None:
        """Write all entries into an array, from an index on."""
        if self.small and self.stored is None and (self.weight > FREE or not self.is_copied):
            with rows(self) as each:
                for index in each:
                    self._write_entry(name, index, first)
            return
        with loops(self.code, self.shape) as index:
            self._write_entry(name, index, first)

    def _write_entry(self, name: str, index: Index, first: Index) -> None:
        entry = self.entry(index)
        at = [shifted(self.code, k, start) for k, start in zip(index, first, strict=True)]
        self.code.add(f"{place(name, at)} = {entry.text}")

    def ready(self) -> "Value":
        """Return the array as it's best read several times."""
        if self.weight > FREE and not self.small:
            self.store()
        return self

    def through(self, inputs: Sequence["Value"]) -> None:
        """Define the array's entries; it is stored here if they would take too many steps."""
        self.depth = 1 + max((x.depth for x in inputs), default=-1)
        if self.depth <= DEEPEST:
            return
        if self.small and not self.is_table:
            with self.code.outside():
                for index in indices(self.shape):
                    self.entry(index)
            self.weight = max(self.weight, FREE + 1)  # in a loop, it's read from memory
        else:
            self.store()
        self.depth = 0


@contextmanager
def loops(
    code: Code, shape: Sequence[Length], order: Sequence[int] | None = None, of_row: bool = False
) -> Iterator[list[Term]]:
    """Open nested loops over all indices of a shape; ``of_row`` if they are rows of a table."""
    index = [NOTHING] * len(shape)
    with ExitStack() as opened:
        for axis in range(len(shape)) if order is None else order:
            if shape[axis] != 1:
                index[axis] = opened.enter_context(code.loop(shape[axis]))._replace(of_row=of_row)
        yield index


@contextmanager
def rows(x: Value) -> Iterator[list[list[Term]]]:
    """List all indices of a small array; of a table, those of one row in a loop over the rows."""
    if not x.is_table:
        yield indices(x.shape)
        return
    with loops(x.code, x.shape[:-1], of_row=True) as row:
        yield [[*row, *last] for last in indices(x.shape[-1:])]


def indices(shape: Sequence[Length]) -> list[list[Term]]:
    """List all indices of a shape that is known."""
    lengths = [n for n in shape if isinstance(n, int)]
    return [[Term(str(k)) for k in index] for index in np.ndindex(*lengths)]


def place(name: str, index: Index) -> str:
    """Write an element of an array."""
    return f"{name}[{', '.join(k.text for k in index) or '()'}]"


def read(code: Code, name: str, index: Index) -> Term:
    """Read an element of an array in memory."""
    return code.evaluate(place(name, index), *index)


def shifted(code: Code, index: Term, by: Term) -> Term:
    """Add to an index."""
    if by.text == "0":
        return index
    if index.text == "0":
        return by
    if index.text.isdigit() and by.text.isdigit():
        return Term(str(int(index.text) + int(by.text)))
    return code.evaluate(f"{index.text} + {by.text}", index, by)


def empty(code: Code, shape: Sequence[Length], dtype: str) -> str:
    """Make an array, and return its name."""
    name = code.new_name("a")
    lengths = "".join(f"{n}, " for n in shape)
    code.add(f"{name} = np.empty(({lengths}), np.{numpy_name(dtype)})")
    return name


def numpy_name(dtype: str) -> str:
    """Name a type as NumPy does."""
    return "bool_" if dtype == "bool" else dtype


def in_memory(code: Code, name: str, dtype: str, shape: Sequence[Length]) -> Value:
    """Take an array that is in memory already."""
    value = Value(code, dtype, shape, lambda index: read(code, name, index))
    value.stored = name
    return value


def constant(code: Code, data: np.ndarray) -> Value:
    """Write a constant as numbers in the source; longer arrays are referred to."""
    dtype = data.dtype.name

    def stored() -> str:
        kept = np.ascontiguousarray(data)
        return code.refer("c", kept, cache_key_for_constant(kept))

    if data.size and (data == data.flat[0]).all() and not _negative_zero(data):
        only = Term(literal(data.flat[0]))
        uniform = Value(code, dtype, data.shape, lambda index: only)
        uniform.is_copied = True
        if data.ndim and data.size <= REFERRED:
            uniform._stored = stored  # type: ignore[method-assign]
        return uniform

    def entry(index: Index) -> Term:
        if all(k.text.isdigit() for k in index):
            return Term(literal(data[tuple(int(k.text) for k in index)]))
        if in_order:  # they needn't be stored
            return converted(code, number_of(code, index, data.shape), "int64", dtype)
        return read(code, stored(), index)

    in_order = data.dtype.kind in "iu" and np.array_equal(data.ravel(), np.arange(data.size))
    value = Value(code, dtype, data.shape, entry)
    value._stored = stored  # type: ignore[method-assign]
    value.data = data  # type: ignore[attr-defined]
    return value


def _negative_zero(data: np.ndarray) -> bool:
    return data.dtype.kind == "f" and bool(np.signbit(data).any() and (data == 0).any())


def single(code: Code, dtype: str, term: Term) -> Value:
    """Take a number."""
    return Value(code, dtype, (), lambda index: term)


def parts(code: Code, dtype: str, shape: Sequence[Length], axis: int, joined: list[Value]) -> Value:
    """Join arrays along an axis."""

    def entry(index: Index) -> Term:
        at = index[axis].text
        if at.isdigit():
            number = int(at)
            for part in joined:
                length = part.shape[axis]
                if not isinstance(length, int):
                    break
                if number < length:
                    own = [*index[:axis], Term(str(number)), *index[axis + 1 :]]
                    return converted(code, part.entry(own), part.dtype, dtype)
                number -= length
        return read(code, value.store(), index)

    value = Value(code, dtype, shape, entry, weight=max(x.weight for x in joined))
    first = [NOTHING] * len(shape)

    def stored() -> str:
        name = empty(code, shape, dtype)
        for part in joined:
            part.write(name, first)
            length = part.shape[axis]
            first[axis] = shifted(code, first[axis], Term(str(length)))
        return name

    value._stored = stored  # type: ignore[method-assign]
    return value


def view(x: Value, shape: Any, entry: Any, fast: int | None = None) -> Value:
    """Take entries of an array; a separate number among them has a name."""
    if not len(shape):
        with x.code.outside():
            return single(x.code, x.dtype, entry(()))
    value = Value(x.code, x.dtype, shape, entry, x.weight, fast)
    value.is_copied = x.stored is not None or x.is_copied
    return value


def number_of(code: Code, index: Index, shape: Any) -> Term:
    """Count the entries ahead of an index."""
    at = index[0]
    for k, length in zip(index[1:], shape[1:], strict=True):
        if length == 1:
            continue
        if at.text == "0":
            at = k
        elif at.text.isdigit() and k.text.isdigit() and isinstance(length, int):
            at = Term(str(int(at.text) * length + int(k.text)))
        elif k.text == "0":
            at = code.evaluate(f"{at.text} * {length}", at)
        else:
            at = code.evaluate(f"{at.text} * {length} + {k.text}", at, k)
    return at


def separate(code: Code, dtype: str, shape: list[Length], terms: list[Term]) -> Value:
    """Index an array whose entries are separate, named numbers."""
    if not shape:
        return single(code, dtype, terms[0])
    vector = of_terms(code, dtype, terms)
    return view(vector, shape, lambda index: vector.entry([number_of(code, index, shape)]))


def of_terms(code: Code, dtype: str, terms: list[Term]) -> Value:
    """Make a vector of named numbers."""

    def one(term: Term) -> Value:
        return Value(code, dtype, (1,), lambda index: term)

    return parts(code, dtype, (len(terms),), 0, [one(term) for term in terms])
