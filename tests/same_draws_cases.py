"""What `same_draws.py` runs: models of the tests, models of its own, and all examples.

A case is a function that builds a model and its steps and returns another: given a seed, that one
makes the draws and returns them as arrays by name. Steps are mostly driven by hand: it is NUTS that
takes long to compile.
"""

import importlib
import inspect
import io
import logging
import re
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import partial, wraps
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt

import pymc_dapper as pmd
from tests.admissions_and_tiny import (
    RELEASED,
    SIGMA,
    admissions_model,
    admissions_table,
    tiny_table_model,
)
from tests.conjugacy.conjugate_models import FORMS as CONJUGATE_FORMS
from tests.records.record_models import FORMS
from tests.statistical.exactness.cases import CASES as EXACTNESS

pytensor.config.cxx = ""  # as in the tests
# With it the compiler reorders sums, in one way where it finds a part in PyTensor's cache, and in
# another where it compiles that, too: last digits would depend on what was run before.
pytensor.config.numba__fastmath = False

EXAMPLES = Path(__file__).parents[1] / "examples"
TIMES = re.compile(r"time|duration|seconds|per_second|perf_counter")

CASES = {}
"""Name of a case to a function that builds it."""


@contextmanager
def quietly():
    """Neither warnings nor PyMC's log."""
    log = logging.getLogger("pymc")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


# Steps driven by hand ----------------------------------------------------------------------------


def by_hand(model, steps, draws=12, tune=4):
    """Call steps as PyMC does; what they leave alone is moved a little at each draw."""
    step = pm.CompoundStep(steps)
    taken = {x.name for x in step.vars}
    others = [x.name for x in model.value_vars if x.name not in taken and _is_unbounded(model, x)]

    def draw(seed):
        rng, elsewhere = np.random.default_rng(seed), np.random.default_rng(seed + 1_000)
        point = model.initial_point()
        step.setup_chain(rng, tune, draws)
        step.tune = True
        step.reset_tuning()
        found = {}
        for k in range(tune + draws):
            if k == tune:
                step.stop_tuning()
            moved = {x: point[x] + 0.1 * elsewhere.normal(size=point[x].shape) for x in others}
            point, stats = step.step({**point, **moved})
            for name, value in point.items():
                found.setdefault(name, []).append(np.array(value))
            for place, each in enumerate(stats):
                for name, value in each.items():
                    if not TIMES.search(name):
                        found.setdefault(f"statistics {place} {name}", []).append(value)
        return numbers({name: np.array(values) for name, values in found.items()})

    return draw


def _is_unbounded(model, value):
    rv = model.values_to_rvs[value]
    transformed = model.rvs_to_transforms[rv] is not None
    normal = rv.owner.op.name in ("normal", "multivariate_normal")
    return value.dtype.startswith("float") and (transformed or normal)


def numbers(arrays):
    """Those that are numbers, and not messages or objects."""
    return {name: x for name, x in arrays.items() if x.dtype.kind in "biufc"}


def records_of(name):
    model = FORMS[name]()
    records = [rv for rv in model.free_RVs if rv.name.startswith("record")]
    return by_hand(model, [pmd.DapperStep(records, model=model)])


def exactness(name):
    case = EXACTNESS[name]
    model = case.model()
    records = [model[record] for record in case.records]
    steps = pmd.assign_steps(records, model, interweave=case.interweave)
    return by_hand(model, steps, draws=20, tune=10)


def conjugate(name):
    model, variables = CONJUGATE_FORMS[name]()
    return by_hand(model, [pmd.ConjugateStep(variables, model=model)])


CASES |= {f"records: {name}": partial(records_of, name) for name in list(FORMS)[::3]}
CASES |= {f"exactness: {name}": partial(exactness, name) for name in EXACTNESS}
CASES |= {f"conjugate: {name}": partial(conjugate, name) for name in list(CONJUGATE_FORMS)[::7]}


# Models of its own: counts, parameters moved with what follows them, known sums -------------------


def steps_of(name, **options):
    """Name a case; the function that is decorated adds a model's variables and returns steps."""

    def register(build):
        def make():
            with pm.Model() as model:
                steps = build()
            return by_hand(model, steps, **options)

        CASES[name] = make
        return build

    return register


def noisy(statistic, released, sigma=1.5, name="privacy"):
    pmd.GaussianMechanism(sigma).potential(name, statistic, released=np.array(released))


@steps_of("counts: admissions")
def counts_of_admissions():
    p = pm.Dirichlet("p", np.ones(4))
    x = pm.Multinomial("x", n=400, p=p)
    noisy(x, RELEASED, SIGMA)
    return [pmd.CountStep([x]), pmd.ConjugateStep([p])]


@steps_of("counts: admissions, probabilities marginalised")
def probabilities_marginalised():
    p = pm.Dirichlet("p", np.ones(4))
    x = pm.Multinomial("x", n=400, p=p)
    noisy(x, RELEASED, SIGMA)
    return [pmd.CountStep([x], integrate=[p])]


@steps_of("counts: rows share a probability")
def shared_probability():
    p = pm.Beta("p", 1.5, 2.0)
    x = pm.Binomial("x", n=np.array([6, 9]), p=p)
    pm.Normal("released", x, 2.0, observed=[1.0, 8.5])
    return [pmd.CountStep([x], integrate=[p])]


@steps_of("counts: rates with exposure")
def rates_with_exposure():
    rate = pm.Gamma("rate", 2.0, 0.7)
    x = pm.Poisson("x", rate * np.array([1.0, 3.0]))
    pm.Normal("released", x, 2.0, observed=[3.0, 4.0])
    return [pmd.CountStep([x], integrate=[rate])]


@steps_of("counts: a total above a table")
def total_above_table():
    n = pm.Poisson("n", 5.0)
    t = pm.Multinomial("t", n=n, p=np.array([0.2, 0.3, 0.5]))
    noisy(t, [2.3, -0.4, 4.1])
    return [pmd.CountStep([n, t])]


@steps_of("counts: totals above rows")
def totals_above_rows():
    n = pm.NegativeBinomial("n", mu=2.0, alpha=1.5, shape=2)
    t = pm.DirichletMultinomial("t", n=n, a=np.array([1.0, 2.0]))
    noisy(t, [[2.1, 0.4], [-0.5, 1.2]], name="cells")
    noisy(n, [3.2, 0.1], name="totals")
    return [pmd.CountStep([t, n])]


@steps_of("counts: totals of totals")
def totals_of_totals():
    n = pm.Binomial("n", n=6, p=0.6)
    t = pm.Multinomial("t", n=n, p=np.array([0.7, 0.3]))
    s = pm.Multinomial("s", n=t, p=np.array([[0.5, 0.5], [0.2, 0.8]]))
    noisy(s, [[2.1, 0.4], [-0.5, 1.2]])
    return [pmd.CountStep([n, s, t])]


@steps_of("counts: all parameters marginalised")
def all_parameters_marginalised():
    rate = pm.Gamma("rate", 4.0, 1.0)
    p = pm.Dirichlet("p", np.array([1.0, 2.0, 1.5]))
    n = pm.Poisson("n", rate)
    t = pm.Multinomial("t", n=n, p=p)
    noisy(t, [2.3, 0.4, 3.1])
    return [pmd.CountStep([n, t], integrate=[rate, p])]


@steps_of("counts: a count within a count")
def count_within_count():
    births = pm.Poisson("births", 6.0)
    girls = pm.Binomial("girls", n=births, p=0.48)
    pm.Laplace("released", pt.stack([births, girls]), 1.5, observed=[4.2, 3.9])
    return [pmd.CountStep([births, girls])]


@steps_of("counts: discrete noise")
def discrete_noise():
    x = pm.DirichletMultinomial("x", n=12, a=np.array([0.5, 1.0, 2.0]))
    pmd.DiscreteGaussianMechanism(2.0).potential("privacy", x, released=np.array([5, -3, 8]))
    return [pmd.CountStep([x])]


@steps_of("counts: three levels, one known")
def three_levels():
    rng = np.random.default_rng(4)
    truth = rng.poisson(20, (3, 4, 5))
    x = pm.Poisson("x", 20.0, shape=truth.shape)
    pmd.invariant("states", x.sum(axis=(1, 2)), truth.sum(axis=(1, 2)))
    pm.Normal("counties", x.sum(axis=2), 5.0, observed=truth.sum(axis=2) + rng.normal(0, 5, (3, 4)))
    pm.Normal("tracts", x, 5.0, observed=truth + rng.normal(0, 5, truth.shape))
    return [pmd.CountStep([x])]


@steps_of("counts: known totals")
def known_totals():
    x = pm.Binomial("x", n=40, p=0.5, shape=(2, 3))
    pmd.invariant("totals", x.sum(axis=1), pm.Data("total", np.array([100, 7])))
    pm.Normal("released", x, 3.0, observed=np.full((2, 3), 10.0))
    return [pmd.CountStep([x])]


@steps_of("counts: no sum of terms")
def no_sum_of_terms():
    x = pm.Poisson("x", 5.0, shape=4)
    pm.Potential("privacy", -pt.sqrt(1 + ((x - 7) ** 2).sum()))
    return [pmd.CountStep([x])]


def hierarchy_of_two_records():
    tau = pm.HalfNormal("tau")
    mu = pm.Normal("mu", 0, tau)
    sigma = pm.HalfNormal("sigma")
    x = pm.LogNormal("x", mu, sigma, shape=20)
    k = pm.Poisson("k", sigma, shape=20)
    noisy(pt.stack([pt.clip(x, 0, 5).sum(), k.sum()]), [30.0, 12.0], 20.0)
    return mu, sigma, x, k


@steps_of("interweave: two kinds of records", draws=20, tune=40)
def interweave_two_kinds():
    mu, sigma, x, k = hierarchy_of_two_records()
    return [pmd.DapperStep([x, k]), pmd.InterweaveStep([mu, sigma], records=[x, k])]


@steps_of("interweave: randomised answers marginalised", draws=20, tune=40)
def interweave_randomised_answers():
    p = pm.Dirichlet("p", [2.0, 1.0, 2.0])
    record = pm.Categorical("record", p, shape=30)
    told = np.full((3, 3), 0.3) + 0.1 * np.eye(3)
    answers = np.random.default_rng(3).integers(3, size=30)
    pm.Categorical("answer", pt.as_tensor(told)[record], observed=answers)
    return [pmd.DapperStep([record]), pmd.InterweaveStep([p], records=[record])]


@steps_of("interweave: a rate and its counts", draws=20, tune=40)
def interweave_counts():
    log_rate = pm.Normal("log_rate", 1.0, 1.0)
    x = pm.Poisson("x", pt.exp(log_rate) * np.array([1.0, 2.0, 5.0]))
    noisy(x, [4.0, 4.0, 20.0], 8.0)
    return [pmd.CountStep([x]), pmd.InterweaveStep([log_rate], records=[x])]


@steps_of("records: a known sum, and pairs that exchange")
def known_sum():
    x = pm.Bernoulli("x", np.linspace(0.1, 0.9, 8), shape=8)
    pmd.invariant("total", x.sum(), 4)
    noisy((np.arange(1.0, 9.0) * x).sum(), 17.3)
    return [pmd.DapperStep([x])]


@steps_of("records: tracked, with discrete noise")
def tracked():
    x = pm.Poisson("x", pm.Gamma("rate", 2.0, 1.0), shape=15)
    clipped = pt.clip(x, 0, 4).sum()
    pmd.DiscreteLaplaceMechanism(2.0).potential("privacy", clipped, released=np.array(31))
    return [pmd.DapperStep([x], track_records=True)]


@steps_of("records: clamped releases, and noise in the largest norm")
def clamped_releases():
    x = pm.Normal("x", pm.Normal("mu"), 1.0, shape=(12, 2))
    sums = pt.clip(x, -1, 1).sum(axis=0)
    pmd.LaplaceMechanism(2.0).clamped(0, None).potential("clamped", sums[0], released=0.0)
    pmd.LInfMechanism(2.0).potential("norm", sums, released=np.array([1.0, -2.0]))
    return [pmd.DapperStep([x])]


@steps_of("function: a user's own draw")
def own_draw():
    p = pm.Beta("p", 3, 3)
    record = pm.Bernoulli("record", p, shape=12)
    pmd.LaplaceMechanism(1.5).potential("privacy", record.sum(), released=4.2)

    def draw(rng, point):
        ones = point["record"].sum()
        return {"p": rng.beta(3 + ones, 15 - ones)}

    return [pmd.DapperStep([record]), pmd.FunctionStep([p], draw)]


def sweep_of(build, name):
    def make():
        model = build()
        return by_hand(model, [pmd.DapperStep([model[name]], model=model)])

    return make


CASES["records: admissions"] = sweep_of(admissions_model, "record")
CASES["records: weighted table"] = sweep_of(tiny_table_model, "record")


def releases():
    """Noise as a curator adds it, and draws of the noise's distributions."""
    values, table = np.array([3.0, 8.0]), np.array([3, 8])
    mechanisms = {
        "Laplace": (pmd.LaplaceMechanism(2.0), values),
        "Gaussian": (pmd.GaussianMechanism(2.0), values),
        "DiscreteLaplace": (pmd.DiscreteLaplaceMechanism(2.0), table),
        "DiscreteGaussian": (pmd.DiscreteGaussianMechanism(2.0), table),
        "Tulap": (pmd.TulapMechanism(0.5), values),
        "KNorm": (pmd.KNormMechanism(2.0, 2), values),
        "LInf": (pmd.LInfMechanism(2.0), values),
    }
    distributions = {
        "DiscreteLaplace": pmd.DiscreteLaplace.dist(0, 3.0),
        "DiscreteGaussian": pmd.DiscreteGaussian.dist(0, 3.0),
        "Tulap": pmd.Tulap.dist(0.0, 0.5, 0.0),
    }

    def draw(seed):
        rng = np.random.default_rng(seed)
        found = {
            name: np.array([mechanism.release(value, random_seed=rng) for _ in range(20)])
            for name, (mechanism, value) in mechanisms.items()
        }
        for name, law in distributions.items():
            found[f"{name}, drawn"] = pm.draw(law, 20, mode="FAST_COMPILE", random_seed=seed)
        return found

    return draw


CASES["releases"] = releases


# Whole runs of sampling --------------------------------------------------------------------------

SHORT = {"draws": 20, "tune": 20, "progressbar": False, "compute_convergence_checks": False}


def groups(result):
    """Draws and statistics of a result of sampling, or what a study reports."""
    return numbers(
        {
            f"{group.path} {name}": np.asarray(x.values)
            for group in result.subtree
            for name, x in group.data_vars.items()
            if group.name == "posterior" or not TIMES.search(name)
        }
    )


def sampled(build, **options):
    """Name a case: what pmd.sample draws from a model."""

    def make():
        model = build()
        given = {**SHORT, "chains": 1, "cores": 1, **options}
        return lambda seed: groups(pmd.sample(model=model, random_seed=seed, **given))

    return make


def regression_model():
    """A line through clipped records, with all moments released."""
    with pm.Model() as model:
        b = pm.Normal("b", 0, 2, shape=2)
        x = pm.Normal("x", 0.5, 1, shape=25)
        y = pm.Normal("y", b[0] + b[1] * x, pm.HalfNormal("sigma"), shape=25)
        u, v = pt.clip(x, -2, 3), pt.clip(y, -5, 5)
        moments = pt.stack([each.sum() for each in (u, v, u * u, u * v, v * v)])
        pmd.LaplaceMechanism(5.0).potential("privacy", moments, released=np.full(5, 20.0))
    return model


def counts_with_nuts():
    """Counts whose rates have a prior that isn't conjugate."""
    with pm.Model() as model:
        level = pm.Normal("level", 1.0, 1.0)
        x = pm.Poisson("x", pt.exp(level) * np.array([1.0, 2.0, 5.0]))
        noisy(x, [4.0, 4.0, 20.0], 8.0)
    return model


def hierarchy():
    with pm.Model() as model:
        hierarchy_of_two_records()
    return model


CASES |= {
    "sampled: admissions": sampled(admissions_model),
    "sampled: admissions as counts": sampled(admissions_table),
    "sampled: regression": sampled(regression_model),
    "sampled: regression by NUTS alone": sampled(
        regression_model, conjugate=False, interweave=False
    ),
    "sampled: counts with NUTS": sampled(counts_with_nuts),
    "sampled: two kinds of records": sampled(hierarchy, tune=60),
    "sampled: admissions, two processes": sampled(admissions_model, chains=2, cores=2),
}


# Examples ----------------------------------------------------------------------------------------


class Recorder:
    """Stands in for functions that take a seed: adds to it, and keeps what they return."""

    def __init__(self, offset):
        self.offset, self.arrays, self.calls, self.inside = offset, {}, 0, False

    def around(self, function, seed="random_seed", **always):
        @wraps(function)
        def call(*args, **kwargs):
            if self.inside:
                return function(*args, **kwargs)
            self.inside = True
            try:
                kwargs = {**kwargs, **always}
                if isinstance(kwargs.get(seed), int):
                    kwargs[seed] += self.offset
                result = function(*args, **kwargs)
            finally:
                self.inside = False
            self.keep(function.__name__, result)
            return result

        return call

    def keep(self, name, result):
        self.calls += 1
        if hasattr(result, "subtree"):
            found = groups(result)
        else:
            parts = dict(vars(result)) if hasattr(result, "__dict__") else {"": result}
            found = {}
            for part, value in parts.items():
                several = value if isinstance(value, dict) else {"": value}
                for key, x in several.items():
                    if isinstance(x, np.ndarray | np.number | float | int):
                        found[f"{part} {key}".strip()] = np.asarray(x)
        self.arrays |= {f"{name} {self.calls}, {x}": y for x, y in numbers(found).items()}


def example(name, one_figure=True, **settings):
    """Run a script with few draws; seed 1 is as it is written."""

    def draw(seed):
        recorder, printed = Recorder(seed - 1), io.StringIO()
        quiet = {"progressbar": False, "compute_convergence_checks": False}
        with ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            # A script finds its neighbours because its folder is first on the path.
            stack.enter_context(patch.object(sys, "path", [str(EXAMPLES), *sys.path]))
            stack.callback(_forget_scripts)
            script = importlib.import_module(name)
            for module in (pm, pmd):
                sample = recorder.around(module.sample, cores=1, **quiet)
                stack.enter_context(patch.object(module, "sample", sample))
            study = recorder.around(pmd.study, seed="seed")
            stack.enter_context(patch.object(pmd, "study", study))
            for module in _scripts().values():
                for key, function in list(vars(module).items()):
                    if _takes_a_seed(function):
                        stack.enter_context(patch.object(module, key, recorder.around(function)))
            where = "figures" if name == "paper" else "output"
            place = {where: folder / "figure.png" if one_figure else folder}
            if name == "budget_study":
                settings["grid"] = {**script.GRID, "epsilon": [2.0]}
                settings["executor"] = stack.enter_context(ThreadPoolExecutor(1))
            with redirect_stdout(printed):
                script.main(**settings, **place)
            text = re.sub(r"\b\d+ s\b", "", printed.getvalue()).replace(str(folder), "")
        return {**recorder.arrays, "printed": np.array(text.splitlines())}

    return draw


def _scripts():
    files = {name: getattr(x, "__file__", None) for name, x in sys.modules.items()}
    return {
        x: sys.modules[x] for x, file in files.items() if file and Path(file).parent == EXAMPLES
    }


def _forget_scripts():
    for name in _scripts():
        del sys.modules[name]


def _takes_a_seed(function):
    """Whether it is a function of the package that draws by itself."""
    ours = inspect.isfunction(function) and function.__module__.startswith("pymc_dapper")
    return ours and "random_seed" in inspect.signature(function).parameters


FEW = {"draws": 30, "tune": 30}

# They take longest: first.
CASES = {
    f"example: {name}": partial(example, name, **settings)
    for name, settings in {
        "paper": {"one_figure": False, "short": True},
        "noisy_stats": {**FEW, "epsilons": (1.0,)},
        "published_methods": {"one_figure": False, **FEW, "final_draws": 500},
        "budget_study": {**FEW, "replicates": 1, "progressbar": False},
        "randomised_response": FEW,
        "regression": FEW,
        "admissions": FEW,
        "broadband": {**FEW, "states": ["DE", "RI"]},
        "census": FEW,
        "births": FEW,
        "invariants": {"draws": 200},
        "private_proportion": {"draws": 1_000},
    }.items()
} | CASES
