"""numba's functions, optimised together with their caller, and not before.

numba runs all of LLVM's passes over each function, writes its machine code and loads it. Then it
links the function into every caller, where all passes run over it again. Of a model's function and
the dozens that it calls, Python only calls the outermost. Here the others are kept as numba lowered
them, and linked into the outermost one at once, which is then optimised as a whole. The result is
the same.

Relies on numba's class of code libraries, from which another is derived, and on five of its
functions, which are replaced while a function of ours is compiled and numba's own lock is held.
Gains a quarter to a third of a first draw with an empty cache. Without it, numba compiles as it
does.

Nothing of numba's stays changed. An incomplete function is completed as soon as something else
needs it: numba for a caller in another package, or Python that calls it, in any thread and even
while another function is being compiled. Only functions that call each other are completed at once,
because they find each other by name.

LLVM may reorder sums differently in a larger function. So draws can differ by rounding from those
without; with PyTensor's ``numba__fastmath=False`` they don't. The inner functions' wrappers for
Python and C aren't written either, which saves a tenth of the time.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from weakref import WeakSet, ref

import llvmlite.binding as llvm
from numba.core import event
from numba.core.caching import Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

from pymc_dapper.backend.accelerate import kept
from pymc_dapper.backend.accelerate.switch import is_on
from pymc_dapper.backend.flags import changed

LOOKED = kept.LOOKED | {
    "numba.core.caching:Cache.save_overload": {"ce07b8d21537"},
    "numba.core.codegen:CPUCodeLibrary.__init__": {"148569f818bc"},
    "numba.core.codegen:CPUCodeLibrary._finalize_final_module": {"95bbf4fcbb90"},
    "numba.core.codegen:CPUCodeLibrary._get_module_for_linking": {"56dde0e0555b"},
    "numba.core.codegen:CPUCodeLibrary._optimize_functions": {"9439219fa946"},
    "numba.core.codegen:CPUCodeLibrary.add_linking_library": {"b7c82a3a3a8d"},
    "numba.core.codegen:CPUCodeLibrary.finalize": {"4b4c34b83488"},
    "numba.core.codegen:CPUCodegen.create_library": {"63e627c4cd04"},
    "numba.core.codegen:CodeLibrary._ensure_finalized": {"fe8a6e1f04e7"},
    "numba.core.codegen:JITCodeLibrary": {"91930d5907bf"},
    "numba.core.cpu:CPUContext.create_cfunc_wrapper": {"d66bfc1734e1"},
    "numba.core.cpu:CPUContext.create_cpython_wrapper": {"ebd90c8205b4"},
    "numba.core.cpu:CPUContext.get_executable": {"3892c8a654a2"},
    "numba.core.dispatcher:Dispatcher.add_overload": {"3cd1a5150786"},
    "numba.core.dispatcher:Dispatcher.compile": {"0ab4aee15e79"},
}
"""Digests of numba's code for which this was written: the same in numba 0.63 to 0.68."""

ENVIRONMENT = "_ZN08NumbaEnv"
"""Prefix of the variables in which machine code looks for its function's globals."""

RECURSIVE = ".numba.unresolved$"
"""Prefix of those by which functions call each other.

Through them, machine code finds a function that is loaded later, by its name. So all functions that
lead to one are completed separately, as by numba.
"""


REPEATED = "repeated"
"""Part of the names of functions that many places call, and that aren't copied to each."""


class DeferredLibrary(JITCodeLibrary):
    """Code of a function, which is complete only once it is asked for."""

    _leads_to_recursion = False

    def __init__(self, codegen: Any, name: str):
        super().__init__(codegen, name)
        self.wrappers: list[Callable[[], None]] = []
        """They write the functions by which Python and C call this one, once it is complete."""

    def _optimize_functions(self, module: Any) -> None:
        """Leave that to the passes over the whole: over a long function it takes as long again."""
        module.data_layout = self.codegen._data_layout

    def add_linking_library(self, library: Any) -> None:
        """Record the called function without linking it."""
        is_recursive = isinstance(library, DeferredLibrary) and library._is_recursive()
        if is_recursive or not isinstance(library, DeferredLibrary):
            library._ensure_finalized()
        self._leads_to_recursion |= is_recursive
        self._linking_libraries.append(library)

    def _ensure_finalized(self) -> None:
        with global_compiler_lock:  # numba asks without a lock, as it takes it for complete
            super()._ensure_finalized()

    def finalize(self) -> None:
        """Link all functions that are called, directly or not; then optimise, and load."""
        while self.wrappers:
            self.wrappers[0]()
            del self.wrappers[0]
        self._linking_libraries = self._called()
        super().finalize()
        codegen, self._environments = self.codegen, []
        for variable in self._final_module.global_variables:
            if variable.name.startswith(ENVIRONMENT) and not variable.is_declaration:
                environment = lookup_environment(variable.name)
                if environment is not None:
                    codegen.set_env(variable.name, environment)
                    self._environments.append(environment)  # which must live as long

    def _get_module_for_linking(self) -> Any:
        if self._finalized:
            return super()._get_module_for_linking()
        module = self._final_module.clone()
        for function in module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
                if REPEATED in function.name:
                    function.add_function_attribute("noinline")
        return module

    def _called(self) -> list[Any]:
        """List the functions to link, callers first: LLVM only takes those already referred to."""
        seen, found = set(), []

        def visit(library: Any) -> None:
            seen.add(library)
            # A complete function contains those that it calls.
            for each in () if library._finalized else library._linking_libraries:
                if each not in seen:
                    visit(each)
            found.append(library)

        visit(self)
        return found[-2::-1]

    def _is_recursive(self) -> bool:
        variables = self._final_module.global_variables
        return self._leads_to_recursion or any(x.name.startswith(RECURSIVE) for x in variables)


class _Depth(event.Listener):
    """How many functions are being compiled, one for another."""

    now = 0

    def on_start(self, event: event.Event) -> None:
        self.now += 1

    def on_end(self, event: event.Event) -> None:
        self.now -= 1

    @contextmanager
    def outermost(self) -> Iterator[None]:
        """Compile a function that Python calls, for any target."""
        was, self.now = self.now, 0
        try:
            yield
        finally:
            self.now = was


DEPTH = _Depth()


@contextmanager
def deferred_libraries() -> Iterator[None]:
    """Compile a function that is only linked into functions compiled here."""
    with ExitStack() as stack:
        stack.enter_context(global_compiler_lock)  # nobody else compiles meanwhile
        stack.enter_context(DEPTH.outermost())
        codegen = cpu_target.target_context.codegen()
        if cpu_target.target_context.codegen()._library_class is not DeferredLibrary:
            # numba's one-time registrations must not be left half done if something fails here.
            cpu_target.typing_context.refresh()
            cpu_target.target_context.refresh()
            stack.enter_context(event.install_listener("numba:compile", DEPTH))
            stack.enter_context(changed(codegen, "_library_class", DeferredLibrary))
            stack.enter_context(changed(CPUContext, "get_executable", _executable))
            for name in WRAPPERS:
                stack.enter_context(changed(CPUContext, name, _written_later(name)))
            stack.enter_context(changed(Dispatcher, "add_overload", _add_overload))
            stack.enter_context(changed(Cache, "save_overload", _save_overload))
        yield


class Incomplete:
    """The entry by which Python calls a function that may be incomplete; it completes it first.

    numba refers to it as long as there is the dispatcher, which isn't kept alive here.
    """

    dispatcher: Callable[[], Any] = staticmethod(lambda: None)

    def __init__(self, *parts: Any):
        self._parts = parts
        self._entry: Any = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function, and make the dispatcher do so from now on."""
        if self._entry is None:
            with global_compiler_lock:
                self._complete()
        return self._entry(*arguments, **named)

    def _complete(self) -> None:
        if self._entry is not None:  # another thread was faster
            return
        entry, dispatcher = EXECUTABLE(*self._parts), self.dispatcher()
        if dispatcher is not None:
            [result] = [x for x in dispatcher.overloads.values() if x.entry_point is self]
            ADD_OVERLOAD(dispatcher, result._replace(entry_point=entry))
            # By which numba finds it for other functions, and forgets it.
            dispatcher.overloads[tuple(result.signature.args)] = result
        self._entry = entry


def _is_incomplete(library: Any) -> bool:
    return isinstance(library, DeferredLibrary) and not library._finalized


def _executable(context: Any, library: Any, described: Any, environment: Any) -> Any:
    in_python = DEPTH.now < 2 or not described.native  # or one in object mode
    make = EXECUTABLE if in_python or not _is_incomplete(library) else Incomplete
    return make(context, library, described, environment)


def _written_later(name: str) -> Callable[..., None]:
    """Write a wrapper by numba's own code, after the function is complete."""
    write = WRAPPERS[name]

    def later(context: Any, library: Any, *parts: Any, **options: Any) -> None:
        def now() -> None:
            with context.push_code_library(library):
                write(context, library, *parts, **options)

        if DEPTH.now < 2 or not isinstance(library, DeferredLibrary):
            now()
        else:
            library.wrappers.append(now)

    return later


def _add_overload(dispatcher: Any, result: Any) -> None:
    if isinstance(result.entry_point, Incomplete):
        dispatcher.overloads[tuple(result.signature.args)] = result
        result.entry_point.dispatcher = ref(dispatcher)
        INCOMPLETE.add(dispatcher)
    else:
        ADD_OVERLOAD(dispatcher, result)


INCOMPLETE: WeakSet[Dispatcher] = WeakSet()
"""Functions with incomplete parts."""


def forget_incomplete() -> None:
    """Make numba compile incomplete functions again, by itself."""
    for dispatcher in INCOMPLETE:
        known: dict[Any, Any] = dispatcher.overloads
        for arguments, result in [*known.items()]:
            if _is_incomplete(result.library):
                del known[arguments]
    INCOMPLETE.clear()


def _save_overload(cache: Any, signature: Any, result: Any) -> None:
    if not _is_incomplete(result.library):
        SAVE_OVERLOAD(cache, signature, result)


EXECUTABLE, ADD_OVERLOAD = CPUContext.get_executable, Dispatcher.add_overload
SAVE_OVERLOAD = Cache.save_overload
WRAPPERS = {
    name: getattr(CPUContext, name) for name in ("create_cpython_wrapper", "create_cfunc_wrapper")
}
"""numba's own."""


def outermost(function: Any) -> Any:
    """Have a function compiled so, and kept with a digest; it's called from Python."""
    compiled: Callable = function.compile

    def compile_whole(signature: Any) -> Any:
        if not is_on("deferred_libraries"):
            return compiled(signature)
        with deferred_libraries():
            return compiled(signature)

    function.compile = compile_whole
    kept.keep_with_digest(function)
    return function
