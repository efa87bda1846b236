"""Functions that are compiled by themselves, and called by their addresses.

numba compiles a function anew for each function that it is given. So a kernel that calls a model's
log-density would be compiled for each model. It is compiled once where the log-density comes as an
address (`by_address`), with a signature that all models have in common. And what calls a kernel has
all of its machine code linked in and optimised once more. It has not where the kernel is `Outside`:
machine code refers to it by a symbol, and has it loaded before it is loaded itself.

Arrays among the arguments have one dimension and are contiguous. They are passed as pointer and
length, a third of what numba passes. The function that is called mustn't keep them.
"""

from collections.abc import Callable
from functools import cached_property, partial, wraps
from hashlib import sha256
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.compiler import CompileResult
from numba.core.datamodel.models import OpaqueModel
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import impl_ret_borrowed, lower_constant
from numba.core.typing import Signature
from numba.extending import intrinsic, lower_builtin, overload, register_model, typeof_impl
from numba.np.arrayobj import make_array, populate_array
from pytensor import config
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit

from pymc_dapper.backend.optimised_once import outermost

LOWERED_BY = sha256(Path(__file__).read_bytes()).hexdigest()
"""Identifies how this module has functions called."""


class Address(types.Type):
    """Where arrays lie that a function takes before all else. Only that function looks at them."""

    def __init__(self) -> None:
        super().__init__(name="Address")


class FunctionAt(types.Callable):
    """Where a function lies, of what it takes and returns."""

    def __init__(self, signature: Signature):
        self.signature = signature
        super().__init__(name=f"FunctionAt({signature})")

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Signature | None:
        """Take what can be converted to what the function takes."""
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


class Outside:
    """A kernel that isn't compiled into what calls it, but by itself, and kept on disk.

    Parameters
    ----------
    kernel : Dispatcher
        The kernel.
    signature : Signature
        What it takes and returns.
    key : str
        Identifies its machine code.
    """

    def __init__(self, kernel: Dispatcher, signature: Signature, key: str):
        self.kernel, self.signature = kernel, signature
        identity = (key, str(signature), bool(config.numba__fastmath), LOWERED_BY, __name__)
        self.key = sha256(repr(identity).encode()).hexdigest()
        KNOWN.setdefault(self.symbol, self)

    @property
    def symbol(self) -> str:
        """What machine code refers to it by."""
        return f"pymc_dapper_{self.key}"

    @cached_property
    def _find(self) -> Callable[[], int]:
        at = _address_maker(self.signature)
        function = compile_numba_function_src(
            "def kept(): return at(kernel)",
            "kept",
            {"__name__": __name__, "at": at, "kernel": self.kernel},
            cache_key=self.key,
        )
        # Nothing is taken over from what is just being compiled.
        return outermost(
            numba_njit(
                function,
                cache=config.numba__cache,
                error_model="numpy",
                no_cpython_wrapper=False,
                inline="never",
            )
        )

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        return self.kernel(*arguments)

    def load(self) -> None:
        """Have the machine code in memory, where machine code that calls it finds it."""
        if llvm.address_of_symbol(self.symbol) is None:
            llvm.add_symbol(self.symbol, self._find())


KNOWN: dict[str, Outside] = {}
"""Kernels of this process by their symbols: the first of each, which holds the machine code."""


def _load(symbol: str) -> None:
    KNOWN[symbol].load()


_rebuild: Callable[..., Any] = CompileResult._rebuild


@wraps(_rebuild)
def _inheriting(cls: type[CompileResult], *parts: Any) -> Any:
    """Have what calls a function from disk load what that function needs to be loaded.

    numba hands this on from functions that it has just compiled only. Of others, the machine code
    of the caller would refer to symbols that nobody defines, the next time that it is loaded.
    """
    result = _rebuild(*parts)
    result.library._reload_init.update(result.reload_init)
    return result


CompileResult._rebuild = classmethod(_inheriting)  # type: ignore[assignment,method-assign]


@typeof_impl.register(Outside)
def _typeof_outside(value: Outside, _: Any) -> FunctionAt:
    return FunctionAt(value.signature)


@lower_constant(FunctionAt)
def _outside(context: Any, builder: Any, typ: FunctionAt, value: Outside) -> Any:
    _load(value.symbol)
    # Called before machine code that refers to the symbol is loaded from disk.
    context.active_code_library._reload_init.add(partial(_load, value.symbol))
    return cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), []), value.symbol
    ).bitcast(cgutils.voidptr_t)


def by_address(at: Signature) -> Callable[..., Any]:
    """Make what passes a model's function by its address, with arrays of the model's.

    Parameters
    ----------
    at : Signature
        What the function takes besides these arrays, which come first, and what it returns.

    Returns
    -------
    callable
        Of a function and a tuple of arrays; it returns both as they are passed to a kernel, which
        calls one with the other as the first argument. In Python that's both as they are.
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


def as_matrix(x, n_rows, n_columns, _lowered_by=LOWERED_BY):  # type: ignore[no-untyped-def]
    """See a contiguous vector as a matrix, row by row; numba's ``reshape`` takes long to compile.

    The vector must have as many entries as the matrix: that isn't checked.
    """
    return x.reshape((n_rows, n_columns))


@intrinsic
def _seen_as_matrix(typing, x, n_rows, n_columns):  # type: ignore[no-untyped-def]
    matrix = types.Array(x.dtype, 2, "C")

    def codegen(cg, builder, sig, args):  # type: ignore[no-untyped-def]
        vector, result = make_array(x)(cg, builder, args[0]), make_array(matrix)(cg, builder)
        size = ir.Constant(ir.IntType(64), cg.get_abi_sizeof(cg.get_data_type(x.dtype)))
        strides = builder.mul(args[2], size), size
        populate_array(result, vector.data, args[1:], strides, size, vector.meminfo, vector.parent)
        return impl_ret_borrowed(cg, builder, matrix, result._getvalue())

    return matrix(x, types.intp, types.intp), codegen


@overload(as_matrix)
def _as_matrix(x, n_rows, n_columns, _lowered_by=None):  # type: ignore[no-untyped-def]
    seen: Any = _seen_as_matrix
    return lambda x, n_rows, n_columns, _lowered_by=None: seen(x, n_rows, n_columns)


def _address_maker(at: Signature) -> Any:
    """Make what returns a function's address as a number."""

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
    """Types of what is passed: of arrays, where they start and how long they are."""
    found: list[types.Type] = []
    for each in arguments:
        is_array = isinstance(each, types.Array)
        found += [types.CPointer(each.dtype), types.intp] if is_array else [each]
    return found


def _entry(
    cg: Any, module: Any, function: Any, call: Signature, at: Signature, context: Any
) -> Any:
    """Write the function that is called: it makes arrays of what is passed, and calls another."""
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
    """Don't count references to arrays, which belong to who called the kernel; all else stays."""
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
    kind = cg.call_conv.get_function_type(at.return_type, _flat(at.args))
    function = builder.bitcast(args[0], kind.as_pointer())
    status, result = cg.call_conv.call_function(
        builder, function, at.return_type, _flat(at.args), passed
    )
    with cgutils.if_unlikely(builder, status.is_error):
        cg.call_conv.return_status_propagate(builder, status)
    return result
