"""Graphs evaluated in Python."""

import tracemalloc
from contextlib import nullcontext
from functools import partial, reduce

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.scalar as ps
import pytensor.tensor as pt
import pytest
from pymc.logprob.utils import ParameterValueError
from pytensor import ifelse
from pytensor.compile.builders import OpFromGraph

from pymc_dapper.backend.evaluated import Evaluated
from pymc_dapper.backend.internals import CheckParameterValue
from tests.as_written import AS_WRITTEN

X, N, A = pt.vector("x"), pt.lscalar("n"), pt.matrix("A")
DATA = pytensor.shared(np.array([1.0, 2.0, 3.0]), name="data")
VALUES = [np.array([0.5, -1.0, 2.0]), np.int64(2), np.array([[4.0, 1.0], [0.5, 3.0]])]


def function(outputs, inputs=(X, N, A), check_bounds=True):
    return Evaluated(inputs, outputs, check_bounds=check_bounds)


@pytest.mark.parametrize(
    "graph",
    [
        pt.add(X, DATA, X, N),
        pt.add(*(k * X for k in range(45)), N),
        pt.mul(*(X.astype("int8") for _ in range(40)), N > 1),
        pt.exp(X).astype("float32") * N,
        pt.switch(X > 0, pt.log(pt.abs(X)), -np.inf),
        pt.clip(pt.log(X), -0.5, X[::-1]),
        pt.clip(pt.sqrt(X), N, -1),
        pt.clip(N, 3, 1.5),
        pt.clip(pt.floor(X).astype("int8"), 0, 1),
        pt.sqrt(N) + pt.gammaln(N + X**2),
        pt.true_div(X.astype("int8"), np.int8(3)) + pt.abs(A).max(),
        pt.maximum(X, pt.erfinv(X / 4)) ** 3,
        (X[:, None] * X).sum(axis=0)[::-1],
        pt.linalg.solve(pt.stack([A, A + 1]), pt.ones((2, 2, 1))),
        (pt.eq(X[:, None, None], [[0.5], [2.0]]) & pt.lt(X[:, None, None], [1.0, 3.0])).sum(axis=0),
        (X[:, None] > A[0])[1:].ravel(),
        pt.switch(X > 0, N > 1, A[0, 1] < X),
        pt.switch(X[:, None] > A[0], A[1] > X[:, None], pt.isnan(X[:, None]) | ~(A[0] > 1)),
        reduce(pt.and_, ((k * X[:, None] > A[0]) for k in range(3))),
        pt.isinf(X[:, None] / A[0]) ^ A[1].astype("bool"),
        pt.set_subtensor(X[N], 7.0),
        pt.concatenate([X, A.ravel()]).cumsum().argmax(),
        pt.as_tensor([1.0, 2.0]) + 1,
        X,
        N,
        pt.expand_dims(pt.constant([1, 2]), 0),
    ],
    ids=str,
)
def test_a_graph_has_the_values_that_pytensor_gives(graph):
    reference = pytensor.function([X, N, A], graph, mode=AS_WRITTEN, on_unused_input="ignore")
    [value] = function([graph])(*VALUES)
    expected = reference(*VALUES)
    assert np.asarray(value).dtype == np.asarray(expected).dtype
    np.testing.assert_array_equal(value, expected)


def test_a_number_has_no_axis_to_add_up_over():
    """As compiled code has it; PyTensor's own Python looks for the axis."""
    [value] = function([pt.log(N).sum(axis=-1)])(*VALUES)
    assert value == np.log(2)


def test_draws_are_those_of_pytensor_and_leave_the_generator_as_it_is():
    rng = pt.random.type.random_generator_type("rng")
    after, first = pt.random.normal(X, 1.0, rng=rng, return_next_rng=True)
    _, second = pt.random.gamma(2.0, scale=1.0, size=3, rng=after, return_next_rng=True)
    graphs = [first, second]
    reference = pytensor.function([rng, X], graphs, mode=AS_WRITTEN)
    evaluated = function(graphs, [rng, X])
    generator = np.random.default_rng(1)
    for _ in range(2):
        drawn = evaluated(generator, VALUES[0])
        for one, other in zip(drawn, reference(generator, VALUES[0]), strict=True):
            np.testing.assert_array_equal(one, other)
    assert generator.random() == np.random.default_rng(1).random()


def test_returned_arrays_are_the_callers_own():
    constant = pt.constant(np.arange(3.0))
    squares = X**2
    evaluated = function([X, X[::-1], DATA, DATA[:2], constant, squares, squares, squares[1:]])
    x = VALUES[0].copy()
    first = evaluated(x, *VALUES[1:])
    for value in first:
        value[:] = 99.0
        assert sum(bool((other == 99.0).any()) for other in first) == 1
        value[:] = 0.0
    again = evaluated(x, *VALUES[1:])
    np.testing.assert_array_equal(again[0], VALUES[0])
    np.testing.assert_array_equal(again[2], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(again[4], [0.0, 1.0, 2.0])


def test_shared_variables_are_read_at_each_call():
    shift = pytensor.shared(1.0)
    evaluated = function([X + shift])
    before, _ = evaluated(*VALUES), shift.set_value(5.0)
    np.testing.assert_array_equal(evaluated(*VALUES)[0] - before[0], 4.0)


@pytest.mark.parametrize(("sigma", "is_valid"), [(2.0, True), (-2.0, False)])
@pytest.mark.parametrize("check_bounds", [True, False])
def test_invalid_parameters_have_no_density_unless_unchecked(sigma, is_valid, check_bounds):
    scale = pt.dscalar("scale")
    graph = pm.logp(pm.Laplace.dist(0.0, scale), X)
    with pm.Model(check_bounds=check_bounds):
        reference = pm.compile([X, scale], graph, mode=AS_WRITTEN)
    [value] = function([graph], [X, scale], check_bounds)(VALUES[0], sigma)
    np.testing.assert_array_equal(value, reference(VALUES[0], sigma))
    if check_bounds:
        assert np.isfinite(value).all() == is_valid


def test_an_input_that_is_missing_or_misshapen_is_refused():
    with pytest.raises(ValueError, match="depends on x, which isn't given"):
        Evaluated([N], [X * N], check_bounds=True)
    with pytest.raises(TypeError):
        function([X * 2])(np.ones((2, 2)), *VALUES[1:])
    with pytest.raises(ValueError, match="zip"):
        function([X * 2])(VALUES[0])


def test_numbers_are_taken_where_they_are_of_their_type():
    n, x = ps.int64("n"), ps.float64("x")
    evaluated = function([n + 1, 2 * x], [n, x])
    for whole in (3, 3.0, np.float32(3), np.array(3)):
        more, twice = evaluated(whole, np.nan)
        assert (more, type(more), type(twice)) == (4, np.int64, np.float64)
        assert np.isnan(twice)
    for wrong in (2.5, np.nan, "three"):
        with pytest.raises(TypeError):
            evaluated(wrong, 1.0)


def test_an_axis_of_length_one_that_isnt_known_to_be_is_refused_as_by_pytensor():
    y = pt.vector("y")
    for shapes in ((3, 1), (1, 3), (1, 0), (2, 3)):
        values = [np.ones(n) for n in shapes]
        for make in (Evaluated, partial(pytensor.function, mode=AS_WRITTEN)):
            options = {"check_bounds": True} if make is Evaluated else {}
            with pytest.raises(ValueError, match=r"Runtime broadcasting|broadcast together"):
                make([X, y], [X + y], **options)(*values)
    [total] = Evaluated([X, y], [X + y], check_bounds=True)(np.ones(1), np.ones(1))
    np.testing.assert_array_equal(total, [2.0])


@pytest.mark.parametrize("n", [31, 32, 40])
def test_many_operands_are_added_where_pytensor_refuses_to(n):
    many = [x + k for k, x in enumerate([X] * n)]
    [total] = function([pt.add(*many)])(*VALUES)
    np.testing.assert_allclose(total, n * VALUES[0] + sum(range(n)))
    node = pt.add(*many).owner
    with pytest.raises(NotImplementedError, match="32") if n > 31 else nullcontext():
        node.op.perform(node, [VALUES[0]] * n, [[None]])
    wrong = pt.add(*many[1:], pt.vector("y"))
    with pytest.raises(ValueError, match="Runtime broadcasting"):
        function([wrong], [X, *wrong.owner.inputs[-1:]])(VALUES[0], np.ones(1))


def test_an_operation_leaves_no_notes_with_the_model_and_evaluating_no_values():
    graph = pt.add(X, X, X).sum()
    evaluated = function([graph])
    evaluated(*VALUES)
    assert not hasattr(graph.owner.inputs[0].owner.tag, "ufunc")
    assert all(cell == [None] for cell in (*evaluated._given, *evaluated._computed))
    with pytest.raises(np.linalg.LinAlgError):
        function([pt.linalg.inv(A)])(*VALUES[:2], np.zeros((2, 2)))


def test_it_can_be_sent_to_another_process():
    evaluated = function([pt.add(X, X, X), pt.gammaln(X).astype("float32"), pt.linalg.inv(A)])
    expected = evaluated(*VALUES)  # which operations keep notes of
    for one, other in zip(
        cloudpickle.loads(cloudpickle.dumps(evaluated))(*VALUES), expected, strict=True
    ):
        np.testing.assert_array_equal(one, other)


def test_arrays_are_let_go_when_they_are_last_needed():
    graph, n = X, 2**18
    for _ in range(8):
        graph = pt.exp(-graph)
    evaluated, x = function([graph.sum()]), np.ones(n)
    tracemalloc.start()
    try:
        evaluated(x, *VALUES[1:])
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 4 * x.nbytes  # and not 16


def double(x):
    return OpFromGraph([x_ := pt.vector()], [2 * x_])(x)


def overwritten(x):
    """An operation that writes into its input, which another needs, too."""
    y = pt.exp(x)
    return pt.set_subtensor(y[0], 1.0, inplace=True) + y[::-1]


def with_check(x, scale):
    return CheckParameterValue("scale > 0")(x, pt.all(scale > 0))


OF_GRAPHS = {
    "graph of its own": double(X),
    "loop": pytensor.scan(lambda x: x * 2, sequences=[X], return_updates=False),
    "recursion": pytensor.scan(
        lambda x, before: x + before, sequences=[X], outputs_info=[X[0]], return_updates=False
    ),
    "choice": ifelse(N > 0, X, 2 * X),
    "other choice": ifelse(N > 5, X, 2 * X),
}


@pytest.mark.parametrize("graph", OF_GRAPHS.values(), ids=OF_GRAPHS)
def test_operations_with_a_graph_are_evaluated(graph):
    reference = pytensor.function([X, N, A], graph + 1, mode=AS_WRITTEN, on_unused_input="ignore")
    evaluated = function([graph + 1])
    for by in (1.0, -0.5, 1.0):
        values = [VALUES[0] * by, *VALUES[1:]]
        np.testing.assert_array_equal(evaluated(*values)[0], reference(*values))
    sent = cloudpickle.loads(cloudpickle.dumps(evaluated))
    np.testing.assert_array_equal(sent(*VALUES)[0], reference(*VALUES))


def test_what_an_operation_overwrites_stays_for_others():
    x = VALUES[0].copy()
    [value] = function([overwritten(X)])(x, *VALUES[1:])
    after = np.exp(x)
    after[0] = 1.0
    np.testing.assert_array_equal(value, after + np.exp(x)[::-1])
    [first] = function([pt.set_subtensor(X[0], 1.0, inplace=True)])(x, *VALUES[1:])
    np.testing.assert_array_equal(first, [1.0, *x[1:]])
    np.testing.assert_array_equal(x, VALUES[0])


def test_invalid_parameters_within_a_loop_and_where_asked_for_are_errors():
    scale = pt.dscalar("scale")
    loop = pytensor.scan(with_check, sequences=[X], non_sequences=[scale], return_updates=False)
    for graph, check_bounds in ((loop, True), (loop, False), (with_check(X, scale), None)):
        evaluated = function([graph], [X, scale], check_bounds)
        np.testing.assert_array_equal(evaluated(VALUES[0], 1.0)[0], VALUES[0])
        with pytest.raises(ParameterValueError, match="scale > 0"):
            evaluated(VALUES[0], -1.0)
