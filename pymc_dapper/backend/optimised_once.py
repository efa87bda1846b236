"""numba's functions, optimised together with what calls them, and not before.

numba runs all of LLVM's passes over each function, writes its machine code and loads it; then links
it into every function that calls it, where all passes run over it again. Of a model's function and
the dozens that it calls only the outermost is ever called from Python. Here the others are kept as
numba lowered them, and are linked into the outermost one at once, which is then optimised as a
whole. What it computes is the same.

Nothing of numba's stays changed: a function that was kept so is made complete as soon as somebody
else asks for it, be it numba for a caller of another package's, or Python that calls it, in any
thread and even while another function is being compiled.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from weakref import ref

import llvmlite.binding as llvm
from numba.core import event
from numba.core.caching import Cache
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher
from numba.core.environment import lookup_environment
from numba.core.postproc import PostProcessor
from numba.core.registry import cpu_target
from numba.core.targetconfig import TargetConfig
from numba.core.typing.npydecl import NumpyRulesArrayOperator

from pymc_dapper.backend.quick_flags import hash_of_flags, same_flags
from pymc_dapper.backend.quick_lifetimes import process
from pymc_dapper.backend.quick_loading import load_overload
from pymc_dapper.backend.quick_operators import of_arrays

ENVIRONMENT = "_ZN08NumbaEnv"
"""What the names of variables begin with in which machine code looks for its function's globals."""

RECURSIVE = ".numba.unresolved$"
"""What those begin with by which functions call each other in turns.

Through them, machine code finds a function that is loaded after it, under its own name. So all that
leads to one is made complete by itself, as numba does.
"""


class Whole(JITCodeLibrary):
    """Code of a function, which is complete only once it is asked for."""

    _leads_to_recursion = False

    def __init__(self, codegen: Any, name: str):
        super().__init__(codegen, name)
        self.wrappers: list[Callable[[], None]] = []
        """Write functions by which Python and C call this one; left to do until it is complete."""

    def add_linking_library(self, library: Any) -> None:
        """Note what is called, as it is."""
        is_recursive = isinstance(library, Whole) and library._is_recursive()
        if is_recursive or not isinstance(library, Whole):
            library._ensure_finalized()
        self._leads_to_recursion |= is_recursive
        self._linking_libraries.append(library)

    def _ensure_finalized(self) -> None:
        with global_compiler_lock:  # whoever asks; numba takes it for complete, and has no lock
            super()._ensure_finalized()

    def finalize(self) -> None:
        """Link all that is called, directly or not; then optimise, and load."""
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

    def _optimize_functions(self, ll_module: Any) -> None:
        """Pass over what is defined: numba makes passes for ten times as much that is declared."""
        ll_module.data_layout = self.codegen._data_layout
        defined = [function for function in ll_module.functions if not function.is_declaration]
        super()._optimize_functions(SimpleNamespace(functions=defined))

    def _get_module_for_linking(self) -> Any:
        if self._finalized:
            return super()._get_module_for_linking()
        module = self._final_module.clone()
        for function in module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        return module

    def _called(self) -> list[Any]:
        """List what is linked, callers first: LLVM takes over only what is referred to by then."""
        seen, found = set(), []

        def visit(library: Any) -> None:
            seen.add(library)
            # What is complete has in it what it calls.
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
        """Compile what Python calls, whatever it is compiled for."""
        was, self.now = self.now, 0
        try:
            yield
        finally:
            self.now = was


DEPTH = _Depth()


@contextmanager
def optimised_once() -> Iterator[None]:
    """Compile what is called only to be linked into what is compiled here."""
    with ExitStack() as stack:
        stack.enter_context(global_compiler_lock)  # nobody else compiles meanwhile
        stack.enter_context(DEPTH.outermost())
        codegen = cpu_target.target_context.codegen()
        if not is_under_way():
            stack.enter_context(event.install_listener("numba:compile", DEPTH))
            stack.enter_context(_replaced(codegen, "_library_class", Whole))
            stack.enter_context(_replaced(CPUContext, "get_executable", _executable))
            for name in WRAPPERS:
                stack.enter_context(_replaced(CPUContext, name, _written_later(name)))
            stack.enter_context(_replaced(Dispatcher, "add_overload", _add_overload))
            stack.enter_context(_replaced(Cache, "save_overload", _save_overload))
            stack.enter_context(_replaced(Cache, "load_overload", load_overload))
            stack.enter_context(_replaced(PostProcessor, "run", process))
            stack.enter_context(_replaced(NumpyRulesArrayOperator, "generic", of_arrays))
            stack.enter_context(_replaced(llvm.ffi.lib._lock, "_cblist", []))
            stack.enter_context(_replaced(TargetConfig, "__eq__", same_flags))
            stack.enter_context(_replaced(TargetConfig, "__hash__", hash_of_flags))
        yield


def is_under_way() -> bool:
    """Whether something is being compiled so, by this thread or another one."""
    return cpu_target.target_context.codegen()._library_class is Whole


class Incomplete:
    """What Python calls of a function that may not be complete: it is by then.

    numba refers to it as long as there is the dispatcher, which isn't kept alive here.
    """

    dispatcher: Callable[[], Any] = staticmethod(lambda: None)

    def __init__(self, *parts: Any):
        self._parts = parts
        self._entry: Any = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function, and have the dispatcher do so from now on."""
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
    return isinstance(library, Whole) and not library._finalized


def _executable(context: Any, library: Any, described: Any, environment: Any) -> Any:
    in_python = DEPTH.now < 2 or not described.native  # or what is written in object mode
    make = EXECUTABLE if in_python or not _is_incomplete(library) else Incomplete
    return make(context, library, described, environment)


def _written_later(name: str) -> Callable[..., None]:
    """Have a wrapper written by what numba writes it with, once the function is complete."""
    write = WRAPPERS[name]

    def later(context: Any, library: Any, *parts: Any, **options: Any) -> None:
        def now() -> None:
            with context.push_code_library(library):
                write(context, library, *parts, **options)

        if DEPTH.now < 2 or not isinstance(library, Whole):
            now()
        else:
            library.wrappers.append(now)

    return later


def _add_overload(dispatcher: Any, result: Any) -> None:
    if isinstance(result.entry_point, Incomplete):
        dispatcher.overloads[tuple(result.signature.args)] = result
        result.entry_point.dispatcher = ref(dispatcher)
    else:
        ADD_OVERLOAD(dispatcher, result)


def _save_overload(cache: Any, signature: Any, result: Any) -> None:
    if not _is_incomplete(result.library):
        SAVE_OVERLOAD(cache, signature, result)


EXECUTABLE, ADD_OVERLOAD = CPUContext.get_executable, Dispatcher.add_overload
SAVE_OVERLOAD = Cache.save_overload
WRAPPERS = {
    name: getattr(CPUContext, name) for name in ("create_cpython_wrapper", "create_cfunc_wrapper")
}
"""numba's own."""


@contextmanager
def _replaced(of: Any, name: str, by: Any) -> Iterator[None]:
    was = getattr(of, name)
    setattr(of, name, by)
    try:
        yield
    finally:
        setattr(of, name, was)


def outermost(function: Any) -> Any:
    """Have a function compiled so; it's called from Python."""
    compiled: Callable = function.compile

    def compile_whole(signature: Any) -> Any:
        with optimised_once():
            return compiled(signature)

    function.compile = compile_whole
    return function
