"""Checks of a user's arguments: each returns the value in plain form, or says what to write."""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from numbers import Real
from operator import index
from types import ModuleType, UnionType
from typing import Any

import numpy as np


@contextmanager
def about(what: str) -> Iterator[None]:
    """Add the argument's name to an error about it."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise type(error)(f"{what}: {error}") from None


def flag(value: Any, name: str) -> bool:
    """Check a switch: 1, "no" and [] aren't answers. Messages begin with the argument's name."""
    is_a(value, bool | np.bool_, f"{name} must be True or False")
    return bool(value)


def whole_number(
    value: Any, name: str, *, at_least: int | None = None, at_most: int | None = None
) -> int:
    """Check a number of things, such as draws, or an integer parameter; not a bool or a float."""
    expected = f"{name} must be a whole number{_range(at_least=at_least, at_most=at_most)}"
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{expected}, got {shown(value)}")
    try:
        number = index(value)
    except TypeError:
        raise TypeError(f"{expected}, got {shown(value)}") from None
    if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise ValueError(f"{expected}, got {shown(value)}")
    return number


def finite_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> float:
    """Check a real number within limits; a bool isn't one."""
    within = _range(above=above, at_least=at_least, below=below, at_most=at_most)
    expected = f"{name} must be a finite number{within}"
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{expected}, got {shown(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    inside = (
        (above is None or number > above)
        and (at_least is None or number >= at_least)
        and (below is None or number < below)
        and (at_most is None or number <= at_most)
    )
    if not (math.isfinite(number) and inside):
        raise ValueError(f"{expected}, got {shown(value)}")
    return number


def real_numbers(
    value: Any, name: str, *, vector: bool = False, finite: bool = False, positive: bool = False
) -> np.ndarray:
    """Check a number, or an array of at least one, and return it as an array of floats."""
    values = as_array(value)
    if np.ma.is_masked(value):
        raise ValueError(f"{name} must be a number, or an array of them, but entries are masked")
    if values.size == 0:
        raise ValueError(f"{name} must be a number, or an array of them, but it is empty")
    if values.dtype.kind == "O" and all(type(x) is int for x in values.flat):
        try:
            values = values.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} must be finite, got a whole number beyond a float") from None
    if values.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number, or an array of them, got {shown(value)}")
    values = values.astype(np.float64)
    if vector and values.ndim != 1:
        raise ValueError(f"{name} must be a vector, got shape {values.shape}")
    wrong = ~np.isfinite(values) if finite or positive else np.zeros(values.shape, dtype=bool)
    wrong |= positive & (values <= 0)
    if wrong.any():
        what = "positive and finite" if positive else "finite"
        told = f": {places(wrong)}" if values.ndim else f", got {shown(value)}"
        raise ValueError(f"{name} must be {what}{told}")
    return values


def whole_numbers(
    value: Any, name: str, *, at_least: int = -(2**53), at_most: int = 2**53, vector: bool = False
) -> np.ndarray:
    """Check whole numbers within limits, and return them as 64-bit integers."""
    numbers = real_numbers(value, name, vector=vector)
    if np.any(numbers != np.round(numbers)) or numbers.min() < at_least or numbers.max() > at_most:
        raise ValueError(f"{name} must be whole numbers from {at_least} to {at_most}")
    return numbers.astype(np.int64)


def increasing(value: Any, name: str, *, at_least: int = 1, finite: bool = True) -> np.ndarray:
    """Check a vector of numbers, each above the one before."""
    values = real_numbers(value, name, vector=True, finite=finite)
    if len(values) < at_least:
        raise ValueError(f"{name} must be {at_least} numbers or more, got {len(values)}")
    nowhere(
        np.append(False, ~(values[1:] > values[:-1])),
        f"{name} must increase, each above the one before",
        f". np.unique({name}) sorts them and leaves out repeated ones",
    )
    return values


def as_array(value: Any) -> np.ndarray:
    """Make an array; of objects if rows have different lengths."""
    try:
        return np.asarray(value)
    except ValueError:
        return np.array(None, dtype=object)


def choice(value: Any, name: str, choices: Iterable[str]) -> str:
    """Check that one of a few words was given."""
    choices = tuple(choices)
    if not isinstance(value, str) or value not in choices:
        error = ValueError if isinstance(value, str) else TypeError
        *others, last = (repr(each) for each in choices)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise error(f"{name} must be {listed}, got {shown(value)}")
    return value


def text(value: Any, name: str) -> str:
    """Check a string that isn't empty, such as a variable's name."""
    is_a(value, str, f"{name} must be a string")
    if not value:
        raise ValueError(f"{name} must not be empty")
    return value


def names(value: Any, name: str) -> tuple[str, ...]:
    """Check a sequence of names; a single string isn't one."""
    if isinstance(value, str):
        raise TypeError(f"{name} must be a list of names: write [{value!r}]")
    try:
        listed = () if isinstance(value, Mapping) else tuple(value)
    except (TypeError, ValueError):  # ValueError: a symbolic vector
        listed = (value,)
    for each in listed:
        is_a(each, str, f"{name} must be a list of names")
    if not listed:
        raise ValueError(f"{name} must not be empty: leave it out, or name at least one")
    return listed


def different(values: Iterable[Any], rule: str) -> None:
    """Check that no two values are the same: else a ValueError names one that is there twice."""
    seen: set[Any] = set()
    for each in values:
        if each in seen:
            raise ValueError(f"{rule}, but {shown(each)} is there twice")
        seen.add(each)


def known(asked: Iterable[Any], there: Iterable[Any], problem: str) -> None:
    """Check that all that is asked for is there: else a ValueError lists what is."""
    there = list(there)
    for each in asked:
        if each not in there:
            listed = ", ".join(map(str, there)) or "none"
            raise ValueError(f"{problem} {shown(each)}, but {listed}")


def fits(shape: Sequence[int], expected: Sequence[int | None]) -> bool:
    """Whether an array has the expected shape, in which None stands for any length."""
    pairs = zip(shape, expected, strict=True)
    return len(shape) == len(expected) and all(length in (None, n) for n, length in pairs)


def has_shape(array: Any, name: str, *expected: Sequence[int | None], why: str = "") -> None:
    """Check that an array has one of the expected shapes: see ``fits``."""
    if not any(fits(np.shape(array), shape) for shape in expected):
        shapes = " or ".join(str(tuple(shape)) for shape in expected).replace("None", "any")
        raise ValueError(f"{name} must have shape {shapes}{why}, got {np.shape(array)}")


def is_a(value: Any, kind: type | UnionType, rule: str) -> None:
    """Check the type of an argument."""
    if not isinstance(value, kind):
        raise TypeError(f"{rule}, got {shown(value)}")


def options(value: Any, name: str, of: str = "options by name") -> dict[str, Any]:
    """Check options that are passed on by name, or other things by a name; none if None."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise TypeError(f"{name} must be a dict of {of}, got {shown(value)}")
    return dict(value)


def function(value: Any, name: str, signature: str) -> Callable[..., Any]:
    """Check a function; its signature is how it is called, such as "draw(rng, point)"."""
    if not callable(value):
        raise TypeError(f"{name} must be a function {signature}, got {shown(value)}")
    return value


def no_comparison(value: Any, name: str) -> None:
    """Refuse a Python bool, which ``==`` makes of a variable."""
    if isinstance(value, bool):
        raise TypeError(
            f"{name} is {value}: Python compares variables as objects, so that x == 1 is False. "
            "Write pt.eq(x, 1), or pt.neq(x, 1) for x != 1"
        )


def called_as[F: Callable[..., Any]](example: str) -> Callable[[F], F]:
    """Make a method say what to write if it is called with wrong arguments.

    Python itself would name the class from which a method is inherited. ``{owner}`` stands in the
    example for the class, or the class of the object, whose method is called.
    """

    def decorate(method: F) -> F:
        signature = inspect.signature(method)

        @wraps(method)
        def call(owner: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                signature.bind(owner, *args, **kwargs)
            except TypeError as error:
                name = (owner if isinstance(owner, type) else type(owner)).__name__
                raise TypeError(
                    f"{name}.{method.__name__}: {error}. Write {example.format(owner=name)}"
                ) from None
            return method(owner, *args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def random_generator(value: Any, name: str) -> np.random.Generator:
    """Make a generator from a seed; a generator stays itself."""
    expected = f"{name} must be a whole number of at least 0, a NumPy Generator or None"
    if isinstance(value, bool | np.bool_ | np.random.RandomState):
        raise TypeError(f"{expected}, got {shown(value)}")
    try:
        return np.random.default_rng(value)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{expected}, got {shown(value)}") from None


def pyarrow(name: str) -> ModuleType:
    """Import what reads and writes Parquet files, for an argument with this name."""
    try:
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError as error:
        raise ImportError(
            f"{name} needs pyarrow, which isn't installed: pip install pyarrow"
        ) from error


def places(chosen: Any) -> str:
    """Return how many entries of an array are wrong, and where the first is.

    For messages about confidential data, which must not contain the values.
    """
    chosen = np.asarray(chosen)
    if chosen.size == 0:
        return "it is empty"
    if chosen.ndim == 0:
        return "it is wrong"
    first = [int(k) for k in np.unravel_index(np.argmax(chosen), chosen.shape)]
    index = first[0] if len(first) == 1 else tuple(first)
    count = np.count_nonzero(chosen)
    which = "is wrong, at" if count == 1 else "are wrong, the first at"
    return f"{count:,} of {chosen.size:,} {which} index {index}"


def nowhere(wrong: Any, rule: str, way_out: str = "") -> None:
    """Check that no entry of an array is wrong: else a ValueError says how many are, and where."""
    if np.any(wrong):
        raise ValueError(f"{rule}: {places(wrong)}{way_out}")


def shown(value: Any) -> str:
    """Format an argument for a message: single numbers and words as they are.

    Of anything else the type only, and the shape: it may hold confidential values.
    """
    if value is None or isinstance(value, bool | np.bool_):
        return str(value)
    if isinstance(value, int) and abs(value) >= 10**30:
        return f"a whole number of {value.bit_length()} bits"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:60]}...")
    if isinstance(value, list | tuple | set | dict) and not value:
        return repr(value)
    kind = type(value).__name__
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{kind} of shape {shape}"
    name = getattr(value, "name", None)
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind}" + (f" '{name}'" if isinstance(name, str) else "")


def _range(**limits: float | None) -> str:
    words = {"above": "above", "at_least": "of at least", "below": "below", "at_most": "of at most"}
    parts = [f"{words[key]} {limit:g}" for key, limit in limits.items() if limit is not None]
    return f" {' and '.join(parts)}" if parts else ""
