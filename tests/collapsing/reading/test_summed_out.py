"""Counts are summed out one by one if possible, otherwise on the tree of their sums."""

import pymc as pm
import pytest

from pymc_dapper.collapsing.reading.model import CollapsedModel, NotCollapsibleError
from pymc_dapper.collapsing.reading.summed_out import read_summed_out
from pymc_dapper.collapsing.reading.tree import CollapsedTree


def read(sees):
    with pm.Model() as model:
        effect = pm.Normal("effect")
        x = pm.Binomial("x", n=10, p=pm.math.sigmoid(effect), shape=3)
        sees(x)
    values = ([model.rvs_to_values[rv]] for rv in (effect, x))
    return read_summed_out(model, *values)


def cells(x):
    pm.Normal("cells", x, 2.0, observed=[3.0, 4.0, 9.0])


def total(x):
    cells(x)
    pm.Normal("sum", x.sum(), 2.0, observed=12.0)


def windows(x):
    pm.Normal("windows", x[:-1] + x[1:], 2.0, observed=[7.0, 9.0])


def test_how_counts_are_summed_out():
    one_by_one, on_a_tree = read(cells), read(total)
    assert isinstance(one_by_one, CollapsedModel)
    assert one_by_one.how == "one by one"
    assert isinstance(on_a_tree, CollapsedTree)
    assert on_a_tree.how == "on the tree of their sums"
    with pytest.raises(
        NotCollapsibleError,
        match=r"'x' can't be summed out: 'windows' and 'windows' sum overlapping cells",
    ):
        read(windows)
