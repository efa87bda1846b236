"""Functions that are compiled by themselves, and called by their addresses.

numba compiles a function again for each function that it is passed. So a kernel that calls a
model's log-density would be compiled for each model. It is compiled only once if it gets the
log-density as an address (`by_address`), with a signature that all models share. Also, a caller of
a kernel links all of its machine code and optimises it again. It doesn't if the kernel is
`ExternalKernel`: the machine code then refers to it by a symbol, and loads it first.

Arrays among the arguments have one dimension and are contiguous. They are passed as pointer and
length, a third of what numba passes. The called function must not keep them.

Relies on how numba lowers calls and lays out arrays. Gains nearly half of the first draw of a new
model with `CountStep`, and a tenth with `InterweaveStep`. Without it, these kernels are compiled
for each model.
"""

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.datamodel.models import OpaqueModel
from numba.core.imputils import lower_constant
from numba.core.typing import Signature
from numba.extending import intrinsic, lower_builtin, overload, register_model, typeof_impl
from numba.np.arrayobj import make_array, populate_array
from pytensor import config
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend.accelerate.deferred_libraries import outermost
from pymc_dapper.backend.accelerate.external import ExternalKernel, written_out

LOWERED_BY = sha256(Path(__file__).read_bytes()).hexdigest()
"""Identifies this module's way of calling functions."""


class Address(types.Type):
    """Addresses of the arrays that a function takes first. Only that function uses them."""

    def __init__(self) -> None:
        super().__init__(name="Address")


class FunctionAt(types.Callable):
    """Type of a function's address, by its arguments and result."""

    def __init__(self, signature: Signature):
        self.signature = signature
        super().__init__(name=f"FunctionAt({signature})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature | None:
        """Accept arguments that can be converted to the function's."""
        if kws or len(args) != len(self.signature.args):
            return None
        return self.signature.replace(recvr=self)

    def get_call_signatures(self) -> tuple[list[Signature], bool]:
        """Return the only one."""
        return [self.signature], False

    def get_impl_key(self, sig: Signature) -> type:
        """All are called alike."""
        return FunctionAt


register_model(Address)(OpaqueModel)
register_model(FunctionAt)(OpaqueModel)
address = Address()


KNOWN: dict[str, ExternalKernel] = {}
"""Kernels of this process by their symbols: the first of each, which holds the machine code."""


def given_function(
    kernel: Any, function: Any, of: Signature, signature: Signature, key: str
) -> Callable:
    """Pass a model's function to a kernel by its address; see :func:`accelerate.given_function`."""
    external = by_itself(kernel, of, signature, key)
    names = {"kernel": external, "function": function, "passed": by_address(of)}
    body = "f, at = passed(function, context); return kernel(f, at, {})"
    written = written_out(body, signature, "contiguous({})", contiguous=contiguous, **names)
    given: Any = numba_njit(written)
    given.external = external
    return given


def contiguous(x):  # type: ignore[no-untyped-def]
    """Return an array as kernels take it; PyTensor's own functions may make others."""
    return x


@overload(contiguous, inline="always")
def _contiguous(x):  # type: ignore[no-untyped-def]
    if isinstance(x, types.Array) and (x.layout != "C" or not x.mutable):
        return lambda x: x.copy()
    return lambda x: x


def by_itself(kernel: Any, of: Signature, signature: Signature, key: str) -> ExternalKernel:
    """Have a kernel compiled once, which takes a function by its address."""
    function = FunctionAt(of.return_type(address, *of.args))
    signature = signature.return_type(function, address, *signature.args)
    identity = (key, str(signature), bool(config.numba__fastmath), LOWERED_BY, __name__)
    symbol = f"pymc_dapper_{sha256(repr(identity).encode()).hexdigest()}"
    return KNOWN.setdefault(symbol, ExternalKernel(kernel, signature, symbol))


def load(external: ExternalKernel) -> None:
    """Load machine code, where its callers find it."""
    if llvm.address_of_symbol(external.symbol) is None:
        llvm.add_symbol(external.symbol, _finding(external)())


@cache
def _finding(external: ExternalKernel) -> Callable[[], int]:
    """Make a function that returns a kernel's address, and is cached on disk with the kernel."""
    function = compile_numba_function_src(
        "def kept(): return at(kernel)",
        "kept",
        {"__name__": __name__, "at": _address_maker(external.signature), "kernel": external.kernel},
        cache_key=external.symbol,
    )
    # Don't use anything of the function that is being compiled.
    return outermost(
        numba_njit(
            function,
            cache=config.numba__cache,
            error_model="numpy",
            no_cpython_wrapper=False,
            inline="never",
        )
    )


@typeof_impl.register(ExternalKernel)
def _typeof_external(value: ExternalKernel, _: Any) -> FunctionAt:
    return FunctionAt(value.signature)


@lower_constant(FunctionAt)
def _external(context: Any, builder: Any, typ: FunctionAt, value: ExternalKernel) -> Any:
    load(value)
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), []), value.symbol
    ).bitcast(cgutils.voidptr_t)


def by_address(at: Signature) -> Callable[..., Any]:
    """Make a function that passes a model's function by its address, with arrays of the model's.

    Parameters
    ----------
    at : Signature
        Further arguments, after these arrays, and the result.

    Returns
    -------
    callable
        Takes a function and a tuple of arrays, and returns both in the form for a kernel, which
        calls the one with the other as the first argument. In Python both stay unchanged.
    """
    with_context = at.return_type(address, *at.args)

    def passed(function, context, _lowered_by=(str(at), LOWERED_BY)):  # type: ignore[no-untyped-def]
        return function, context

    @intrinsic
    def lowered(typing, function, context):  # type: ignore[no-untyped-def]
        call = _call_type(typing, function, (context, *at.args), at)
        result = types.Tuple((FunctionAt(with_context), address))

        def codegen(cg, builder, sig, args):  # type: ignore[no-untyped-def]
            entry = _entry(cg, builder.module, function, call, with_context, context)
            kept = cgutils.alloca_once_value(builder, args[1])
            values = [builder.bitcast(x, cgutils.voidptr_t) for x in (entry, kept)]
            return cg.make_tuple(builder, sig.return_type, values)

        return result(function, context), codegen

    @overload(passed, inline="always")
    def _passed(function, context, _lowered_by=None):  # type: ignore[no-untyped-def]
        lower: Any = lowered
        return lambda function, context, _lowered_by=None: lower(function, context)

    return passed


def _address_maker(at: Signature) -> Any:
    """Make a function that returns a function's address as a number."""

    @intrinsic
    def number(typing, function):  # type: ignore[no-untyped-def]
        call = _call_type(typing, function, at.args, at)

        def codegen(cg, builder, sig, args):  # type: ignore[no-untyped-def]
            entry = _entry(cg, builder.module, function, call, at, None)
            return builder.ptrtoint(entry, ir.IntType(64))

        return types.int64(function), codegen

    return number


def _call_type(typing: Any, function: Any, arguments: Any, at: Signature) -> Signature:
    call = typing.resolve_function_type(function, arguments, {})
    if not typing.can_convert(call.return_type, at.return_type):
        raise TypeError(f"{function} returns {call.return_type}, not {at.return_type}")
    return call


def _flat(arguments: Any) -> list[types.Type]:
    """Types of the passed values; an array is its start and length."""
    found: list[types.Type] = []
    for each in arguments:
        is_array = isinstance(each, types.Array)
        found += [types.CPointer(each.dtype), types.intp] if is_array else [each]
    return found


def _entry(
    cg: Any, module: Any, function: Any, call: Signature, at: Signature, context: Any
) -> Any:
    """Write the called function: it makes arrays from the passed values, and calls another."""
    passed = _flat(at.args)
    name = module.get_unique_name("called_by_address")
    entry = ir.Function(module, cg.call_conv.get_function_type(at.return_type, passed), name)
    entry.linkage = "internal"
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    rest = iter(cg.call_conv.decode_arguments(builder, passed, entry))
    arguments = []
    for each in at.args:
        value = next(rest)
        if isinstance(each, types.Array):
            value = _array(cg, builder, each, value, next(rest))
        elif isinstance(each, Address) and context is not None:
            pointer = cg.get_value_type(context).as_pointer()
            value = _borrowed(cg, builder, context, builder.load(builder.bitcast(value, pointer)))
        arguments.append(value)
    result = cg.get_function(function, call)(builder, arguments)
    result = cg.cast(builder, result, call.return_type, at.return_type)
    cg.call_conv.return_value(builder, result)
    return entry


def _array(cg: Any, builder: Any, of: types.Array, data: Any, length: Any) -> Any:
    array = make_array(of)(cg, builder)
    size = ir.Constant(ir.IntType(64), cg.get_abi_sizeof(cg.get_data_type(of.dtype)))
    populate_array(array, data, (length,), (size,), size, meminfo=None)
    return array._getvalue()


def _borrowed(cg: Any, builder: Any, of: Any, value: Any) -> Any:
    """Don't count references to arrays, which belong to the kernel's caller."""
    if isinstance(of, types.BaseTuple):
        kinds: Any = of
        parts = cgutils.unpack_tuple(builder, value)
        parts = [_borrowed(cg, builder, t, x) for t, x in zip(kinds, parts, strict=True)]
        return cg.make_tuple(builder, of, parts)
    if isinstance(of, types.Array):
        array = make_array(of)(cg, builder, value)
        array.meminfo = cgutils.get_null_value(array.meminfo.type)
        return array._getvalue()
    return value


@lower_builtin(FunctionAt, FunctionAt, types.VarArg(types.Any))
def _called(cg: Any, builder: Any, sig: Signature, args: Any) -> Any:
    at = sig.args[0].signature
    passed = []
    for each, value in zip(at.args, args[1:], strict=True):
        if isinstance(each, types.Array):
            array = make_array(each)(cg, builder, value)
            passed += [array.data, array.nitems]
        else:
            passed.append(value)
    of = _flat(at.args)
    kind = cg.call_conv.get_function_type(at.return_type, of)
    function = builder.bitcast(args[0], kind.as_pointer())
    status, result = cg.call_conv.call_function(builder, function, at.return_type, of, passed)
    with cgutils.if_unlikely(builder, status.is_error):
        cg.call_conv.return_status_propagate(builder, status)
    return result
