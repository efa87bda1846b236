"""A model without its named dimensions is the same model."""

import numpy as np
import pymc as pm
import pymc.dims as pmdims
import pytensor.tensor as pt
import pytest
import xarray
from pymc.dims.distributions.transforms import DimTransform
from pytensor.tensor.random.op import RandomVariable

import pymc_dapper as pmd
from pymc_dapper.backend.lowered_dims import without_named_dims
from tests.evaluated_in_python import evaluated_in_python

COORDS = {"person": range(6), "answer": ["a", "b", "c"], "column": range(2)}
GROUPS = np.array([2, 0, 1, 1, 0, 2])
CONSTANTS = ("linear", "exposed", "grouped", "turned back")


def model_of_everything():
    with pm.Model(coords=COORDS) as model:
        age = pmdims.Data("age", np.arange(6.0), dims="person")
        mu = pmdims.Normal("mu", 0, 1, dims="answer", initval=np.array([0.1, 0.2, 0.3]))
        sigma = pmdims.HalfNormal("sigma", 1.0)
        share = pmdims.Beta("share", 2, 3)
        limit = pmdims.Uniform("limit", 0, 3)
        ones = pmdims.as_xtensor(np.ones(3), dims="answer")
        p = pmdims.Dirichlet("p", ones, core_dims="answer")
        pmdims.Categorical("kind", p=p, core_dims="answer", dims="person")
        pmdims.ZeroSumNormal("effect", core_dims="answer")
        x = pmdims.Normal("x", mu, sigma, dims=("person", "answer"))
        pmdims.Normal("turned", mu + age * share, sigma, dims=("answer", "person"))
        total = pmdims.Deterministic("total", pmdims.math.clip(x, -3, limit).sum("person"))
        pmdims.Laplace("released", total, 2.0, observed=0.5 * ones)
        pmdims.Potential("more", -(total.sum() ** 2))
        pm.Normal("plain", sigma.values, 1, shape=2)
        # Constants along a dim, which say how long it is.
        z = pmdims.as_xtensor(np.arange(12.0).reshape(6, 2), dims=("person", "column"))
        slope = pmdims.Normal("slope", 0, 1, dims="column")
        pmdims.Normal("linear", (z * slope).sum("column"), sigma, dims="person")
        pmdims.Poisson("exposed", sigma * (1 + z.isel(column=0)), dims="person")
        pmdims.Normal("grouped", mu.isel(answer=("person", GROUPS)), 1, dims="person")
        pmdims.Normal("turned back", mu * z.isel(column=1), 1, dims=("answer", "person"))
    return model


@pytest.fixture(scope="module")
def both():
    model = model_of_everything()
    return model, without_named_dims(model)


def test_names_dims_order_and_starts_are_those_of_the_model(both):
    model, plain = both
    assert list(plain.named_vars) == list(model.named_vars)
    assert {k: v or () for k, v in plain.named_vars_to_dims.items()} == {
        k: v or () for k, v in model.named_vars_to_dims.items()
    }
    assert dict(plain.coords) == dict(model.coords)
    start, plain_start = model.initial_point(), plain.initial_point()
    assert list(start) == list(plain_start)
    for name in start:
        np.testing.assert_allclose(start[name], plain_start[name], rtol=1e-14)


def test_the_log_density_is_that_of_the_model(both):
    with evaluated_in_python():
        logps = [m.compile_logp() for m in both]
    rng = np.random.default_rng(1)
    for _ in range(3):
        point = {
            name: value if value.dtype.kind == "i" else value + rng.normal(0, 0.3, value.shape)
            for name, value in both[0].initial_point().items()
        }
        named, plain = (logp(point) for logp in logps)
        assert np.isfinite(named)
        np.testing.assert_allclose(plain, named, rtol=1e-12)


def test_random_variables_are_written_as_without_dims(both):
    """Transposed or not: their sizes are the lengths of their dims, and no view of a shape."""
    _, plain = both
    for name in ("x", "turned", "kind", "p", "mu", *CONSTANTS):
        assert isinstance(plain[name].owner.op, RandomVariable)
    lengths = [plain.dim_lengths[dim] for dim in ("answer", "person")]
    assert plain["turned"].owner.inputs[1].owner.inputs == lengths


def test_shared_data_are_those_of_the_model(both):
    model, plain = both
    with model:
        pm.set_data({"age": np.full(6, 7.0)})
    np.testing.assert_array_equal(plain["age"].get_value(), np.full(6, 7.0))
    with model:
        pm.set_data({"age": np.arange(6.0)})


def test_each_name_is_kept_where_one_variable_has_several():
    with pm.Model(coords=COORDS) as model:
        age = pmdims.Data("age", np.arange(6.0), dims="person")
        mu = pmdims.Normal("mu")
        first = pmdims.Deterministic("first", 2 * mu)
        pmdims.Deterministic("second", first)
        pmdims.Deterministic("years", age)
        pmdims.Potential("as_it_is", mu)
    plain = without_named_dims(model)
    assert [x.name for x in plain.named_vars.values()] == list(model.named_vars)


def test_an_unknown_transform_is_refused_by_name():
    class Shift(DimTransform):
        name = "shift"

        def forward(self, value, *inputs):
            return value - 1

        def backward(self, value, *inputs):
            return value + 1

        def log_jac_det(self, value, *inputs):
            return 0 * value

    with pm.Model() as model:
        pmdims.Normal("x", 0, 1, transform=Shift())
    with pytest.raises(NotImplementedError, match="'x' has named dimensions and the transform Sh"):
        without_named_dims(model)


# Steps ------------------------------------------------------------------------------------------


def income(dims, released):
    """The same model of clipped incomes, with named dims or without."""
    with pm.Model(coords=COORDS) as model:
        if dims:
            mu = pmdims.Normal("mu", 0, 1, dims="answer")
            x = pmdims.Normal("x", mu, 1, dims=("person", "answer"))
            total = pmdims.math.clip(x, -3, 3).sum("person")
        else:
            mu = pm.Normal("mu", 0, 1, dims="answer")
            x = pm.Normal("x", mu, 1, dims=("person", "answer"))
            total = pt.clip(x, -3, 3).sum(0)
        pmd.LaplaceMechanism(2.0).potential("total", total, released=released)
    return model


def sampled(model, **kwargs):
    options = {"draws": 5, "tune": 5, "chains": 1, "cores": 1, "progressbar": False}
    with model, evaluated_in_python():
        return pmd.sample(
            random_seed=3, compute_convergence_checks=False, keep_records=True, **options, **kwargs
        ).posterior


@pytest.mark.usefixtures("in_python")
def test_draws_are_those_of_the_model_written_without():
    released = [4.0, 1.0, -2.0]
    one, other = (sampled(income(dims, released)) for dims in (True, False))
    for name in ("mu", "x"):
        assert one[name].dims == other[name].dims
        np.testing.assert_array_equal(one[name], other[name])


@pytest.mark.usefixtures("in_python")
def test_steps_are_for_the_model_that_was_given():
    model = income(True, [4.0, 1.0, -2.0])
    with model:
        steps = [*pmd.assign_steps(), pmd.DapperStep([model["x"]])]
        for step in steps:
            assert set(step.vars) <= set(model.value_vars)
        pm.sample(
            3,
            tune=3,
            chains=1,
            cores=1,
            step=steps[-1:],
            progressbar=False,
            compute_convergence_checks=False,
        )


def test_a_release_is_put_in_the_order_of_the_statistic():
    with pm.Model(coords=COORDS) as model:
        x = pmdims.Normal("x", 0, 1, dims=("person", "answer"))
        values = xarray.DataArray(np.arange(18.0).reshape(3, 6), dims=("answer", "person"))
        pmd.LaplaceMechanism(2.0).potential("r", x, released=values)
        assert model.named_vars_to_dims["r"] == ("person", "answer")
        np.testing.assert_array_equal(model["r_released"].get_value(), values.values.T)
        with pytest.raises(ValueError, match="'s': the release has dims"):
            pmd.LaplaceMechanism(2.0).potential("s", x, released=values.rename(person="z"))
        shared = pmdims.Data("data", values.values, dims=("answer", "person"))
        with pytest.raises(ValueError, match="'t': the release has dims"):
            pmd.LaplaceMechanism(2.0).potential("t", x, released=shared)


@pytest.mark.usefixtures("in_python")
def test_constants_along_the_dim_of_records_are_read():
    """As in a regression, with groups, or with exposures."""
    z, released = np.linspace(0, 1, 6), np.array([1.0, 2.0])

    def model(named):
        with pm.Model(coords={"person": range(6)}) as model:
            if named:
                slope = pmdims.Normal("slope", 0, 1)
                covariate = pmdims.as_xtensor(z, dims="person")
                x = pmdims.Normal("x", slope * covariate, 1, dims="person")
                seen = pt.stack([x.sum().values, (x * covariate).sum().values])
            else:
                slope = pm.Normal("slope", 0, 1)
                x = pm.Normal("x", slope * z, 1, dims="person")
                seen = pt.stack([x.sum(), (x * z).sum()])
            pmd.LaplaceMechanism(1.0).potential("privacy", seen, released=released)
        return model

    named, written = (sampled(model(named)) for named in (True, False))
    np.testing.assert_array_equal(named["slope"], written["slope"])
    np.testing.assert_array_equal(named["x"], written["x"])
