"""DapperStep and InterweaveStep, by themselves, against exact posteriors.

No other step moves the parameters, so that a fault of the move isn't diluted.
"""

import warnings
from dataclasses import replace
from itertools import product
from math import comb

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import beta, binom, gamma, laplace, multivariate_normal, norm, poisson

from pymc_dapper import DapperStep, GaussianMechanism, ReadingError, assign_steps
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.interweaving import step as interweave
from pymc_dapper.interweaving.reading.model import read_non_centred
from pymc_dapper.interweaving.step import InterweaveStep
from tests import interweave_twins as twins
from tests.monte_carlo import smallest_ess, z_scores
from tests.quadrature import (
    Tabulated,
    linear_gaussian,
    log_density_of_noisy_clipped_sum,
    marginals,
    normals,
)
from tests.statistical.agreement import FEW, assert_agrees, assert_disagrees, compare

pytestmark = pytest.mark.filterwarnings("ignore:InterweaveStep alone has moved")


def run(
    model, records, parameters, exact, step_type=InterweaveStep, draws=8_000, moves=3, **options
):
    """Compare; by moves with the noise held fixed alone, if their number is given."""
    with model:
        sweep = DapperStep([model[name] for name in records])
        step = step_type(
            [model[name] for name in parameters],
            records=[model[name] for name in records],
            moves=moves,
            **options,
        )
    return compare(model, [sweep, step], exact, draws=draws, tune=1_000)


# Mean and sd of clipped records: location and scale move, the scale on the log scale.

N, BOUNDS, NOISE, RELEASED = 4, (-1.0, 1.5), 0.6, 3.1


@pytest.fixture(scope="module")
def clipped():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        sigma = pm.Gamma("sigma", 4, 4)
        total = pt.clip(pm.Normal("record", mu, sigma, shape=N), *BOUNDS).sum()
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(total, NOISE), RELEASED))
    grids = np.linspace(-4, 5, 181), np.linspace(1e-9, 5, 101)
    mu, sigma = np.meshgrid(*grids, indexing="ij")
    log_likelihood = log_density_of_noisy_clipped_sum(
        RELEASED, lambda error: laplace.logpdf(error, 0, NOISE), N, mu, sigma, BOUNDS, cells=100
    )
    log_prior = norm.logpdf(mu) + gamma.logpdf(sigma, 4, scale=1 / 4)
    exact = dict(zip(("mu", "sigma"), marginals(grids, log_prior + log_likelihood), strict=True))
    return model, ["record"], ["mu", "sigma"], exact


@pytest.mark.long
def test_mean_and_sd_given_a_clipped_sum(clipped):
    assert_agrees(run(*clipped, moves=None))


@pytest.fixture
def in_tuning(monkeypatch):
    """Options of a step whose moves begin in tuning: without them, parameters stay where they are.

    Its moves are those with the noise held fixed alone.
    """
    monkeypatch.setattr(interweave, "affine_records", lambda *given: [])
    return {"moves": None, "when_needed": True}


def test_moves_that_begin_in_tuning(clipped, in_tuning):
    assert_agrees(run(*clipped, draws=4_000, **in_tuning))


@pytest.mark.long
@pytest.mark.parametrize("moves", [1, 3])
def test_a_given_number_of_moves(clipped, moves):
    assert_agrees(run(*clipped, moves=moves, draws=16_000 // moves))


@pytest.mark.parametrize(
    "fault",
    [
        # The others in every run, too: they are refused (below).
        pytest.param(twins.without_jacobian_of_the_transform("sigma"), marks=pytest.mark.long),
        twins.with_jacobian_of_the_records("sigma"),
        pytest.param(twins.with_stale_records, marks=pytest.mark.long),
        pytest.param(twins.without_factor("privacy"), marks=pytest.mark.long),
    ],
    ids=["no jacobian of the transform", "jacobian of the records", "stale sums", "no mechanism"],
)
def test_a_fault_in_the_move_is_detected(clipped, fault, in_tuning, monkeypatch):
    assert_disagrees(run(*clipped, twins.with_fault(fault, monkeypatch), draws=FEW, **in_tuning))


# Records clipped by their own law: each bound has a probability.


CENSORED = (-3.0, 0.5)


@pytest.fixture(scope="module")
def censored():
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1)
        x = pm.Censored("record", pm.Normal.dist(mu, 1), *CENSORED, shape=5)
        pm.Laplace("privacy", x.sum(), 0.7, observed=1.0)
    grid = np.linspace(-4, 6, 401)
    log_likelihood = log_density_of_noisy_clipped_sum(
        1.0, lambda error: laplace.logpdf(error, 0, 0.7), 5, grid, np.ones(401), CENSORED
    )
    exact = Tabulated(grid, norm.logpdf(grid) + log_likelihood)
    return model, ["record"], ["mu"], {"mu": exact}


@pytest.mark.long
def test_mean_of_censored_records(censored):
    assert_agrees(run(*censored, moves=None, draws=4_000))


def at_the_end_of_a_jump(reading):
    """Take the noise of a record to be its cdf, at a bound, too."""
    [u] = reading.uniforms
    ends = {u: pt.ones(u.type.shape)}
    graphs = rebuild([*reading.noise, *reading.moved_records, reading.log_density], ends)
    noise, moved, log_density = graphs
    return replace(reading, noise=(noise,), moved_records=(moved,), log_density=log_density)


@pytest.mark.long
def test_noise_at_a_bound_that_is_not_drawn_anew_is_detected(censored, monkeypatch):
    fault = twins.with_fault(at_the_end_of_a_jump, monkeypatch)
    assert_disagrees(run(*censored, fault, moves=16))


# A released sum, and one public outcome per record: two kinds of factors, all normal.


@pytest.fixture(scope="module")
def with_outcomes():
    outcomes = np.array([3.9, 1.2, 4.4])
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 1.5)
        x = pm.Normal("record", mu, 1, shape=3)
        pm.Normal("outcome", x, 2.0, observed=outcomes)
        pm.Normal("release", x.sum(), 3.0, observed=0.3)
    cov = np.block(
        [[np.array([[2.25]]), np.full((1, 3), 2.25)], [np.full((3, 1), 2.25), 2.25 + np.eye(3)]]
    )
    design = np.hstack([np.zeros((4, 1)), np.vstack([np.eye(3), np.ones(3)])])
    noise = np.diag([4.0, 4.0, 4.0, 9.0])
    mean, cov, _ = linear_gaussian(np.zeros(4), cov, design, noise, [*outcomes, 0.3])
    return model, ["record"], ["mu"], {"mu": normals(mean, cov)[0]}


@pytest.mark.long
def test_separable_factors_decide_too(with_outcomes):
    assert_agrees(run(*with_outcomes))


@pytest.mark.long
def test_a_separable_factor_left_out_is_detected(with_outcomes, monkeypatch):
    fault = twins.with_fault(twins.without_factor("outcome"), monkeypatch)
    assert_disagrees(run(*with_outcomes, fault, draws=FEW))


# Records with few values, each with a randomised answer: marginalised, but for the noisy total.

ANSWERS = np.array([1, 1, 0, 1, 0])


@pytest.fixture(scope="module")
def randomised():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        truth = pm.Beta("truth", 8, 2)
        x = pm.Bernoulli("record", p, shape=5)
        pm.Bernoulli("answer", pt.switch(pt.eq(x, 1), truth, 1 - truth), observed=ANSWERS)
        pm.Laplace("release", x.sum(), 0.8, observed=3.8)
    grids = np.linspace(1e-9, 1 - 1e-9, 201), np.linspace(1e-9, 1 - 1e-9, 201)
    p, truth = np.meshgrid(*grids, indexing="ij")
    terms = []
    for state in product([0, 1], repeat=5):
        true = np.sum(state == ANSWERS)
        terms.append(
            binom.logpmf(sum(state), 5, p)
            - np.log(comb(5, sum(state)))
            + true * np.log(truth)
            + (5 - true) * np.log1p(-truth)
            + laplace.logpdf(3.8, sum(state), 0.8)
        )
    log_prior = beta.logpdf(p, 2, 3) + beta.logpdf(truth, 8, 2)
    both = marginals(grids, log_prior + logsumexp(terms, axis=0))
    return model, ["record"], ["p", "truth"], dict(zip(("p", "truth"), both, strict=True))


# In every run, their noise is held against answers enumerated (`interweaving/reading/`), and wrong
# laws of them are refused (below).
@pytest.mark.long
def test_records_marginalised_given_what_is_known_of_each(randomised):
    assert_agrees(run(*randomised))


def without_answers(reading):
    """Forget how probable the answers are at the proposed parameters."""
    p, truth = (pt.sigmoid(x) for x in reading.proposed)
    yes = p * truth + (1 - p) * (1 - truth)
    log_density = pt.switch(ANSWERS, pt.log(yes), pt.log1p(-yes)).sum()
    return replace(reading, log_density=reading.log_density - log_density)


@pytest.mark.parametrize(
    "fault",
    [
        # In every run, it is refused (below).
        pytest.param(without_answers, marks=pytest.mark.long),
        # Others are those of the move: no mechanism (above), noise not drawn anew (below).
        pytest.param(twins.with_stale_records, marks=pytest.mark.long),
    ],
    ids=["no answers", "stale sum"],
)
def test_a_fault_in_marginalising_is_detected(randomised, fault, monkeypatch):
    assert_disagrees(run(*randomised, twins.with_fault(fault, monkeypatch), draws=2 * FEW))


@pytest.mark.usefixtures("in_python")
@pytest.mark.parametrize(
    ("case", "fault"),
    [
        ("clipped", twins.without_jacobian_of_the_transform("sigma")),
        ("clipped", twins.with_jacobian_of_the_records("sigma")),
        ("clipped", twins.with_stale_records),
        ("clipped", twins.without_factor("privacy")),
        ("randomised", without_answers),
        ("randomised", twins.without_factor("release")),
    ],
)
def test_a_wrong_law_is_refused_before_anything_is_sampled(case, fault, request, monkeypatch):
    def read(*arguments):
        return fault(read_non_centred(*arguments))

    monkeypatch.setattr(interweave, "read_non_centred", read)
    model, records, parameters, _ = request.getfixturevalue(case)
    with model, pytest.raises(ReadingError, match="can't read the model exactly"):
        InterweaveStep([model[x] for x in parameters], records=[model[x] for x in records])


# Discrete records: their noise is drawn anew, within their step of the cdf.


def noisy_total(prior, law, grid, totals, released, scale):
    """Posterior of a parameter given the noisy sum of discrete records."""
    theta = grid[:, None]
    log_likelihood = logsumexp(law(totals, theta) + laplace.logpdf(released, totals, scale), axis=1)
    return Tabulated(grid, prior(grid) + log_likelihood)


@pytest.fixture(scope="module")
def yes_or_no():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        x = pm.Bernoulli("record", p, shape=6)
        pm.Laplace("release", x.sum(), 1.5, observed=5.2)
    exact = noisy_total(
        lambda p: beta.logpdf(p, 2, 3),
        lambda k, p: binom.logpmf(k, 6, p),
        np.linspace(1e-9, 1 - 1e-9, 2001),
        np.arange(7),
        5.2,
        1.5,
    )
    return model, ["record"], ["p"], {"p": exact}


@pytest.fixture(scope="module")
def counts():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 3, 1.5)
        x = pm.Poisson("record", rate, shape=5)
        pm.Laplace("release", x.sum(), 2.0, observed=17.0)
    exact = noisy_total(
        lambda rate: gamma.logpdf(rate, 3, scale=1 / 1.5),
        lambda k, rate: poisson.logpmf(k, 5 * rate),
        np.linspace(1e-9, 16, 4001),
        np.arange(200),
        17.0,
        2.0,
    )
    return model, ["record"], ["rate"], {"rate": exact}


@pytest.fixture(scope="module")
def categories():
    """Three categories; of the two noisy counts, the exact posterior by enumeration."""
    n, released, scale = 5, np.array([3.8, 0.4, 1.1]), 1.0
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([2.0, 2.5, 3.0]))
        x = pm.Categorical("record", p=p, shape=n)
        pm.Laplace("release", pt.eye(3)[x].sum(axis=0), scale, observed=released)
    tables = np.array([(a, b, n - a - b) for a in range(n + 1) for b in range(n + 1 - a)])
    alpha = np.array([2.0, 2.5, 3.0])
    # Dirichlet-multinomial probability of each table, times the mechanism.
    log_weights = (gammaln(alpha + tables) - gammaln(1 + tables)).sum(axis=1)
    log_weights += laplace.logpdf(released, tables, scale).sum(axis=1)
    weights = np.exp(log_weights - logsumexp(log_weights))
    grid = np.linspace(1e-9, 1 - 1e-9, 2001)
    exact = []
    for k in range(3):
        a = alpha[k] + tables[:, k]
        b = alpha.sum() + n - a
        exact.append(Tabulated(grid, np.log(beta.pdf(grid[:, None], a, b) @ weights)))
    return model, ["record"], ["p"], {"p": exact}


@pytest.mark.long
@pytest.mark.parametrize("case", ["yes_or_no", "counts", "categories"])
def test_discrete_records(case, request):
    assert_agrees(run(*request.getfixturevalue(case)))


@pytest.mark.long
def test_noise_that_is_not_drawn_anew_is_detected(yes_or_no, monkeypatch):
    fault = twins.with_fault(twins.without_randomised_noise, monkeypatch)
    assert_disagrees(run(*yes_or_no, fault))


# Records of a mixture: the component of each is drawn anew, given the record.


@pytest.fixture(scope="module")
def mixture():
    n, released, scale = 4, 3.0, 0.8
    with pm.Model() as model:
        mu = pm.Normal("mu", 1.5, 1)
        share = pm.Beta("share", 2, 3)
        weights = pt.stack([1 - share, share])
        x = pm.NormalMixture("record", weights, pt.stack([0.0, mu]), [0.6, 0.9], shape=n)
        pm.Normal("release", x.sum(), scale, observed=released)
    grids = np.linspace(-3, 6, 301), np.linspace(1e-9, 1 - 1e-9, 201)
    mu, share = np.meshgrid(*grids, indexing="ij")
    terms = [
        binom.logpmf(k, n, share)
        + norm.logpdf(released, k * mu, np.sqrt((n - k) * 0.36 + k * 0.81 + scale**2))
        for k in range(n + 1)
    ]
    log_prior = norm.logpdf(mu, 1.5) + beta.logpdf(share, 2, 3)
    both = marginals(grids, log_prior + logsumexp(terms, axis=0))
    return model, ["record"], ["mu", "share"], dict(zip(("mu", "share"), both, strict=True))


@pytest.fixture(scope="module")
def hurdle():
    """The logarithms of all that aren't 0 are added up, so that their sum is normal."""
    n, released, scales = 4, np.array([2.6, 3.0]), np.array([0.7, 0.8])
    with pm.Model() as model:
        psi = pm.Beta("psi", 2, 2)
        mu = pm.Normal("mu", 0.5, 1)
        with warnings.catch_warnings(action="ignore"):  # PyMC finds no transform
            x = pm.HurdleLogNormal("record", psi, mu, 0.6, shape=n)
        sums = pt.stack([pt.gt(x, 0).sum(), pt.switch(pt.gt(x, 0), pt.log(x), 0).sum()])
        pm.Normal("release", sums, scales, observed=released)
    grids = np.linspace(1e-9, 1 - 1e-9, 201), np.linspace(-5, 6, 301)
    psi, mu = np.meshgrid(*grids, indexing="ij")
    terms = [
        binom.logpmf(k, n, psi)
        + norm.logpdf(released[0], k, scales[0])
        + norm.logpdf(released[1], k * mu, np.sqrt(k * 0.36 + scales[1] ** 2))
        for k in range(n + 1)
    ]
    log_prior = beta.logpdf(psi, 2, 2) + norm.logpdf(mu, 0.5)
    both = marginals(grids, log_prior + logsumexp(terms, axis=0))
    return model, ["record"], ["psi", "mu"], dict(zip(("psi", "mu"), both, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("case", ["mixture", "hurdle"])
def test_records_of_two_kinds(case, request):
    assert_agrees(run(*request.getfixturevalue(case)))


@pytest.mark.long
@pytest.mark.parametrize("case", ["mixture", "hurdle"])
def test_records_whose_kind_is_not_drawn_anew_are_detected(case, request, monkeypatch):
    """A mixture's component is then the likeliest, and a 0 stays one until half of them go."""
    fault = twins.with_fault(twins.without_randomised_noise, monkeypatch)
    assert_disagrees(run(*request.getfixturevalue(case), fault))


# Records that depend on records, positive records, several parameters: Geweke's joint test.


SCALE = 3.0


def linked_model():
    with pm.Model() as model:
        theta = pm.Gamma("theta", 3, 2)
        slope = pm.Normal("slope", 0.5, 1)
        x = pm.Gamma("x", 2, theta, shape=3)
        y = pm.Normal("y", slope * x, 0.5 + theta, shape=3)
        released = pm.Data("released", np.zeros(2))
        pm.Normal("child", slope, 1, observed=0.0)
        # Bounded sums and much noise: a chain that mixes within few iterations.
        sums = pt.stack([pt.clip(x, 0, 2).sum(), pt.clip(x * y, -2, 2).sum()])
        pm.Potential("release", pm.logp(pm.Laplace.dist(sums, SCALE), released))
    return model


def geweke(model, step_type, iterations=8_000, seed=3):
    """Alternate between drawing what was released and stepping; the parameters keep their prior.

    The outcome "child" is a constant, and belongs to the prior of slope.
    """
    rng = np.random.default_rng(seed)
    with model:
        sweep = DapperStep([model["x"], model["y"]])
        step = step_type([model["theta"], model["slope"]], records=[model["x"], model["y"]])
    for each in (sweep, step):
        each.setup_chain(rng.spawn(1)[0], tune=1_000, draws=iterations)
    point = model.initial_point()
    draws = np.empty((iterations + 1_000, 2))
    for i in range(len(draws)):
        x, y = np.exp(point["x_log__"]), point["y"]
        sums = np.array([np.clip(x, 0, 2).sum(), np.clip(x * y, -2, 2).sum()])
        released = sums + rng.laplace(scale=SCALE, size=2)
        model["released"].set_value(released)
        for each in (sweep, step):
            each._given.data.values = [released]
            point, _ = each.step(point)
        draws[i] = np.exp(point["theta_log__"]), point["slope"]
    return draws[1_000:]


class Prior:
    def __init__(self, law):
        self.mean, self.sd, self.quantile = law.mean(), law.std(), law.ppf


def prior_agreement(draws):
    # N(0.5, 1) times the factor of child, N(0 | slope, 1).
    laws = gamma(3, scale=1 / 2), norm(0.25, np.sqrt(0.5))
    chains = draws.reshape(4, -1, 2)
    assert min(smallest_ess(chains[..., k]) for k in range(2)) > 500
    z = [z_scores(chains[..., k], Prior(law)) for k, law in enumerate(laws)]
    return max(abs(value) for each in z for value in each.values())


# With InterweaveStep and its twin in every run: clipped records above.
@pytest.mark.long
def test_parameters_keep_their_prior_if_releases_are_drawn_anew():
    assert prior_agreement(geweke(linked_model(), InterweaveStep)) < 4


@pytest.mark.long
@pytest.mark.parametrize(
    "fault",
    [twins.without_jacobian_of_the_transform("theta"), twins.without_factor("child")],
    ids=["no jacobian of the transform", "no factor of a child"],
)
def test_a_fault_changes_the_prior(fault, monkeypatch):
    assert prior_agreement(geweke(linked_model(), twins.with_fault(fault, monkeypatch))) > 4


# A hierarchy: groups whose spread is a parameter follow it, besides the records.


@pytest.fixture(scope="module")
def groups():
    n, noise, released = 3, 2.0, np.array([4.0, -1.0, 2.5, 0.5, -3.0])
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3, 3)
        of_group = pm.Normal("of_group", 0, tau, shape=5)
        x = pm.Normal("record", of_group[:, None], 1, shape=(5, n))
        GaussianMechanism(noise).observe("privacy", x.sum(axis=1), released=released)
    grid = np.linspace(1e-9, 8, 1_600)
    sd = np.sqrt(n**2 * grid**2 + n + noise**2)
    log_likelihood = norm.logpdf(released[:, None], 0, sd).sum(axis=0)
    return model, {"tau": Tabulated(grid, gamma.logpdf(grid, 3, scale=1 / 3) + log_likelihood)}


@pytest.mark.long
def test_groups_with_unknown_spread(groups, monkeypatch):
    """A fault in the groups' move shows, though NUTS moves the same parameter."""
    model, exact = groups
    with_jacobian = twins.with_jacobian_of_the_records("tau")
    steps = assign_steps(model=model)
    assert [x.name for x in steps[-1].vars] == ["tau_log__"]

    def sampled(step_type, draws):
        with model:
            of_groups = step_type([model["tau"]], records=[model["of_group"]], moves=3)
        return compare(model, [*steps[:-1], of_groups], exact, draws=draws)

    assert_agrees(sampled(InterweaveStep, 3_000))
    assert_disagrees(sampled(twins.with_fault(with_jacobian, monkeypatch), FEW))


def of_walk():
    with pm.Model() as model:
        tau = pm.Gamma("tau", 3, 3)
        walk = pm.GaussianRandomWalk("t", sigma=tau, init_dist=pm.Normal.dist(), shape=5)
    times, grid = np.arange(5), np.linspace(1e-9, 8, 1_600)
    covariances = 1 + grid[:, None, None] ** 2 * np.minimum(times, times[:, None])
    return model, walk, grid, gamma.logpdf(grid, 3, scale=1 / 3), covariances


def of_autoregression():
    with pm.Model() as model:
        rho = pm.Normal("rho", 0.3, 0.5)
        series = pm.AR("t", rho[None], 2, init_dist=pm.Normal.dist(), shape=5)
    grid = np.linspace(-3, 4, 1_600)
    innovations = np.linalg.inv(np.eye(5) - grid[:, None, None] * np.eye(5, k=-1))
    scales = np.diag([1.0, 4, 4, 4, 4])
    covariances = innovations @ scales @ innovations.transpose(0, 2, 1)
    return model, series, grid, norm.logpdf(grid, 0.3, 0.5), covariances


@pytest.mark.long
@pytest.mark.parametrize("build", [of_walk, of_autoregression])
def test_series_with_unknown_scale_or_coefficient(build, monkeypatch):
    model, series, grid, log_prior, covariances = build()
    n, noise, released = 3, 2.0, np.array([4.0, 9.0, 14.0, 18.0, 25.0])
    with model:
        x = pm.Normal("record", series[:, None], 1, shape=(5, n))
        GaussianMechanism(noise).observe("privacy", x.sum(axis=1), released=released)
    of_release = n**2 * covariances + (n + noise**2) * np.eye(5)
    log_likelihood = [multivariate_normal.logpdf(released, cov=each) for each in of_release]
    [parameter] = [rv for rv in model.free_RVs if rv.name in ("tau", "rho")]
    exact = {parameter.name: Tabulated(grid, log_prior + log_likelihood)}
    steps = assign_steps(model=model)
    assert [x.vars for x in steps[-1:]] == [[model.rvs_to_values[parameter]]]

    def sampled(step_type, draws):
        with model:
            of_series = step_type([parameter], records=[series], moves=3)
        return compare(model, [*steps[:-1], of_series], exact, draws=draws)

    assert_agrees(sampled(InterweaveStep, 3_000))
    stale = twins.with_fault(twins.with_stale_records, monkeypatch)
    assert_disagrees(sampled(stale, FEW))
