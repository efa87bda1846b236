import gc
from weakref import ref

import numpy as np
import pytest
from numba import njit, objmode, types
from numba.core.caching import Cache
from numba.core.codegen import CPUCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.cpu import CPUContext
from numba.core.dispatcher import Dispatcher
from numba.core.errors import TypingError
from numba.core.registry import cpu_target
from numba.extending import overload

from pymc_dapper.backend.accelerate.deferred_libraries import (
    WRAPPERS,
    forget_incomplete,
    outermost,
)

X = np.array([1.0, 2.0, 4.0])


def pair():
    """A function that numba compiles, and one that it calls, which calls another."""

    @njit
    def root(x):
        return np.sqrt(x)

    @njit
    def roots(x):
        if x.size > 3:
            raise ValueError("too many", x.size)
        return np.array([root(each) for each in x])

    @njit
    def caller(x):
        return roots(x).sum() + root(x[0])

    return caller, roots, root


def libraries(function):
    return [result.library for result in function.overloads.values()]


def patched():
    return [
        cpu_target.target_context.codegen()._library_class,
        *(CPUContext.get_executable, Dispatcher.add_overload),
        Cache.save_overload,
        *(CPUContext.create_cpython_wrapper, CPUContext.create_cfunc_wrapper),
    ]


@pytest.fixture
def optimised(monkeypatch):
    """What LLVM's passes run over while a test goes on."""
    names, optimise = [], CPUCodeLibrary._optimize_final_module
    monkeypatch.setattr(
        CPUCodeLibrary,
        "_optimize_final_module",
        lambda self: (names.append(self.name), optimise(self))[1],
    )
    return names


def test_passes_run_over_the_outermost_function_only(optimised):
    """Fails if numba optimises each function again, which takes a quarter of a first draw."""
    caller, roots, root = pair()
    assert outermost(caller)(X) == np.sqrt(X).sum() + 1
    assert [name.split(".")[-1] for name in optimised if name != "nrt"] == ["caller"]
    assert not any(library._finalized for library in libraries(roots) + libraries(root))
    # The count does count.
    caller, *_ = pair()
    caller(X)
    assert {name.split(".")[-1] for name in optimised} >= {"caller", "roots", "root"}


def test_what_python_would_call_a_function_by_is_written_when_it_is_completed(monkeypatch):
    """Writing wrappers of functions that only others call takes a tenth of a first draw."""
    written, write = [], CPUContext.create_cpython_wrapper

    def wrapper(self, library, described, *parts, **options):
        written.append(described.qualname.split(".")[-1])
        write(self, library, described, *parts, **options)

    monkeypatch.setitem(WRAPPERS, "create_cpython_wrapper", wrapper)
    caller, roots, root = pair()
    outermost(caller)(X)
    assert written == ["caller"]
    roots(X)
    assert written == ["caller", "roots"]
    assert root(4.0) == 2
    assert root(9.0) == 3
    assert written == ["caller", "roots", "root"]


def test_a_function_that_python_calls_after_all_is_completed():
    caller, roots, root = pair()
    outermost(caller)(X)
    for _ in range(2):
        np.testing.assert_array_equal(roots(X), np.sqrt(X))
        assert root(4.0) == 2
    assert root(np.float32(9)) == 3  # of a type that it hasn't been compiled for
    with pytest.raises(ValueError, match="too many"):
        roots(np.arange(4.0))


def test_other_functions_may_call_it():
    """Be they compiled so as well, or as numba does."""
    caller, roots, root = pair()
    outermost(caller)(X)
    later = outermost(njit(lambda x: roots(x)[1]))
    as_ever = njit(lambda x: roots(x)[2] + root(x[0]))
    assert later(X) == np.sqrt(2)
    assert not libraries(roots)[0]._finalized
    assert as_ever(X) == 3
    assert libraries(roots)[0]._finalized
    assert outermost(njit(lambda x: roots(x)[0]))(X) == 1
    np.testing.assert_array_equal(roots(X), np.sqrt(X))


def test_what_numba_hands_out_can_be_called():
    """As a thread gets it that waits for the same function to be compiled; else it crashes."""
    caller, roots, root = pair()
    outermost(caller)(X)
    entry = root.compile((types.float64,))
    assert entry(4.0) == entry(4.0) == root(4.0) == 2
    assert outermost(njit(lambda x: roots(x)[0] + root(x[0])))(X) == 2
    # Its machine code is asked for by its name, without a lock.
    [result] = roots.overloads.values()
    assert result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)
    assert roots(X)[2] == 2


def test_python_may_call_one_while_another_is_compiled():
    """As the code does that writes a function for the types of its arguments."""
    _, _, root = pair()
    found = []

    def meanwhile(x):
        raise NotImplementedError

    @overload(meanwhile)
    def _meanwhile(x):
        found.append(root(4.0))
        return lambda x: x + root(x)

    assert outermost(njit(lambda x: meanwhile(x)))(4.0) == 6
    assert found == [2]


def test_nothing_keeps_a_function_alive():
    caller, roots, root = pair()
    outermost(caller)(X)
    root(4.0)
    kept = [ref(function) for function in (caller, roots, root)]
    assert None not in [function() for function in kept]
    del caller, roots, root
    gc.collect()
    assert [function() for function in kept] == [None, None, None]


def test_errors_have_their_arguments():
    caller, *_ = pair()
    with pytest.raises(ValueError, match="too many") as error:
        outermost(caller)(np.arange(4.0))
    assert error.value.args == ("too many", 4)


def test_a_function_may_call_itself():
    @njit
    def factorial(n):
        return n * factorial(n - 1) if n > 1 else 1

    twice = njit(lambda n: 2 * factorial(n))
    assert outermost(njit(lambda n: twice(n) + factorial(n)))(5) == 360


def test_functions_may_call_each_other_in_turns():
    """Fails if one is compiled only into others, where its machine code has no name."""

    @njit
    def is_even(n):
        return True if n == 0 else is_odd(n - 1)

    @njit
    def is_odd(n):
        return False if n == 0 else is_even(n - 1)

    asked = njit(lambda n: is_even(n))
    assert [outermost(njit(lambda n: asked(n)))(n) for n in (4, 5)] == [True, False]


def test_what_is_called_may_call_python():
    """Fails if a function doesn't find its globals, which are looked up by its environment."""

    @njit
    def called(x):
        with objmode(y="float64"):
            y = float(str(x)) + len(f"{X}")
        return y

    expected = 2.5 + len(f"{X}")
    assert outermost(njit(lambda x: called(x)))(2.5) == expected
    # Its machine code is in another function again.
    assert outermost(njit(lambda x: 2 * called(x)))(2.5) == 2 * expected


def test_one_may_be_compiled_while_another_is():
    """As a kernel is that a function refers to by a symbol."""
    caller, *_ = pair()
    found = []

    def meanwhile(x):
        raise NotImplementedError

    @overload(meanwhile)
    def _meanwhile(x):
        found.append(outermost(caller)(X))
        return lambda x: x + 1

    assert outermost(njit(lambda x: meanwhile(x)))(1.0) == 2
    assert found == [np.sqrt(X).sum() + 1]


def test_numba_is_as_before():
    """Also where something can't be compiled."""
    before = patched()
    caller, *_ = pair()
    outermost(caller)(X)
    assert patched() == before
    with pytest.raises(TypingError):
        outermost(caller)("text")
    assert patched() == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_compilation_is_begun_anew(error):
    before, (caller, *_), interrupted = patched(), pair(), []

    def meanwhile(x):
        raise NotImplementedError

    @overload(meanwhile)
    def _meanwhile(x):
        if not interrupted:
            interrupted.append(x)
            raise error
        return lambda x: x + caller(x)

    function = outermost(njit(lambda x: caller(x) + meanwhile(x)[0]))
    with pytest.raises(error):
        function(X)
    assert patched() == before
    assert not global_compiler_lock.is_locked()
    total = np.sqrt(X).sum() + 1
    assert function(X) == 1 + 2 * total
    assert caller(X) == total


def test_what_is_incomplete_can_be_forgotten():
    """If it can't be completed, numba compiles it anew."""
    caller, roots, root = pair()
    assert outermost(caller)(X) == np.sqrt(X).sum() + 1
    forget_incomplete()
    assert roots.overloads.keys() == root.overloads.keys() == set()
    assert len(caller.overloads) == 1
    as_ever = njit(lambda x: roots(x)[2] + root(x[0]))
    assert as_ever(X) == 3
    assert libraries(roots)[0]._finalized
