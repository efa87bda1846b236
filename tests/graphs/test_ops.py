"""The table of operations: true of each operation in it, and asked by all readers."""

import importlib
import inspect
import re

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import numba_njit, register_funcify_and_cache_key
from pytensor.scalar.basic import ScalarOp
from pytensor.tensor.blockwise import Blockwise
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.sort import SortOp

import pymc_dapper as pmd
from pymc_dapper.backend.entries import EntryOf, performed
from pymc_dapper.backend.jit import numba_mode
from pymc_dapper.conjugacy import follow_parameter
from pymc_dapper.conjugacy.relations import Affine, Power, read_relations
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.ops import (
    Accumulates,
    AlongAxes,
    Increments,
    Keeps,
    Maps,
    Measures,
    Moves,
    Multiplies,
    Reduces,
    action_of,
    find_origins,
    on_entries,
    scalar_of,
)
from pymc_dapper.reading import AdditiveFactor, read_model
from pymc_dapper.records.reading.contributions import by_block
from tests.counts.systems import read

RNG = np.random.default_rng(1)
X = pt.tensor("x", dtype="float64", shape=(3, 4))
Y = pt.tensor("y", dtype="float64", shape=(1, 4))
B = pt.tensor("b", dtype="float64", shape=(2, 3, 4))
TRUTH = pt.tensor("truth", dtype="bool", shape=(3, 4))

EXAMPLES = {
    "arithmetic": X + Y,
    "function": pt.exp(X),
    "searchsorted": pt.searchsorted(np.arange(3.0), X[0]),
    "check": pm.logprob.utils.CheckParameterValue("message")(X, pt.constant(True)),
    "specified shape": SpecifyShape()(X, 3, None),
    "transposed": X.T,
    "inserted": X[:, None],
    "flattened": pt.join_dims(X),
    "reshaped": X.reshape((2, 6)),
    "split": pt.split_dims(X, (2, 2), axis=1),
    "repeated": pt.alloc(X, 2, 3, 4),
    "sliced": X[1:, ::-2],
    "entry": X[2, 1],
    "looked up": X[[2, 0, 0], [1, 1, 3]],
    "rows looked up": X[[2, 0]],
    "diagonal": pt.diagonal(X),
    "each several times": pt.repeat(X, np.array([2, 0, 1]), axis=0),
    "joined": pt.concatenate([X, Y, X]),
    "stacked": pt.stack([X[0, 0], X[2, 1]]),
    "set": pt.set_subtensor(X[1:, 2:], Y[:, :2]),
    "set at": pt.set_subtensor(X[[0, 2]], Y),
    "diagonal set": pt.fill_diagonal(X, Y[0, 0]),
    "added to": pt.inc_subtensor(X[1:], Y),
    "added at": pt.inc_subtensor(X[[0, 2, 2]], Y),
    "truth values": pt.concatenate([TRUTH, TRUTH])[::-1].T,
    "small numbers": pt.stack([X.astype("int8")] * 20).ravel(),
    "products": pt.dot(X, X.T),
    "sum": X.sum(axis=1),
    "largest": X.max(axis=0),
    "sum of all": B.sum(),
    "place of the largest": pt.argmax(B, axis=1),
    "cumulated": pt.cumsum(B, axis=1),
    "cumulated products": pt.cumprod(B, axis=2),
    "sorted": pt.sort(B, axis=1),
    "order": pt.argsort(B, axis=0),
    "shape": X.shape,
    "batch of sorted": Blockwise(SortOp("quicksort", 0), signature="(m,n)->(m,n)")(B),
}


def random_inputs(node):
    """Values of a node's inputs: of constants, their own."""
    values = []
    for x in node.inputs:
        known = known_value(x) if hasattr(x.type, "dtype") else None
        if known is None and hasattr(x.type, "shape"):
            draw = RNG.permutation(1 + int(np.prod(x.type.shape)))[1:].reshape(x.type.shape)
            known = (draw / 7 if x.dtype == "float64" else draw).astype(x.dtype)
        values.append(known)
    return values


def depends_on(node, values, k):
    """Which entries of the output change with each entry of an input: by changing one at a time."""
    changed = np.zeros((*values[k].shape, *node.outputs[0].type.shape), dtype=bool)
    before = performed(node, values)
    for index in np.ndindex(*values[k].shape):
        for new in (-100, 100):
            other = values[k].copy()
            other[index] = ~other[index] if other.dtype == bool else new
            after = performed(node, [*values[:k], other, *values[k + 1 :]])
            changed[index] |= np.asarray(before != after)
    return changed


def is_true(action, node):
    """Whether an operation does what the table says it does."""
    values = random_inputs(node)
    output = performed(node, values)
    match action:
        case Maps(inputs=mapped):
            for k in range(len(values)) if mapped is None else mapped:
                depends = depends_on(node, values, k)
                for index in zip(*np.nonzero(depends), strict=True):
                    of, to = index[: values[k].ndim], index[values[k].ndim :]
                    same = [
                        a == b for a, b, n in zip(of, to, values[k].shape, strict=True) if n > 1
                    ]
                    if not all(same):
                        return False
            return True
        case Keeps():
            return np.array_equal(output, values[0])
        case Moves():
            shapes = [getattr(x.type, "shape", ()) for x in node.inputs]
            origins = find_origins(node, shapes, known_value)
            entries = np.concatenate([np.ravel(values[k]) for k in action.inputs])
            if action.all and not set(range(entries.size)) <= set(origins.numbers.ravel()):
                return False
            return np.array_equal(entries[origins.numbers], output)
        case Increments():
            less = performed(node, [values[0], 0 * values[1], *values[2:]])
            return np.array_equal(less, values[0]) and np.any(output != less)
        case Multiplies():
            return np.allclose(output, values[0] @ values[1])
        case Measures():
            return not depends_on(node, values, 0).any()
        case AlongAxes():
            depends = depends_on(node, values, 0)
            kept = [k for k in range(values[0].ndim) if k not in action.axes]
            places = range(len(kept)) if action.dropped else kept
            for index in zip(*np.nonzero(depends), strict=True):
                of, to = index[: values[0].ndim], index[values[0].ndim :]
                if any(of[k] != to[place] for k, place in zip(kept, places, strict=True)):
                    return False
            if isinstance(action, Reduces | Accumulates):
                add = np.cumsum if isinstance(action, Accumulates) else None
                names = {"add": np.sum, "scalar_maximum": np.max, "maximum": np.max}
                add = add or names[action.by.name or "maximum"]
                axes = action.axes if isinstance(action, Reduces) else action.axes[0]
                return np.allclose(add(values[0], axis=axes), output)
            return True
    return False


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_the_table_says_of_an_operation_is_true(name):
    node = EXAMPLES[name].owner
    action = action_of(node.op, node)
    assert action is not None
    assert is_true(action, node)


WRONG = {
    "sorted": Maps(),
    "transposed": Maps(),
    "reshaped": Keeps(),
    "sliced": Moves(all=True),
    "sum": AlongAxes((0,), dropped=True),
    "cumulated": AlongAxes((2,)),
    "function": Measures(),
    "set": Increments(),
    "largest": Reduces((0,)),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_would_be_wrong_is_found_to_be(name, monkeypatch):
    node = EXAMPLES[name].owner
    monkeypatch.setattr("pymc_dapper.graphs.ops.action_of", lambda *_: WRONG[name])
    assert not is_true(WRONG[name], node)


def test_all_of_the_table_is_tried():
    tried = {type(x.owner.op) for x in EXAMPLES.values()}
    tried |= {op for op in action_of.registry if any(issubclass(each, op) for each in tried)}
    names = {op.__name__ for op in action_of.registry if op.__module__.startswith("pytensor")}
    assert names - {op.__name__ for op in tried} == {
        "DeepCopyOp",
        "ScalarFromTensor",
        "Shape_i",
        "StructuredDot",
        "TensorFromScalar",
        "ViewOp",
    }


# -- no second table -------------------------------------------------------------------------------

OF_THEIR_OWN = {
    "pymc_dapper.records.reading.rules": {
        # Which axis the records are on, whatever the lengths of the axes are.
        *("Alloc", "Blockwise", "DimShuffle", "Join", "JoinDims", "Reshape"),
        "RandomVariable",
    },
    # Which records, where that is known only when the model is evaluated.
    "pymc_dapper.records.reading.indexing": {
        *("AdvancedIncSubtensor", "AdvancedSubtensor", "IncSubtensor", "Subtensor"),
    },
    # Polynomials, in which a coefficient has fewer axes.
    "pymc_dapper.records.reading.combinations": {"DimShuffle", "Elemwise"},
    # The number of records, or which ones, is written into these; elementwise ones are made.
    "pymc_dapper.records.reading.rows_of_others": {
        *("AdvancedIncSubtensor", "AdvancedSubtensor", "Alloc", "Elemwise"),
        *("Join", "MakeVector", "RandomVariable", "Reshape"),
    },
    "pymc_dapper.graphs.terms.linear": set(),
    # Checks of what a term depends on, kept with the term.
    "pymc_dapper.graphs.terms.walk": {"CheckAndRaise"},
    "pymc_dapper.conjugacy.relations": {"Blockwise"},
    "pymc_dapper.counts.compiled.sweep": set(),
    # Numbers that an operation makes of none, and how many increments there are.
    "pymc_dapper.graphs.bounds": {"ARange", "Eye", "IncSubtensor", "Shape_i", "Softmax"},
}


@pytest.mark.parametrize("module", OF_THEIR_OWN)
def test_a_reader_has_no_table_of_its_own(module):
    known = {
        name
        for name, value in vars(importlib.import_module(module)).items()
        if inspect.isclass(value) and issubclass(value, Op) and not issubclass(value, ScalarOp)
        if value.__module__.startswith("pytensor")
    }
    assert known - {"Op"} == OF_THEIR_OWN[module]


def test_rules_of_a_single_reader_are_of_operations_in_the_table():
    of_readers = {*pmd.follow_records.registry, *follow_parameter.registry}
    alone = {op for op in of_readers if op.__module__.startswith("pytensor")}
    assert {op.__name__ for op in alone - set(action_of.registry)} == {"RandomVariable"}


# -- taught once -----------------------------------------------------------------------------------


class TaxDue(Op):
    """An operation that acts entry by entry."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.interp(inputs[0], [0.0, 1.0, 4.0], [0.0, 0.5, 3.0])


@register_funcify_and_cache_key(TaxDue)
def _tax_due_in_numba(op, node, **kwargs):
    @numba_njit
    def tax_due(income):
        return np.interp(income, np.array([0.0, 1.0, 4.0]), np.array([0.0, 0.5, 3.0]))

    return tax_due, None


class Mirrored(Op):
    """An operation that moves entries, along the last axis."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0][..., ::-1].copy()


@pytest.fixture(autouse=True, scope="module")
def _taught():
    pmd.action_of.register(TaxDue, lambda op, node: Maps())
    pmd.action_of.register(Mirrored, lambda op, node: Moves(all=True))


def test_a_taught_operation_is_read_of_records():
    with pm.Model() as model:
        x = pm.Normal("x", pm.Normal("mu"), 1, shape=(5, 2))
        columns = Mirrored()(x)
        due = pt.stack([TaxDue()(columns[:, 0]), columns[:, 1]], axis=1)
        pm.Normal("released", due.sum(axis=0), 1.0, observed=np.ones(2))
        pm.Normal("reversed", (Mirrored()(x[:, 0]) * np.arange(5)).sum(), 1.0, observed=1)
    value = model.rvs_to_values[x]
    reading = read_model(model, [value], model.initial_point())
    assert all(isinstance(factor, AdditiveFactor) for factor in reading.factors)

    records = RNG.uniform(0, 4, (5, 2))
    totals = [each.contributions.sum(axis=0) for each in reading.sums]
    function = pytensor.function(list(reading.records), totals, mode="FAST_COMPILE")
    due = np.interp(records[:, 1], [0, 1, 4], [0, 0.5, 3]).sum()
    np.testing.assert_allclose(function(records)[0], [due, records[:, 0].sum()])
    np.testing.assert_allclose(function(records)[1], records[::-1, 0] @ np.arange(5))


def test_what_records_contribute_by_a_taught_operation_is_known_by_block():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=(5, 2))
        due = pt.stack([TaxDue()(x[:, 1]), x[:, 0]], axis=1)
        pm.Normal("released", due.sum(axis=0), 1.0, observed=np.ones(2))
    reading = read_model(model, [model.rvs_to_values[x]], model.initial_point())
    block = by_block(reading.records, reading.sums)
    assert block is not None
    contributions = pytensor.function(block.inputs, block.contributions, mode="FAST_COMPILE")
    records = RNG.uniform(0, 4, (3, 2))
    expected = np.column_stack([np.interp(records[:, 1], [0, 1, 4], [0, 0.5, 3]), records[:, 0]])
    np.testing.assert_allclose(contributions(records), expected)


class Untaught(Op):
    """An operation that no reader knows."""

    __props__ = ()
    itypes = (pt.dvector,)
    otypes = (pt.dvector,)

    def perform(self, node, inputs, outputs):
        outputs[0][0] = inputs[0].copy()


def test_each_reader_says_how_an_operation_is_taught():
    remedy = r"teach all samplers this one with `pymc_dapper.action_of.register\(Untaught\)`"
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=4)
        pm.Normal("released", Untaught()(x).sum(), 1.0, observed=1.0)
    with pytest.raises(pmd.UnknownOperationError, match=remedy):
        read_model(model, [model.rvs_to_values[x]], model.initial_point())
    theta = pt.dvector("theta")
    with pytest.raises(pmd.NotConjugateError, match=remedy):
        read_relations([Untaught()(theta)], [theta], positive=True)
    with pm.Model() as model:
        x = pm.Multinomial("x", n=20, p=np.ones(4) / 4)
        pm.Normal("released", Untaught()(1.0 * x), 2.0, observed=np.ones(4))
    [whole] = read(model, "x").wholes
    assert re.search(remedy, whole.reason)


def test_a_taught_operation_is_read_of_counts():
    with pm.Model() as model:
        x = pm.Multinomial("x", n=20, p=np.ones(4) / 4)
        pm.Normal("released", Mirrored()(x)[:3] + 0.0, 2.0, observed=np.ones(3))
        pm.Normal("tax", TaxDue()(1.0 * x), 2.0, observed=np.ones(4))
    reading = read(model, "x")
    assert not reading.wholes
    sizes = {terms.factor: terms.size for terms in reading.terms}
    assert sizes == {"x": 4, "released": 3, "tax": 4}
    [released] = [terms for terms in reading.terms if terms.factor == "released"]
    [linear] = released.linear.values()
    places = linear.toarray().argmax(axis=1)
    assert set(places) >= {3, 2, 1}


def test_a_taught_operation_is_read_of_a_parameter():
    theta = pt.dvector("theta")
    [moved, joined] = read_relations(
        [2.0 * Mirrored()(theta), Mirrored()(theta) + theta], [theta], positive=False
    )
    assert isinstance(moved, Power)
    np.testing.assert_array_equal(
        moved.entries.eval({theta: np.arange(3.0)}, mode="FAST_COMPILE"), [2, 1, 0]
    )
    assert isinstance(joined, Affine)
    assert joined.entries is None
    with pytest.raises(pmd.NotConjugateError, match=r"TaxDue .* is neither a power of it"):
        read_relations([TaxDue()(theta)], [theta], positive=True)


class Sorted(Mirrored):
    """An operation that moves entries to where their values say."""

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.sort(inputs[0])


class Doubled(Mirrored):
    """An operation that does more than move entries."""

    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]


@pytest.mark.usefixtures("uncompiled")
def test_an_operation_that_is_taught_wrongly_is_found_out():
    for op in (Sorted, Doubled):
        pmd.action_of.register(op, lambda op, node: Moves())
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=9)
        pm.Normal("released", (Sorted()(x) * np.arange(9)).sum(), 1.0, observed=1)
    with pytest.raises(pmd.ReadingError, match="or of what was registered with `action_of`"):
        pmd.DapperStep([x], model=model)
    node = Doubled()(X).owner
    assert find_origins(node, [X.type.shape], known_value) is None


def test_an_operation_acts_on_numbers_as_on_arrays():
    x = pt.dvector("x")
    node = TaxDue()(x).owner
    number = pt.dscalar("number")
    assert isinstance(scalar_of(node), EntryOf)
    assert scalar_of(node) == scalar_of(TaxDue()(pt.dvector()).owner)
    assert hash(scalar_of(node)) == hash(scalar_of(TaxDue()(pt.dvector()).owner))
    on_number = on_entries(node, [number])
    for mode in ("FAST_COMPILE", numba_mode(None)):
        function = pytensor.function([number], on_number, mode=mode)
        assert [function(x) for x in (0.5, 2.5)] == [0.25, 1.75]


def test_operations_on_whole_arrays_have_no_scalar_form():
    assert scalar_of(EXAMPLES["searchsorted"].owner) is None
    assert scalar_of(EXAMPLES["sorted"].owner) is None


@pytest.mark.long
def test_a_taught_operation_is_compiled_into_sweeps():
    """Steps compare the log-density that they compile with the model's own."""
    with pm.Model() as model:
        x = pm.Multinomial("x", n=20, p=np.ones(4) / 4)
        pm.Normal("tax", TaxDue()(Mirrored()(x) / 3), 2.0, observed=np.ones(4))
    step = pmd.CountStep([x], model=model)
    assert "Evaluated as a whole" not in step.describe()
    step.setup_chain(np.random.default_rng(1), tune=1, draws=1)
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=(5, 2))
        columns = Mirrored()(x)
        due = pt.stack([TaxDue()(columns[:, 0]), columns[:, 1]], axis=1)
        pm.Normal("released", due.sum(axis=0), 1.0, observed=np.ones(2))
    pmd.DapperStep([x], model=model)
