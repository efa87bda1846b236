"""Operations on numbers, as expressions with the values that PyTensor's own functions give."""

import re
from ast import literal_eval
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytensor.scalar as ps
from numba import njit
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key, numba_njit

from pymc_dapper.one_function.code import Code, Term

_BETWEEN: dict[type, str] = {
    ps.LT: "<", ps.GT: ">", ps.LE: "<=", ps.GE: ">=", ps.EQ: "==", ps.NEQ: "!="
}  # fmt: skip
_ARITHMETIC: dict[type, str] = {ps.Add: " + ", ps.Mul: " * ", ps.Sub: " - ", ps.TrueDiv: " / "}
_BITS: dict[type, str] = {ps.AND: " & ", ps.OR: " | ", ps.XOR: " ^ "}
_NATIVE = {"bool", "int64", "float64"}
"""Types that numba's arithmetic keeps."""
_CHEAP = (ps.Add, ps.Mul, ps.Sub, ps.Neg, ps.Sqr, ps.Cast, ps.Switch, ps.Second, ps.Identity,
          ps.LT, ps.GT, ps.LE, ps.GE, ps.EQ, ps.NEQ, ps.AND, ps.OR, ps.XOR, ps.Invert, ps.Abs,
          ps.Maximum, ps.Minimum, ps.Clip)  # fmt: skip


_LITERAL = re.compile(r"\(*-?\d+(\.\d+)?(e[-+]?\d+)?\)*|True|False")


def literal(value: Any) -> str:
    """Write a number."""
    value = np.asarray(value)[()]
    kind = value.dtype.kind
    if kind == "b":
        return str(bool(value))
    if kind in "iu":
        text = str(int(value))
        text = f"({text})" if int(value) < 0 else text
        return f"np.uint64({text})" if int(value) >= 2**63 else text
    number = float(value)
    if np.isnan(number):
        return "np.nan"
    if np.isinf(number):
        return "np.inf" if number > 0 else "(-np.inf)"
    text = repr(number) if number > 0 or repr(number) == "0.0" else f"({number!r})"
    return text if value.dtype == np.float64 else f"np.{value.dtype.name}({text})"


def cast(text: str, old: str, new: str) -> str:
    """Convert a number to another type."""
    if old == new:
        return text
    known = _number(text)
    if known is not None and np.isfinite(known):
        return literal(np.asarray(known).astype(new))
    return f"({text} != 0)" if new == "bool" else f"np.{new}({text})"


def _number(text: str) -> Any:
    """Return the number of a literal; None for other expressions."""
    text = text.removeprefix("np.float32")
    return literal_eval(text) if _LITERAL.fullmatch(text) else None


def weight(op: ps.ScalarOp) -> int:
    """Return the relative time of an operation; an addition has 1."""
    return 1 if isinstance(op, _CHEAP) else 10


def apply_scalar(
    code: Code, op: ps.ScalarOp, operands: Sequence[Term], inputs: Sequence[str], output: str
) -> Term:
    """Apply an operation of one output to numbers.

    Parameters
    ----------
    code : Code
        Where it is written.
    op : ScalarOp
        The operation.
    operands : sequence of Term
        The numbers.
    inputs : sequence of str
        Their types.
    output : str
        Type of the result.
    """
    if isinstance(op, ps.Second | ps.Identity):
        return converted(code, operands[-1], inputs[-1], output)
    return code.evaluate(expression(code, op, operands, inputs, output), *operands)


def converted(code: Code, term: Term, old: str, new: str) -> Term:
    """Convert a number to another type."""
    return term if old == new else code.evaluate(cast(term.text, old, new), term)


def expression(
    code: Code, op: ps.ScalarOp, operands: Sequence[Term], inputs: Sequence[str], output: str
) -> str:
    """Write an operation of one output on numbers."""
    x = [each.text for each in operands]
    alike = [cast(text, old, output) for text, old in zip(x, inputs, strict=True)]
    of_reals = all(np.dtype(each).kind in "biuf" for each in [*inputs, output])
    if not of_reals:
        return _call(code, op, x, inputs)
    narrow = (lambda text: f"np.{output}({text})") if output not in _NATIVE else str
    match op:
        case ps.Add() | ps.Mul() | ps.Sub() | ps.TrueDiv():
            if output == "bool":
                sign = " | " if isinstance(op, ps.Add) else " & "
                return f"({sign.join(alike)})"
            return narrow(f"({_ARITHMETIC[type(op)].join(alike)})")
        case ps.AND() | ps.OR() | ps.XOR():
            return narrow(f"({_BITS[type(op)].join(alike)})")
        case ps.Invert():
            return f"(not {x[0]})" if inputs[0] == "bool" else narrow(f"(~{alike[0]})")
        case _ if type(op) in _BETWEEN:
            common = np.result_type(*inputs).name
            a, b = (cast(text, old, common) for text, old in zip(x, inputs, strict=True))
            return f"({a} {_BETWEEN[type(op)]} {b})"
        case ps.Neg():
            return narrow(f"(-{alike[0]})")
        case ps.Sqr():
            return narrow(f"({alike[0]} * {alike[0]})")
        case ps.Abs() if output != "bool":
            return narrow(f"abs({alike[0]})")
        case ps.Cast():
            return cast(x[0], inputs[0], output)
        case ps.Switch():
            if (chosen := _number(x[0])) is not None:
                return alike[1] if chosen else alike[2]
            return f"({alike[1]} if {x[0]} else {alike[2]})"
        case ps.Reciprocal() if output == "float64":
            return f"(1.0 / {alike[0]})"
        case ps.Pow() if output == "float64" and {*map(_number, alike)} == {None}:
            power = code.refer("f", _power, "x**y without fastmath")
            return f"{power}({alike[0]}, {alike[1]})"
        case ps.Pow() if output == "float64":
            return f"({alike[0]} ** {alike[1]})"
        case ps.Maximum() | ps.Minimum() | ps.Clip() if output != "bool":
            return _without_branch(code, op, output, *reversed(alike))
    name = (getattr(op, "nfunc_spec", None) or (".",))[0]
    if "." not in name and name != "power" and {output, *inputs} <= _NATIVE:
        return f"np.{name}({', '.join(x if output == 'bool' else alike)})"
    return _call(code, op, x, inputs)


def _without_branch(code: Code, op: ps.ScalarOp, dtype: str, *numbers: str) -> str:
    """Call a function for the larger or smaller of two numbers, or one moved between two others.

    Numba takes longer for a branch.
    """
    function = {ps.Maximum: _larger, ps.Minimum: _smaller, ps.Clip: _clipped}[type(op)]
    if dtype == "int64":  # numba compiles for each literal
        numbers = tuple(f"np.int64({x})" for x in numbers)
    return f"{code.refer('f', function, function.__name__)}({', '.join(numbers)})"


@numba_njit
def _larger(a, b):  # type: ignore[no-untyped-def]
    return b if (b != b) | (a < b) else a


@numba_njit
def _smaller(a, b):  # type: ignore[no-untyped-def]
    return b if (b != b) | (a > b) else a


@numba_njit
def _clipped(most, least, x):  # type: ignore[no-untyped-def]
    return least if x < least else most if x > most else x


# With fastmath, LLVM calls a function that isn't there if it sees that the exponent was an integer
# of few bits, or a truth value (numba's issue 9554): the process ends.
@njit(fastmath=False)
def _power(x: float, y: float) -> float:
    return x**y


def _call(code: Code, op: ps.ScalarOp, x: list[str], inputs: Sequence[str]) -> str:
    """Call PyTensor's own function of an operation."""
    node = op.make_node(*(ps.get_scalar_type(each)() for each in inputs))
    function, key = numba_funcify_and_cache_key(op, node=node)
    return f"{code.refer('f', function, key)}({', '.join(x)})"
