"""Tables, compiled: held against the same in Python."""

import numpy as np
import pytest

from pymc_dapper.counts.trees.model import compile_tree
from tests.counts.trees.models import COUNTS, MODELS, START, given_of, tree_of
from tests.evaluated_in_python import evaluated_in_python

FIELDS = ["starts", "lowest", "values", "tops", "beyond", "highest"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["families", "levels"])  # these have most laws and kinds of noise
def test_compiled_and_in_python_are_the_same(name):
    model = MODELS[name]()
    with evaluated_in_python():
        tree = tree_of(model, COUNTS[name])
    compiled = compile_tree(tree.reading, tree.tree)
    counts, given = np.array(START[name]), given_of(tree.reading, model.initial_point())
    for drop in (20.0, 50.0):
        tables = [each.tables(counts, given, drop) for each in (tree, compiled)]
        for field in FIELDS:
            a, b = (getattr(x, field) for x in tables)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
