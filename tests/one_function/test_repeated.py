"""Parts of a graph that are alike are written once."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.fg import FunctionGraph
from pytensor.tensor.random.type import random_generator_type

from pymc_dapper.backend.generators import drawn_noise
from pymc_dapper.backend.internals import CheckParameterValue
from pymc_dapper.one_function.linker import ONE_FUNCTION, _rewrite, call_parts
from pymc_dapper.one_function.repeated import Call, CallParts, Part, steps_of
from tests.one_function.graphs_to_write import values_of, written

EQUAL, UNEQUAL = (5,) * 9, (5, 3, 8, 2, 5, 4, 7, 6, 9)
"""Numbers of categories."""


def tables(n_columns, n_records=30, sizes=EQUAL):
    """Write columns drawn by tables of their own, where all draws are possible, and pair counts.

    Each draw waits for what is found out of all tables.
    """
    rng = np.random.default_rng(1)
    scores = [pt.matrix(f"scores{k}", shape=(3, sizes[k])) for k in range(n_columns)]
    uniforms = [pt.vector(f"u{k}", shape=(n_records,)) for k in range(n_columns)]
    group = pt.vector("group", dtype="int64", shape=(n_records,))
    weights = [pt.exp(x) for x in scores]
    rows = [(w / w.sum(axis=-1, keepdims=True))[group] for w in weights]
    possible = pt.all([(p >= 0).all() for p in rows])
    drawn = [
        pt.switch(possible, (u[:, None] > pt.cumsum(p, axis=1)).sum(axis=1), -1)
        for p, u in zip(rows, uniforms, strict=True)
    ]
    counts = [
        pt.eq(a[:, None], b[None]).sum(axis=0) * rng.normal(size=n_records)
        for k, a in enumerate(drawn)
        for b in drawn[:k]
    ]
    inputs = [*scores, *uniforms, group]
    given = {x.name: rng.random(x.type.shape) for x in inputs[:-1]}
    given["group"] = rng.integers(3, size=n_records)
    return inputs, [*drawn, pt.add(*counts)], given


def graph_of(inputs, outputs):
    graph = FunctionGraph(inputs, outputs, clone=True)
    for x, name in zip(graph.inputs, inputs, strict=True):
        x.name = name.name
    return graph


def text_of(inputs, outputs):
    graph = graph_of(inputs, outputs)
    CallParts(as_it_is).apply(graph)
    return written(graph)


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_inputs_of_another_shape_are_refused_where_parts_take_them(sizes):
    """A part checks what only parts take; whatever else is used is checked at the start."""
    inputs, outputs, given = tables(4, sizes=sizes)
    text = text_of(inputs, outputs)
    assert ("x0.shape[1] != 5" in text.source) is (sizes is UNEQUAL)
    for x in inputs:
        with pytest.raises(ValueError, match="another shape"):
            values_of(text, inputs, given | {x.name: given[x.name][:-1]})
        if x.name.startswith("scores"):
            with pytest.raises(ValueError, match="another shape"):
                values_of(text, inputs, given | {x.name: given[x.name][:, :-1]})


def test_a_rewritten_part_may_need_less_than_it_is_handed():
    xs = [pt.vector(f"x{k}", shape=(30,)) for k in range(8)]
    numbers = [pt.scalar(f"n{k}") for k in range(8)]
    outputs = [
        (pt.exp(x).cumsum()[::-1] * pt.cos(x).cumsum() + pt.sin(x) + 0 * pt.exp(n)).cumsum()
        for x, n in zip(xs, numbers, strict=True)
    ]
    graph = graph_of([*xs, *numbers], outputs)
    call_parts.apply(graph)
    calls = [node.op.graph for node in graph.apply_nodes if isinstance(node.op, Part)]
    assert any(set(of.inputs) - set(of.clients) for of in calls)
    given = {x.name: np.full(x.type.shape, 0.3) for x in (*xs, *numbers)}
    function = pytensor.function([*xs, *numbers], outputs, mode="FAST_COMPILE")
    mine = values_of(written(graph), [*xs, *numbers], given)
    np.testing.assert_allclose(mine, function(*given.values()), rtol=1e-12)


def as_it_is(graph):
    """Rewrite nothing."""


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_source_is_as_long_as_there_are_kinds(sizes):
    texts = [text_of(*tables(n, sizes=sizes)[:2]) for n in (4, 8)]
    inner = [[x for x in text.names if x.startswith("r")] for text in texts]
    assert 0 < len(inner[0]) == len(inner[1])
    few, many = (text.source.count("\n") for text in texts)
    calls = 28 - 6  # pairs
    assert many - few < 4 * 8 + 4 * calls


@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("n_columns", [4, 7])
def test_values_are_those_of_the_graph(n_columns, sizes):
    inputs, outputs, given = tables(n_columns, sizes=sizes)
    text = text_of(inputs, outputs)
    function = pytensor.function(inputs, outputs, mode="FAST_COMPILE")
    theirs = function(*[given[x.name] for x in inputs])
    for mine, their in zip(values_of(text, inputs, given), theirs, strict=True):
        np.testing.assert_allclose(mine, their, rtol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("sizes", [EQUAL, UNEQUAL], ids=["equal", "unequal"])
def test_compiled_values_are_those_of_the_graph(sizes):
    inputs, outputs, given = tables(5, sizes=sizes)
    values = [given[x.name] for x in inputs]
    mine = pytensor.function(inputs, outputs, mode=ONE_FUNCTION)(*values)
    theirs = pytensor.function(inputs, outputs, mode="FAST_COMPILE")(*values)
    for each, their in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(each, their, rtol=1e-12)


def test_each_operation_is_done_once_and_after_what_it_needs():
    inputs, outputs, _ = tables(6)
    graph = graph_of(inputs, outputs)
    steps, known = steps_of(graph), set(graph.inputs)
    assert any(isinstance(step, Call) for step in steps)
    for step in steps:
        assert all(x in known or x.owner is None for x in step.inputs)
        assert known.isdisjoint(step.outputs)
        known.update(step.outputs)
    assert known.issuperset(graph.outputs)


def test_what_depends_on_each_other_is_no_part():
    """A recursion does the same again and again, of what it did before."""
    x = total = pt.vector("x", shape=(50,))
    for _ in range(40):
        total = pt.cos(total) * x
    graph = FunctionGraph([x], [total], clone=True)
    assert not any(isinstance(step, Call) for step in steps_of(graph))


def test_other_constants_and_axes_are_other_parts():
    xs = [pt.tensor(f"x{k}", shape=(30, 30)) for k in range(12)]
    weights = np.random.default_rng(1).random((12, 30))
    outputs = [
        (pt.exp(x * w).sum(axis=k % 2) + 2).cumsum()[::-1]
        for k, (x, w) in enumerate(zip(xs, weights, strict=True))
    ]
    graph = graph_of(xs, outputs)
    calls = [step for step in steps_of(graph) if isinstance(step, Call)]
    text = text_of(xs, outputs)
    given = {x.name: np.random.default_rng(2).random((30, 30)) for x in xs}
    function = pytensor.function(xs, outputs, mode="FAST_COMPILE")
    for mine, their in zip(values_of(text, xs, given), function(*given.values()), strict=True):
        np.testing.assert_allclose(mine, their, rtol=1e-12)
    # What all twelve do, then sums over rows, and over columns.
    assert len({step.graph for step in calls}) == 3


OF_ARRAYS = {
    "rows": lambda x, z: [x[k] for k in (0, 5, -1, 3, 1, -6)],
    "slices": lambda x, z: [x[k : k + 2] for k in range(5)] + [x[-3:-1]],
    "unequal slices": lambda x, z: [x[:k] for k in (2, 3, 5, -1, 7)],
    "rows by others": lambda x, z: [x[k, z] for k in (0, 5, -1, 3, 1, -6)],
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_parts_may_take_other_entries_of_one_array(name):
    """Tables of all columns in one array, or all parameters in one vector."""
    x, z = pt.tensor("x", shape=(7, 4, 3)), pt.vector("z", dtype="int64", shape=(30,))

    def outputs(parts):
        return [pt.exp(y).cumsum(axis=0) * pt.cos(y) + pt.sin(y).cumsum(axis=0) for y in parts]

    made = outputs(OF_ARRAYS[name](x, z))
    steps = [step for step in steps_of(graph_of([x, z], made)) if isinstance(step, Call)]
    assert len(steps) == len(made)
    assert len({step.graph for step in steps}) == 1
    rng = np.random.default_rng(1)
    given = {"x": rng.normal(size=(7, 4, 3)), "z": rng.integers(-4, 4, size=30)}
    compiled = pytensor.function([x, z], made, mode=ONE_FUNCTION, on_unused_input="ignore")
    parts = OF_ARRAYS[name](given["x"], given["z"])
    for mine, y in zip(compiled(given["x"], given["z"]), parts, strict=True):
        theirs = np.exp(y).cumsum(axis=0) * np.cos(y) + np.sin(y).cumsum(axis=0)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_an_axis_of_length_one_is_another_kind():
    """It is broadcast. Unequal axes are of one kind."""
    lengths = [1, 4, 1, 6, 5, 1]
    xs = [pt.tensor(f"x{k}", shape=(4, n, 3)) for k, n in enumerate(lengths)]
    y = pt.tensor("y", shape=(4, None, 1))
    outputs = [(pt.exp(x) * pt.cos(x) + pt.sin(x) * pt.exp(-x)).cumsum(axis=0) * y for x in xs]
    calls = [step for step in steps_of(graph_of([*xs, y], outputs)) if isinstance(step, Call)]
    assert len(calls) == len(xs)
    of = {step.inputs[0].name: step.graph for step in calls}
    assert len({of[f"x{k}"] for k, n in enumerate(lengths) if n == 1}) == 1
    assert len({of[f"x{k}"] for k, n in enumerate(lengths) if n > 1}) == 1
    assert of["x0"] is not of["x1"]


def test_operations_that_take_entries_make_no_parts():
    """They are written where the entries are read, and no function is called for them."""
    xs = [pt.matrix(f"x{k}", shape=(3, k + 2)) for k in range(40)]
    graph = graph_of(xs, [pt.concatenate([x.flatten() for x in xs])])
    assert not any(isinstance(step, Call) for step in steps_of(graph))


def test_parts_that_draw_are_alike_whichever_draws_first():
    rng = random_generator_type("rng")
    scores, after, drawn = [pt.matrix(f"scores{k}", shape=(3, 5)) for k in range(4)], rng, []
    for x in scores:
        after, uniforms = drawn_noise("random", (30,), after)
        drawn.append((uniforms[:, None] > pt.cumsum(pt.special.softmax(x, axis=-1)[0])).sum(axis=1))
    steps = steps_of(graph_of([rng, *scores], [after, *drawn]))
    of_each = [step.graph for step in steps if isinstance(step, Call)]
    assert len(of_each) == 4
    assert len({*of_each}) == 1


@pytest.fixture
def rewritten_nodes(monkeypatch):
    """How many operations PyTensor rewrites, in each graph that it begins with."""
    found = []

    def noting(graph):
        found.append(len(graph.apply_nodes))
        _rewrite(graph)

    monkeypatch.setattr(call_parts, "_rewrite", noting)
    return found


def test_parts_that_are_alike_are_rewritten_once(rewritten_nodes):
    for n_columns in (7, 9):
        inputs, outputs, _ = tables(n_columns)
        function = pytensor.function(inputs, outputs, mode=ONE_FUNCTION)
        nodes = function.maker.fgraph.toposort()
        assert sum(isinstance(node.op, Part) for node in nodes) >= n_columns
    assert rewritten_nodes[: len(rewritten_nodes) // 2] * 2 == rewritten_nodes


def test_checks_of_parameters_are_no_parts():
    """A model says what becomes of them."""
    xs = [pt.vector(f"x{k}") for k in range(12)]
    logp = [pm.logp(pm.Normal.dist(0, x.sum()), pt.exp(x) ** 2 - 1.0).sum() for x in xs]
    parts = [x.graph for x in steps_of(graph_of(xs, logp)) if isinstance(x, Call)]
    ops = [node.op for graph in parts for node in graph.toposort()]
    assert ops
    assert not any(isinstance(op, CheckParameterValue) for op in ops)


def test_known_numbers_stay_in_parts():
    """With an exponent that is handed on, a square is no product, but slower."""
    xs = [pt.vector(f"x{k}", shape=(30,)) for k in range(8)]
    two = pt.expand_dims(pt.constant(2, dtype="int8"), 0)
    graph = graph_of(xs, [(pt.exp(-((x - x.mean()) ** two)) * 3.0).cumsum() for x in xs])
    parts = [x for x in steps_of(graph) if isinstance(x, Call)]
    assert len(parts) == 8
    assert all(set(part.inputs) <= set(graph.inputs) for part in parts)
    assert all(node in graph.apply_nodes for node in graph.toposort())  # none was taken away
