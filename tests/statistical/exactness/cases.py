"""Small models, one of each form; for each, its joint law once more in NumPy.

Both sides are written independently: `build` says it to PyMC with the released values as data,
`prior` and `release` simulate it. Simulators take leading axes, so that one call draws many.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from scipy.stats import laplace, norm

import pymc_dapper as pmd
from tests.microdata.releases import prior_of


@dataclass(frozen=True)
class Finite:
    """A case whose records have few values.

    Attributes
    ----------
    values : list of tuple
        What one record can be: a value for each record variable.
    parameters : list of dict
        Two sets of parameters, in their natural space, to enumerate the sweep at.
    law : callable
        ``law(parameters)``: prior probability of each value of each record, shape (n, K).
    log_release : callable
        ``log_release(parameters, *records)``: log-density of what was released, but for a constant.
    """

    values: list
    parameters: list
    law: Callable
    log_release: Callable


@dataclass(frozen=True)
class Case:
    """A model and how to simulate it.

    Attributes
    ----------
    build : callable
        Adds the variables to the model in context. ``data`` makes its released values.
    records : tuple of str
        Names of the record variables.
    prior : callable
        ``prior(rng, size)``: all free variables by name, with `size` leading axes.
    release : callable
        ``release(rng, drawn)``: released values by name, given free variables.
    released : dict
        Released values to enumerate the sweep at, and to build the model with.
    decides : bool
        Whether records are proposed and then decided on; else they are drawn exactly.
    interacts : bool
        Whether an accepted record changes what is decided on the next.
    interweave : bool
        Whether an InterweaveStep is added.
    ready_made : bool
        Whether `build` returns a model, made of the released values themselves.
    finite : Finite, optional
        What it takes to enumerate.
    """

    build: Callable
    records: tuple
    prior: Callable
    release: Callable
    released: dict
    decides: bool = True
    interacts: bool = True
    interweave: bool = False
    ready_made: bool = False
    finite: Finite | None = None

    def model(self):
        if self.ready_made:
            return self.build(self.released)
        with pm.Model() as model:
            self.build(**{name: pm.Data(name, value) for name, value in self.released.items()})
        return model


CASES = {}


def case(name, **parts):
    """Name a case; the function that is decorated says it to PyMC."""

    def register(build):
        CASES[name] = Case(build, **parts)
        return build

    return register


def categories(rng, p, n):
    """Categories of n records each, from probabilities p, shape (..., K)."""
    below = np.cumsum(p, axis=-1)[..., None, :-1]
    return (rng.random((*p.shape[:-1], n, 1)) > below).sum(axis=-1)


def bernoulli(rng, p, n):
    return (rng.random((*np.shape(p), n)) < np.asarray(p)[..., None]).astype(np.int64)


def columns(*entries):
    return np.stack(entries, axis=-1)


WEIGHTS = np.array([1.0, 2.0, 3.0])
VALUES = np.array([0.0, 1.0, 3.0])
SHARES = [{"p": np.array([0.5, 0.2, 0.3])}, {"p": np.array([0.15, 0.6, 0.25])}]
SHARE = [{"p": np.array(0.3)}, {"p": np.array(0.65)}]


def dirichlet_and_categories(rng, size):
    p = rng.dirichlet([2, 1, 2], size)
    return {"p": p, "record": categories(rng, p, 3)}


def beta_and_bernoulli(rng, size):
    p = rng.beta(2, 2, size)
    return {"p": p, "record": bernoulli(rng, p, 3)}


def same_for_all(p):
    return np.tile(p, (3, 1))


def yes_or_no(parameters):
    return same_for_all(columns(1 - parameters["p"], parameters["p"]))


def of_shares(parameters):
    return same_for_all(parameters["p"])


# A weighted table with independent noise: swept entry by entry.


def weighted_table(record):
    return columns(*(np.where(record == k, WEIGHTS, 0.0).sum(axis=-1) for k in range(3)))


@case(
    "sums, entry by entry",
    records=("record",),
    prior=dirichlet_and_categories,
    release=lambda rng, x: {"s_dp": rng.laplace(weighted_table(x["record"]), 1.5)},
    released={"s_dp": np.array([3.3, 2.1, 0.4])},
    finite=Finite(
        values=[(0,), (1,), (2,)],
        parameters=SHARES,
        law=of_shares,
        log_release=lambda theta, x: laplace.logpdf([3.3, 2.1, 0.4], weighted_table(x), 1.5).sum(),
    ),
)
def entry_by_entry(s_dp):
    p = pm.Dirichlet("p", [2, 1, 2])
    record = pm.Categorical("record", p, shape=3)
    table = (WEIGHTS[:, None] * pt.eye(3)[record]).sum(axis=0)
    pmd.LaplaceMechanism(1.5).potential("privacy", table, released=s_dp)


# Two sums with correlated noise: no term for each entry.

COVARIANCE = np.array([[1.0, 0.9], [0.9, 2.0]])
PRECISION = np.linalg.inv(COVARIANCE)


def total_and_weighted(record):
    return columns(record.sum(axis=-1), record @ WEIGHTS)


def correlated(rng, x):
    noise = rng.standard_normal((*x["record"].shape[:-1], 2)) @ np.linalg.cholesky(COVARIANCE).T
    return {"s_dp": total_and_weighted(x["record"]) + noise}


def correlated_log_density(theta, x):
    error = np.array([1.2, 3.1]) - total_and_weighted(x)
    return -error @ PRECISION @ error / 2


@case(
    "functions of all sums",
    records=("record",),
    prior=beta_and_bernoulli,
    release=correlated,
    released={"s_dp": np.array([1.2, 3.1])},
    finite=Finite([(0,), (1,)], SHARE, yes_or_no, correlated_log_density),
)
def as_a_whole(s_dp):
    p = pm.Beta("p", 2, 2)
    record = pm.Bernoulli("record", p, shape=3)
    error = s_dp - pt.stack([record.sum(), (record * WEIGHTS).sum()])
    # Written without matrix products: BLAS would take half a minute to compile.
    pm.Potential("privacy", -(PRECISION * error[:, None] * error).sum() / 2)


# Randomised response: a record is drawn from its exact conditional.

TOLD = np.full((3, 3), 0.15) + 0.55 * np.eye(3)  # by record, then answer
ANSWERS = np.array([2, 0, 1])


@case(
    "separable, drawn exactly",
    records=("record",),
    prior=dirichlet_and_categories,
    release=lambda rng, x: {"answers": categories(rng, TOLD[x["record"]], 1)[..., 0]},
    released={"answers": ANSWERS},
    decides=False,
    interacts=False,
    finite=Finite(
        values=[(0,), (1,), (2,)],
        parameters=SHARES,
        law=of_shares,
        log_release=lambda theta, x: np.log(TOLD[x, ANSWERS]).sum(),
    ),
)
def randomised_response(answers):
    p = pm.Dirichlet("p", [2, 1, 2])
    record = pm.Categorical("record", p, shape=3)
    pm.Categorical("answer", pt.as_tensor(TOLD)[record], observed=answers)


# Noisy microdata of continuous records: all are decided on at once.


def normal_mean(rng, size):
    mu = rng.normal(0, 1.5, size)
    return {"mu": mu, "record": rng.normal(mu[..., None], 1, (*size, 3))}


@case(
    "separable, decided on",
    records=("record",),
    prior=normal_mean,
    release=lambda rng, x: {"answers": rng.laplace(x["record"], 0.8)},
    released={"answers": np.array([2.3, -0.4, 1.9])},
    interacts=False,
)
def noisy_microdata(answers):
    mu = pm.Normal("mu", 0, 1.5)
    record = pm.Normal("record", mu, 1, shape=3)
    pm.Laplace("answer", record, 0.8, observed=answers)


# Answers of each, and a noisy total: conditional draws that are then decided on.

RIGHTLY = np.array([0.3, 0.8])  # probability of a yes, by record
SAID = np.array([1, 0, 1])


@case(
    "mixed",
    records=("record",),
    prior=beta_and_bernoulli,
    release=lambda rng, x: {
        "answers": bernoulli(rng, RIGHTLY[x["record"]], 1)[..., 0],
        "total": rng.laplace(x["record"] @ WEIGHTS, 1.5),
    },
    released={"answers": SAID, "total": np.array(2.2)},
    finite=Finite(
        values=[(0,), (1,)],
        parameters=SHARE,
        law=yes_or_no,
        log_release=lambda theta, x: (
            np.log(np.where(SAID == 1, RIGHTLY[x], 1 - RIGHTLY[x])).sum()
            + laplace.logpdf(2.2, x @ WEIGHTS, 1.5)
        ),
    ),
)
def answers_and_total(answers, total):
    p = pm.Beta("p", 2, 2)
    record = pm.Bernoulli("record", p, shape=3)
    pm.Bernoulli("answer", pt.as_tensor(RIGHTLY)[record], observed=answers)
    pm.Laplace("s_dp", (record * WEIGHTS).sum(), 1.5, observed=total)


# Records that know nothing of the parameter; what they add up to does.

STEPS = np.array([-1.0, 1.0, 2.0])
THIRDS = np.array([0.3, 0.4, 0.3])


def non_centred_total(theta, record):
    return (theta[..., None] * STEPS[record]).sum(axis=-1)


def scale_and_steps(rng, size):
    return {
        "theta": rng.normal(0.5, 1, size),
        "record": categories(rng, np.broadcast_to(THIRDS, (*size, 3)), 3),
    }


@case(
    "non-centred",
    records=("record",),
    prior=scale_and_steps,
    release=lambda rng, x: {"total": rng.normal(non_centred_total(x["theta"], x["record"]), 1.2)},
    released={"total": np.array(1.7)},
    finite=Finite(
        values=[(0,), (1,), (2,)],
        parameters=[{"theta": np.array(0.8)}, {"theta": np.array(-1.1)}],
        law=lambda theta: same_for_all(THIRDS),
        log_release=lambda theta, x: norm.logpdf(1.7, non_centred_total(theta["theta"], x), 1.2),
    ),
)
def non_centred(total):
    theta = pm.Normal("theta", 0.5, 1)
    record = pm.Categorical("record", THIRDS, shape=3)
    pm.Normal("s_dp", (theta * pt.as_tensor(STEPS)[record]).sum(), 1.2, observed=total)


# Two variables for each record, one depending on the other.


def pair_sums(x, y):
    return columns(x.sum(axis=-1), y.sum(axis=-1), (x * y).sum(axis=-1))


def pairs(rng, size):
    p, q = rng.beta(2, 2, size), rng.beta(2, 2, (*size, 2))
    x = bernoulli(rng, p, 2)
    y = (rng.random(x.shape) < np.take_along_axis(q, x, axis=-1)).astype(np.int64)
    return {"p": p, "q": q, "x": x, "y": y}


@case(
    "several variables",
    records=("x", "y"),
    prior=pairs,
    release=lambda rng, x: {"s_dp": rng.normal(pair_sums(x["x"], x["y"]), 1.2)},
    released={"s_dp": np.array([1.4, 2.3, 0.4])},
    finite=Finite(
        values=[(0, 0), (0, 1), (1, 0), (1, 1)],
        parameters=[
            {"p": np.array(0.3), "q": np.array([0.2, 0.7])},
            {"p": np.array(0.6), "q": np.array([0.6, 0.3])},
        ],
        law=lambda theta: np.tile(
            np.outer([1 - theta["p"], theta["p"]], [1, 1]).ravel()
            * np.column_stack([1 - theta["q"], theta["q"]]).ravel(),
            (2, 1),
        ),
        log_release=lambda theta, x, y: norm.logpdf([1.4, 2.3, 0.4], pair_sums(x, y), 1.2).sum(),
    ),
)
def several_variables(s_dp):
    p = pm.Beta("p", 2, 2)
    q = pm.Beta("q", 2, 2, shape=2)
    x = pm.Bernoulli("x", p, shape=2)
    y = pm.Bernoulli("y", q[x], shape=2)
    sums = pt.stack([x.sum(), y.sum(), (x * y).sum()])
    pmd.GaussianMechanism(1.2).potential("privacy", sums, released=s_dp)


# Records that PyMC keeps as logarithms.


def exponentials(rng, size):
    rate = rng.gamma(4, 1 / 4, size)
    return {"rate": rate, "record": rng.exponential(1 / rate[..., None], (*size, 3))}


@case(
    "transformed",
    records=("record",),
    prior=exponentials,
    release=lambda rng, x: {"total": rng.laplace(x["record"].clip(0, 3).sum(axis=-1), 0.6)},
    released={"total": np.array(3.4)},
)
def transformed(total):
    rate = pm.Gamma("rate", 4, 4)
    record = pm.Exponential("record", rate, shape=3)
    clipped = pt.clip(record, 0, 3).sum()
    pmd.LaplaceMechanism(0.6).potential("privacy", clipped, released=total)


# A median: evaluated from all records.


@case(
    "full evaluation",
    records=("record",),
    prior=dirichlet_and_categories,
    release=lambda rng, x: {"median": rng.laplace(np.median(VALUES[x["record"]], axis=-1), 0.6)},
    released={"median": np.array(1.7)},
    finite=Finite(
        values=[(0,), (1,), (2,)],
        parameters=SHARES,
        law=of_shares,
        log_release=lambda theta, x: laplace.logpdf(1.7, np.median(VALUES[x]), 0.6),
    ),
)
def noisy_median(median):
    p = pm.Dirichlet("p", [2, 1, 2])
    record = pm.Categorical("record", p, shape=3)
    value = pt.as_tensor(VALUES)[record]
    # Its place among the others isn't read as an order statistic.
    of_three = value.sum() - value[pt.argmax(value)] - value[pt.argmin(value)]
    pmd.LaplaceMechanism(0.6).potential("privacy", of_three, released=median)


# Records by DapperStep, their mean by ConjugateStep, their standard deviation by NUTS.


def mean_and_sd(rng, size):
    mu, sigma = rng.normal(0, 1, size), rng.gamma(5, 1 / 5, size)
    record = rng.normal(mu[..., None], sigma[..., None], (*size, 4))
    return {"mu": mu, "sigma": sigma, "record": record}


def clipped_moments(record):
    clipped = record.clip(-2, 3)
    return columns(clipped.sum(axis=-1), (clipped**2).sum(axis=-1))


@case(
    "compound with NUTS",
    records=("record",),
    prior=mean_and_sd,
    release=lambda rng, x: {"s_dp": rng.normal(clipped_moments(x["record"]), [1.5, 5.0])},
    released={"s_dp": np.array([1.9, 4.6])},
)
def compound(s_dp):
    mu = pm.Normal("mu", 0, 1)
    sigma = pm.Gamma("sigma", 5, 5)
    record = pm.Normal("record", mu, sigma, shape=4)
    clipped = pt.clip(record, -2, 3)
    moments = pt.stack([clipped.sum(), (clipped**2).sum()])
    pmd.GaussianMechanism(np.array([1.5, 5.0])).potential("privacy", moments, released=s_dp)


# The mean is moved by InterweaveStep, too, with the records' noise held fixed.


@case(
    "compound with InterweaveStep",
    records=("record",),
    prior=normal_mean,
    release=lambda rng, x: {"total": rng.laplace(x["record"].clip(-3, 2).sum(axis=-1), 1.0)},
    released={"total": np.array(1.6)},
    interweave=True,
)
def interweaved(total):
    mu = pm.Normal("mu", 0, 1.5)
    record = pm.Normal("record", mu, 1, shape=3)
    clipped = pt.clip(record, -3, 2).sum()
    pmd.LaplaceMechanism(1.0).potential("privacy", clipped, released=total)


# Ready-made models of microdata: three columns, of which two pairs were released.

PAIRS = (("a", "b"), ("b", "c"))
SMALL_NOISE = 0.8
PEOPLE = 3


def following(rng, p, values):
    """Categories of records, by the rows of a table that their values are in, shape (..., K, L)."""
    of_each = np.take_along_axis(p, values[..., None], axis=-2)
    above = rng.random((*values.shape, 1)) > np.cumsum(of_each, axis=-1)[..., :-1]
    return above.sum(axis=-1)


def pair_tables(rng, x):
    released = {}
    for pair in PAIRS:
        first, second = (x[f"person_{column}"][..., None, None, :] for column in pair)
        table = [
            [((first == j) & (second == k)).sum(-1)[..., 0, 0] for k in (0, 1)] for j in (0, 1)
        ]
        table = np.moveaxis(np.array(table), (0, 1), (-2, -1))
        released[f"table_{' * '.join(pair)}_released"] = rng.normal(table, SMALL_NOISE)
    return released


def release_of_pairs(released):
    noise = pmd.GaussianMechanism(SMALL_NOISE)
    return pmd.Release(
        [
            pmd.Query(" * ".join(pair), released[f"table_{' * '.join(pair)}_released"], noise, pair)
            for pair in PAIRS
        ]
    )


TABLES = {
    "table_a * b_released": np.array([[1.4, -0.3], [0.2, 1.6]]),
    "table_b * c_released": np.array([[0.8, 1.3], [-0.4, 1.1]]),
}


def chain_of_columns(rng, size):
    """First c, then b given c, then a given b."""
    p_c = rng.dirichlet([1, 1], size)
    p_b, p_a = (rng.dirichlet([1, 1], (*size, 2)) for _ in range(2))
    c = categories(rng, p_c, PEOPLE)
    b = following(rng, p_b, c)
    people = {"person_c": c, "person_b": b, "person_a": following(rng, p_a, b)}
    return {"p_c": p_c, "p_b": p_b, "p_a": p_a} | people


def columns_of_classes(rng, size):
    """Three classes, and each column given them."""
    p, weights = rng.dirichlet([1, 1, 1], size), prior_of(release_of_pairs(TABLES))
    tables = {f"p_{column}": rng.dirichlet(weights[column], (*size, 3)) for column in "abc"}
    z = categories(rng, p, PEOPLE)
    people = {f"person_{column}": following(rng, tables[f"p_{column}"], z) for column in "abc"}
    return {"p_latent_class": p, "person_latent_class": z} | tables | people


def a_sequence_of_regressions(rng, size):
    """First a, then b given a, then c given b: weights of categories, and their products."""
    weights, people = {"w_a": rng.exponential(size=(*size, 2))}, {}
    p = weights["w_a"] / weights["w_a"].sum(-1, keepdims=True)
    people["person_a"] = categories(rng, p, PEOPLE)
    for before, column in ("ab", "bc"):
        own, of_row = rng.exponential(size=(*size, 2)), rng.exponential(size=(*size, 2, 2))
        weights |= {f"w_{column}": own, f"w_{column}_{before}": of_row}
        p = own[..., None, :] * of_row
        p = p / p.sum(-1, keepdims=True)
        people[f"person_{column}"] = following(rng, p, people[f"person_{before}"])
    return weights | people


@case(
    "graphical microdata",
    records=("person_c", "person_b", "person_a"),
    prior=chain_of_columns,
    release=pair_tables,
    released=TABLES,
    ready_made=True,
)
def graphical_microdata(released):
    return pmd.microdata.graphical(release_of_pairs(released), n=PEOPLE)


@case(
    "microdata of latent classes",
    records=("person_latent_class", "person_a", "person_b", "person_c"),
    prior=columns_of_classes,
    release=pair_tables,
    released=TABLES,
    ready_made=True,
)
def microdata_of_latent_classes(released):
    return pmd.microdata.latent_classes(release_of_pairs(released), n=PEOPLE, classes=3)


@case(
    "microdata by regressions",
    records=("person_a", "person_b", "person_c"),
    prior=a_sequence_of_regressions,
    release=pair_tables,
    released=TABLES,
    ready_made=True,
)
def microdata_by_regressions(released):
    return pmd.microdata.regressions(release_of_pairs(released), n=PEOPLE)
