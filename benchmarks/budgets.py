"""Effective draws at privacy budgets from 0.01 to 1,000, with InterweaveStep and without.

Seven models, eleven budgets:

(a) the mean of 100 clamped normals with Laplace noise
(b) the same, mean and standard deviation both unknown
(c) example 3 of the dapper paper: a regression from nine noisy sums
(d) example 2 of the dapper paper: a table of counts with discrete Gaussian noise
(e) a logistic regression with a public design and noisy sufficient statistics
(f) means and covariances of 4 variables of 200 records, from all 14 noisy sums
(g) mean and standard deviation of 1,000 normals, from noisy counts below 20 quantiles

Without: `DapperStep` and the step for the parameters that `pmd.assign_steps` chooses. With: the
same, and `InterweaveStep`. Drawn anew, with ``--anew`` and in the first five: another move takes
its place, which proposes parameters and all records anew (see `Refresh`).

    PAGE=docs/evidence/small-budgets.md
    python benchmarks/budgets.py --page $PAGE [--chains 4] [--models abcdefg]
    python benchmarks/budgets.py --page $PAGE --anew      the other move, too
    python benchmarks/budgets.py --page $PAGE --nutpie    beside nutpie, only
    python benchmarks/budgets.py --page $PAGE --parts     where time goes, only
    python benchmarks/budgets.py --page $PAGE --redraw    the figure only

Writes the page's tables, with rows for models that were run, and saves docs/figures/budgets.png.
"""

import argparse
import json
import logging
import warnings
from functools import cached_property, partial
from pathlib import Path
from time import process_time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
from _models import example
from arviz_stats.base import array_stats
from pymc.step_methods.compound import BlockedStep
from scipy import stats

import pymc_dapper as pmd
from pymc_dapper.interweaving.step import InterweaveStep

markdown, save = example("_markdown"), example("_figures").save

ROOT = Path(__file__).parents[1]
EPSILONS = [1000, 300, 100, 30, 10, 3, 1, 0.3, 0.1, 0.03, 0.01]
TITLES = {
    "a": "(a) mean",
    "b": "(b) mean and sd",
    "c": "(c) regression",
    "d": "(d) table of counts",
    "e": "(e) logistic regression",
    "f": "(f) covariances",
    "g": "(g) quantile counts",
}


class Case:
    """A model whose budget and released values are shared data, and how to release anew.

    Attributes
    ----------
    parameters, records : list of str
        Names of the variables.
    statistic : ndarray
        The confidential statistic.
    scale : callable
        Scale of the noise at a budget, of each entry of the statistic.
    noise : ndarray
        Noise of scale 1, the same at all budgets.
    draw : callable, optional
        Records from their prior, given the parameters' values on the unconstrained scale.
    """

    def __init__(self, model, parameters, records, statistic, scale, noise, draw=None):
        self.model, self.parameters, self.records = model, parameters, records
        self.statistic, self.scale, self.noise = np.asarray(statistic), scale, noise
        self.draw = draw

    @cached_property
    def _sums(self):
        model = self.model
        [sums] = model.replace_rvs_by_values([model["sums"]])
        values = [model.rvs_to_values[model[name]] for name in self.records]
        return pytensor.function(values, sums, mode="FAST_COMPILE")

    def sums_of(self, posterior):
        """The statistic at each draw of the records, shape (draws, entries)."""
        records = [posterior[name].values[0] for name in self.records]
        return np.array([np.ravel(self._sums(*each)) for each in zip(*records, strict=True)])

    def release(self, epsilon):
        scale = self.scale(epsilon)
        released = self.statistic + scale * self.noise
        if self.statistic.dtype.kind == "i":
            released = np.round(released).astype(int)
        self.model.set_data("scale", scale)
        self.model.set_data("released", released)


def normal(name, mean, sd, shape, centred):
    """Normal records; or their noise, and they as a function of it."""
    if centred:
        return pm.Normal(name, mean, sd, shape=shape)
    return pm.Deterministic(name, mean + sd * pm.Normal(f"{name}_noise", shape=shape))


def normal_sums(known_sd, centred=True):
    """100 normals, clamped to [-3, 3]: their noisy sum; if the sd is unknown, that of squares."""
    n = 100
    rng = np.random.default_rng(1)
    clamped = np.clip(rng.normal(0.3, 1, n), -3, 3)
    # The budget is divided evenly among the sums; each has its own sensitivity.
    sensitivity = np.array([6.0]) if known_sd else 2 * np.array([6.0, 9.0])
    powers = np.arange(1, len(sensitivity) + 1)
    with pm.Model() as model:
        scale = pm.Data("scale", sensitivity)
        released = pm.Data("released", np.zeros(len(powers)))
        mu = pm.Normal("mu", 0, 1)
        sd = 1.0 if known_sd else pt.sqrt(pm.InverseGamma("variance", 3, 2))
        x = normal("x", mu, sd, n, centred)
        sums = pt.stack([(pt.clip(x, -3, 3) ** int(k)).sum() for k in powers])
        sums = pm.Deterministic("sums", sums)
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), released))
    parameters = ["mu"] if known_sd else ["mu", "variance"]
    statistic = [(clamped**k).sum() for k in powers]
    noise = np.random.default_rng(2).laplace(size=len(powers))

    def draw(rng, mu, log_variance=0.0):
        return {"x": mu + np.exp(log_variance / 2) * rng.standard_normal(n)}

    return Case(model, parameters, ["x"], statistic, lambda eps: sensitivity / eps, noise, draw)


def regression(centred=True):
    """Noisy sums of example 3, clamped to [-10, 10] and divided by 10; the paper's budget is 10."""
    data = json.loads((ROOT / "examples" / "data" / "regression.json").read_text(encoding="utf-8"))
    confidential = np.array(data["confidential"])
    n = len(confidential)
    with pm.Model() as model:
        scale, released = pm.Data("scale", 1.5), pm.Data("released", np.zeros(9))
        b = pm.Normal("b", 0, 2, shape=3)
        x = normal("x", np.array([0.9, -1.17]), 1, (n, 2), centred)
        y = normal("y", b[0] + x @ b[1:], np.sqrt(2), n, centred)
        sums = nine_sums(pt.clip(y / 10, -1, 1), pt.clip(x / 10, -1, 1), pt.stack)
        sums = pm.Deterministic("sums", sums)
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), released))
    scaled = np.clip(confidential / 10, -1, 1)
    statistic = nine_sums(scaled[:, 0], scaled[:, 1:], np.stack)
    noise = np.random.default_rng(2).laplace(size=9)

    def draw(rng, b):
        x = np.array([0.9, -1.17]) + rng.standard_normal((n, 2))
        return {"x": x, "y": b[0] + x @ b[1:] + np.sqrt(2) * rng.standard_normal(n)}

    return Case(model, ["b"], ["x", "y"], statistic, lambda eps: 15 / eps, noise, draw)


def nine_sums(y, x, stack):
    u, v = x[:, 0], x[:, 1]
    return stack([part.sum() for part in (y, u * y, v * y, y**2, u, u**2, v, u * v, v**2)])


def table():
    """Four noisy counts; the paper's sigma is taken as that at a budget of 1."""
    data = json.loads((ROOT / "examples" / "data" / "admissions.json").read_text(encoding="utf-8"))
    with pm.Model() as model:
        sigma, released = pm.Data("scale", 1.0), pm.Data("released", np.zeros(4, dtype=int))
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p=p, shape=data["n"])
        counts = pm.Deterministic("sums", pmd.statistics.counts(record, 4).value)
        law = pmd.DiscreteGaussian.dist(mu=counts, sigma=sigma)
        pm.Potential("privacy", pm.logp(law, released).sum())
    noise = np.random.default_rng(2).normal(size=4)

    def draw(rng, on_simplex):
        p = np.exp(np.append(on_simplex, -on_simplex.sum()))
        return {"record": rng.choice(4, data["n"], p=p / p.sum())}

    statistic = data["confidential"]
    return Case(model, ["p"], ["record"], statistic, lambda eps: data["sigma"] / eps, noise, draw)


def logistic_regression():
    """Four coefficients, 200 records; the noisy statistic is the design's product with y."""
    n = 200
    rng = np.random.default_rng(1)
    design = np.column_stack([np.ones(n), rng.uniform(-1, 1, (n, 3))])
    true = rng.random(n) < 1 / (1 + np.exp(-design @ np.array([-0.5, 1.0, -1.0, 0.5])))
    with pm.Model() as model:
        scale, released = pm.Data("scale", 4.0), pm.Data("released", np.zeros(4))
        b = pm.Normal("b", 0, 2, shape=4)
        y = pm.Bernoulli("y", logit_p=design @ b, shape=n)
        sums = pm.Deterministic("sums", design.T @ y)
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), released))
    noise = np.random.default_rng(2).laplace(size=4)

    def draw(rng, b):
        return {"y": (rng.random(n) < 1 / (1 + np.exp(-design @ b))).astype(int)}

    return Case(model, ["b"], ["y"], design.T @ true, lambda eps: 4 / eps, noise, draw)


def covariances(centred=True):
    """200 records, clamped to [-4, 4] and divided by 4: their sums, and all sums of products."""
    n, dim = 200, 4
    rng = np.random.default_rng(1)
    records = rng.multivariate_normal([0.3, 0, -0.3, 0.5], 0.5 * np.eye(dim) + 0.5, n)
    first, second = np.tril_indices(dim)
    sensitivity = 2.0 * dim + dim + 2.0 * len(first[first > second])
    with pm.Model() as model:
        scale, released = pm.Data("scale", 1.0), pm.Data("released", np.zeros(dim + len(first)))
        mu = pm.Normal("mu", 0, 1, shape=dim)
        sd = pm.HalfNormal.dist(2)
        chol, _, _ = pm.LKJCholeskyCov("chol", eta=2, n=dim, sd_dist=sd, compute_corr=True)
        if centred:
            x = pm.MvNormal("x", mu, chol=chol, shape=(n, dim))
        else:
            x = pm.Deterministic("x", mu + pm.Normal("noise", shape=(n, dim)) @ chol.T)
        scaled = pt.clip(x / 4, -1, 1)
        products = scaled[:, first] * scaled[:, second]
        sums = pt.concatenate([scaled.sum(axis=0), products.sum(axis=0)])
        sums = pm.Deterministic("sums", sums)
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), released))
    scaled = np.clip(records / 4, -1, 1)
    statistic = np.append(scaled.sum(axis=0), (scaled[:, first] * scaled[:, second]).sum(axis=0))
    noise = np.random.default_rng(2).laplace(size=len(statistic))
    return Case(model, ["mu", "chol"], ["x"], statistic, lambda eps: sensitivity / eps, noise)


def quantile_counts():
    """1,000 normals: how many are below each of 20 points; a record may change all counts."""
    n, points = 1_000, np.linspace(-2, 2, 20)
    records = np.random.default_rng(1).normal(0.3, 1, n)
    with pm.Model() as model:
        scale, released = pm.Data("scale", 1.0), pm.Data("released", np.zeros(20))
        mu = pm.Normal("mu", 0, 1)
        variance = pm.InverseGamma("variance", 3, 2)
        x = pm.Normal("x", mu, pt.sqrt(variance), shape=n)
        sums = pm.Deterministic("sums", (x[:, None] <= points).sum(axis=0))
        pm.Potential("privacy", pm.logp(pm.Laplace.dist(sums, scale), released))
    statistic = (records[:, None] <= points).sum(axis=0).astype(float)
    noise = np.random.default_rng(2).laplace(size=20)
    return Case(model, ["mu", "variance"], ["x"], statistic, lambda eps: 20 / eps, noise)


CASES = {
    "a": partial(normal_sums, known_sd=True),
    "b": partial(normal_sums, known_sd=False),
    "c": regression,
    "d": table,
    "e": logistic_regression,
    "f": covariances,
    "g": quantile_counts,
}


class Refresh(BlockedStep):
    """Another move: parameters from a fitted t distribution, and all records anew given them.

    Accepted by the ratio of mechanism times prior of the parameters over their proposal density: a
    pseudo-marginal move whose one particle is a whole data set. Eight proposals per iteration, as
    many as InterweaveStep makes moves at most.
    """

    name = "refresh"
    stats_dtypes_shapes = {"refresh_accept": (np.float64, [])}  # noqa: RUF012

    def __init__(self, vars, *, case, model=None, rng=None, blocked=True):
        self.vars = [model.rvs_to_values[model[name]] for name in case.parameters]
        self.case, self.blocked, self.rng = case, blocked, np.random.default_rng(rng)
        factors = [*(model[name] for name in case.parameters), model["privacy"]]
        self.log_density = model.compile_logp(factors)

    def setup_chain(self, rng, tune, draws):
        super().setup_chain(rng, tune, draws)
        self.tune_steps, self.seen, self.proposal = tune, [], None

    def step(self, point):
        shapes = [point[value.name].shape for value in self.vars]
        theta = np.concatenate([np.ravel(point[value.name]) for value in self.vars])
        if len(self.seen) < self.tune_steps:
            self.seen.append(theta)
            if len(self.seen) == self.tune_steps:
                seen = np.array(self.seen[self.tune_steps // 2 :])
                shape = np.atleast_2d(np.cov(seen.T))
                self.proposal = stats.multivariate_t(seen.mean(axis=0), shape, df=4, seed=self.rng)
        if self.proposal is None:
            return point, [{"refresh_accept": np.nan}]
        weight, accepted = self.log_density(point) - self.proposal.logpdf(theta), 0
        for _ in range(8):
            new = np.atleast_1d(self.proposal.rvs())
            splits = np.split(new, np.cumsum([int(np.prod(shape)) for shape in shapes])[:-1])
            values = [part.reshape(shape) for part, shape in zip(splits, shapes, strict=True)]
            named = {x.name: value for x, value in zip(self.vars, values, strict=True)}
            proposed = {**point, **named, **self.case.draw(self.rng, *values)}
            new_weight = self.log_density(proposed) - self.proposal.logpdf(new)
            if -self.rng.standard_exponential() < new_weight - weight:
                point, weight, accepted = proposed, new_weight, accepted + 1
        return point, [{"refresh_accept": accepted / 8}]


def measure(case, steps, draws, tune, chains=1):
    """Effective draws of the slowest parameter and sum, per 1,000 iterations and per CPU second.

    Means over chains, each tuned by itself; the least; and the chosen numbers of moves.
    """
    each = [one_chain(case, steps, draws, tune, seed) for seed in range(1, chains + 1)]
    found = {key: [chain[key] for chain in each] for key in each[0]}
    slowest = np.array(found["slowest"])
    return {
        "per_1000": 1000 * slowest.mean() / draws,
        "least": 1000 * slowest.min() / draws,
        "per_second": slowest.sum() / sum(found["seconds"]),
        "sum_per_1000": 1000 * np.mean(found["slowest_sum"]) / draws,
        "moves": found["moves"],
        "affine": found["affine"],
        "sweeps": found["sweeps"],
        "long_memory": sum(found["long_memory"]),
    }


def one_chain(case, steps, draws, tune, seed, sums=True):
    """Sample a chain: effective draws, seconds, and what tuning chose.

    The time is from the first draw after tuning to the last: without what PyMC does of them then.
    Without sums, records aren't recorded.
    """
    own = steps.methods if isinstance(steps, pmd.GibbsStep) else steps
    TOLD.clear()
    times = []
    with case.model:
        idata = pm.sample(
            draws=draws,
            tune=tune,
            chains=1,
            cores=1,
            step=steps,
            var_names=[*case.parameters, *(case.records if sums else [])],
            callback=noting(times, tune, draws),
            random_seed=seed,
            progressbar=False,
            compute_convergence_checks=False,
        )
    posterior = idata.posterior
    # With the noise held fixed, and affine group moves.
    moves = [step.tuner.numbers for step in own if isinstance(step, InterweaveStep)]
    return {
        "slowest": min(effective_draws(posterior[name].values[0]) for name in case.parameters),
        "slowest_sum": effective_draws(case.sums_of(posterior)) if sums else np.nan,
        "seconds": times[1] - times[0],
        "moves": sum(moves[0][:1]) if moves else 0,
        "affine": sum(moves[0][1:]) if moves else 0,
        # Of records that walk; 0 if they are drawn anew.
        "sweeps": next(step.walks.number for step in own if isinstance(step, pmd.DapperStep)),
        "long_memory": bool(TOLD),
    }


def noting(times, tune, draws):
    """Callback that notes the CPU time at the first draw after tuning, and at the last one."""

    def note(trace, draw):
        if draw.draw_idx in (tune, tune + draws - 1):
            times.append(process_time())

    return note


def effective_draws(values):
    """Effective draws of the slowest entry that isn't constant."""
    columns = values.reshape(1, len(values), -1)
    sizes = [
        float(array_stats.ess(columns[..., k], chain_axis=0, draw_axis=1, method="bulk"))
        for k in range(columns.shape[-1])
        if np.ptp(columns[..., k]) > 0
    ]
    return min(sizes, default=np.nan)


def compare(name, draws, tune, anew, chains):
    """All budgets of one model."""
    case = CASES[name]()
    case.release(1)
    model = case.model
    parameters, records = ([model[x] for x in group] for group in (case.parameters, case.records))
    with model:
        # The parameters' own step, without what assign_steps may add for small budgets.
        plain = [step for step in pmd.assign_steps(records) if not isinstance(step, InterweaveStep)]
        ways = {
            "without": plain,
            "with": [*plain, InterweaveStep(parameters, records=records, when_needed=True)],
        }
        if anew and case.draw is not None:
            ways["refresh"] = [*plain, Refresh(parameters, case=case, model=model)]
    results = []
    for epsilon in EPSILONS:
        case.release(epsilon)
        row = {way: measure(case, steps, draws, tune, chains) for way, steps in ways.items()}
        results.append({"model": name, "epsilon": epsilon, **row})
        print(" | ".join(table_row(results[-1])), flush=True)
    return results


PEER_BUDGETS = [1000, 100, 10, 1, 0.3, 0.1]
OUR_DRAWS = 20_000
"""Enough that blocks of iterations are long."""
LONG_ENOUGH = 0.3
"""CPU seconds of draws by which nutpie is timed; in fewer, tuning hides them."""
DIFFERENTIABLE = "abcf"
"""Models whose log-density has a gradient in the records almost everywhere, and no jumps."""


def compare_with_nutpie(name, draws, tune):
    """NUTS in Rust on all records at once, of a model as written and with the records' noise."""
    import nutpie

    options = {"tune": tune, "chains": 1, "cores": 1, "seed": 1, "save_warmup": False}
    ways = {}
    for centred in (True, False):
        case = CASES[name](centred=centred)
        case.release(1)
        ways[centred] = case, nutpie.compile_pymc_model(case.model, var_names=case.parameters)
    own, steps = ways[True][0], None
    rows = []
    for epsilon in PEER_BUDGETS:
        found = []
        for case, compiled in ways.values():
            case.release(epsilon)
            data = {x: case.model[x].get_value() for x in ("scale", "released")}
            at_budget = compiled.with_data(**data)

            def sample(draws, at_budget=at_budget):
                began = process_time()
                idata = nutpie.sample(at_budget, draws=draws, progress_bar=False, **options)
                return idata, process_time() - began

            _, tuning = sample(1)
            seconds, n = 0.0, draws
            while seconds < LONG_ENOUGH:
                idata, whole = sample(n + 1)
                seconds, made, n = whole - tuning, n, 4 * n
            values = [idata.posterior[x].values[0, 1:] for x in case.parameters]
            slowest = min(effective_draws(x) for x in values)
            found += [1000 * slowest / made, slowest / seconds]
        with own.model:
            steps = steps or pmd.GibbsStep(pmd.assign_steps([own.model[x] for x in own.records]))
        # The second time, everything is compiled, as nutpie's is; it records parameters only, too.
        ours = [one_chain(own, steps, OUR_DRAWS, tune, 1, sums=False) for _ in range(2)][1]
        ours = 1000 * ours["slowest"] / OUR_DRAWS, ours["slowest"] / ours["seconds"]
        numbers = [ours[0], found[0], found[2], ours[1], found[1], found[3]]
        rows.append([TITLES[name], f"{epsilon:g}", *(f"{x:,.0f}" for x in numbers)])
        print(" | ".join(rows[-1]), flush=True)
    return rows


class Idle(BlockedStep):
    """A step that does nothing, to measure PyMC's own time."""

    name = "idle"

    def __init__(self, vars, *, model=None, rng=None, blocked=True):
        self.vars = [pm.modelcontext(model).rvs_to_values[rv] for rv in vars]
        self.blocked, self.rng = blocked, np.random.default_rng(rng)

    def step(self, point):
        return point, [{}]


PARTS = [pmd.DapperStep, pmd.ConjugateStep, InterweaveStep]


def parts(name, draws, tune, epsilon=0.1):
    """Microseconds of CPU time of an iteration: PyMC's own, all, and each step by itself."""
    case = CASES[name]()
    case.release(1)
    names = [*case.parameters, *case.records]
    with case.model as model:
        steps = pmd.assign_steps([model[x] for x in case.records])
        idle = [Idle([model[x]]) for x in names]
    case.release(epsilon)

    def per_draw(steps):
        found = []
        for _ in range(5):
            times = []
            with case.model:
                pm.sample(
                    draws=draws,
                    tune=tune,
                    chains=1,
                    cores=1,
                    step=steps,
                    var_names=names,
                    callback=noting(times, tune, draws),
                    random_seed=1,
                    progressbar=False,
                    compute_convergence_checks=False,
                    quiet=True,
                )
            found.append(1e6 * (times[1] - times[0]) / (draws - 1))
        return min(found)

    measured = [per_draw(idle), per_draw(steps)]
    # The steps are as tuning left them.
    point = model.initial_point()
    for _ in range(100):
        for step in steps:
            point, _ = step.step(point)
    alone = dict.fromkeys(PARTS, 0.0)
    for step in steps:
        found = []
        for _ in range(5):
            began = process_time()
            for _ in range(draws):
                step.step(point)
            found.append(1e6 * (process_time() - began) / draws)
        alone[type(step)] += min(found)
    row = [TITLES[name], *(f"{x:.1f}" for x in (*measured, *alone.values()))]
    print(" | ".join(row), flush=True)
    return row


PARTS_HEADER = ["model", "steps that do nothing", "an iteration"]
PARTS_HEADER += [f"{step.__name__} alone" for step in PARTS]

PEER_HEADER = ["model", "epsilon", "pymc_dapper", "nutpie", "nutpie, noise"]
PEER_HEADER += ["pymc_dapper, per s", "nutpie, per s", "nutpie, noise, per s"]

HEADER = ["model", "epsilon", "without", "with", "least, with", "without, per s", "with, per s"]
HEADER += ["moves", "affine", "sweeps", "slowest sum, without", "slowest sum, with"]
HEADER += ["long memory"]


def table_row(row):
    without, with_ = row["without"], row["with"]
    numbers = [f"{x:.0f}" for x in (without["per_1000"], with_["per_1000"], with_["least"])]
    numbers += [f"{way['per_second']:,.0f}" for way in (without, with_)]
    numbers += [span(with_[chosen]) for chosen in ("moves", "affine", "sweeps")]
    # A sum that never changed is known for sure, or stands still: the warning says which.
    sums = [way["sum_per_1000"] for way in (without, with_)]
    numbers += ["-" if np.isnan(x) else f"{x:.0f}" for x in sums]
    numbers += [str(with_["long_memory"] or "")]
    if "refresh" in row:
        numbers += [f"{row['refresh']['per_1000']:.0f}"]
    return [TITLES[row["model"]], f"{row['epsilon']:g}", *numbers]


def span(numbers):
    """What chains chose: the number, or the least and the largest."""
    least, largest = min(numbers), max(numbers)
    return f"{least}" if least == largest else f"{least}-{largest}"


COLOURS = {"with": "#1b5fa6", "without": "#7a3e9d"}


def draw(rows):
    """Effective draws against the budget: a line for each model and way.

    ``rows`` are those of the table.
    """
    figure, axis = plt.subplots(figsize=(7, 4.2), layout="constrained")
    styles = {"with": ("-", "o"), "without": ("--", "s")}
    for way, (line, marker) in styles.items():
        column = HEADER.index(way)
        for k, name in enumerate(dict.fromkeys(row[0] for row in rows)):
            shown = [row for row in rows if row[0] == name]
            axis.plot(
                [float(row[1]) for row in shown],
                # An effective draw at least: the axis is logarithmic.
                [max(float(row[column].replace(",", "")), 1) for row in shown],
                linestyle=line,
                marker=marker,
                color=COLOURS[way],
                markersize=4,
                linewidth=1.2,
                label=f"{way} InterweaveStep" if k == 0 else None,
            )
    axis.set(xscale="log", yscale="log", ylim=(0.8, 2000))
    axis.set_xticks([0.01, 0.1, 1, 10, 100, 1000], ["0.01", "0.1", "1", "10", "100", "1,000"])
    axis.set_yticks([1, 10, 100, 1000], ["1", "10", "100", "1,000"])
    axis.minorticks_off()
    axis.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel("privacy budget, epsilon")
    axis.set_ylabel("effective draws per 1,000 iterations\n(slowest parameter)")
    axis.legend(loc="lower right", frameon=False)
    return figure


TOLD = []


class Listener(logging.Handler):
    """Keeps the warnings of long memory instead of printing them."""

    def emit(self, record):
        if "Don't rely on the draws" in record.getMessage():
            TOLD.append(record.getMessage())


def main(draws, tune, chains, models, output, page, redraw, anew, nutpie, only_parts):
    logger = logging.getLogger("pymc")
    logger.handlers, logger.propagate = [Listener(logging.WARNING)], False
    warnings.filterwarnings("ignore", message="Only one chain")
    if nutpie:
        print(" | ".join(PEER_HEADER), flush=True)
        chosen = [name for name in models if name in DIFFERENTIABLE]
        rows = [row for name in chosen for row in compare_with_nutpie(name, draws, tune)]
        before = markdown.read(page.read_text(encoding="utf-8"), "peer")[2:]
        rows = sorted(
            [*rows, *(x for x in before if x[0] not in {row[0] for row in rows})],
            key=lambda x: x[0],
        )
        markdown.fill_file(page, {"peer": markdown.table(PEER_HEADER, rows, words=1)})
        return
    if only_parts:
        print(" | ".join(PARTS_HEADER), flush=True)
        rows = [parts(name, draws, tune) for name in models if name in "abc"]
        markdown.fill_file(page, {"parts": markdown.table(PARTS_HEADER, rows, words=1)})
        return
    if redraw:
        rows = markdown.read(page.read_text(encoding="utf-8"), "budgets")[2:]
    else:
        header = [*HEADER, "drawn anew"] if anew else HEADER
        print(" | ".join(header), flush=True)
        found = [row for name in models for row in compare(name, draws, tune, anew, chains)]
        rows = [table_row(row) for row in found]
        for row in rows:
            row += ["-"] * (len(header) - len(row))
        markdown.fill_file(page, {"budgets": markdown.table(header, rows, words=1)})
    save(draw(rows), output / "budgets.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--tune", type=int, default=1000)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--models", default="abcdefg")
    parser.add_argument("--output", type=Path, default=ROOT / "docs" / "figures")
    parser.add_argument("--page", type=Path, help="page to write the table into")
    parser.add_argument("--anew", action="store_true", help="measure the other move, too")
    parser.add_argument("--nutpie", action="store_true", help="only the table beside nutpie")
    parser.add_argument(
        "--parts", action="store_true", dest="only_parts", help="only the table of where time goes"
    )
    parser.add_argument("--redraw", action="store_true", help="only the figure, from the page")
    main(**vars(parser.parse_args()))
