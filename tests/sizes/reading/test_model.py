"""The log-density at all numbers of records, beside the model's own at each."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.sizes.reading.model import find_sizes, read_size
from tests.sizes.unknown_numbers import MODELS, SIZES


def read(model, name="n"):
    return read_size(model, model.rvs_to_values[model[name]])


def some_point(model, seed=0):
    rng, point = np.random.default_rng(seed), model.initial_point(random_seed=seed)
    for name, value in point.items():
        if value.dtype.kind == "f":
            point[name] = np.asarray(value + rng.normal(size=value.shape))
    return point


def log_joint(model):
    function = compile_in_python(model, model.value_vars, [model.logp()])
    return lambda point: float(function(*(np.asarray(point[x.name]) for x in model.value_vars))[0])


@pytest.mark.parametrize(("name", "size"), [(k, x) for k, names in SIZES.items() for x in names])
def test_log_weights_are_the_models_log_density(name, size):
    model = MODELS[name]()
    reading, joint = read(model, size), log_joint(model)
    inputs = [*reading.records, *reading.parameters]
    weights = compile_in_python(model, inputs, [reading.log_weights])
    for seed in range(2):
        point = some_point(model, seed)
        [found] = weights(*(np.asarray(point[x.name]) for x in inputs))
        assert len(found) == reading.room + 1
        expected = np.array([joint(point | {size: np.array(k)}) for k in range(reading.room + 1)])
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(np.isfinite(found), finite)
        # What doesn't depend on the number is left out.
        np.testing.assert_allclose(np.ptp(found[finite] - expected[finite]), 0, atol=1e-10)


def test_a_number_may_depend_on_another_one():
    with pm.Model() as model:
        n = pm.Poisson("n", 3)
        p = pm.Beta("p", 1, 1)
        k = pm.Binomial("k", n, p)
        x = pm.Bernoulli("x", 0.4, shape=5)
        y = pm.Bernoulli("y", p, shape=4)
        total = (pmd.present(n, 5) * x).sum() + (pmd.present(k, 4) * y).sum()
        pmd.LaplaceMechanism(scale=1.0).potential("total", total, released=3.0)
    reading, joint = read(model), log_joint(model)
    point = some_point(model) | {"k": np.array(2)}
    inputs = [*reading.records, *reading.parameters]
    weights = compile_in_python(model, inputs, [reading.log_weights])
    [found] = weights(*(np.asarray(point[x.name]) for x in inputs))
    expected = np.array([joint(point | {"n": np.array(n)}) for n in range(6)])
    np.testing.assert_array_equal(np.isfinite(found), [False, False, True, True, True, True])
    np.testing.assert_allclose(np.ptp(found[2:] - expected[2:]), 0, atol=1e-10)


def test_sizes_and_their_records_are_found():
    found = {
        name: {n.name: [x.name for x in xs] for n, xs in find_sizes(m).items()}
        for name, m in ((name, build()) for name, build in MODELS.items())
    }
    assert found == {
        "bernoulli": {"n": ["x"]},
        "normal": {"n": ["x", "y"]},
        "groups": {"n": ["x"], "m": ["z"]},
        "tied": {"n": ["x"]},
    }


def test_rows_are_alike_unless_something_tells_them_apart():
    assert read(MODELS["bernoulli"]()).tied is None
    assert read(MODELS["normal"]()).tied is None
    assert "the prior of 'x'" in read(MODELS["tied"]()).tied


def build(of_records, prior=lambda: pm.Poisson("n", 3), released=1.0):
    with pm.Model() as model:
        n = prior()
        x = pm.Normal("x", 0, 1, shape=6)
        there = pmd.present(n, 6)
        pm.Potential("total", -pt.abs(released - pt.switch(there, x, 0).sum()))
        pm.Potential("other", of_records(n, x, there))
    return model


REFUSED = {
    "sees all": (
        lambda n, x, there: -pt.abs(x.sum()),
        "'other' uses absent rows of 'x'",
    ),
    "of another number": (
        lambda n, x, there: -pt.abs(pt.switch(pmd.present(pm.Poisson("k", 2), 6), x, 0).sum()),
        "'other' uses absent rows of 'x', .* its own records",
    ),
    "sees some": (
        lambda n, x, there: -pt.abs(pt.switch(there, x, 0.1 * x).sum()),
        "isn't a number of records",
    ),
    "nan": (
        lambda n, x, there: -pt.abs(pt.switch(there, x, np.nan).sum()),
        "aren't there add nan to a sum in 'other'.*add 0",
    ),
    "maximum": (
        lambda n, x, there: -pt.max(pt.switch(there, x, -9.0)),
        "'other' isn't a function of sums over the present",
    ),
    "within the sum": (
        lambda n, x, there: -pt.abs(pt.switch(there, x / pt.maximum(n, 1), 0).sum()),
        r"'other' has a sum whose terms depend on 'n' .*outside of the sum",
    ),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_read_is_refused(why):
    of_records, message = REFUSED[why]
    with pytest.raises(ReadingError, match=message):
        read(build(of_records))


def test_records_whose_prior_depends_on_their_number_are_refused():
    with pm.Model() as model:
        n = pm.Poisson("n", 3)
        x = pm.Normal("x", 0, 1 + n, shape=6)
        pm.Potential("total", -pt.abs(pt.switch(pmd.present(n, 6), x, 0).sum()))
    with pytest.raises(ReadingError, match="'x' depends on their number 'n'"):
        read(model)


def test_one_number_has_one_room():
    with pm.Model() as model:
        n = pm.Poisson("n", 3)
        x, y = pm.Normal("x", shape=6), pm.Normal("y", shape=5)
        both = (pmd.present(n, 6) * x).sum() + (pmd.present(n, 5) * y).sum()
        pm.Potential("total", -pt.abs(both))
    with pytest.raises(ReadingError, match="the same room"):
        read(model)
