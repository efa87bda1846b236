"""Costs of graphs, counted."""

import pytensor.tensor as pt
import pytest
from pytensor.graph import FunctionGraph

from pymc_dapper.graphs import costs
from pymc_dapper.interweaving.compiled.counts import count_quantile
from pymc_dapper.interweaving.kernels.cdf_of_counts import POISSON

x = pt.vector("x", shape=(1_000,))


def of(*outputs, largest=0.0):
    return costs.nanoseconds(FunctionGraph(outputs=list(outputs), clone=True), largest)


@pytest.mark.parametrize(
    ("graph", "each"),
    [
        (2 * x + 1, 2 * costs.ENTRY),
        (pt.exp(x), costs.ENTRY),
        (pt.gammainc(2.0, x), costs.ITERATED),
        (pt.betaincinv(2.0, x, 0.5), costs.ITERATED),
        (pt.sort(x), costs.ENTRY),
        (x[:, None] * x[:2], 3 * costs.ENTRY),  # a view counts, too
        (x.sum(), 0),
    ],
)
def test_each_entry_that_is_made_counts(graph, each):
    assert of(graph) == pytest.approx(1_000 * each, rel=1e-2, abs=10 * costs.ENTRY)


def test_rows_of_unknown_number_count_as_all_that_they_are_taken_from():
    n = pt.iscalar("n")
    assert of(pt.exp(x[:n])) == pytest.approx(2 * 1_000 * costs.ENTRY, rel=1e-2)


def test_what_is_used_twice_counts_once():
    shared = pt.exp(x)
    assert of(shared + 1, shared * 2) == pytest.approx(3 * 1_000 * costs.ENTRY, rel=1e-2)


def test_large_counts_cost_more():
    graph = count_quantile(x, *(pt.as_tensor(float(k)) for k in (POISSON, 5, 0)))
    few, more, many = (of(graph, largest=k) for k in (3, 100, 1e6))
    assert costs.ENTRY * 1_000 < few < more / 5
    assert more < many < 100 * more


def test_steps_that_compute_no_quantiles_take_less():
    graphs = (
        pt.betaincinv(2.0, x, 0.5),
        count_quantile(x, *(pt.as_tensor(float(k)) for k in (0, 5, 0))),
    )
    for graph in graphs:
        assert of(graph, largest=None) == pytest.approx(1_000 * costs.ENTRY, rel=1e-2)
