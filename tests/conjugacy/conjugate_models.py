"""Models in the forms that people write them: the conditional of each must be read rightly."""

import warnings

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import log as log_transform

N = 7
RNG = np.random.default_rng(0)
Z = RNG.normal(size=N)
X = RNG.normal(size=(N, 2))
Y = RNG.normal(size=N)
POSITIVE = RNG.gamma(2.0, size=N)
BINARY = np.array([0, 1, 1, 0, 1, 1, 0])
COUNTS = np.array([3, 0, 2, 5, 1, 1, 4])
GROUP = np.array([0, 1, 2, 0, 1, 2, 1])
OTHER = np.array([1, 1, 0, 0, 1, 0, 0])
COV = np.array([[1.0, 0.4], [0.4, 2.0]])

FORMS = {}
"""Name of a form to a function that returns its model and the variables to draw."""


def form(build):
    def model():
        with pm.Model() as m:
            variables = build()
        return m, variables if isinstance(variables, list) else [variables]

    FORMS[build.__name__] = model
    return build


def coords(**lengths):
    for name, length in lengths.items():
        pm.modelcontext(None).add_coord(name, np.arange(length))


# Beta -------------------------------------------------------------------------------------------


@form
def beta_bernoulli():
    p = pm.Beta("p", 2, 3)
    pm.Bernoulli("x", p, shape=N)
    return p


@form
def beta_bernoulli_observed():
    p = pm.Beta("p", 2, 3)
    pm.Bernoulli("x", p, observed=BINARY)
    return p


@form
def uniform_prior():
    p = pm.Uniform("p")
    pm.Bernoulli("x", p, observed=BINARY)
    return p


@form
def uniform_prior_of_groups():
    p = pm.Uniform("p", 0, 1, shape=3)
    pm.Bernoulli("x", p[GROUP], observed=BINARY)
    return p


@form
def beta_binomial_of_groups():
    p = pm.Beta("p", [1, 2, 3], 0.5, shape=3)
    pm.Binomial("x", n=COUNTS + 4, p=p[GROUP], shape=N)
    return p


@form
def beta_geometric():
    p = pm.Beta("p", 1, 1)
    pm.Geometric("x", p, shape=N)
    return p


@form
def beta_negative_binomial():
    p = pm.Beta("p", 1, 2, shape=3)
    pm.NegativeBinomial("x", n=2.5, p=p[GROUP], shape=N)
    return p


@form
def beta_with_a_mean():
    p = pm.Beta("p", mu=0.3, sigma=0.1)
    pm.Bernoulli("x", p, shape=N)
    return p


@form
def beta_with_latent_hyperparameters():
    a = pm.Gamma("a", 2, 1)
    b = pm.Gamma("b", 2, 1)
    p = pm.Beta("p", a, b, shape=4)
    pm.Binomial("x", n=10, p=p, observed=[2, 5, 7, 1])
    return p


@form
def randomised_answers():
    p = pm.Beta("p", 1, 1)
    x = pm.Bernoulli("x", p, shape=N)
    pm.Bernoulli("answer", 0.25 + 0.5 * x, observed=BINARY)
    return p


@form
def rates_by_latent_group():
    q = pm.Dirichlet("q", np.ones(3))
    group = pm.Categorical("group", q, shape=N)
    p = pm.Beta("p", 1, 1, shape=3)
    pm.Bernoulli("x", p[group], shape=N)
    return [p, q]


@form
def rates_by_two_latent_groups():
    p = pm.Beta("p", 1, 1, shape=(3, 2))
    a = pm.Categorical("a", np.ones(3) / 3, shape=N)
    b = pm.Bernoulli("b", 0.4, shape=N)
    pm.Bernoulli("x", p[a, b], shape=N)
    return p


@form
def several_kinds_of_children():
    p = pm.Beta("p", 1, 1, shape=3)
    pm.Bernoulli("a", p[0], shape=N)
    pm.Binomial("b", 5, p, shape=(4, 3))
    pm.Geometric("c", p[1:], shape=2)
    pm.NegativeBinomial("d", n=3, p=p[::-1], shape=3)
    return p


@form
def without_a_transform():
    p = pm.Beta("p", 1, 1, shape=2, default_transform=None)
    pm.Bernoulli("x", p[:, None], shape=(2, N))
    return p


@form
def nobody_depends_on_it():
    return pm.Beta("p", 2, 3, shape=2)


@form
def sizes_that_are_latent():
    n = pm.Poisson("n", 6, shape=N)
    p = pm.Beta("p", 1, 1)
    pm.Binomial("x", n, p, observed=np.minimum(COUNTS, 1))
    return p


# Dirichlet --------------------------------------------------------------------------------------


@form
def dirichlet_categorical():
    coords(cell=4)
    p = pm.Dirichlet("p", np.array([0.5, 1, 2, 3]), dims="cell")
    pm.Categorical("x", p=p, shape=N)
    return p


@form
def dirichlet_rows_by_public_group():
    p = pm.Dirichlet("p", np.ones((3, 4)))
    pm.Categorical("x", p=p[GROUP], shape=N)
    return p


@form
def dirichlet_rows_by_latent_group():
    q = pm.Dirichlet("q", np.ones(3))
    p = pm.Dirichlet("p", np.ones(4), shape=(3, 4))
    group = pm.Categorical("group", q, shape=N)
    pm.Categorical("x", p=p[group], shape=N)
    return [q, p]


@form
def dirichlet_rows_as_plate():
    coords(site=3, kind=4, visit=5)
    p = pm.Dirichlet("p", np.ones(4), dims=("site", "kind"))
    pm.Categorical("x", p=p[:, None, :], dims=("site", "visit"))
    return p


@form
def dirichlet_multinomial():
    p = pm.Dirichlet("p", np.ones(3))
    pm.Multinomial("x", n=[5, 9], p=p, observed=[[1, 2, 2], [0, 3, 6]])
    return p


@form
def dirichlet_multinomial_by_group():
    p = pm.Dirichlet("p", np.ones((3, 4)))
    pm.Multinomial("x", n=6, p=p[GROUP], shape=(N, 4))
    return p


@form
def dirichlet_table_as_matrix():
    p = pm.Dirichlet("p", np.ones(6))
    table = pm.Deterministic("table", p.reshape((2, 3)))
    pm.Categorical("x", p=table.T.flatten(), shape=N)
    pm.Categorical("y", p=p[::-1], shape=3)
    return p


@form
def dirichlet_with_two_surveys():
    p = pm.Dirichlet("p", np.ones(3))
    pm.Categorical("x", p=p, shape=N)
    pm.Multinomial("y", n=9, p=p, observed=[2, 3, 4])
    return p


@form
def one_categorical_record():
    p = pm.Dirichlet("p", np.ones(3))
    pm.Categorical("x", p=p)
    return p


@form
def dirichlet_without_a_transform():
    p = pm.Dirichlet("p", np.ones((2, 3)), default_transform=None)
    pm.Categorical("x", p=p[OTHER], shape=N)
    return p


# Gamma ------------------------------------------------------------------------------------------


@form
def gamma_poisson():
    rate = pm.Gamma("rate", 2, 1)
    pm.Poisson("x", rate, shape=N)
    return rate


@form
def gamma_poisson_with_exposure():
    exposure = pm.Data("exposure", POSITIVE)
    rate = pm.Gamma("rate", mu=2, sigma=1, shape=3)
    pm.Poisson("x", rate[GROUP] * exposure / 2, observed=COUNTS)
    return rate


@form
def exponential_prior():
    rate = pm.Exponential("rate", 2, shape=2)
    pm.Poisson("x", rate[OTHER], observed=COUNTS)
    return rate


@form
def poisson_plate_of_rates():
    rate = pm.Gamma("rate", 2, pm.Gamma("b", 1, 1), shape=(3, 1))
    pm.Poisson("x", rate * np.ones(4), shape=(3, 4))
    return rate


@form
def rate_of_rates():
    b = pm.Gamma("b", 1, 1)
    rate = pm.Gamma("rate", 2, b, shape=N)
    pm.Poisson("x", rate, observed=COUNTS)
    return [b, rate]


@form
def gamma_exponential():
    rate = pm.Gamma("rate", 2, 4)
    pm.Exponential("x", rate, shape=N)
    pm.Exponential("y", scale=2 / rate, shape=N)
    pm.Exponential("z", 0.3 * rate, shape=N)
    return rate


@form
def gamma_rate_of_gamma():
    rate = pm.Gamma("rate", 2, 4, shape=2)
    pm.Gamma("x", 1.5, rate[OTHER], observed=POSITIVE)
    return rate


@form
def gamma_scale_of_inverse_gamma():
    scale = pm.Gamma("scale", 2, 4)
    pm.InverseGamma("x", 2.5, scale, shape=3)
    return scale


@form
def gamma_precision():
    tau = pm.Gamma("tau", 2, 1)
    pm.Normal("x", Z, tau=tau, observed=Y)
    return tau


@form
def gamma_precision_as_sigma():
    tau = pm.Gamma("tau", 2, 1, shape=2)
    pm.Normal("x", Z, 1 / pt.sqrt(tau)[OTHER], observed=Y)
    pm.Normal("y", Z, tau[1] ** -0.5, observed=Y)
    pm.Normal("z", 0, pt.sqrt(1 / (3 * tau)), shape=2)
    return tau


@form
def gamma_precision_of_other_kinds():
    tau = pm.Gamma("tau", 2, 1)
    pm.LogNormal("x", 0.3, tau=tau, shape=N)
    pm.HalfNormal("y", tau=tau, shape=N)
    pm.HalfNormal("z", 2 * tau**-0.5, shape=N)
    return tau


@form
def weighted_precision():
    tau = pm.Gamma("tau", 2, 1)
    pm.Normal("x", pm.Normal("m"), tau=tau * POSITIVE, observed=Y)
    return tau


@form
def gamma_without_a_transform():
    rate = pm.Gamma("rate", 2, 1, default_transform=None)
    pm.Poisson("x", rate, shape=N)
    return rate


# Inverse Gamma ----------------------------------------------------------------------------------


@form
def inverse_gamma_variance():
    v = pm.InverseGamma("v", 2, 1)
    pm.Normal("x", 0.5, pt.sqrt(v), shape=N)
    return v


@form
def inverse_gamma_written_differently():
    v = pm.InverseGamma("v", 2, 1, shape=3)
    sd = pm.Deterministic("sd", v**0.5)
    pm.Normal("a", 0, sd, shape=3)
    pm.Normal("b", Z, sd[GROUP] * POSITIVE, observed=Y)
    pm.Normal("c", 0, tau=1 / v, shape=3)
    pm.LogNormal("d", 0, sd[0], observed=POSITIVE)
    pm.HalfNormal("e", sd[1:], shape=2)
    return v


@form
def inverse_gamma_scales():
    v = pm.InverseGamma("v", 3, 2)
    pm.Exponential("x", scale=v, shape=N)
    pm.Exponential("y", 2 / v, shape=N)
    pm.Gamma("z", 1.5, 1 / v, shape=N)
    return v


@form
def residual_variance():
    b = pm.Normal("b", 0, 1, shape=3)
    v = pm.InverseGamma("v", 2, 2)
    x = pm.Normal("x", 0, 1, shape=(N, 2))
    mu = b[0] + x @ b[1:]
    pm.Normal("y", mu, pt.sqrt(v), shape=N)
    return [b, v]


@form
def variances_of_coefficients():
    v = pm.InverseGamma("v", 2, 2)
    a = pm.Normal("a", 0, 3)
    b = pm.Normal("b", a, pt.sqrt(v), shape=5)
    pm.Normal("y", b, 1, observed=np.arange(5.0))
    return [v, a, b]


# Normal means -----------------------------------------------------------------------------------


@form
def normal_mean():
    mu = pm.Normal("mu", 1, 2)
    pm.Normal("x", mu, 0.5, shape=N)
    return mu


@form
def normal_mean_of_log_normal():
    mu = pm.Normal("mu", 1, 2, shape=2)
    pm.LogNormal("x", mu[OTHER], pm.HalfNormal("s"), shape=N)
    return mu


@form
def shifted_and_scaled_mean():
    mu = pm.Normal("mu", 1, 2)
    shifted = pm.Deterministic("shifted", 3 - (mu + 1) / 2)
    pm.Normal("x", -shifted * POSITIVE, POSITIVE, shape=N)
    return mu


@form
def group_means():
    coords(group=3, person=N)
    mu = pm.Normal("mu", 0, 2, dims="group")
    pm.Normal("x", mu[GROUP], 0.5, dims="person")
    return mu


@form
def group_means_by_latent_group():
    group = pm.Categorical("group", [0.2, 0.5, 0.3], shape=N)
    mu = pm.Normal("mu", [0, 1, 2], 2, shape=3)
    v = pm.InverseGamma("v", 2, 1, shape=3)
    pm.Normal("x", mu[group], pt.sqrt(v[group]), shape=N)
    return [mu, v]


@form
def matrix_of_means():
    mu = pm.Normal("mu", 0, 2, shape=(3, 2))
    pm.Normal("x", mu[GROUP, OTHER], 0.5, observed=Y)
    pm.Normal("y", mu[GROUP], np.array([1.0, 2.0]), shape=(N, 2))
    pm.Normal("z", mu.T, 1, shape=(4, 2, 3))
    return mu


@form
def array_of_means_sliced():
    mu = pm.Normal("mu", 0, 2, shape=(2, 3, 2))
    pm.Normal("x", mu[0, 1:, ::-1], 0.5, shape=(2, 2))
    pm.Normal("y", mu.reshape((6, 2))[:, 1], 0.5, shape=6)
    pm.Normal("z", mu.dimshuffle(2, 0, "x", 1), 0.5, shape=(2, 2, 4, 3))
    return mu


@form
def random_intercepts():
    m = pm.Normal("m", 0, 3)
    a = pm.Normal("a", m, 1.5, shape=3)
    pm.Normal("y", a[GROUP], 1, observed=Y)
    return [m, a]


@form
def intercepts_alone():
    m = pm.Normal("m", 0, 3)
    a = pm.Normal("a", m, 1.5, shape=3)
    pm.Normal("y", a[GROUP], 1, observed=Y)
    return a


@form
def non_centred_intercepts():
    m = pm.Normal("m", 0, 3)
    z = pm.Normal("z", shape=3)
    pm.Normal("y", (m + 1.5 * z)[GROUP], 1, observed=Y)
    return [m, z]


@form
def regression_with_stacked_coefficients():
    b = pm.Normal("b", 0, 10, shape=3)
    x = pm.Normal("x", 0, 1, shape=(N, 2))
    pm.Normal("y", b[0] + x @ b[1:], 0.7, shape=N)
    return b


@form
def regression_with_two_variables():
    alpha = pm.Normal("alpha", 0, 10)
    beta = pm.Normal("beta", 0, 10)
    x = pm.Data("covariate", Z)
    pm.Normal("y", alpha + beta * x, 0.7, observed=Y)
    return [beta, alpha]


@form
def regression_with_dot():
    b = pm.Normal("b", 0, 1, shape=2)
    v = pm.InverseGamma("v", 2, 2)
    pm.Normal("y", pt.dot(X, b), pt.sqrt(v), observed=Y)
    return [b, v]


@form
def regression_with_sum():
    b = pm.Normal("b", 0, 1, shape=2)
    pm.Normal("y", (X * b).sum(-1), 0.7, observed=Y)
    return b


@form
def regression_with_einsum():
    b = pm.Normal("b", 0, 1, shape=(2, 3))
    pm.Normal("y", pt.einsum("ni,ij->nj", X, b), 0.7, shape=(N, 3))
    return b


@form
def regression_with_matmul():
    b = pm.Normal("b", 0, 1, shape=(2, 3))
    x = pm.Normal("x", shape=(4, N, 2))
    pm.Normal("y", x @ b, 0.7, shape=(4, N, 3))
    return b


@form
def regression_with_listed_coefficients():
    b0 = pm.Normal("b0")
    b1 = pm.Normal("b1", 1, 2)
    design = np.column_stack([np.ones(N), Z])
    pm.Normal("y", design @ pt.stack([b0, b1]), 0.7, observed=Y)
    pm.Normal("z", pt.concatenate([b0[None], b1[None]])[OTHER], 0.7, observed=Y)
    return [b0, b1]


@form
def slopes_by_group():
    a = pm.Normal("a", 0, 1, shape=3)
    b = pm.Normal("b", 0, 1, shape=3)
    x = pm.Normal("x", shape=N)
    pm.Normal("y", a[GROUP] + x * b[GROUP], 0.7, shape=N)
    return [a, b]


@form
def slopes_alone():
    b = pm.Normal("b", 0, 1, shape=3)
    pm.Normal("y", pm.Normal("a", shape=3)[GROUP] + Z * b[GROUP], 0.7, shape=N)
    return b


@form
def two_way_effects():
    row = pm.Normal("row", 0, 1, shape=3)
    column = pm.Normal("column", 0, 1, shape=4)
    grand = pm.Normal("grand", 0, 5)
    pm.Normal("y", grand + row[:, None] + column, 0.7, shape=(3, 4))
    return [grand, row, column]


@form
def means_chosen_by_a_condition():
    mu = pm.Normal("mu", 0, 1, shape=2)
    pm.Normal("y", pt.switch(pt.eq(OTHER, 1), mu[0], mu[1]), 0.7, observed=Y)
    pm.Normal("z", pt.where(Z > 0, mu[0], 0.0), 0.7, observed=Y)
    return mu


@form
def indicators_times_means():
    mu = pm.Normal("mu", 0, 1, shape=3)
    pm.Normal("y", pt.eye(3)[GROUP] @ mu, 0.7, observed=Y)
    pm.Normal("z", mu.mean(), 0.7, observed=Y)
    return mu


@form
def random_walk_written_out():
    steps = pm.Normal("steps", 0, 0.3, shape=N)
    pm.Normal("y", pt.cumsum(steps), 0.5, observed=Y)
    return steps


@form
def autoregression_of_records():
    rho = pm.Normal("rho", 0, 1)
    first = pm.Normal("first")
    second = pm.Normal("second", rho * first)
    pm.Normal("third", rho * second, 2)
    return rho


@form
def errors_in_variables():
    mu = pm.Normal("mu", 0, 2)
    x = pm.Normal("x", mu, 1, shape=N)
    pm.Normal("w", x, 0.4, observed=Z)
    slope = pm.Normal("slope", 0, 2)
    pm.Normal("y", slope * x, 0.5, observed=Y)
    return [mu, x]


@form
def mean_in_units_of_a_latent_scale():
    mu = pm.Normal("mu", 2, 1)
    s = pm.Exponential("s", 1)
    pm.Normal("x", mu * s, s, shape=N)
    return mu


@form
def latent_child_that_is_transformed():
    mu = pm.Normal("mu", 0, 2, shape=2)
    pm.LogNormal("income", mu[OTHER], 0.5, shape=N)
    pm.Normal("y", mu[0], 1, shape=2, transform=pm.distributions.transforms.ordered)
    return mu


# Multivariate normals ---------------------------------------------------------------------------


@form
def multivariate_prior():
    b = pm.MvNormal("b", [0, 1], cov=COV)
    v = pm.InverseGamma("v", 2, 2)
    pm.Normal("y", X @ b, pt.sqrt(v), observed=Y)
    return [b, v]


@form
def multivariate_prior_by_precision():
    b = pm.MvNormal("b", np.zeros(2), tau=COV)
    pm.Normal("y", X @ b, 0.5, observed=Y)
    return b


@form
def multivariate_children():
    mu = pm.MvNormal("mu", np.zeros(2), chol=np.linalg.cholesky(3 * COV))
    pm.MvNormal("x", mu, cov=COV, shape=(N, 2))
    return mu


@form
def multivariate_child_of_independent_means():
    mu = pm.Normal("mu", 0, 3, shape=2)
    pm.MvNormal("x", mu, tau=COV, observed=X)
    return mu


@form
def multivariate_slopes_by_group():
    m = pm.Normal("m", 0, 2, shape=2)
    s = pm.HalfNormal("s", shape=2)
    b = pm.MvNormal("b", m, cov=pt.diag(s**2) + 0.1, shape=(3, 2))
    pm.Normal("y", b[GROUP, 0] + b[GROUP, 1] * Z, 0.7, observed=Y)
    return [m, b]


@form
def multivariate_with_lkj():
    chol, _, _ = pm.LKJCholeskyCov("chol", n=2, eta=2, sd_dist=pm.Exponential.dist(1, size=2))
    mu = pm.Normal("mu", 0, 2, shape=2)
    pm.MvNormal("x", mu, chol=chol, shape=(N, 2))
    return mu


@form
def multivariate_batch_of_covariances():
    mu = pm.Normal("mu", 0, 2, shape=(3, 2))
    pm.MvNormal("x", mu, cov=np.stack([COV, 2 * COV, np.eye(2)]), shape=(3, 2))
    return mu


@form
def multivariate_mean_by_regression():
    b = pm.Normal("b", 0, 1, shape=(2, 2))
    pm.MvNormal("y", X @ b, cov=COV, observed=np.column_stack([Y, Z]))
    return b


# Of everything something ------------------------------------------------------------------------


@form
def shared_data_and_dims():
    coords(person=N, group=3)
    group = pm.Data("index", GROUP, dims="person")
    x = pm.Data("covariate", Z, dims="person")
    y = pm.Data("outcome", Y, dims="person")
    a = pm.Normal("a", 0, pm.HalfNormal("s"), dims="group")
    b = pm.Normal("b")
    v = pm.InverseGamma("v", 2, 1)
    pm.Normal("y", a[group] + b * x, pt.sqrt(v), observed=y, dims="person")
    return [a, b, v]


@form
def missing_outcomes():
    mu = pm.Normal("mu", 0, 1, shape=3)
    with_gaps = np.ma.masked_array(Y, mask=OTHER == 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pm.exceptions.ImputationWarning)
        pm.Normal("y", mu[GROUP], 0.5, observed=with_gaps)
    return mu


@form
def shape_of_a_parameter():
    mu = pm.Normal("mu", 0, 1, shape=3)
    pm.Normal("x", pt.ones_like(mu), 2 * pt.ones(mu.shape), shape=3)
    pm.Normal("y", mu + pt.zeros_like(mu), pt.ones(mu.shape), shape=3)
    v = pm.InverseGamma("v", 2, 1, shape=3)
    pm.Normal("z", pt.zeros(v.shape), pt.sqrt(v), shape=3)
    return [mu, v]


@form
def a_release_on_top():
    p = pm.Dirichlet("p", np.ones(4))
    record = pm.Categorical("record", p=p, shape=N)
    table = pt.eye(4)[record].sum(axis=0)
    pm.Potential("privacy", -0.5 * ((table - [1, 2, 3, 1]) ** 2).sum())
    pm.Deterministic("ratio", p[0] / p[1])
    return p


@form
def several_separate_means():
    a = pm.Normal("a", 0, 1, shape=2)
    b = pm.Normal("b", 0, 1)
    pm.Normal("x", a[OTHER], 1, observed=Y)
    pm.Normal("y", b, 1, observed=Y)
    return [a, b]


@form
def positive_transform_chosen():
    rate = pm.Gamma("rate", 2, 1, default_transform=None, transform=log_transform)
    pm.Poisson("x", rate, shape=N)
    return rate
