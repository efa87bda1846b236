"""What isn't conjugate is refused, before sampling, with the variable that breaks it."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from pymc.distributions.transforms import Interval, ordered

from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.graphs.errors import NotConjugateError, ReadingError

Y = np.array([0.3, -1.2, 0.8, 2.1])
POSITIVE = np.abs(Y)


def refuse(build, *messages, error=NotConjugateError):
    with pm.Model() as model:
        variables = build()
    with pytest.raises(error) as refusal:
        ConjugateStep(variables, model=model)
    for message in messages:
        assert message in str(refusal.value)


def normal_mean(child):
    """A model with a normal parameter and its child."""

    def build():
        mu = pm.Normal("mu", 0, 2)
        child(mu)
        return mu

    return build


NOT_NORMAL = "isn't conjugate to a normal prior; those of Normal, MvNormal and LogNormal are"

NORMAL_REFUSALS = {
    "truncated": (
        lambda mu: pm.Truncated("y", pm.Normal.dist(mu, 1), lower=0, observed=POSITIVE),
        f"the likelihood of 'y' (TruncatedNormal) {NOT_NORMAL}",
    ),
    "truncated_normal": (
        lambda mu: pm.TruncatedNormal("y", mu, 1, lower=0, observed=POSITIVE),
        "the likelihood of 'y' (TruncatedNormal) isn't conjugate",
    ),
    "censored": (
        lambda mu: pm.Censored("y", pm.Normal.dist(mu, 1), lower=0, upper=None, observed=POSITIVE),
        "the likelihood of 'y' (Censored) isn't conjugate",
    ),
    "mixture": (
        lambda mu: pm.NormalMixture("y", [0.5, 0.5], pt.stack([mu, 1.0]), 1.0, observed=Y),
        "the likelihood of 'y' (Mixture) isn't conjugate",
    ),
    "student": (
        lambda mu: pm.StudentT("y", nu=4, mu=mu, sigma=1, observed=Y),
        "the likelihood of 'y' (StudentT) isn't conjugate",
    ),
    "minibatch": (
        lambda mu: pm.Normal("y", mu, 1, observed=Y, total_size=100),
        "the distribution of 'y' (Minibatch) depends on 'mu'",
    ),
    "time_series": (
        lambda mu: pm.GaussianRandomWalk("y", mu, 1, init_dist=pm.Normal.dist(), observed=Y),
        "the likelihood of 'y' (RandomWalk) isn't conjugate",
    ),
    "exponential_of_it": (
        lambda mu: pm.Normal("y", pt.exp(mu), 1, observed=Y),
        "the mean of 'y' (Normal) isn't a linear function of it",
        "Exp",
        "is neither a power of it nor linear in it",
    ),
    "its_absolute_value": (
        lambda mu: pm.Normal("y", abs(mu), 1, observed=Y),
        "Abs",
        "is neither a power of it nor linear in it",
    ),
    "its_square": (
        lambda mu: pm.Normal("y", mu**2, 1, observed=Y),
        "the mean of 'y' (Normal) isn't a linear function of it",
    ),
    "itself_times_itself": (
        lambda mu: pm.Normal("y", 3 * mu * mu, 1, observed=Y),
        "the mean of 'y' (Normal) is c * mu^2, which isn't linear",
    ),
    "itself_plus_one_times_itself": (
        lambda mu: pm.Normal("y", (1 + mu) * mu, 1, observed=Y),
        "multiplies it with itself",
    ),
    "its_reciprocal": (
        lambda mu: pm.Normal("y", 2 / mu, 1, observed=Y),
        "the mean of 'y' (Normal) is c * mu^-1, which isn't linear",
    ),
    "its_sign": (
        lambda mu: pm.Normal("y", pt.switch(mu > 0, 1.0, -1.0), 1, observed=Y),
        "the mean of 'y' (Normal) isn't a linear function of it",
    ),
    "rounded": (
        lambda mu: pm.Normal("y", pt.cast(mu, "int64"), 1, observed=Y),
        "rounds it",
    ),
    "as_a_scale_too": (
        lambda mu: pm.Normal("y", mu, 1 + pt.zeros(4) * mu, observed=Y),
        "the sd of 'y' (Normal) depends on it",
    ),
    "as_an_index": (
        lambda mu: pm.Normal("y", pt.as_tensor(Y)[pt.cast(mu > 0, "int64")], 1, observed=Y),
        "the mean of 'y' (Normal) isn't a linear function of it",
    ),
    "logistic_regression": (
        lambda mu: pm.Bernoulli("y", logit_p=mu * Y, observed=[0, 1, 1, 0]),
        "the likelihood of 'y' (Bernoulli) isn't conjugate",
    ),
    "potential": (
        lambda mu: pm.Potential("soft", -(mu**4)),
        "the Potential 'soft' depends on 'mu', so their conditional distribution",
    ),
    "several_children_one_wrong": (
        lambda mu: [
            pm.Normal("a", mu, 1, observed=Y),
            pm.StudentT("b", nu=3, mu=mu, observed=Y),
        ],
        "the likelihood of 'b' (StudentT)",
    ),
    "custom": (
        lambda mu: pm.CustomDist("y", mu, logp=lambda y, mu: -((y - mu) ** 2), observed=Y),
        "the likelihood of 'y' (CustomDist_y)",
    ),
    "bounds": (
        lambda mu: pm.Uniform("y", mu, mu + 1),
        "the bounds of 'y' depend on 'mu', so its value on the natural scale changes",
    ),
}


@pytest.mark.parametrize("name", NORMAL_REFUSALS)
def test_a_normal_parameter_is_refused_where(name):
    child, *messages = NORMAL_REFUSALS[name]
    refuse(
        normal_mean(child),
        "'mu' can't be drawn directly from the conditional distribution given all other variables",
        "Leave 'mu' to NUTS, or draw from the conditional yourself with a FunctionStep",
        *messages,
    )


def product_of_two():
    b = pm.Normal("b", shape=2)
    pm.Normal("y", b[0] * b[1], 1, observed=Y)
    return b


def product_of_two_variables():
    a, b = pm.Normal("a"), pm.Normal("b")
    pm.Normal("y", a * b * Y, 1, observed=Y)
    return [a, b]


def slope_and_latent_covariate():
    slope = pm.Normal("slope")
    x = pm.Normal("x", shape=4)
    pm.Normal("y", slope * x, 1, observed=Y)
    return [slope, x]


@pytest.mark.parametrize(
    ("build", "which"),
    [
        (product_of_two, "'b'"),
        (product_of_two_variables, "'a' and 'b'"),
        (slope_and_latent_covariate, "'slope' and 'x'"),
    ],
)
def test_products_of_what_is_drawn_jointly(build, which):
    refuse(build, f"{which} can't be drawn directly", "multiplies it with itself")


def test_factors_of_a_product_may_be_drawn_one_after_the_other():
    with pm.Model() as model:
        variables = product_of_two_variables()
    steps = [ConjugateStep(x, model=model) for x in variables]
    assert [step.describe() for step in steps] == ["a ~ Normal, given y", "b ~ Normal, given y"]


def scaled_probability():
    p = pm.Beta("p", 1, 1)
    pm.Bernoulli("x", 0.5 * p, shape=4)
    return p


def mixed_probability():
    p = pm.Beta("p", 1, 1)
    pm.Bernoulli("x", 0.25 + 0.5 * p, shape=4)
    return p


def complementary_probability():
    p = pm.Beta("p", 1, 1)
    pm.Bernoulli("x", pt.clip(p, 0.1, 0.9), shape=4)
    return p


def beta_of_a_categorical():
    p = pm.Beta("p", 1, 1)
    pm.Poisson("x", p, shape=4)
    return p


def uniform_elsewhere():
    p = pm.Uniform("p", 0, 0.5)
    pm.Bernoulli("x", p, shape=4)
    return p


def gamma_on_an_sd():
    s = pm.Gamma("s", 2, 1)
    pm.Normal("y", 0, s, observed=Y)
    return s


def half_normal_sd():
    s = pm.HalfNormal("s")
    pm.Normal("y", 0, s, observed=Y)
    return s


def inverse_gamma_on_a_precision():
    v = pm.InverseGamma("v", 2, 1)
    pm.Normal("y", 0, tau=v, observed=Y)
    return v


def gamma_on_a_variance():
    v = pm.Gamma("v", 2, 1)
    pm.Normal("y", 0, pt.sqrt(v), observed=Y)
    return v


def gamma_on_a_shape():
    a = pm.Gamma("a", 2, 1)
    pm.Gamma("y", a, 3, observed=POSITIVE)
    return a


def gamma_on_mean_and_variance():
    a = pm.Gamma("a", 2, 1)
    pm.Gamma("y", mu=a, sigma=1, observed=POSITIVE)
    return a


def sum_of_rates():
    a = pm.Gamma("a", 2, 1)
    pm.Poisson("y", a + 1, shape=4)
    return a


def rates_by_covariate():
    a = pm.Gamma("a", 2, 1)
    pm.Poisson("y", a**Y, shape=4)
    return a


def root_of_a_rate():
    a = pm.Gamma("a", 2, 1)
    pm.Poisson("y", pt.sqrt(a), shape=4)
    return a


def upper_bound_of_observed():
    a = pm.Gamma("a", 2, 1)
    pm.Uniform("y", 0, a, observed=POSITIVE)
    return a


def upper_bound_of_latent():
    a = pm.Gamma("a", 2, 1)
    pm.Uniform("y", 0, a)
    return a


def hidden_behind_bounds():
    a = pm.Gamma("a", 2, 1)
    y = pm.Uniform("y", 0, a)
    pm.Bernoulli("z", y / (1 + y))
    return a


def dirichlet_entry():
    p = pm.Dirichlet("p", np.ones(3))
    pm.Bernoulli("x", p[0], shape=4)
    return p


def dirichlet_mixed():
    p = pm.Dirichlet("p", np.ones(3))
    pm.Categorical("x", p=0.9 * p + 0.1 / 3, shape=4)
    return p


def dirichlet_in_another_order_of_operations():
    p = pm.Dirichlet("p", np.ones(3))
    pm.Categorical("x", p=p**2 / (p**2).sum(), shape=4)
    return p


def discrete():
    k = pm.Poisson("k", 3)
    pm.Normal("y", k, 1, observed=Y)
    return k


def restricted_by_a_transform():
    mu = pm.Normal("mu", np.arange(3), 1, transform=ordered, shape=3)
    pm.Normal("y", mu[[0, 1, 2, 2]], 1, observed=Y)
    return mu


def restricted_by_an_interval():
    within = Interval(0.2, 0.8)
    p = pm.Uniform("p", 0, 1, default_transform=None, transform=within)
    pm.Bernoulli("x", p, shape=4)
    return p


REFUSALS = {
    scaled_probability: "the p of 'x' (Bernoulli) is c * p; a Beta prior is conjugate where the p "
    "of 'x' (Bernoulli) is p",
    mixed_probability: "the p of 'x' (Bernoulli) is a sum that contains 'p'",
    complementary_probability: "the p of 'x' (Bernoulli) isn't c * p^k with a constant k: the "
    "operation Clip",
    beta_of_a_categorical: "the likelihood of 'x' (Poisson) isn't conjugate to a Beta prior; "
    "those of Bernoulli, Binomial, Geometric, NegativeBinomial are",
    uniform_elsewhere: "its prior is Uniform, which is conjugate on [0, 1] only",
    gamma_on_an_sd: "the sd of 'y' (Normal) is s; a Gamma prior is conjugate where the sd of 'y' "
    "(Normal) is c * s^-0.5",
    half_normal_sd: "its prior (HalfNormal) belongs to no conjugate family known here; known are "
    "Beta, Dirichlet, Exponential, Gamma, InverseGamma, Uniform, Normal and MvNormal",
    inverse_gamma_on_a_precision: "the sd of 'y' (Normal) is c * v^-0.5; an InverseGamma prior is "
    "conjugate where the sd of 'y' (Normal) is c * v^0.5",
    gamma_on_a_variance: "the sd of 'y' (Normal) is v^0.5; a Gamma prior is conjugate where",
    gamma_on_a_shape: "the shape of 'y' (Gamma) is a; a Gamma prior is conjugate where the scale "
    "of 'y' (Gamma) is c * a^-1",
    gamma_on_mean_and_variance: "it enters the shape of 'y' (Gamma) and the scale of 'y' (Gamma) "
    "at once",
    sum_of_rates: "the mean of 'y' (Poisson) is a sum that contains 'a'",
    rates_by_covariate: "raises it to a power that isn't one constant number",
    root_of_a_rate: "the mean of 'y' (Poisson) is a^0.5; a Gamma prior is conjugate where the mean "
    "of 'y' (Poisson) is c * a",
    upper_bound_of_observed: "the likelihood of 'y' (Uniform) isn't conjugate",
    upper_bound_of_latent: "the bounds of 'y' depend on 'a', so its value on the natural",
    hidden_behind_bounds: "the bounds of 'y' depend on 'a'",
    dirichlet_entry: "the likelihood of 'x' (Bernoulli) isn't conjugate to a Dirichlet prior; "
    "those of Categorical, Multinomial are",
    dirichlet_mixed: "the p of 'x' (Categorical) is a sum that contains 'p'",
    dirichlet_in_another_order_of_operations: "the p of 'x' (Categorical) isn't c * p^k",
    discrete: "its prior (Poisson) belongs to no conjugate family",
    restricted_by_an_interval: "the transform Interval may restrict 'p' to a part of its prior's "
    "support",
    restricted_by_a_transform: "the transform Ordered may restrict 'mu' to a part of its prior's "
    "support",
}


@pytest.mark.parametrize("build", REFUSALS, ids=lambda build: build.__name__)
def test_refused(build):
    refuse(build, REFUSALS[build])


def test_variables_that_are_none_of_the_model():
    with pm.Model() as other:
        elsewhere = pm.Normal("mu")
    with pm.Model() as model:
        mu = pm.Normal("mu")
        y = pm.Normal("y", mu, 1, observed=Y)
        twice = pm.Deterministic("twice", 2 * mu)
    for variables, message in {
        "mu": "'mu' is a name: pass the variable itself",
        (): "given no variables: pass the parameters that it is to move",
        (y,): "'y' is observed: its values are known and can't be sampled",
        (twice,): "'twice' is computed from other variables",
        (elsewhere,): "belongs to another model",
        (mu, mu): "'mu' was passed more than once",
    }.items():
        variables = variables if isinstance(variables, str) else list(variables)
        with pytest.raises(ReadingError, match=message.replace("(", r"\(")):
            ConjugateStep(variables, model=model)
    assert other is not model
