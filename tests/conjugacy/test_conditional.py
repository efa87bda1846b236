"""The conditional that is drawn from is the model's own, for every form."""

import numpy as np
import pymc as pm
import pytest
from pymc.pytensorf import compile as pymc_compile
from scipy.special import expit

from pymc_dapper.conjugacy.check import check_conditional
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.graphs.evaluation import compile_in_python
from tests.conjugacy.conjugate_models import FORMS
from tests.conjugacy.judge import Judge, given_of
from tests.long_cases import one_in_three


def random_point(model, start, rng):
    """A point that nothing is special about, and that the model allows, around its initial one."""
    point = dict(start)
    for value in model.value_vars:
        rv = model.values_to_rvs[value]
        x = point[value.name]
        if x.dtype.kind == "f":
            noise = 0.5 * rng.normal(size=x.shape)
            # Variables without a transform keep their value: they may be bounded.
            free = model.rvs_to_transforms[rv] is not None or rv.owner.op.name in ("normal",)
            point[value.name] = (x + noise * free).astype(x.dtype)
        elif rv.owner.op.name == "categorical":
            k = rv.owner.inputs[-1].type.shape[-1] or 2
            point[value.name] = rng.integers(k, size=x.shape).astype(x.dtype)
        elif rv.owner.op.name == "bernoulli":
            point[value.name] = rng.integers(2, size=x.shape).astype(x.dtype)
    return point


def random_theta(rvs, rng):
    """Values in the support of parameters, not drawn from anything's conditional."""
    thetas = []
    for rv, shape in rvs:
        z = rng.normal(size=shape)
        match rv.owner.op.name:
            case "beta" | "uniform":
                thetas.append(expit(z))
            case "dirichlet":
                thetas.append(np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True))
            case "normal" | "multivariate_normal":
                thetas.append(z)
            case _:
                thetas.append(np.exp(z))
    return thetas


# What PyMC itself compiles for LKJCholeskyCov.
@pytest.mark.filterwarnings("ignore:PyTensor could not link to a BLAS")
@pytest.mark.parametrize("name", one_in_three(FORMS))
def test_ratios_of_the_conditional_are_the_models_own(name):
    model, variables = FORMS[name]()
    rng = np.random.default_rng(3)
    judge, start = Judge(model), model.initial_point()
    for conditional in read_conditionals(model, variables):
        check_conditional(conditional, start)
        given = [*given_of(conditional), *conditional.data.values()]
        parameters = compile_in_python(model, given, conditional.parameters)
        to_values = compile_in_python(model, [*conditional.thetas, *given], conditional.to_values)
        names = [model.rvs_to_values[rv].name for rv in conditional.rvs]
        for _ in range(3):
            point = random_point(model, start, rng)
            at = values_at(point, conditional)
            of = parameters(*at)
            judged, ours = [], []
            for _ in range(3):
                thetas = random_theta(zip(conditional.rvs, conditional.shapes, strict=True), rng)
                values = to_values(*thetas, *at)
                judged.append(judge({**point, **dict(zip(names, values, strict=True))}))
                flat = np.concatenate([x.ravel() for x in thetas]) if len(thetas) > 1 else thetas[0]
                ours.append(conditional.family.log_density(flat, *of))
            assert np.all(np.isfinite(judged)), name
            np.testing.assert_allclose(np.diff(ours), np.diff(judged), 1e-8, 1e-8)


IN_NUMBA = [
    "several_kinds_of_children",
    "dirichlet_rows_by_latent_group",
    "gamma_precision_of_other_kinds",
    "shared_data_and_dims",
    "array_of_means_sliced",
    "multivariate_children",
]


@pytest.mark.parametrize(
    "name",
    [IN_NUMBA[0], *(pytest.param(name, marks=pytest.mark.long) for name in IN_NUMBA[1:])],
)
def test_a_step_computes_the_same_in_numba(name):
    model, variables = FORMS[name]()
    step = ConjugateStep(variables, model=model)
    point = random_point(model, model.initial_point(), np.random.default_rng(4))
    step.setup_chain(np.random.default_rng(5), tune=0, draws=1)
    new, _ = step.step(point)
    for value in model.value_vars:
        old = point[value.name]
        assert (new[value.name].dtype, new[value.name].shape) == (old.dtype, old.shape)

    rng = np.random.default_rng(5)
    for conditional in read_conditionals(model, variables):
        given = [*given_of(conditional), *conditional.data.values()]
        at = values_at(point, conditional)
        parameters = compile_in_python(model, given, conditional.parameters)(*at)
        thetas = conditional.split(conditional.family.draw(rng, *parameters))
        to_values = compile_in_python(model, [*conditional.thetas, *given], conditional.to_values)
        values = to_values(*thetas, *at)
        names = [model.rvs_to_values[rv].name for rv in conditional.rvs]
        expected = dict(zip(names, values, strict=True))
        for value, x in expected.items():
            np.testing.assert_allclose(new[value], x, 1e-9, 1e-9)
        point = {**point, **expected}


def values_at(point, conditional):
    """Values that the conditional depends on: other variables, and data."""
    return [
        *(point[x.name] for x in given_of(conditional)),
        *(shared.get_value() for shared in conditional.data),
    ]


def beta(shape):
    return pm.Beta("theta", 1, 1, shape=shape)


def uniform(shape):
    return pm.Uniform("theta", shape=shape)


def gamma(shape):
    return pm.Gamma("theta", 1, 1, shape=shape)


def inverse_gamma(shape):
    return pm.InverseGamma("theta", 1, 1, shape=shape)


def dirichlet(shape):
    return pm.Dirichlet("theta", np.ones(4), shape=(*shape, 4))


@pytest.mark.parametrize("size", [1e-2, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3)], ids=str)
@pytest.mark.parametrize("prior", [beta, uniform, gamma, inverse_gamma, dirichlet])
def test_pymc_takes_written_values_back_to_theta(prior, shape, size):
    with pm.Model() as model:
        rv = prior(shape)
    [conditional] = read_conditionals(model, [rv])
    [value], [theta] = conditional.to_values, conditional.thetas
    back = model.rvs_to_transforms[rv].backward(value, *rv.owner.inputs)
    both = pymc_compile([theta], [value, back], mode="FAST_COMPILE")
    n_parameters = 1 if prior is dirichlet else 2
    parameters = [np.full(conditional.shapes[0], size)] * n_parameters
    rng = np.random.default_rng(8)
    for _ in range(20):
        drawn = conditional.family.draw(rng, *parameters)
        written, again = both(drawn)
        assert np.all(np.isfinite(written))
        np.testing.assert_allclose(again, drawn, rtol=1e-9)


GROUPS = np.array([0, 1, 1, 0, 1, 0])
COVARIATES = np.array([[1.0, 0.5], [1.0, -1], [1.0, 2], [1.0, 0], [1.0, 1], [1.0, 3]])


def model_of_rows(rows):
    """Children in many forms with n rows, and a variable number of present rows."""
    with pm.Model() as model:
        pm.DiscreteUniform("n", 0, 6)
        p = pm.Beta("p", 2, 1)
        w = pm.Dirichlet("w", np.ones(3))
        rates = pm.Gamma("rates", 2, 1, shape=2)
        slopes = pm.Normal("slopes", 0, 2, shape=2)
        centre = pm.MvNormal("centre", np.zeros(2), np.eye(2))
        level = pm.Normal("level")
        pm.Bernoulli("x", p, shape=rows)
        pm.Categorical("c", w, shape=rows)
        pm.Poisson("k", rates[GROUPS[:rows]], shape=rows)
        pm.Normal("y", COVARIATES[:rows] @ slopes, 0.5, shape=rows)
        pm.MvNormal("v", centre, 2 * np.eye(2), shape=(rows, 2))
        pm.Normal("z", level, np.linspace(1, 2, 6)[:rows], shape=rows)
    return model


PARAMETERS = ["p", "w", "rates", "slopes", "centre", "level"]
RECORDS = ["x", "c", "k", "y", "v", "z"]


def parameters_at(model, point, *, present=False, names=PARAMETERS):
    of = {model[name]: model["n"] for name in RECORDS} if present else None
    found = {}
    for conditional in read_conditionals(model, [model[name] for name in names], of):
        if present:
            check_conditional(conditional, model.initial_point())
        given = [np.asarray(point[x.name]) for x in given_of(conditional)]
        function = compile_in_python(model, given_of(conditional), conditional.parameters)
        found["".join(rv.name for rv in conditional.rvs)] = function(*given)
    return found


@pytest.fixture(scope="module")
def room():
    return model_of_rows(6)


def test_given_present_rows_alone_it_is_that_of_a_model_without_the_others(room):
    n = 4
    start = room.initial_point()
    point = random_point(room, start, np.random.default_rng(n)) | {"n": np.array(n)}
    first = {k: v[:n] if k in RECORDS else v for k, v in point.items()}
    expected = parameters_at(model_of_rows(n), first)
    found, with_absent = parameters_at(room, point, present=True), parameters_at(room, point)
    assert found.keys() == expected.keys() == with_absent.keys()
    for name, of in expected.items():
        for a, b in zip(_statistics(found[name]), _statistics(of), strict=True):
            np.testing.assert_allclose(a, b, err_msg=name)
        # Absent rows that counted would be noticed.
        pairs = zip(_statistics(with_absent[name]), _statistics(of), strict=True)
        assert not all(np.allclose(a, b) for a, b in pairs), name


def _statistics(parameters):
    """Parameters; of a joint normal, the products that its density depends on."""
    if parameters[0].ndim < 2 or len(parameters) > 1:
        return parameters
    [rows] = parameters
    return [rows[:-1] @ rows.T]


def test_without_any_row_it_is_the_prior(room):
    start = room.initial_point()
    point = random_point(room, start, np.random.default_rng(0)) | {"n": np.array(0)}
    found = parameters_at(room, point, present=True, names=["p", "level"])
    np.testing.assert_allclose(found["p"], [2, 1])
    np.testing.assert_allclose(found["level"], [0, 1])
