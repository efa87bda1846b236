"""Small arrays entry by entry: the same numbers, or none."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.graph.traversal import ancestors

from pymc_dapper.graphs.scalars import MOST_STEPS, read_entries
from pymc_dapper.reading import AdditiveFactor, read_model
from pymc_dapper.records.reading.contributions import _block
from tests.records.forms import FORMS

RNG = np.random.default_rng(1)
X = pt.tensor("x", dtype="float64", shape=(1, 3))
K = pt.tensor("k", dtype="int64", shape=(1, 2))
THETA = pt.vector("theta", dtype="float64")
OF_ARRAYS = {X: RNG.normal(size=(1, 3)), K: np.array([[2, 5]])}
OF_CONTEXT = {THETA: RNG.normal(size=4)}

KNOWN = {
    "arithmetic": 2 * X + K[:, :1] / 3,
    "constants": pt.clip(X, -0.1, [0.1, 0.2, 0.3]),
    "context": THETA[3] * X - THETA[:3],
    "comparison": pt.eq(K[:, 0][:, None], np.arange(4)),
    "switch": pt.switch(X > 0, X, pt.exp(X)),
    "columns": pt.stack([X[:, 1], X[:, -1] * K[:, 0]], axis=1),
    "reversed": X[:, ::-1],
    "joined": pt.concatenate([X**2, K[:, 1:], X[:, :2]], axis=1),
    "outer product": X[:, :, None] * K[:, None, :],
    "transposed": (X[:, :, None] * K[:, None, :]).transpose(0, 2, 1),
    "reshaped": (X[:, :, None] * K[:, None, :]).reshape((1, 6)),
    "sum": (X[:, :, None] * K[:, None, :]).sum(axis=1),
    "sum of several axes": (X[:, :, None] * K[:, None, :]).sum(axis=(1, 2)),
    "count": (X > 0).sum(axis=1),
    "product": pt.prod(X, axis=1),
    "largest": pt.max(X, axis=1),
    "any": pt.any(X > 0.5, axis=1),
    "whole numbers": (X * 10).astype("int8"),
    "single precision": X.astype("float32") / 3,
}


def evaluated(graphs, values):
    """In Python, without compiling."""
    given = {x: value for x, value in values.items() if x in set(ancestors(graphs))}
    function = pytensor.function(list(given), graphs, mode="FAST_COMPILE")
    return function(*given.values())


def assert_same_entries(array, found, arrays, context):
    [expected] = evaluated([array], {**arrays, **context})
    scalars = {scalar: arrays[x][index] for (x, index), scalar in found.scalars.items()}
    fixed = evaluated(list(found.context), context)
    scalars |= dict(zip(found.context.values(), fixed, strict=True))
    entries = evaluated(found.entries, scalars)
    assert [x.dtype for x in found.entries] == [array.dtype] * len(entries)
    np.testing.assert_allclose(
        entries, expected.ravel(), rtol=1e-6 if array.dtype == "float32" else 1e-14
    )


@pytest.mark.parametrize("name", KNOWN)
def test_entries_are_those_of_the_array(name):
    found = read_entries(KNOWN[name], list(OF_ARRAYS))
    assert_same_entries(KNOWN[name], found, OF_ARRAYS, OF_CONTEXT)


UNKNOWN = {
    "unknown shape": X[:, K[0, 0] :],
    "looked up": pt.constant(np.arange(6.0))[K[:, 0]],
    "sorted": pt.sort(X, axis=1),
    "cumulated": pt.cumsum(X, axis=1),
    "many entries": X[:, :, None] * np.ones(MOST_STEPS // 3 + 1),
    "one entry of many numbers": (X[:, :, None] * np.arange(MOST_STEPS)).sum(axis=(1, 2)),
    "none": X[:, :0],
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_is_not_known_by_entry_is_left_to_arrays(name):
    assert read_entries(UNKNOWN[name], list(OF_ARRAYS)) is None


def contributions_of_one_record(name):
    """Contributions of a model's first record; None if they aren't known."""
    model = FORMS[name]()
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    reading = read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())
    if not any(isinstance(factor, AdditiveFactor) for factor in reading.factors):
        return None
    return _block(reading.records, reading.sums, 1)


@pytest.mark.parametrize("part", [0, pytest.param(1, marks=pytest.mark.long)])
def test_what_records_contribute_is_known_by_entry_in_many_models(part):
    known = []
    for name in list(FORMS)[part::2]:
        block = contributions_of_one_record(name)
        if block is None:
            continue
        arrays = {
            x: RNG.integers(0, 2, x.type.shape).astype(x.dtype)
            if x.dtype.startswith("int")
            else RNG.uniform(0.1, 0.9, x.type.shape).astype(x.dtype)
            for x in [*block.records, *block.covariates.values()]
        }
        found = read_entries(block.contributions, list(arrays))
        if found is None:
            continue
        inputs = [
            x
            for x in ancestors([block.contributions])
            if x.owner is None and x not in arrays and not hasattr(x, "data")
        ]
        context = {
            x: RNG.uniform(0.1, 0.9, [1 if n is None else n for n in x.type.shape]) for x in inputs
        }
        assert_same_entries(block.contributions, found, arrays, context)
        known.append(name)
    assert len(known) > 15, known
