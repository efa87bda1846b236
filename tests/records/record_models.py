"""Models in the forms that people write them: each must be read rightly."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.sparse
import pytensor.tensor as pt
import scipy.sparse

from pymc_dapper.reading import FullFactor, read_model
from pymc_dapper.records.reading.self_check import check_reading

N = 7
RNG = np.random.default_rng(0)
Z = RNG.normal(size=N)
Z2 = RNG.normal(size=(N, 2))
GROUP = np.array([0, 1, 2, 0, 1, 2, 1])

FORMS = {}
"""Name of a form to a function that returns its model; the records are its variables with a name
that starts with "record"."""


def form(build):
    def model():
        with pm.Model() as m:
            build()
        return m

    FORMS[build.__name__] = model
    return build


def gaussian(statistic, released=0.5, sigma=0.8):
    """The simplest mechanism: Gaussian noise on each entry of a statistic."""
    pm.Potential("privacy", -0.5 * (((released - statistic) / sigma) ** 2).sum())


def normal_records(**kwargs):
    mu = pm.Normal("mu")
    return pm.Normal("record", mu, 1.3, shape=N, **kwargs)


# Records ----------------------------------------------------------------------------------------


@form
def matrix_of_records():
    mu = pm.Normal("mu", shape=2)
    gaussian(pm.Normal("record", mu, 1, shape=(N, 2)).sum(axis=0))


@form
def array_of_records():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2, 3))
    gaussian((x**2).sum(axis=(0, 2)))


@form
def multivariate_normal_rows():
    mu = pm.Normal("mu", shape=2)
    x = pm.MvNormal("record", mu, cov=np.array([[1.0, 0.4], [0.4, 2.0]]), shape=(N, 2))
    gaussian(x.T @ x)


@form
def dirichlet_rows():
    x = pm.Dirichlet("record", a=np.ones(3) * pm.HalfNormal("a"), shape=(N, 3))
    gaussian((x**2).sum(axis=0))


@form
def multinomial_rows():
    p = pm.Dirichlet("p", np.ones(3))
    x = pm.Multinomial("record", n=5, p=p, shape=(N, 3))
    gaussian(x.sum(axis=0), released=np.array([9.0, 12.0, 14.0]))


@form
def records_that_depend_on_records():
    x = pm.Normal("record_x", pm.Normal("mu"), 1, shape=N)
    y = pm.Normal("record_y", 2 * x + 1, 0.5, shape=N)
    gaussian(pt.stack([x.sum(), y.sum(), (x * y).sum()]))


@form
def three_records_of_different_kinds():
    group = pm.Categorical("record_a", p=np.array([0.2, 0.5, 0.3]), shape=N)
    x = pm.Normal("record_b", pm.Normal("mu", shape=3)[group], 1, shape=N)
    k = pm.Poisson("record_c", pt.exp(0.3 * x), shape=N)
    gaussian(pt.stack([x.sum(), k.sum(), (x * pt.eq(group, 1)).sum()]))


@form
def dims_and_shared_data():
    model = pm.modelcontext(None)
    model.add_coord("person", np.arange(N))
    z = pm.Data("z", Z, dims="person")
    released = pm.Data("released", 1.0)
    x = pm.Normal("record", pm.Normal("slope") * z, 1, dims="person")
    pm.Laplace("s_dp", (x * z).sum(), 2.0, observed=released)


@form
def uniform_records():
    gaussian(pm.Uniform("record", -1, pm.HalfNormal("upper"), shape=N).sum())


@form
def half_normal_records():
    gaussian(pm.HalfNormal("record", pm.HalfNormal("s"), shape=N).sum())


@form
def gamma_records():
    gaussian(pt.log(pm.Gamma("record", 2, pm.HalfNormal("rate"), shape=N)).sum())


@form
def beta_records():
    gaussian(pm.Beta("record", 2, pm.HalfNormal("b"), shape=N).mean())


@form
def log_normal_records():
    gaussian(pt.clip(pm.LogNormal("record", pm.Normal("mu"), 1, shape=N), 0, 3).sum())


@form
def bernoulli_records():
    gaussian(pm.Bernoulli("record", pm.Beta("p", 1, 1), shape=N).sum())


@form
def poisson_records():
    gaussian(pm.Poisson("record", pm.Gamma("rate", 2, 1), shape=N).sum())


@form
def binomial_records():
    gaussian(pm.Binomial("record", 30, pm.Beta("p", 1, 1), shape=N).sum(), released=100.0)


@form
def truncated_records():
    base = pm.Normal.dist(pm.Normal("mu"), 1)
    gaussian(pm.Truncated("record", base, lower=-1, upper=2, shape=N).sum())


@form
def mixture_records():
    w = pm.Dirichlet("w", np.ones(2))
    x = pm.NormalMixture("record", w, mu=np.array([-1.0, 2.0]), sigma=0.5, shape=N)
    gaussian(x.sum())


@form
def mixture_of_components_records():
    components = [pm.Normal.dist(pm.Normal("mu"), 1), pm.Laplace.dist(1, 2)]
    gaussian(pm.Mixture("record", np.array([0.3, 0.7]), components, shape=N).sum())


@form
def custom_records():
    def dist(mu, size):
        return pm.math.exp(pm.Normal.dist(mu, 0.5, size=size))

    gaussian(pm.CustomDist("record", pm.Normal("mu"), dist=dist, shape=N).sum())


@form
def zero_inflated_records():
    gaussian(pm.ZeroInflatedPoisson("record", 0.7, pm.HalfNormal("mu"), shape=N).sum())


@form
def truncated_poisson_records():
    base = pm.Poisson.dist(pm.Gamma("rate", 2, 1))
    gaussian(pm.Truncated("record", base, lower=1, upper=9, shape=N).sum())


@form
def hurdle_poisson_records():
    gaussian(pm.HurdlePoisson("record", 0.7, pm.Gamma("rate", 2, 1), shape=N).sum())


@form
def covariate_in_prior_and_statistic():
    b = pm.Normal("b", shape=2)
    x = pm.Normal("record", b[0] + b[1] * Z, 1, shape=N)
    gaussian(pt.stack([x.sum(), (x * Z).sum()]))


@form
def group_index():
    mu = pm.Normal("mu", pm.Normal("m"), pm.HalfNormal("t"), shape=3)
    x = pm.Normal("record", mu[GROUP], 1, shape=N)
    gaussian(pt.stack([x[g == GROUP].sum() for g in range(3)]))


# Sums -------------------------------------------------------------------------------------------


@form
def sum_of_everything():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    gaussian(x.sum())


@form
def mean():
    gaussian(normal_records().mean())


@form
def cross_product_with_public_design():
    gaussian(Z2.T @ normal_records())


@form
def dot_with_public_weights():
    gaussian(pt.dot(Z, normal_records()))


@form
def cross_product_of_records():
    x = pm.Normal("record_x", pm.Normal("mu"), 1, shape=(N, 2))
    y = pm.Normal("record_y", x.sum(axis=1), 1, shape=N)
    design = pt.concatenate([pt.ones((N, 1)), x], axis=1)
    gaussian(design.T @ y)
    pm.Potential("second_release", -pt.abs(design.T @ design - 3.0).sum())


@form
def einsum():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    gaussian(pt.einsum("ij,ik->jk", x, Z2))


@form
def concatenated_sums():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    gaussian(pt.concatenate([x.sum(axis=0), (x**2).sum(axis=0), [(x[:, 0] * x[:, 1]).sum()]]))


@form
def one_hot():
    x = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=N)
    gaussian(pt.eye(3)[x].sum(axis=0))


@form
def comparison_with_all_categories():
    x = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=N)
    gaussian(pt.eq(x[:, None], np.arange(3)).sum(axis=0))


@form
def switch():
    x = normal_records()
    gaussian(pt.switch(x > 0, x, -0.1 * x).sum())


@form
def histogram_by_comparisons():
    x = normal_records()
    edges = np.array([-1.0, 0.0, 1.0, 2.0])
    gaussian(((x[:, None] >= edges[:-1]) & (x[:, None] < edges[1:])).sum(axis=0))


@form
def histogram_by_search():
    x = normal_records()
    bins = pt.searchsorted(pt.constant([-1.0, 0.0, 1.0]), x)
    gaussian(pt.eye(4)[bins].sum(axis=0))


@form
def clipped_and_weighted():
    x = normal_records()
    gaussian((pt.clip(x, -1, 1) * np.abs(Z)).sum() / np.abs(Z).sum())


@form
def buffer_of_sums():
    x = normal_records()
    buffer = pt.zeros(3)
    buffer = pt.set_subtensor(buffer[0], x.sum())
    buffer = pt.set_subtensor(buffer[2], (x**2).sum())
    gaussian(buffer)


@form
def buffer_of_columns():
    x = normal_records()
    buffer = pt.zeros((N, 3))
    buffer = pt.set_subtensor(buffer[:, 0], x)
    buffer = pt.set_subtensor(buffer[:, 2], x**2)
    gaussian(buffer.sum(axis=0))


@form
def one_hot_by_filling_in():
    x = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=N)
    gaussian(pt.set_subtensor(pt.zeros((N, 3))[np.arange(N), x], 1).sum(axis=0))


@form
def counted_by_incrementing():
    x = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=N)
    gaussian(pt.inc_subtensor(pt.ones(3)[x], 1.0))


@form
def totals_by_group():
    gaussian(pt.inc_subtensor(pt.zeros(3)[GROUP], normal_records()))


@form
def some_of_the_records():
    x = normal_records()
    gaussian(pt.stack([x[:3].sum(), x[3:].mean(), x[::2].sum(), x[np.array([0, 5])].sum()]))


@form
def single_records():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    gaussian(pt.stack([x[0, 0] * x[3, 1], x[-1].sum(), x[2:].sum()]))


@form
def records_across():
    # Among others, columns of a matrix with the records side by side.
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2)).T
    gaussian(pt.stack([x[:, 0] - x[:, 1], x.sum(axis=1)]))


@form
def the_only_record():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(1, 2))
    gaussian(x.squeeze() ** 2)


@form
def product_with_a_sparse_matrix():
    weights = scipy.sparse.csr_matrix(np.where(np.abs(Z2.T) > 0.5, Z2.T, 0.0))
    x = normal_records()
    gaussian(pytensor.sparse.structured_dot(weights, x[:, None])[:, 0])


@form
def sum_in_a_loop():
    x, y = normal_records(), pt.constant(Z)
    total = pytensor.scan(
        lambda each, weight, so_far: so_far + weight * each**2,
        sequences=[x, y],
        outputs_info=pt.ones(()),
        return_updates=False,
    )
    gaussian(total[-1])


@form
def squares_in_a_loop():
    scale = pm.HalfNormal("scale")
    squares = pytensor.scan(
        lambda each, scale: scale * each**2,
        sequences=normal_records(),
        non_sequences=scale,
        return_updates=False,
    )
    gaussian(squares.sum())


@form
def flattened():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    gaussian((x.flatten() * np.arange(2 * N)).sum())


@form
def variance():
    gaussian(normal_records().var())


@form
def covariance():
    x = pm.Normal("record_x", pm.Normal("mu"), 1, shape=N)
    y = pm.Normal("record_y", x, 1, shape=N)
    gaussian(((x - x.mean()) * (y - y.mean())).mean())


@form
def scatter_matrix():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    centred = x - x.mean(axis=0)
    gaussian(centred.T @ centred)


@form
def ratio():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    gaussian(x[:, 0].sum() / (1 + (x[:, 1] ** 2).sum()))


@form
def regression_coefficient():
    x = normal_records()
    slope = ((x - x.mean()) * Z).sum() / ((Z - Z.mean()) ** 2).sum()
    gaussian(pt.stack([slope, x.mean() - slope * Z.mean()]))


@form
def least_squares():
    y = normal_records()
    design = np.column_stack([np.ones(N), Z])
    gaussian(pt.linalg.solve(pt.constant(design.T @ design), design.T @ y))


@form
def sums_of_sums():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 3))
    gaussian(x.sum(axis=0).sum() ** 2 + x.sum(axis=1).sum())


@form
def non_centred():
    mu, sigma = pm.Normal("mu"), pm.HalfNormal("sigma")
    u = pm.Normal("record", 0, 1, shape=N)
    x = mu + sigma * u
    gaussian(pt.stack([pt.clip(x, -1, 1).sum(), (x**2).sum()]))


@form
def full_single_record_that_is_broadcast():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=1)
    gaussian((x * Z).sum())


# Separable factors, several releases, children ----------------------------------------------------


@form
def noisy_microdata_column():
    x = normal_records()
    pm.Laplace("answers", x, 0.7, observed=Z)


@form
def sum_of_what_each_record_may_be():
    x = normal_records()
    pm.Potential("rounded", pt.switch(pt.abs(x - Z) <= 9, 0.0, -np.inf).sum())


@form
def noise_scale_that_depends_on_the_record():
    x = normal_records()
    pm.Normal("answers", x, pt.exp(0.2 * x), observed=Z)


@form
def potential_with_one_value_per_record():
    pm.Potential("answers", -pt.abs(normal_records() - Z))


@form
def public_outcome_of_a_private_covariate():
    x, b = normal_records(), pm.Normal("b")
    pm.Bernoulli("outcome", logit_p=b * x, observed=(Z > 0).astype(int))


@form
def outcome_with_looked_up_probabilities():
    x = pm.Poisson("record", 2.0, shape=N)
    table = pt.stack([pt.exp(-0.1 * x), pt.ones(N), pt.exp(0.2 * x)], axis=1)
    pm.Categorical("outcome", p=table / table.sum(axis=1, keepdims=True), observed=GROUP)


@form
def answers_of_some_records():
    x = normal_records()
    pm.Normal("answers", x[:4], 1, observed=Z[:4])
    gaussian(x.sum())


@form
def several_releases_mixed():
    x = normal_records()
    gaussian(x.sum())
    pm.Laplace("second_moment", (x**2).sum(), 3, observed=9.0)
    pm.Normal("answers", x, 2, observed=Z)
    pm.Potential("group_totals", -pt.abs(pt.stack([x[g == GROUP].sum() for g in range(3)])).sum())


@form
def mechanism_as_vector_observed():
    x = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=N)
    pm.Laplace("s_dp", pt.eye(3)[x].sum(axis=0), b=2, observed=np.array([2.0, 3.0, 1.5]))


@form
def latent_child():
    x = normal_records()
    pm.Normal("child", x, 1, shape=N)
    pm.HalfNormal("scale", pt.exp(x.mean()))
    gaussian(x.sum())


@form
def single_precision_factor():
    x = pm.Poisson("record", 2.0, shape=N)
    pm.Bernoulli("answers", pt.switch(x > 1, 0.75, 0.25), observed=(Z > 0).astype(int))


@form
def one_sum_in_two_factors():
    total = normal_records().sum()
    gaussian(total)
    pm.Potential("second_release", -pt.abs(total - 2))


@form
def multivariate_noise_on_each_record():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    pm.MvNormal("answers", x, cov=np.array([[1.0, 0.3], [0.3, 0.8]]), observed=Z2)


@form
def deviations_of_small_integers():
    # Their squares don't fit into int8.
    x = pm.Poisson("record", 12.0, shape=N).astype("int8")
    gaussian(((x - x.mean()) ** 2).sum(), released=80.0, sigma=20.0)


@form
def counts_from_the_end():
    k = pm.Poisson("record", 1.0, shape=N)
    gaussian(pt.inc_subtensor(pt.zeros(9)[k - 1], 1.0))


@form
def counted_by_group_and_category():
    x = pm.Categorical("record", pm.Dirichlet("p", np.ones(3)), shape=N)
    gaussian(pt.zeros((3, 4))[GROUP, x - 1].inc(1))


@form
def totals_by_two_categories():
    p = pm.Dirichlet("p", np.ones(3))
    x = pm.Categorical("record_x", p, shape=N)
    y = pm.Normal("record_y", pm.Normal("mu", shape=3)[x], 1, shape=N)
    gaussian(pt.ones((3, 2))[x, (y > 0).astype("int64")].inc(y))


# Not additive -----------------------------------------------------------------------------------


@form
def full_median():
    x = normal_records()
    gaussian(pt.sort(x)[N // 2])


@form
def full_maximum_with_other_factors():
    x = normal_records()
    gaussian(x.max())
    pm.Laplace("total", x.sum(), 3, observed=1.0)
    pm.Normal("answers", x, 2, observed=Z)


@form
def full_pairs():
    x = pm.Normal("record_x", pm.Normal("mu"), 1, shape=N)
    k = pm.Poisson("record_k", 2.0, shape=N)
    gaussian(pt.abs(x[:, None] - k[None, :]).sum() / 30)


@form
def full_neighbours():
    x = normal_records()
    gaussian((x[1:] * x[:-1]).sum())


# Noise that is correlated -------------------------------------------------------------------------


@form
def correlated_noise():
    x = pm.Normal("record", pm.Normal("mu"), 1, shape=(N, 2))
    error = x.sum(axis=0) - np.array([0.5, 2.0])
    pm.Potential("privacy", -(error @ pt.constant([[2.0, 0.9], [0.9, 1.0]]) @ error) / 2)


# Read, and compared with the model ---------------------------------------------------------------


def random_point(model, rng):
    point = model.initial_point()
    return {
        name: value + 0.3 * rng.normal(size=value.shape) if value.dtype.kind == "f" else value
        for name, value in point.items()
    }


def checked(name):
    """A model, a point, and how the model was read: as its name says, and without a fault."""
    model = FORMS[name]()
    rng = np.random.default_rng(12)
    point = random_point(model, rng)
    rvs = [rv for rv in model.free_RVs if rv.name.startswith("record")][::-1]  # in any order
    reading = read_model(model, [model.rvs_to_values[rv] for rv in rvs], point)
    check_reading(reading, point)
    assert any(isinstance(f, FullFactor) for f in reading.factors) == name.startswith("full")
    assert not reading.proposes_conditionally
    return model, point, reading, rng
