"""Which models' counts lie on a tree, and what breaks one."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.counts.reading.tree import read_tree, why_no_tree
from tests.counts.systems import read


def reason(*sums, prior=None):
    """With a release of each sum of a table of 2 x 3 cells."""
    with pm.Model() as model:
        table = prior() if prior else pm.Poisson("table", 5.0, shape=(2, 3))
        for k, of in enumerate(sums):
            statistic = of(table)
            pm.Normal(f"release_{k}", statistic, 2.0, observed=np.zeros(statistic.type.shape))
    return why_no_tree(read(model, "table"))


def cells(table):
    return table


def rows(table):
    return table.sum(axis=1)


def columns(table):
    return table.sum(axis=0)


def total(table):
    return table.sum()


def multinomials():
    return pm.Multinomial("table", n=[20, 30], p=np.ones(3) / 3, shape=(2, 3))


@pytest.mark.parametrize("sums", [[cells], [rows], [cells, rows, total], [cells, total, total]])
@pytest.mark.parametrize("prior", [None, multinomials])
def test_nested_and_disjoint_sums_are_a_tree(sums, prior):
    assert reason(*sums, prior=prior) is None


def test_exact_totals_are_on_the_tree_too():
    with pm.Model() as model:
        table = pm.Poisson("table", 5.0, shape=(2, 3))
        pm.Normal("noisy", table, 2.0, observed=np.zeros((2, 3)))
        pmd.invariant("exact", table.sum(axis=1), [4, 5])
    assert why_no_tree(read(model, "table")) is None


def test_what_breaks_a_tree_is_named():
    assert reason(rows, columns) in (
        "'release_0' and 'release_1' sum overlapping cells, and neither sum contains the other",
        "'release_1' and 'release_0' sum overlapping cells, and neither sum contains the other",
    )
    assert "'release_0' and 'table'" in (reason(columns, prior=multinomials) or "")
    assert reason(lambda table: table[0] + 2 * table[1]) == "'release_0' weighs cells in its sums"
    several = reason(lambda table: table[0] / (1 + table[1]))
    assert several == "a term of 'release_0' depends on several sums of cells at once"


def test_a_factor_that_is_seen_as_a_whole_breaks_it():
    with pm.Model() as model:
        table = pm.Poisson("table", 5.0, shape=3)
        pm.Potential("distance", -pm.math.sqrt((table**2).sum()))
    assert (why_no_tree(read(model, "table")) or "").startswith("'distance' isn't a sum of terms")


def test_the_tree_has_a_node_for_each_sum_and_all_of_its_terms():
    with pm.Model() as model:
        table = pm.Poisson("table", 5.0, shape=(2, 3))
        pm.Normal("rows", table.sum(axis=1), 2.0, observed=np.zeros(2))
        pm.Normal("again", 2.0 * table[0].sum(), 2.0, observed=0.0)
        pmd.invariant("exact", table.sum(), 9)
    tree = read_tree(read(model, "table"))
    assert not isinstance(tree, str)
    top = int(np.flatnonzero(tree.exact)[0])
    rows = tree.parent[[0, 3]]
    assert tree.parent.tolist() == [rows[0]] * 3 + [rows[1]] * 3 + [
        -1 if i == top else top for i in range(6, 9)
    ]
    counts = np.diff(tree.term_starts)
    assert counts[:6].tolist() == [1] * 6
    assert (counts[rows[0]], counts[rows[1]], counts[top]) == (2, 1, 0)
    assert sorted(tree.terms.tolist()) == list(range(9))
    assert np.all(tree.weights == 1.0)


def test_latent_totals_are_sums():
    with pm.Model() as model:
        n = pm.Poisson("n", 5.0)
        table = pm.Multinomial("table", n=n, p=[0.5, 0.5])
        pm.Normal("noisy", table, 1.0, observed=[2.0, 3.0])
    tree = read_tree(read(model, "n", "table"))
    assert not isinstance(tree, str)
    assert tree.cells.tolist() == [1, 2]
    assert tree.parent.tolist() == [2, 2, -1]
