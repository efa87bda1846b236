"""Counts on a tree that can be summed out, and models that are refused."""

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.collapsing.reading.model import CollapsedModel
from pymc_dapper.collapsing.reading.tree import (
    CollapsedTree,
    read_collapsed_tree,
    read_summed_out,
)
from pymc_dapper.graphs.errors import NotCollapsibleError
from tests.counts.trees.models import COUNTS, MODELS


def read(model, parameters, counts):
    values = [
        [model.rvs_to_values[model[name]] for name in names] for names in (parameters, counts)
    ]
    return read_collapsed_tree(model, *values)


def test_what_is_read():
    model = MODELS["families"]()
    reading = read(model, ["mu", "alpha"], COUNTS["families"])
    assert reading.factors == ["all", "some", "one"]
    assert [x.name for x in reading.moved] == ["mu", "alpha_log__"]
    assert {x.name for x in reading.parameters} == {"mu", "alpha_log__", "sigma_log__"}
    assert [rv.name for rv in reading.rvs] == COUNTS["families"]
    # At the anchors it's what the model has at these counts.
    point = model.initial_point()
    at = {x: point[x.name] for x in reading.view.values.values()}
    counts = np.concatenate([np.ravel(point[name]) for name in COUNTS["families"]])
    written = reading.written.eval(at, mode="FAST_COMPILE")
    own = [reading.view.values[x] for x in reading.counts]
    at = {x: y for x, y in at.items() if x not in own} | {reading.anchors: counts}
    assert reading.log_density.eval(at, mode="FAST_COMPILE") == pytest.approx(written, rel=1e-14)


def test_what_cannot_be_summed_out_is_refused_with_the_reason():
    model = MODELS["latent totals"]()
    with pytest.raises(NotCollapsibleError, match="a total of theirs depends on 'n'"):
        read(model, ["rate"], ["x"])
    with pm.Model() as model:
        pm.Normal("effect")
        x = pm.Poisson("x", 3.0, shape=2)
        pm.Normal("sum", x.sum(), 2.0, observed=5.0)
    with pytest.raises(NotCollapsibleError, match="depend on none of the parameters"):
        read(model, ["effect"], ["x"])


def read_either(sees):
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
    one_by_one, on_a_tree = read_either(cells), read_either(total)
    assert isinstance(one_by_one, CollapsedModel)
    assert one_by_one.how == "one by one"
    assert isinstance(on_a_tree, CollapsedTree)
    assert on_a_tree.how == "on the tree of their sums"
    with pytest.raises(
        NotCollapsibleError,
        match=r"'x' can't be summed out: 'windows' and 'windows' sum overlapping cells",
    ):
        read_either(windows)
