"""Records as a function of parameters and noise: each family's map, and whole models' reading."""

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pymc.distributions.continuous import WaldRV
from scipy import stats

from pymc_dapper import ReadingError
from pymc_dapper.graphs.noise import FEW_CATEGORIES
from pymc_dapper.interweaving.reading import (
    NoRecordMapError,
    RecordMap,
    can_interweave,
    read_non_centred,
    record_map,
)
from pymc_dapper.interweaving.reading.maps import parameters_of
from pymc_dapper.interweaving.reading.self_check import check_noise
from pymc_dapper.interweaving.step import InterweaveStep

N = 40


def gamma(alpha, beta):
    return stats.gamma(alpha, scale=1 / beta)


def log_normal(mu, sigma):
    return stats.lognorm(sigma, scale=np.exp(mu))


def asymmetric_laplace(b, kappa, mu):
    return stats.laplace_asymmetric(kappa, mu, 1 / b)


def negative_binomial(n, p):
    return stats.nbinom(n, p)


def truncated_gamma(alpha, beta, lower, upper):
    return Truncated(gamma(alpha, beta), lower, upper)


def truncated_normal(mu, sigma, lower, upper):
    return Truncated(stats.norm(mu, sigma), lower, upper)


class Truncated:
    def __init__(self, base, lower, upper):
        self.base, self.ends = base, base.cdf([lower, upper])

    def cdf(self, x):
        return (self.base.cdf(x) - self.ends[0]) / (self.ends[1] - self.ends[0])

    def rvs(self, size, random_state):
        u = random_state.uniform(*self.ends, size)
        return self.base.ppf(u)


def truncated_gamma_dist(alpha, beta, lower, upper, **kwargs):
    base = pm.Gamma.dist(alpha, beta)
    return pm.Truncated.dist(base, lower=lower, upper=upper, **kwargs)


def truncated_normal_dist(mu, sigma, lower, upper, **kwargs):
    return pm.TruncatedNormal.dist(mu, sigma, lower=lower, upper=upper, **kwargs)


# Distribution in PyMC and in SciPy, and two sets of parameters.
CONTINUOUS = {
    "Normal": (pm.Normal.dist, stats.norm, (0.3, 1.2), (-1.0, 0.4)),
    "Laplace": (pm.Laplace.dist, stats.laplace, (0.3, 1.2), (-1.0, 0.4)),
    "Logistic": (pm.Logistic.dist, stats.logistic, (0.3, 1.2), (-1.0, 0.4)),
    "Cauchy": (pm.Cauchy.dist, stats.cauchy, (0.3, 1.2), (-1.0, 0.4)),
    "Gumbel": (pm.Gumbel.dist, stats.gumbel_r, (0.3, 1.2), (-1.0, 0.4)),
    "Moyal": (pm.Moyal.dist, stats.moyal, (0.3, 1.2), (-1.0, 0.4)),
    "LogNormal": (pm.LogNormal.dist, log_normal, (0.3, 1.2), (-1.0, 0.4)),
    "Uniform": (pm.Uniform.dist, lambda a, b: stats.uniform(a, b - a), (0.3, 1.2), (-1.0, 3.4)),
    "HalfNormal": (pm.HalfNormal.dist, lambda s: stats.halfnorm(0, s), (0.3,), (1.4,)),
    "HalfCauchy": (pm.HalfCauchy.dist, lambda s: stats.halfcauchy(0, s), (0.3,), (1.4,)),
    "Exponential": (pm.Exponential.dist, lambda r: stats.expon(0, 1 / r), (0.3,), (1.4,)),
    "Gamma, rate": (pm.Gamma.dist, gamma, (2.5, 0.3), (2.5, 1.4)),
    "Gamma, shape": (pm.Gamma.dist, gamma, (2.5, 0.3), (0.8, 1.4)),
    "InverseGamma": (
        pm.InverseGamma.dist,
        lambda a, b: stats.invgamma(a, scale=b),
        (2.5, 0.3),
        (2.5, 1.4),
    ),
    "Beta": (pm.Beta.dist, stats.beta, (2.5, 0.7), (1.2, 1.4)),
    "StudentT": (
        lambda nu, mu, sigma, **k: pm.StudentT.dist(nu, mu=mu, sigma=sigma, **k),
        stats.t,
        (3.5, 0.3, 1.2),
        (3.5, -1.0, 0.4),
    ),
    "StudentT, shape": (
        lambda nu, mu, sigma, **k: pm.StudentT.dist(nu, mu=mu, sigma=sigma, **k),
        stats.t,
        (3.5, 0.3, 1.2),
        (7.0, -1.0, 0.4),
    ),
    "HalfStudentT": (
        lambda nu, sigma, **k: pm.HalfStudentT.dist(nu, sigma=sigma, **k),
        lambda nu, s: Truncated(stats.t(nu, 0, s), 0, np.inf),
        (3.5, 1.2),
        (3.5, 0.4),
    ),
    "SkewNormal": (
        lambda mu, sigma, alpha, **k: pm.SkewNormal.dist(alpha, mu=mu, sigma=sigma, **k),
        lambda mu, sigma, alpha: stats.skewnorm(alpha, mu, sigma),
        (0.3, 1.2, 2.0),
        (-1.0, 0.4, 2.0),
    ),
    "AsymmetricLaplace": (
        lambda b, kappa, mu, **k: pm.AsymmetricLaplace.dist(kappa, mu, b, **k),
        asymmetric_laplace,
        (0.3, 1.2, 0.5),
        (1.4, 1.2, -1.0),
    ),
    "Weibull": (
        pm.Weibull.dist,
        lambda a, b: stats.weibull_min(a, scale=b),
        (2.5, 0.3),
        (1.2, 1.4),
    ),
    "Pareto": (pm.Pareto.dist, lambda a, m: stats.pareto(a, scale=m), (2.5, 0.3), (1.2, 1.4)),
    "Truncated Gamma": (
        truncated_gamma_dist,
        truncated_gamma,
        (2.5, 0.9, 0.2, 3.0),
        (1.2, 1.4, 0.1, 2.0),
    ),
    "TruncatedNormal": (
        truncated_normal_dist,
        truncated_normal,
        (0.3, 1.2, -1.0, 2.0),
        (-0.4, 0.7, -1.5, 1.0),
    ),
}
DISCRETE = {
    "Bernoulli": (pm.Bernoulli.dist, stats.bernoulli, (0.3,), (0.6,)),
    "Poisson": (pm.Poisson.dist, stats.poisson, (2.5,), (4.1,)),
    "Poisson, large": (pm.Poisson.dist, stats.poisson, (900.0,), (1300.0,)),
    "Binomial": (pm.Binomial.dist, stats.binom, (12.0, 0.3), (12.0, 0.6)),
    "NegativeBinomial": (
        lambda n, p, **k: pm.NegativeBinomial.dist(n=n, p=p, **k),
        negative_binomial,
        (2.5, 0.3),
        (1.7, 0.6),
    ),
    "Geometric": (pm.Geometric.dist, stats.geom, (0.3,), (0.6,)),
    "DiscreteUniform": (
        pm.DiscreteUniform.dist,
        lambda a, b: stats.randint(a, b + 1),
        (0.0, 5.0),
        (2.0, 11.0),
    ),
}


def move(dist, before, after, x, uniforms=None, **kwargs):
    """Records at other parameters with the same noise."""
    stand_ins = [pt.as_tensor(np.asarray(value)).type() for value in before]
    rv = dist(*stand_ins, **kwargs)
    node = rv.owner
    parameters = parameters_of(node)
    moved = [not np.array_equal(a, b) for a, b in zip(before, after, strict=True)]
    # A distribution may compute its operation's parameters from the user's.
    flags = [
        any(stand_in in pytensor.graph.traversal.ancestors([p]) for stand_in, m in pairs if m)
        for pairs in [list(zip(stand_ins, moved, strict=True))]
        for p in parameters
    ]
    rule = record_map(node.op, node, flags)
    at = {
        which: pytensor.graph.clone_replace(
            list(parameters),
            dict(zip(stand_ins, map(pt.as_tensor, map(np.asarray, values)), strict=True)),
        )
        for which, values in (("before", before), ("after", after))
    }
    noise = rule.noise(
        pt.as_tensor(x), at["before"], None if uniforms is None else pt.as_tensor(uniforms)
    )
    outputs = [rule.records(noise, at["after"]), rule.records(noise, at["before"])]
    return pytensor.function([], outputs, mode="FAST_COMPILE")()


@pytest.mark.parametrize("family", CONTINUOUS)
def test_continuous_records_keep_their_quantile(family):
    dist, law, before, after = CONTINUOUS[family]
    x = law(*before).rvs(size=N, random_state=np.random.default_rng(1))
    moved, back = move(dist, before, after, x, size=N)
    # PyMC's quantiles of a truncated normal are good to 1e-8 near 0.
    np.testing.assert_allclose(back, x, rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(law(*after).cdf(moved), law(*before).cdf(x), rtol=1e-6)


@pytest.mark.parametrize("family", DISCRETE)
def test_discrete_records_move_to_the_step_that_a_point_in_theirs_lies_in(family):
    dist, law, before, after = DISCRETE[family]
    rng = np.random.default_rng(1)
    x, uniforms = law(*before).rvs(size=N, random_state=rng), rng.random(N)
    moved, back = move(dist, before, after, x, uniforms, size=N)
    np.testing.assert_array_equal(back, x)
    u = law(*before).cdf(x - 1) + uniforms * law(*before).pmf(x)
    assert np.all(law(*after).cdf(moved - 1) <= u + 1e-12)
    assert np.all(u < law(*after).cdf(moved) + 1e-12)


@pytest.mark.parametrize("n", [3, FEW_CATEGORIES + 1], ids="{} categories".format)
@pytest.mark.parametrize("per_record", [False, True])
def test_categories_move_to_the_step_that_a_point_in_theirs_lies_in(per_record, n):
    rng = np.random.default_rng(1)
    before, after = rng.dirichlet(np.arange(n) + 1, N), rng.dirichlet(n - np.arange(n), N)
    if not per_record:
        before, after = before[0], after[0]
    x, uniforms = rng.integers(0, n, N), rng.random(N)
    moved, back = move(pm.Categorical.dist, (before,), (after,), x, uniforms, size=N)
    np.testing.assert_array_equal(back, x)
    rows = np.arange(N)
    before, after = (np.broadcast_to(p, (N, n)) for p in (before, after))
    u = before.cumsum(axis=1)[rows, x] - (1 - uniforms) * before[rows, x]
    upper = after.cumsum(axis=1)[rows, moved]
    assert np.all((upper - after[rows, moved] <= u) & (u < upper))


@pytest.mark.parametrize("dist", ["MvNormal", "MvStudentT"])
def test_vectors_keep_their_standardised_value(dist):
    rng = np.random.default_rng(1)
    means = rng.normal(size=(2, 3))
    factors = [np.tril(rng.normal(size=(3, 3)), -1) + np.diag([1.0, 0.5, 2.0]) for _ in range(2)]
    before, after = ((mean, f @ f.T) for mean, f in zip(means, factors, strict=True))

    def build(mean, scale, **kwargs):
        if dist == "MvNormal":
            return pm.MvNormal.dist(mean, scale, **kwargs)
        return pm.MvStudentT.dist(5, mu=mean, scale=scale, **kwargs)

    x = rng.normal(size=(N, 3))
    moved, back = move(build, before, after, x, size=N)
    np.testing.assert_allclose(back, x)
    standardised = np.linalg.solve(factors[0], (x - means[0]).T)
    np.testing.assert_allclose(moved, means[1] + (factors[1] @ standardised).T)


def test_what_has_no_quantiles_is_refused_with_the_remedy():
    with pm.Model() as model:
        a = pm.HalfNormal("a")
        kappa = pm.VonMises("x", 0, a, shape=3)
        pm.Potential("release", -(kappa.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=r"records 'x'.*quantiles of VonMises.*register"):
            InterweaveStep([a], records=[kappa])
    assert can_interweave(model, [a], [kappa]) == []


@pytest.mark.parametrize(
    ("records", "name"),
    [
        (lambda a: pm.Dirichlet("x", a * np.ones(3), shape=(4, 3)), "Dirichlet is multivariate"),
        (lambda a: pm.MvStudentT("x", nu=a, mu=np.zeros(2), scale=np.eye(2)), "degrees of freedom"),
        (lambda a: pm.Truncated("x", pm.VonMises.dist(0, a), upper=1, shape=3), "quantiles of"),
        (lambda a: pm.Truncated("x", pm.Poisson.dist(a), upper=5, shape=3), "is discrete"),
    ],
)
def test_other_distributions_without_a_map_are_refused(records, name):
    with pm.Model():
        a = pm.HalfNormal("a")
        x = records(a)
        pm.Potential("release", -(x.sum() ** 2))
        with pytest.raises(NoRecordMapError, match=name):
            InterweaveStep([a], records=[x])


def inverse_gaussian(factor):
    """A map for a change of scale, mu and lam alike; right for a factor of 1."""

    def register(op, node, moved):
        return RecordMap(
            lambda x, parameters, _: x / parameters[0],
            lambda z, parameters: factor * z * parameters[0],
        )

    return register


@pytest.fixture
def register_wald():
    # singledispatch has no way to take a rule back: put the general one in its place.
    record_map.register(WaldRV)(record_map.dispatch(object))
    yield lambda rule: record_map.register(WaldRV)(rule)
    record_map.register(WaldRV)(record_map.dispatch(object))


def wald_model():
    with pm.Model() as model:
        scale = pm.HalfNormal("scale")
        x = pm.Wald("x", mu=scale, lam=2 * scale, shape=5)
        pm.Laplace("release", x.sum(), 1.0, observed=3.0)
    return model


@pytest.mark.usefixtures("uncompiled")
def test_a_map_can_be_registered(register_wald):
    model = wald_model()
    assert can_interweave(model, [model["scale"]], [model["x"]]) == []
    register_wald(inverse_gaussian(1.0))
    with model:
        step = InterweaveStep([model["scale"]], records=[model["x"]])
    assert "'x'" in step.describe()


def test_a_map_that_does_not_bring_records_back_is_found_out(register_wald):
    register_wald(inverse_gaussian(1.01))
    model = wald_model()
    with pytest.raises(ReadingError, match=r"'x' isn't the inverse.*`RecordMap.records` must undo"):
        InterweaveStep([model["scale"]], records=[model["x"]], model=model)


def values_of(model, *names):
    return [model.rvs_to_values[model[name]] for name in names]


def read(model, parameters, records):
    return read_non_centred(
        model, values_of(model, *parameters), values_of(model, *records), model.initial_point()
    )


def linked_model():
    """Every way in which parameters, records and others can depend on each other."""
    with pm.Model() as model:
        theta = pm.Gamma("theta", 2, 2)
        upper = pm.Uniform("upper", 0, 2 + theta)
        slope = pm.Normal("slope", 0, 1)
        apart = pm.Normal("apart", slope, 1)
        u = pm.Uniform("u", -1, 1 + upper, shape=2)
        x = pm.Gamma("x", 2, theta, shape=2)
        y = pm.Normal("y", slope * x + u, 0.5 + theta, shape=2)
        child = pm.LogNormal("child", theta, 1)
        pm.Normal("outcome", y, 1, observed=[0.4, 1.2])
        pm.Poisson("public", theta, observed=[1, 2])
        z = pm.Normal("z", x.sum(), theta)
        pm.Laplace(
            "release",
            pt.stack([x.sum() + u.sum(), z * child, (x * y).sum()]),
            1.0,
            observed=[1, 2, 3],
        )
        pm.Potential("other", -(apart**2) * y[0])
    return model


LINKED = ("theta", "upper", "slope"), ("u", "x", "y")


def test_all_but_the_priors_of_the_moved_records_decides():
    reading = read(linked_model(), *LINKED)
    assert set(reading.factors) == {
        *("theta", "upper", "slope", "apart", "child", "outcome", "public", "z", "release"),
        "other",
    }


def test_the_change_of_the_log_density_is_that_of_the_model_with_the_jacobian_of_the_map():
    """Of the whole joint density on the unconstrained scale, by numerical differentiation."""
    model = linked_model()
    reading = read(model, *LINKED)
    present = [*reading.parameters, *reading.records, *reading.given]
    f = pytensor.function(
        [*present, *reading.proposed],
        [*reading.moved_records, reading.log_density],
        mode="FAST_COMPILE",
        on_unused_input="ignore",
    )
    logp = model.compile_logp(mode="FAST_COMPILE")
    rng = np.random.default_rng(3)
    for _ in range(3):
        point = {
            name: rng.normal(size=value.shape) for name, value in model.initial_point().items()
        }
        new = [rng.normal(size=x.type.shape) for x in reading.parameters]
        names = [x.name for x in reading.records]

        def follow(records, to, point=point, names=names):
            at = {**point, **dict(zip(names, records.reshape(3, 2), strict=True))}
            *moved, log_density = f(*(at[x.name] for x in present), *to)
            return np.concatenate(moved), float(log_density)

        records = np.concatenate([point[name] for name in names])
        moved, log_density = follow(records, new)
        back, before = follow(records, [point[x.name] for x in reading.parameters])
        np.testing.assert_allclose(back, records, rtol=1e-10)

        h = 1e-5
        jacobian = np.column_stack(
            [
                (follow(records + h * e, new)[0] - follow(records - h * e, new)[0]) / (2 * h)
                for e in np.eye(6)
            ]
        )
        after = {
            **point,
            **{x.name: value for x, value in zip(reading.parameters, new, strict=True)},
            **dict(zip(names, moved.reshape(3, 2), strict=True)),
        }
        gain = logp(after) - logp(point) + np.linalg.slogdet(jacobian)[1]
        assert log_density - before == pytest.approx(gain, abs=1e-7)


def test_a_record_that_depends_on_a_moved_one_follows():
    with pm.Model() as model:
        theta = pm.Normal("theta")
        x = pm.Normal("x", theta, 1, shape=4)
        y = pm.Normal("y", x, 1, shape=4)
        pm.Normal("release", y.sum(), 1, observed=0.3)
    reading = read(model, ["theta"], ["y", "x"])
    assert [r.name for r in reading.records] == ["x", "y"]
    assert reading.factors == ("theta", "release")
    # Not among the records: it stays, and its prior decides.
    reading = read(model, ["theta"], ["x"])
    assert [r.name for r in reading.records] == ["x"]
    assert set(reading.factors) == {"theta", "y"}


def test_records_that_no_parameter_moves_stay():
    with pm.Model() as model:
        theta = pm.Normal("theta")
        x = pm.Normal("x", 0, 1, shape=4)
        y = pm.Normal("y", theta * x, 1, shape=4)
        pm.Normal("release", y.sum() + x.sum(), 1, observed=0.3)
    reading = read(model, ["theta"], ["x", "y"])
    assert [r.name for r in reading.records] == ["y"]
    assert [g.name for g in reading.given] == ["x"]


def test_parameters_that_move_no_record_are_left_alone():
    with pm.Model() as model:
        tau = pm.HalfNormal("tau")
        theta = pm.Normal("theta", 0, tau)
        x = pm.Normal("x", theta, 1, shape=4)
        pm.Normal("release", x.sum(), 1, observed=0.3)
        k = pm.Poisson("k", 3)
    reading = read(model, ["tau", "theta"], ["x"])
    assert reading.left_alone == ("tau",)
    assert can_interweave(model, [tau, theta, k], [x]) == [theta]
    with pytest.raises(ReadingError, match=r"nothing to do: 'tau' doesn't enter the prior"):
        read(model, ["tau"], ["x"])
    with pytest.raises(ReadingError, match="'k' is discrete"):
        read(model, ["k"], ["x"])
    with pytest.raises(ReadingError, match="'x' was passed both"):
        read(model, ["theta", "x"], ["x"])


def test_each_parameter_is_judged_by_the_records_it_moves():
    with pm.Model() as model:
        a, kappa = pm.Normal("a"), pm.HalfNormal("kappa")
        x = pm.Normal("x", a, 1, shape=4)
        angle = pm.VonMises("angle", 0, kappa, shape=4)
        pm.Normal("release", x.sum() + angle.sum(), 1, observed=0.3)
    assert can_interweave(model, [a, kappa], [x, angle]) == [a]


def test_a_record_that_chooses_another_ones_parameter():
    """A count used as an index must come out as an integer."""
    with pm.Model() as model:
        theta = pm.Gamma("theta", 2, 2)
        k = pm.Poisson("k", theta, shape=4)
        y = pm.Normal("y", pt.as_tensor([0.0, 1.0, 3.0])[pt.minimum(k, 2)], theta, shape=4)
        pm.Normal("release", y.sum(), 1, observed=0.3)
    reading = read(model, ["theta"], ["k", "y"])
    assert [record.dtype for record in reading.moved_records] == ["int64", "float64"]
    check_noise(reading, model.initial_point())


def test_an_infinite_record_is_impossible_even_if_it_is_clipped():
    with pm.Model() as model:
        theta = pm.Normal("theta")
        x = pm.LogNormal("x", theta, 1, shape=4, default_transform=None)
        pm.Normal("release", pt.clip(x, 0, 1).sum(), 1, observed=3.0)
    reading = read(model, ["theta"], ["x"])
    f = pytensor.function(
        [*reading.parameters, *reading.records, *reading.proposed],
        reading.log_density,
        mode="FAST_COMPILE",
    )
    with np.errstate(over="ignore"):
        assert f(0.0, np.ones(4), 800.0) == -np.inf
    assert np.isfinite(f(0.0, np.ones(4), 5.0))


def test_the_log_density_is_compared_with_the_model():
    model = linked_model()
    reading = read(model, *LINKED)
    check_noise(reading, model.initial_point())
    wrong = type(reading)(
        **{**vars(reading), "log_density": reading.log_density + reading.proposed[0]}
    )
    with pytest.raises(ReadingError, match="can't read the model exactly"):
        check_noise(wrong, model.initial_point())
