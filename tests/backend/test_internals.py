"""Internals of PyMC, PyTensor and numba: which are used, what for, and that they do what is needed.

Nothing here is of ours or compiled, so that a new version of theirs fails here first and in words:

    python -m pytest --noconftest tests/backend/test_internals.py
"""

import ast
import pickle
from functools import cache
from importlib import import_module
from inspect import signature
from pathlib import Path

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from numba import njit
from numba.core.registry import cpu_target
from pymc.step_methods import BlockedStep
from pytensor.compile.mode import get_mode
from pytensor.graph import Apply, FunctionGraph, Op
from pytensor.tensor.random.basic import NormalRV

PACKAGE = Path(__file__).parents[2] / "pymc_dapper"

INTERNALS = {
    "numba.core.caching.Cache": "leave out of the cache what isn't complete",
    "numba.core.caching.FunctionCache": "see which functions are kept on disk",
    "numba.core.caching.IndexDataCacheFile": "give files a digest, and write them to their end",
    "numba.core.cgutils": "write how functions are called by their addresses",
    "numba.core.codegen.JITCodeLibrary": "optimise a function together with what it calls",
    "numba.core.compiler_lock.global_compiler_lock": "change how numba compiles for us alone",
    "numba.core.cpu.CPUContext": "leave functions incomplete that Python doesn't call",
    "numba.core.datamodel.models.OpaqueModel": "pass addresses",
    "numba.core.dispatcher.Dispatcher": "leave out what isn't complete",
    "numba.core.environment.lookup_environment": "give functions their globals",
    "numba.core.event": "see which function is compiled for another one",
    "numba.core.imputils.lower_constant": "refer to a kernel that is compiled by itself",
    "numba.core.registry.cpu_target": "compile for this processor",
    "numba.core.typing.Signature": "say what functions take that are called by their addresses",
    "numba.np.arrayobj.make_array": "pass arrays to them, and to functions of NumPy's",
    "numba.np.arrayobj.populate_array": "pass arrays to them",
    "pymc.distributions.mixture._HurdleRV": "know a density that is right at a point mass",
    "pymc.distributions.multivariate._LKJCholeskyCovRV": "know a covariance's Cholesky factor",
    "pymc.distributions.transforms._default_transform": "see that a transform keeps the support",
    "pymc.logprob.utils.CheckParameterValue": "read checks of parameters record by record",
    "pymc.model.core.ValueGradFunction": "give NUTS only the factors that it needs",
    "pymc.pytensorf.collect_default_updates": "draw from a model's prior for reference methods",
    "pymc.pytensorf.constant_fold": "know the values of constant graphs",
    "pymc.stats.convergence.SamplerWarning": "warn from worker processes",
    "pymc.stats.convergence.WarningType": "warn from worker processes",
    "pymc.step_methods.compound.StepMethodState": "store and restore steps",
    "pymc.step_methods.state.DataClassState": "store and restore steps taken in turn",
    "pymc.step_methods.state.dataclass_state": "store and restore steps",
    "pymc.step_methods.state.equal_dataclass_values": "compare steps of a study",
    "pymc.util.get_random_generator": "take seeds as PyMC does",
    "pytensor.compile.aliasing.add_supervisor_to_fgraph": "keep inputs of inner graphs",
    "pytensor.graph.fg.AbstractFunctionGraph": "say what graphs are written as source",
    "pytensor.graph.fg.FrozenFunctionGraph": "make a graph a property of an operation",
    "pytensor.graph.rewriting.basic.GraphRewriter": "rewrite parts that are alike once",
    "pytensor.link.numba.cache.compile_numba_function_src": "cache a function on disk",
    "pytensor.link.numba.dispatch.basic.cache_key_for_constant": "identify constants",
    "pytensor.link.numba.dispatch.basic.numba_funcify_and_cache_key": "call PyTensor's function of "
    "an operation",
    "pytensor.link.numba.dispatch.basic.numba_funcify_ensure_cache": "call one from PyTensor's "
    "cache",
    "pytensor.link.numba.dispatch.basic.numba_njit": "compile as PyTensor does",
    "pytensor.link.numba.dispatch.basic.numba_typify": "refer to constants as PyTensor does",
    "pytensor.link.numba.dispatch.basic.register_funcify_and_cache_key": "register our operations",
    "pytensor.link.numba.dispatch.compile_ops.numba_funcify_OpFromGraph": "see which inner graphs "
    "are written out",
    "pytensor.link.numba.dispatch.random.numba_core_rv_funcify": "draw our distributions in numba",
    "pytensor.link.numba.linker.NumbaLinker": "see whether a mode is one of numba's",
    "pytensor.tensor._as_tensor_variable": "pass statistics where tensors are expected",
}
"""What each is needed for."""

PRIVATE = (
    *("numba.core.", "numba.np."),
    *("pymc.blocking.", "pymc.logprob.", "pymc.model.core.", "pymc.pytensorf.", "pymc.sampling."),
    *("pymc.stats.", "pymc.util."),
    *("pymc.step_methods.compound.", "pymc.step_methods.state."),
    *("pytensor.compile.aliasing.", "pytensor.compile.executor.", "pytensor.compile.io."),
    *("pytensor.graph.fg.", "pytensor.graph.rewriting.", "pytensor.link."),
)
"""Names that aren't promised to stay. Names meant for extensions aren't listed."""


def internal(name):
    module, _, attribute = name.rpartition(".")
    parent = import_module(module)
    # A module is there, too, before somebody else has imported it.
    return getattr(parent, attribute) if hasattr(parent, attribute) else import_module(name)


@cache
def imports(file):
    """All that a file imports, or reaches through what it imports, by full names."""
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    names, modules = set(), {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            names |= {f"{node.module}.{each.name}" for each in node.names}
        elif isinstance(node, ast.Import):
            names |= {f"{each.name}." for each in node.names}
            modules |= {each.asname or each.name: each.name for each in node.names}
    for node in nodes:
        chain = []
        while isinstance(node, ast.Attribute):
            chain.append(node.attr)
            node = node.value
        if chain and isinstance(node, ast.Name) and node.id in modules:
            names.add(".".join([modules[node.id], *reversed(chain)]))
    return names


def is_internal(name):
    library, *parts = name.split(".")
    private = library in ("arviz", "numba", "pymc", "pytensor") and any(
        part.startswith("_") and not part.startswith("__") for part in parts
    )
    return private or name.startswith(PRIVATE)


FILES = sorted(PACKAGE.rglob("*.py"))
BACKEND = [
    file for file in FILES if {PACKAGE / "backend", PACKAGE / "one_function"} & {*file.parents}
]
ACCELERATIONS = [file for file in BACKEND if file.parent.name == "accelerate"]


def used(files):
    return {name for file in files for name in imports(file) if is_internal(name)}


def test_only_the_backend_knows_internals():
    others = {file: used([file]) for file in FILES if file not in BACKEND}
    assert {file.name: names for file, names in others.items() if names} == {}


def test_only_accelerations_know_numbas_internals():
    """What they rely on may go, and models are compiled all the same."""
    others = {file: used([file]) for file in BACKEND if file not in ACCELERATIONS}
    found = {
        file.name: [x for x in names if x.startswith("numba.")] for file, names in others.items()
    }
    assert {file: names for file, names in found.items() if names} == {}


def test_all_internals_are_listed():
    """Above, with what each is needed for."""
    assert used(BACKEND) == INTERNALS.keys()


@pytest.mark.parametrize("name", INTERNALS)
def test_it_is_there(name):
    try:
        internal(name)
    except (ImportError, AttributeError) as error:
        pytest.fail(f"{name} is gone, which we need to {INTERNALS[name]}: {error}", pytrace=False)


def test_without_what_has_no_plain_way_the_import_says_so(monkeypatch):
    file = PACKAGE / "backend" / "internals.py"
    monkeypatch.delattr("pymc.model.core.ValueGradFunction")
    with pytest.raises(ImportError, match=r"ValueGradFunction.*tested with PyMC 6\.3\.1"):
        exec(compile(file.read_text("utf-8"), file, "exec"), {"__name__": "internals"})


def test_what_has_no_plain_way_is_told():
    """In docs/what-can-go-wrong.md."""
    page = (PACKAGE.parent / "docs" / "what-can-go-wrong.md").read_text("utf-8")
    [needed] = [line for line in page.splitlines() if line.startswith("PyMC: ")]
    names = {name for name in INTERNALS if name.startswith("pymc.")}
    assert {f"`{name}`" for name in names} == {*needed.removeprefix("PyMC: ")[:-1].split(", ")}


# numba


def test_numba_links_and_optimises_where_it_is_told_not_to():
    """Else a function isn't compiled together with what it calls, or isn't complete."""
    library = cpu_target.target_context.codegen().create_library("empty")
    assert isinstance(library, internal("numba.core.codegen.JITCodeLibrary"))
    assert cpu_target.target_context.codegen()._library_class is type(library)
    assert (library._linking_libraries, library._finalized) == ([], False)
    assert not list(library._final_module.global_variables)
    takes = {
        "add_linking_library": ["library"],
        "_ensure_finalized": [],
        "_get_module_for_linking": [],
        "finalize": [],
    }
    assert {name: [*signature(getattr(library, name)).parameters] for name in takes} == takes
    context, dispatcher, cache = (
        internal(f"numba.core.{name}")
        for name in ("cpu.CPUContext", "dispatcher.Dispatcher", "caching.Cache")
    )
    assert len(signature(context.get_executable).parameters) == 4
    assert len(signature(dispatcher.add_overload).parameters) == 2
    assert len(signature(cache.save_overload).parameters) == 3
    compiled = internal("numba.core.compiler.CompileResult")
    assert {"entry_point", "library", "signature"} <= {*compiled._fields}


# PyTensor


X = pt.vector("x")
RNG = pytensor.shared(np.random.default_rng(1))


def frozen(graph):
    return FunctionGraph([X], [graph], clone=True).freeze()


def test_frozen_graphs_are_compared_by_what_they_compute():
    """Else the sweeps of two models could share code, or one model's be compiled twice."""
    assert frozen(X + 1) == frozen(X + 1) != frozen(X + 2)
    assert hash(frozen(X + 1)) == hash(pickle.loads(pickle.dumps(frozen(X + 1))))


def test_a_graph_becomes_a_function_of_numba_with_a_key():
    """Else no log-density gets into a kernel, or a key doesn't tell two models apart."""
    funcify = internal("pytensor.link.numba.dispatch.basic.numba_funcify_and_cache_key")
    made = [funcify(frozen(X + k), squeeze_output=True, fgraph_name="part") for k in (1, 1, 2)]
    (function, key), (_, same), (_, other) = made
    assert isinstance(function, internal("numba.core.dispatcher.Dispatcher"))
    assert function.__name__ == "part"
    assert isinstance(key, str)
    assert key == same != other


class Twice(Op):
    """Stands for our operations."""

    __props__ = ()
    key = "first"

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]


def test_the_key_of_an_operation_enters_that_of_a_graph(monkeypatch):
    """Else a changed kernel would be served from an old cache."""
    register = internal("pytensor.link.numba.dispatch.basic.register_funcify_and_cache_key")
    funcify = internal("pytensor.link.numba.dispatch.basic.numba_funcify_and_cache_key")

    @register(Twice)
    def twice(op, node, **kwargs):
        def double(x):
            return 2 * x

        return njit(double), op.key

    before = funcify(frozen(Twice()(X)))[1]
    assert before is not None
    monkeypatch.setattr(Twice, "key", "second")
    assert funcify(frozen(Twice()(X)))[1] not in (None, before)
    monkeypatch.setattr(Twice, "key", None)
    assert funcify(frozen(Twice()(X)))[1] is None


def key_on_disk(function):
    cached = internal("pytensor.link.numba.cache.CACHED_SRC_FUNCTIONS")
    return cached.get(function.vm.jit_fn.py_func)


class Drawn(NormalRV):
    """Stands for our distributions."""

    key = 1


def test_the_key_of_a_draw_enters_that_of_a_function(monkeypatch):
    """Else a changed distribution would be served from an old cache; and `jit_fn` is called."""
    register = internal("pytensor.link.numba.dispatch.random.numba_core_rv_funcify").register

    @register(Drawn)
    def drawn(op, node):
        return njit(lambda rng, loc, scale: loc), op.key

    def key():
        _, draw = Drawn().make_node(RNG, None, 0.0, 1.0).outputs
        return key_on_disk(pytensor.function([], draw, mode="NUMBA"))

    before = key()
    assert before is not None
    assert key() == before
    monkeypatch.setattr(Drawn, "key", 2)
    assert key() != before


def test_a_function_names_its_inputs():
    """Else arguments couldn't be passed to the compiled code without PyTensor's own call."""
    function = pytensor.function([X], X + 1, mode="NUMBA")
    assert isinstance(function, internal("pytensor.compile.executor.Function"))
    assert len(function.maker.fgraph.inputs) == 1
    assert callable(function.vm.jit_fn)


def test_a_function_of_ours_is_cached_by_a_key():
    make = internal("pytensor.link.numba.cache.compile_numba_function_src")
    function = make("def named(x): return x + k", "named", {"k": 1}, cache_key="key")
    assert function(1) == 2
    assert internal("pytensor.link.numba.cache.CACHED_SRC_FUNCTIONS")[function] == "key"


def test_functions_that_python_calls_are_told_so():
    numba_njit = internal("pytensor.link.numba.dispatch.basic.numba_njit")
    inner, final = numba_njit(lambda x: x), numba_njit(lambda x: x, final_function=True)
    assert inner.targetoptions["no_cpython_wrapper"]
    assert not final.targetoptions.get("no_cpython_wrapper")


def test_fast_arithmetic_with_numbers_and_with_nan():
    """Else numbers aren't told from nan or infinity any more, however they are compared."""
    numba_njit = internal("pytensor.link.numba.dispatch.basic.numba_njit")
    liberties = numba_njit(lambda x: x).targetoptions["fastmath"]
    assert not liberties & {"fast", "nnan", "ninf"}


def test_functions_have_names_of_their_own_in_all_processes():
    """Else machine code from disk could be taken for that of another function."""
    identity = import_module("numba.core.bytecode").FunctionIdentity
    first, second = (next(identity._unique_ids) for _ in range(2))
    assert min(first, second) > 2**64  # drawn, not counted


def test_numba_functions_show_what_they_are_made_of():
    """Else the key of compiled code couldn't be told."""
    function = njit(lambda x: x, inline="always")
    assert isinstance(function, internal("numba.core.dispatcher.Dispatcher"))
    assert function.targetoptions["inline"] == "always"
    assert function.py_func(1) == 1


def test_numba_loads_code_where_damage_is_looked_for():
    """Else a damaged cache is no longer told from other errors."""
    caching = import_module("numba.core.caching")
    assert [*signature(caching.Cache._load_overload).parameters] == [
        "self",
        "sig",
        "target_context",
    ]
    assert callable(caching.Cache._guard_against_spurious_io_errors)
    assert isinstance(caching.Cache.cache_path, property)
    assert callable(caching.IndexDataCacheFile._load_index)
    assert caching.IndexDataCacheFile("folder", "file", None)._cache_path == "folder"


def test_the_default_mode_compiles_with_numba():
    assert isinstance(get_mode("NUMBA").linker, internal("pytensor.link.numba.linker.NumbaLinker"))


def test_an_inner_graph_is_rewritten_and_keeps_its_inputs():
    """Else a sweep would overwrite sums or parameters."""
    graph = FunctionGraph([X], [pt.exp(X) * 2], clone=True)
    supervise = internal("pytensor.compile.aliasing.add_supervisor_to_fgraph")
    supervise(graph, [pytensor.In(x, borrow=True, mutable=False) for x in graph.inputs], True)
    get_mode("NUMBA").optimizer.rewrite(graph)
    [node] = graph.apply_nodes
    assert not node.op.destroy_map


def test_elementwise_operations_say_what_they_calculate_with():
    """Otherwise graphs in Python would be evaluated differently, or slowly."""

    def prepared(graph):
        node = graph.owner.clone()
        node.op.prepare_node(node, None, None, "py")
        return node

    exp, total, ratio = map(prepared, (pt.exp(X), pt.add(X, X, X), pt.lvector() / pt.lvector()))
    assert (exp.op.nfunc, exp.op.nfunc_spec[1]) == (np.exp, 1)
    assert total.op.nfunc_spec[1] == 2
    assert total.tag.ufunc(1.0, 2.0, 3.0) == 6
    assert (ratio.op.nfunc, ratio.tag.sig) == (np.true_divide, "dd->d")
    with pytest.raises(ValueError, match="Runtime broadcasting"):
        ratio.op._check_runtime_broadcast(ratio, [np.ones(1), np.ones(2)])


def test_types_become_tensors():
    register = internal("pytensor.tensor._as_tensor_variable").register

    class Two:
        """Stands for a statistic."""

    register(Two)(lambda x, name, ndim, **kwargs: pt.constant(2.0))
    assert pt.as_tensor_variable(Two()).data == 2


# PyMC


def checks_in(graph):
    check = internal("pymc.logprob.utils.CheckParameterValue")
    return [
        node
        for node in FunctionGraph(outputs=[graph], clone=False).apply_nodes
        if isinstance(node.op, check)
    ]


def test_log_densities_check_their_parameters():
    """With the value first, and the conditions after it: these are read record by record."""
    sigma = pt.vector("sigma")
    [node] = checks_in(pm.logp(pm.Normal.dist(0, sigma), 1.0))
    assert node.inputs[1].type.dtype == "bool"
    assert node.inputs[0].type.ndim == 1


@pytest.mark.parametrize(
    "rewrite", ["local_check_parameter_to_ninf_switch", "local_remove_check_parameter"]
)
def test_checks_are_rewritten_by_name(rewrite):
    """Else an invalid parameter raises in the midst of a sweep."""
    graph = FunctionGraph(outputs=[pm.logp(pm.Normal.dist(0, pt.scalar("sigma")), 1.0)])
    get_mode("FAST_COMPILE").including(rewrite).optimizer.rewrite(graph)
    assert checks_in(graph.outputs[0]) == []


def test_distributions_have_a_transform_of_their_own():
    """With their bounds: a transform may exclude part of a parameter's support."""
    default = internal("pymc.distributions.transforms._default_transform")
    uniform = pm.Uniform.dist(1, 3)
    transform = default(uniform.owner.op, uniform)
    assert isinstance(transform, pm.distributions.transforms.Interval)
    assert [x.data for x in transform.args_fn(*uniform.owner.inputs)] == [1, 3]


def test_nuts_takes_a_log_density_of_ours():
    takes = signature(internal("pymc.model.core.ValueGradFunction")).parameters
    assert takes.keys() >= {"costs", "grad_vars", "extra_vars_and_values", "model"}
    assert takes.keys() >= {"initial_point", "ravel_inputs"}
    assert callable(internal("pymc.model.core.ValueGradFunction").set_extra_values)
    base = internal("pymc.step_methods.arraystep.GradientSharedStep")
    assert issubclass(pm.NUTS, base)
    assert "logp_dlogp_func" in signature(base.__init__).parameters


def test_constants_are_folded():
    fold = internal("pymc.pytensorf.constant_fold")
    [known, unknown] = fold([pt.constant(2.0) + 1, X], raise_not_constant=False)
    assert known == 3
    assert unknown is X


def test_draws_advance_their_generators():
    updates = internal("pymc.pytensorf.collect_default_updates")
    assert len(updates(outputs=[pm.Normal.dist(0, 1)])) == 1


def test_a_warning_holds_a_message():
    kind = internal("pymc.stats.convergence.WarningType")
    warning = internal("pymc.stats.convergence.SamplerWarning")(kind.BAD_ENERGY, "message", "warn")
    assert (warning.kind, warning.message, warning.level) == (kind.BAD_ENERGY, "message", "warn")


def test_steps_have_a_state():
    """Chains resume from it, and studies compare steps by it."""
    dataclass_state = internal("pymc.step_methods.state.dataclass_state")

    @dataclass_state
    class State(internal("pymc.step_methods.compound.StepMethodState")):
        array: np.ndarray

    equal = internal("pymc.step_methods.state.equal_dataclass_values")
    one, same, other = (State(var_names=["x"], rng=0, array=np.array([k])) for k in (1, 1, 2))
    assert equal(one, same)
    assert not equal(one, other)


@pytest.mark.parametrize(
    "method", ["_progressbar_config", "_make_progressbar_update_functions", "setup_chain", "step"]
)
def test_steps_are_asked_for(method):
    """What PyMC calls of a step, and ours answer: columns of the progress bar, and chains."""
    assert callable(getattr(BlockedStep, method))
    assert hasattr(BlockedStep, "_state_class")
    assert BlockedStep.stats_dtypes_shapes == {}


def test_a_generator_is_taken_as_it_is():
    """Else a chain's draws would be made from a copy of its generator, twice the same."""
    rng = np.random.default_rng(1)
    assert internal("pymc.util.get_random_generator")(rng, copy=False) is rng
