"""The key of compiled code changes with everything that the code is compiled from."""

import inspect
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import FunctionType

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from numba import njit
from numba.core.dispatcher import Dispatcher
from numba.extending import register_jitable
from pytensor.graph.fg import FunctionGraph
from pytensor.link.numba import cache as numba_cache
from pytensor.link.numba.dispatch.basic import numba_funcify_and_cache_key
from pytensor.link.numba.dispatch.random import numba_core_rv_funcify
from pytensor.scalar.basic import Composite, float64
from pytensor.tensor.random.op import RandomVariable

import pymc_dapper as pmd
from pymc_dapper.backend import accelerate
from pymc_dapper.backend.kernel_key import MODEL_KEYS, called_functions, kernel_key
from pymc_dapper.counts.compiled.op import CountSweep, Kinds, TermFunction
from pymc_dapper.distributions import discrete_gaussian
from pymc_dapper.distributions.discrete_gaussian import DiscreteGaussianRV
from pymc_dapper.distributions.discrete_laplace import DiscreteLaplaceRV
from pymc_dapper.distributions.tulap import TulapRV
from pymc_dapper.interweaving.compiled.counts import CountNoise, CountQuantile
from pymc_dapper.interweaving.compiled.moves import ParameterMoves
from pymc_dapper.records.compiled.op import (
    CellSweep,
    ComputedRows,
    FullSweep,
    LogDensity,
    MatrixRows,
    RecordSweep,
)
from pymc_dapper.records.compiled.truncated_counts import TruncatedCount
from tests.test_caches import compiled_in

PACKAGE = Path(pmd.__file__).parent


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    """Kernels are identified, and not compiled: some of them couldn't be."""
    monkeypatch.setattr(accelerate, "load_kernels", lambda function: None)


def graph(function, *inputs):
    return FunctionGraph(list(inputs), [function(*inputs)], clone=True).freeze()


def half_square(*inputs):
    return -0.5 * sum(x**2 for x in inputs)


VECTOR, SCALAR = pt.vector("state"), pt.scalar("entry")
LOG_DENSITY = graph(lambda x: half_square(x).sum(), VECTOR)
WHOLE = LogDensity((LOG_DENSITY,), by_entry=False)
BY_ENTRY = LogDensity((graph(half_square, SCALAR),), by_entry=True)


def rows():
    """What a block of records contributes: their value, and its square."""
    contributed = FunctionGraph([VECTOR], [pt.stack([VECTOR, VECTOR**2], 1)], clone=True)
    return ComputedRows(2, 8, contributed.freeze(), 1, 0, 0)


def term(log_term=lambda x: -0.5 * x * x):
    x = float64("x")
    return TermFunction(Composite([x], [log_term(x)]), 1, 0)


OPERATIONS = {
    "CellSweep by entries": lambda: CellSweep(BY_ENTRY),
    "FullSweep": lambda: FullSweep(WHOLE),
    "RecordSweep by entries": lambda: RecordSweep(BY_ENTRY, MatrixRows(0)),
    "RecordSweep by sums": lambda: RecordSweep(WHOLE, MatrixRows(2)),
    "RecordSweep of blocks": lambda: RecordSweep(WHOLE, rows()),
    "CountSweep": lambda: CountSweep((term(),), LOG_DENSITY, 1, Kinds()),
    "CountSweep of all kinds": lambda: CountSweep(
        (term(),), LOG_DENSITY, 1, Kinds(grids=True, linked=True, joint=True)
    ),
    "ParameterMoves": lambda: ParameterMoves(LOG_DENSITY),
    "CountNoise": CountNoise,
    "CountQuantile": CountQuantile,
    "TruncatedCount": TruncatedCount,
    "DiscreteGaussian": DiscreteGaussianRV,
    "DiscreteLaplace": DiscreteLaplaceRV,
    "Tulap": TulapRV,
}


def compiled(op):
    """The numba function of an operation and the key of its code; numba compiles nothing yet."""
    if isinstance(op, RandomVariable):
        return numba_core_rv_funcify(op, None)
    return numba_funcify_and_cache_key(op, node=None)


def plain(function):
    return getattr(function, "py_func", function)


def ours(function):
    """Whether a function is one of the package's modules, not one that is made for a graph."""
    module = sys.modules.get(function.__module__)
    return module in package() and getattr(module, function.__name__, None) is function


def package():
    """All modules of the package that are loaded."""
    return [module for name, module in sys.modules.items() if name.startswith("pymc_dapper")]


@pytest.fixture(params=OPERATIONS)
def operation(request):
    return OPERATIONS[request.param]()


def test_a_key_is_the_same_each_time(operation):
    assert compiled(operation)[1] == compiled(operation)[1] is not None


def test_operations_differ_in_their_keys():
    assert len({compiled(make())[1] for make in OPERATIONS.values()}) == len(OPERATIONS)


def test_a_function_that_is_replaced_changes_the_key(operation, monkeypatch):
    """Each one that is called, wherever it is looked up, or as the operation's kernel."""
    function, key = compiled(operation)
    for old in {each for each, _ in called_functions(function) if ours(each)}:
        with monkeypatch.context() as patch:
            for module in package():
                for name in [name for name, value in vars(module).items() if value is old]:
                    patch.setattr(module, name, njit(lambda *arguments: arguments[0]))
            if getattr(operation, "kernel", None) is old:
                twin = staticmethod(njit(lambda *arguments: arguments[0]))
                patch.setattr(type(operation), "kernel", twin)
            if plain(old) is not plain(function) or not isinstance(operation, RandomVariable):
                assert compiled(operation)[1] != key, old.__qualname__
    assert compiled(operation)[1] == key


def constants_of(function):
    """Numbers and arrays that a function refers to: where each is, its name and its value.

    They are in its own module, or in another one of the package; found as `inspect` does.
    """
    if function in MODEL_KEYS:
        return []
    found = inspect.getclosurevars(plain(function))
    modules = [vars(x) for x in found.globals.values() if any(x is each for each in package())]
    places = [(plain(function).__globals__, found.globals), *((x, found.unbound) for x in modules)]
    return [
        (place, name, place[name])
        for place, names in places
        for name in names
        if isinstance(place.get(name), int | float | np.ndarray)
    ]


def test_a_constant_that_is_changed_changes_the_key(operation, monkeypatch):
    """Fails if only the source is looked at, or only the source of some functions."""
    function, key = compiled(operation)
    for called, _ in called_functions(function):
        for place, name, value in constants_of(called):
            with monkeypatch.context() as patch:
                patch.setitem(place, name, 0.5 * value + 0.25)
                assert compiled(operation)[1] != key, name
    assert compiled(operation)[1] == key


def test_constants_are_found():
    """That the test before looked at something."""
    called = [
        each for make in OPERATIONS.values() for each, _ in called_functions(compiled(make())[0])
    ]
    names = {name for each in called for _, name, _ in constants_of(each)}
    assert names >= {
        *("REJECTION_FROM", "INVERSION_REACH", "MAX_INT64"),  # distributions
        *("RUN", "AT_A_TIME"),  # records
        *("WIDEST", "SLICE_WIDTH", "REACH"),  # counts
        *("DEGREES_OF_FREEDOM", "MAX_SHRINKS", "SURE"),  # interweaving
        "NEGLIGIBLE",
    }


def test_no_function_that_is_called_is_missed(operation):
    """What `inspect` finds, from function to function, is among what the key is made of."""
    function, _ = compiled(operation)
    found = [each for each, _ in called_functions(function)]
    for each in found:
        if each not in MODEL_KEYS:
            seen = inspect.getclosurevars(plain(each))
            for called in (*seen.globals.values(), *seen.nonlocals.values()):
                if isinstance(called, Dispatcher | FunctionType):
                    assert called in found


def test_a_graph_changes_the_key():
    others = {
        "records": [
            CellSweep(LogDensity((graph(lambda x: -abs(x), SCALAR),), by_entry=True)),
            CellSweep(BY_ENTRY),
        ],
        "counts": [
            CountSweep((term(each),), None, 0, Kinds())
            for each in (lambda x: -x, lambda x: -0.5 * x * x)
        ],
        "moves of counts": [
            CountSweep((term(),), None, 0, Kinds(linked=linked)) for linked in (True, False)
        ],
        "rows": [
            RecordSweep(WHOLE, replace(rows(), graph=LOG_DENSITY)),
            RecordSweep(WHOLE, rows()),
        ],
    }
    for one, other in others.values():
        assert compiled(one)[1] != compiled(other)[1]


def test_a_layout_changes_the_key():
    """Blocks of another size, other columns."""
    others = [
        {"records_in_block": 16},
        {"n_variables": 2},
        {"n_columns": 3},
        {"n_covariates": 1},
    ]
    blocks = [RecordSweep(BY_ENTRY, replace(rows(), **other)) for other in ({}, *others)]
    assert len({compiled(each)[1] for each in blocks}) == len(blocks)


def test_what_cannot_be_cached_has_no_key(monkeypatch):
    function, _ = compiled(CellSweep(BY_ENTRY))
    [made] = [each for each, _ in called_functions(function) if each in MODEL_KEYS]
    monkeypatch.setitem(MODEL_KEYS, made, None)
    assert kernel_key(function) is None


def defined(source, **names):
    """A function for numba, by its text."""
    exec(source, names)
    return njit(names["f"])


CHANGES = {
    "nothing": (defined("f = lambda x: x + 1"), defined("\n\ndef f(x):\n    return x + 1  # one")),
    "an operation": (defined("f = lambda x: x + 1"), defined("f = lambda x: x - 1")),
    "a number": (defined("f = lambda x: x + 1"), defined("f = lambda x: x + 1.0")),
    "only the docstring": (
        defined("def f(x):\n    'A number.'\n    return x + 1"),
        defined("def f(x):\n    'Another.'\n    return x + 1"),
    ),
    "a text that is the docstring, too": (
        defined("def f(x):\n    'A number.'\n    return 'A number.'"),
        defined("def f(x):\n    'Another.'\n    return 'Another.'"),
    ),
    "a function": (defined("f = lambda x: g(x)", g=abs), defined("f = lambda x: g(x)", g=round)),
    "an array": (
        defined("f = lambda i: a[i]", a=np.array([1.0, 0.0])),
        defined("f = lambda i: a[i]", a=np.array([1.0, -0.0])),
    ),
    "a nested function": (
        defined("f = lambda x: (lambda y: y + 1)(x)"),
        defined("f = lambda x: (lambda y: y + 2)(x)"),
    ),
    "a default": (defined("f = lambda x, y=1: x + y"), defined("f = lambda x, y=2: x + y")),
    "an option": (njit(lambda x: x + 1), njit(lambda x: x + 1, fastmath=True)),
    "a function's option": (
        defined("f = lambda x: g(x)", g=njit(lambda x: x)),
        defined("f = lambda x: g(x)", g=njit(lambda x: x, inline="always")),
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_a_key_is_made_of(change):
    """The key ignores where code stands, comments and docstrings."""
    one, other = map(kernel_key, CHANGES[change])
    assert (one == other) == (change in ("nothing", "only the docstring"))


def test_functions_that_call_each_other_have_a_key():
    names = {}
    exec("def f(x): return g(x - 1) if x else 0\ndef g(x): return f(x - 1) if x else 1", names)
    keys = [kernel_key(names[name]) for name in ("f", "g")]
    assert keys[0] != keys[1]


def test_constants_that_cannot_be_identified_are_reported():
    """In the place of a key that leaves it out."""
    with pytest.raises(TypeError, match=r"'<lambda>' refers to <object .*isn't known"):
        kernel_key(defined("f = lambda x: x + unknown", unknown=object()))


def test_kernels_overload_nothing():
    """Numba would find an overload by types, where the key follows names.

    What is called by its address, and what draws, has a key of all that lowers it (`LOWERED_BY`).
    """
    names = ("accelerate/addresses.py", "accelerate/generators.py", "draws.py")
    known = {PACKAGE / "backend" / name for name in names}
    for file in {*PACKAGE.rglob("*.py")} - known:
        assert not re.search(r"\b(overload\w*|intrinsic)\(", file.read_text()), file


def test_old_code_is_not_served(monkeypatch, tmp_path):
    """Draws by a changed constant and by a replaced function; then the first ones again."""
    monkeypatch.setattr(numba_cache, "NUMBA_CACHE_PATH", tmp_path)

    def draw():
        rng = pytensor.shared(np.random.default_rng(1))
        graph = pmd.DiscreteGaussian.dist(0, 5.0, size=20, rng=rng)
        return compiled_in(lambda: pytensor.function([], graph, mode="NUMBA")())

    names, first = draw()
    assert "_draw" in names
    with monkeypatch.context() as patch:
        patch.setattr(discrete_gaussian, "SMALLEST_SIGMA", 1e6)
        _, wide = draw()
        assert abs(wide).max() > 1e4 > abs(first).max()
        patch.setattr(discrete_gaussian, "_draw_step", register_jitable(lambda *_: 7))
        _, sevens = draw()
        assert (sevens == 7).all()
    names, again = draw()
    assert names == []
    np.testing.assert_array_equal(again, first)
