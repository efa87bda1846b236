"""An unknown number of records: whole chains against enumeration and algebra, and Geweke's test.

Parameters are drawn given the present records alone, and the others are drawn anew before anything
looks at them. The same tests must fail if that is done in another order, and if a step has a fault.
"""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import special, stats

import pymc_dapper as pmd
from pymc_dapper.sizes import step as sizes
from pymc_dapper.sizes.step import SizeStep
from tests.monte_carlo import _mcse, smallest_ess, z_scores
from tests.sizes.models import bernoulli

ROOM = 8
RELEASED = (4.2, 2.6)
DRAWS = 15_000


def enumerated():
    """Weights of all numbers n and totals t, shape (n, t), with the records summed out."""
    n, t = np.arange(ROOM + 1)[:, None], np.arange(ROOM + 1)
    log_w = -np.abs(RELEASED[0] - n) / 1.5 - np.abs(RELEASED[1] - t)
    with np.errstate(divide="ignore"):
        log_w = log_w + np.log(special.comb(n, t))
    possible = t <= n
    log_w = log_w + special.betaln(2 + t, 1 + np.where(possible, n - t, 0))
    w = np.where(possible, np.exp(log_w), 0.0)
    return w / w.sum()


def worst_z(posterior):
    """Largest distance from the enumerated posterior, in standard errors of Monte Carlo."""
    w = enumerated()
    n, t = np.arange(ROOM + 1)[:, None], np.arange(ROOM + 1)
    a, b = 2 + t, np.maximum(1 + n - t, 0)
    moments = {1: a / (a + b), 2: a * (a + 1) / ((a + b) * (a + b + 1))}
    draws_n, draws_p = posterior["n"].values, posterior["p"].values
    quantities = [(draws_n == k, w[k].sum()) for k in range(ROOM + 1)]
    quantities += [(draws_p**k, (w * moment).sum()) for k, moment in moments.items()]
    quantities.append((draws_n * draws_p, (w * n * moments[1]).sum()))
    return max(abs(_z(draws, exact)) for draws, exact in quantities)


def _z(draws, exact):
    draws = np.asarray(draws, dtype=float)
    if np.ptp(draws) == 0:  # what never came, or always
        return 0.0 if np.isclose(draws.mean(), exact, atol=1 / draws.size) else np.inf
    return (draws.mean() - exact) / _mcse(draws, "mean")


def run(model, steps=None, draws=DRAWS, **options):
    """Sample with the steps that are chosen, or with these."""
    with model:
        steps = pmd.assign_steps(progressbar=False, **options) if steps is None else steps
        return pm.sample(
            draws, tune=500, chains=2, cores=1, step=steps, random_seed=5, progressbar=False
        ).posterior


@pytest.fixture(scope="module")
def model():
    return bernoulli(ROOM, RELEASED)


@pytest.fixture(scope="module")
def steps(model):
    """ConjugateStep given present records, DapperStep, SizeStep."""
    chosen = pmd.assign_steps(model=model, interweave=False, progressbar=False)
    assert [type(x).__name__ for x in chosen] == ["ConjugateStep", "DapperStep", "SizeStep"]
    return chosen


@pytest.mark.long
def test_records_and_their_number_are_enumerated(model, steps):
    posterior = run(model, steps)
    assert worst_z(posterior) < 4
    assert smallest_ess(posterior["p"].values) > 1_000


@pytest.mark.long
@pytest.mark.parametrize(
    "options", [{}, {"conjugate": False}, {"conjugate": False, "interweave": False}]
)
def test_with_other_steps_of_parameters_too(model, options):
    assert worst_z(run(model, **options)) < 4


@pytest.mark.long
def test_parameters_between_the_records_and_their_number_are_caught(model, steps):
    of_p, records, size = steps
    assert worst_z(run(model, [records, of_p, size])) > 4


@pytest.mark.long
def test_given_all_records_the_order_does_not_matter(model, steps):
    _, records, size = steps
    with model:
        of_p = pmd.ConjugateStep([model["p"]])
    assert worst_z(run(model, [records, of_p, size])) < 4


def shifted(log_weights, u, last, draw=sizes.draw_index.py_func):
    n, at_the_end = draw(log_weights, u, last)
    return min(n + 1, ROOM), at_the_end


def ends_early(log_weights, u, last, draw=sizes.draw_index.py_func):
    return draw(log_weights[:-1], u, last)


@pytest.mark.long
@pytest.mark.parametrize("fault", [shifted, ends_early])
def test_bounds_that_are_off_by_one_are_caught(model, steps, fault, monkeypatch):
    monkeypatch.setattr(sizes, "kept_on_disk", lambda kernel: fault)
    assert worst_z(run(model, steps)) > 4


@pytest.mark.long
def test_sums_of_the_old_order_are_caught(model, steps, monkeypatch):
    def update(size, point, rng):
        before = dict(point)
        name, n = size.reading.size.name, int(point[size.reading.size.name])
        size._shuffle(point, n, rng)
        [log_weights] = size._log_weights(before["x"], *size.given(before))
        point[name] = np.array(sizes.draw_index.py_func(log_weights, rng.random(), 0)[0])
        return 0.0

    monkeypatch.setattr(sizes._Size, "update", update)
    assert worst_z(run(model, steps)) > 4


@pytest.mark.long
def test_a_prior_of_the_number_that_is_dropped_is_caught():
    """The same model with a prior that matters, and its weights without it."""
    with pm.Model() as poisson:
        n = pm.Binomial("n", ROOM, 0.2)
        p = pm.Beta("p", 2, 1)
        x = pm.Bernoulli("x", p, shape=ROOM)
        # With the prior's reciprocal in the mechanism, the posterior is that of a uniform one.
        known = np.log(stats.binom.pmf(np.arange(ROOM + 1), ROOM, 0.2))
        pm.Potential("uniform", -pt.as_tensor(known)[n])
        pmd.LaplaceMechanism(1.5).potential("count", n, released=RELEASED[0])
        total = (pmd.present(n, ROOM) * x).sum()
        pmd.LaplaceMechanism(1.0).potential("total", total, released=RELEASED[1])
    chosen = pmd.assign_steps(model=poisson, interweave=False, progressbar=False)
    assert worst_z(run(poisson, chosen)) < 4
    [size] = next(step for step in chosen if isinstance(step, SizeStep))._sizes
    right = size._log_weights
    size._log_weights = lambda *arguments: [right(*arguments)[0] - known]
    assert worst_z(run(poisson, chosen)) > 4


# Normal records with an unclamped sum, which is normal given their number: by algebra.

SUM_NOISE, PRIOR_SD = 2.0, 1.5


@pytest.fixture(scope="module")
def sums():
    with pm.Model() as model:
        n = pm.Poisson("n", 12)
        mu = pm.Normal("mu", 0.5, PRIOR_SD)
        x = pm.Normal("x", mu, 1, shape=40)
        there = pmd.present(n, 40)
        pmd.GaussianMechanism(sigma=SUM_NOISE).potential(
            "total", pt.switch(there, x, 0).sum(), released=11.0
        )
        pmd.LaplaceMechanism(scale=3.0).potential("count", n, released=10.4)
    return model


@pytest.mark.long
@pytest.mark.parametrize("options", [{}, {"interweave": False}, {"conjugate": False}])
def test_normal_records_agree_with_algebra(sums, options):
    n = np.arange(41)
    variance = n + SUM_NOISE**2
    log_w = stats.poisson.logpmf(n, 12) - np.abs(10.4 - n) / 3
    log_w += stats.norm.logpdf(11.0, 0.5 * n, np.sqrt(variance + (n * PRIOR_SD) ** 2))
    w = np.exp(log_w - special.logsumexp(log_w))
    precision = 1 / PRIOR_SD**2 + n**2 / variance
    mean = (0.5 / PRIOR_SD**2 + n * 11.0 / variance) / precision
    posterior = run(sums, **options)
    draws_n, mu = posterior["n"].values, posterior["mu"].values
    exact = [(draws_n == k, w[k]) for k in np.flatnonzero(w > 0.01)]
    exact += [
        (mu, w @ mean),
        (mu**2, w @ (mean**2 + 1 / precision)),
        (mu * draws_n, w @ (mean * n)),
    ]
    assert max(abs(_z(*pair)) for pair in exact) < 4
    assert min(smallest_ess(x) for x in (mu, draws_n)) > 1_000


# Geweke's joint test: what is released is drawn anew in each iteration, and the prior stays.

SCALE = np.array([2.0, 4.0])


def joint_model():
    with pm.Model() as model:
        rate = pm.Gamma("rate", 5, 1)
        n = pm.Poisson("n", rate)
        slope = pm.Normal("slope", 0.5, 1)
        precision = pm.Gamma("precision", 3, 2)
        x = pm.Normal("x", 1, 1, shape=30)
        y = pm.Normal("y", slope * x, 1 / pt.sqrt(precision), shape=30)
        released = pm.Data("released", np.zeros(2))
        total = pt.switch(pmd.present(n, 30), pt.clip(x * y, -3, 3), 0).sum()
        seen = pt.stack([n.astype("float64"), total])
        pm.Potential("release", pm.logp(pm.Laplace.dist(seen, SCALE), released))
    return model


def geweke(reorder=lambda steps: steps, iterations=12_000, seed=3):
    model, rng = joint_model(), np.random.default_rng(seed)
    steps = reorder(pmd.assign_steps(model=model, progressbar=False))
    for step in steps:
        step.setup_chain(rng.spawn(1)[0], tune=1_000, draws=iterations)
    point, draws = model.initial_point(), np.empty((iterations + 1_000, 4))
    for i in range(len(draws)):
        n, x, y = int(point["n"]), point["x"], point["y"]
        seen = np.array([n, np.clip(x * y, -3, 3)[:n].sum()])
        released = seen + rng.laplace(scale=SCALE)
        model["released"].set_value(released)
        for step in steps:
            for given in step._givens:
                if given.data.values:
                    given.data.values = [released]
            point, _ = step.step(point)
        rate, precision = np.exp(point["rate_log__"]), np.exp(point["precision_log__"])
        draws[i] = rate, precision, point["slope"], point["n"]
    return draws[1_000:]


class Prior:
    def __init__(self, law):
        self.mean, self.sd, self.quantile = law.mean(), law.std(), law.ppf


LAWS = stats.gamma(5), stats.gamma(3, scale=1 / 2), stats.norm(0.5, 1)


def prior_agreement(draws):
    chains = draws.reshape(4, -1, 4)
    z = [
        abs(v) for k, law in enumerate(LAWS) for v in z_scores(chains[..., k], Prior(law)).values()
    ]
    number = stats.nbinom(5, 0.5)
    z += [abs(_z(chains[..., 3] == k, number.pmf(k))) for k in range(12)]
    return max(z)


@pytest.mark.long
def test_all_keep_their_prior_if_releases_are_drawn_anew():
    draws = geweke()
    assert min(smallest_ess(draws.reshape(4, -1, 4)[..., k]) for k in range(4)) > 500
    assert prior_agreement(draws) < 4


class NotDrawnAnew:
    """DapperStep that leaves the records that aren't there as they are."""

    def __init__(self, step, records):
        self._step, self._records = step, records
        self._givens, self.setup_chain = step._givens, step.setup_chain

    def step(self, point):
        new, stats = self._step.step(point)
        there = np.arange(len(point[self._records[0]])) < point["n"]
        for name in self._records:
            new[name] = np.where(there, new[name], point[name])
        return new, stats


def stale(steps):
    return [NotDrawnAnew(x, ["x", "y"]) if isinstance(x, pmd.DapperStep) else x for x in steps]


def without_prior(steps):
    [size] = next(step for step in steps if isinstance(step, SizeStep))._sizes
    right, n = size._log_weights, np.arange(31)

    def weights(*arguments):
        names = size.given.names
        rate = np.exp(arguments[len(size._records) + names.index("rate_log__")])
        return [right(*arguments)[0] - stats.poisson.logpmf(n, rate)]

    size._log_weights = weights
    return steps


def given_all(steps):
    """Parameters are drawn given the absent records, too."""
    model = steps[0]._conditionals[0].model
    names = [[x.name for x in step.vars] for step in steps if isinstance(step, pmd.ConjugateStep)]
    of_value = {value.name: rv for value, rv in model.values_to_rvs.items()}
    new = [pmd.ConjugateStep([of_value[x] for x in each], model=model) for each in names]
    rest = [x for x in steps if not isinstance(x, pmd.ConjugateStep | pmd.InterweaveStep)]
    return [*new, *stale(rest)]


@pytest.mark.long
@pytest.mark.parametrize("fault", [without_prior, given_all])
def test_faults_are_told_apart(fault):
    assert prior_agreement(geweke(fault)) > 4
