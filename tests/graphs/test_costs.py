"""Costs of graphs, counted."""

import pytensor.tensor as pt
import pytest
from pytensor.graph import FunctionGraph

from pymc_dapper.graphs import costs

x, few = pt.vector("x", shape=(1_000,)), pt.matrix("few", shape=(4, 4))


def of(*outputs):
    return costs.nanoseconds(FunctionGraph(outputs=list(outputs), clone=True))


@pytest.mark.parametrize(
    ("graph", "each"),
    [
        (2 * x + 1, 2 * costs.ARITHMETIC),
        (pt.exp(x), costs.ELEMENTARY),
        (pt.gammaln(x), costs.SPECIAL),
        (pt.gammainc(2.0, x), costs.ITERATED),
        (x.sum(), costs.ARITHMETIC),
        (pt.sort(x), costs.OTHER),
        (x[pt.argmax(x) :], costs.OTHER),
        (pt.stack([x, x]), 2 * costs.MOVED),
        (x[None, :], 0),
        (pt.specify_shape(x, 1_000).shape, 0),
        (pt.outer(x, x[:2]), 2 * costs.ARITHMETIC),
    ],
)
def test_each_entry_counts_by_what_is_done_to_it(graph, each):
    assert of(graph) == pytest.approx(1_000 * each, rel=1e-2, abs=3 * costs.OTHER)


def test_a_matrix_product_counts_its_multiplications():
    assert of(pt.dot(few, few)) == pytest.approx(2 * 64 * costs.ARITHMETIC)


def test_a_triangular_system_counts_half_as_many():
    solved = pt.linalg.solve_triangular(few, pt.matrix("rhs", shape=(4, 1_000)), lower=True)
    assert of(solved) == pytest.approx(4 * 4_000 * costs.ARITHMETIC, rel=1e-2)
    batch = pt.linalg.solve_triangular(few[None], pt.tensor3("rows", shape=(1_000, 4, 1)))
    assert of(batch) == pytest.approx(4 * 4_000 * costs.ARITHMETIC, rel=1e-2)


def test_rows_of_unknown_number_count_as_all_that_they_are_taken_from():
    n = pt.iscalar("n")
    assert of(pt.exp(x[:n]).sum()) == pytest.approx(1_000 * (costs.ELEMENTARY + costs.ARITHMETIC))


def test_what_is_used_twice_counts_once():
    shared = pt.exp(x)
    assert of(shared + 1, shared * 2) == pytest.approx(
        1_000 * (costs.ELEMENTARY + 2 * costs.ARITHMETIC)
    )
