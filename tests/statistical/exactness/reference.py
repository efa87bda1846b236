"""The dapper paper's three examples: the sampler beside an answer that was found another way.

1. 400 pairs of randomised answers: independent draws of a restricted Dirichlet law.
2. A noisy table of 400 applicants: the exact mixture, in `pymc_dapper.reference`.
3. A regression from nine noisy sums: NUTS on all parameters and records at once, of a model
   written with records that know nothing of the parameters.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pymc as pm
from arviz_stats.base import array_stats

import pymc_dapper as pmd
from pymc_dapper.reference import TablePosterior, gaussian_cell_loglik
from tests.admissions_and_tiny import N_APPLICANTS, RELEASED, SIGMA, admissions_model
from tests.statistical.exactness.cases import Case
from tests.statistical.exactness.sampler import Sampler, stack
from tests.statistical.exactness.verdicts import Z_LIMIT, Verdict

DATA = Path(__file__).parents[3] / "examples" / "data"


@dataclass(frozen=True)
class Reference:
    """An example.

    Attributes
    ----------
    build : callable
        Makes its model.
    records : tuple of str
        Names of the record variables.
    quantities : callable
        Maps stacked natural values of the parameters to the compared quantities, by name.
    answer : callable
        ``answer(effort)``: mean, mean square, and the standard errors of both, by name.
    interacts, decides : bool
        As for a `Case`.
    iterations : tuple of int
        Of the sampler, for the short and for the long effort.
    """

    build: object
    records: tuple
    quantities: object
    answer: object
    interacts: bool
    decides: bool
    iterations: tuple

    @cache  # noqa: B019 (there are three, made once)
    def sampler(self):
        model = self.build()
        records = [model[name] for name in self.records]
        steps = pmd.assign_steps(records, model, interweave=False)
        parts = {"decides": self.decides, "interacts": self.interacts}
        case = Case(self.build, self.records, None, None, {}, **parts)
        return Sampler(case, model, tuple(steps))


def compare(reference, sampler, rng, long):
    """The largest z of means and mean squares."""
    iterations = reference.iterations[bool(long)]
    point = sampler.model.initial_point()
    kept = {
        sampler.model.rvs_to_values[rv].name
        for rv in sampler.model.free_RVs
        if rv.name not in reference.records
    }
    sampler.set_release(rng, {})
    points = []
    for k in range(iterations + iterations // 10):
        point = sampler.advance(point)
        if k >= iterations // 10:
            points.append({name: point[name] for name in kept})
    z = {}
    answer = reference.answer(long)
    for name, x in reference.quantities(sampler.to_natural(stack(points))).items():
        moments = zip(("mean", "mean square"), (x, x**2), answer[name], strict=True)
        for moment, values, (exact, error) in moments:
            z[f"{moment} of {name}"] = (values.mean() - exact) / np.hypot(mcse(values), error)
    where = max(z, key=lambda name: abs(z[name]))
    worst = float(abs(z[where]))
    return Verdict(worst, worst > Z_LIMIT, where, len(z))


def mcse(x):
    x = np.atleast_2d(x)
    return float(array_stats.mcse(x, chain_axis=0, draw_axis=1, method="mean"))


def _of_draws(x):
    """Mean and mean square of draws, shape (chain, draw), each with its error."""
    return [(y.mean(), mcse(y)) for y in (x, x**2)]


def _table(natural):
    p = natural["p"]
    log_odds_ratio = np.log(p[:, 0] * p[:, 3] / (p[:, 1] * p[:, 2]))
    return {f"p {k}": p[:, k] for k in range(4)} | {"log odds ratio": log_odds_ratio}


def _data(name):
    return json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))


# Example 1 ----------------------------------------------------------------------------------------


def randomised_response():
    data = _data("randomised_response")
    response = pmd.RandomizedResponse(data["keep_probability"], categories=2)
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(4))
        record = pm.Categorical("record", p, shape=len(data["answered_male"]))
        response.observe("male", 1 - record // 2, released=np.array(data["answered_male"]))
        response.observe("admitted", 1 - record % 2, released=np.array(data["answered_admitted"]))
    return model


@cache
def restricted_dirichlet(long):
    """The answers' probabilities are Dirichlet, restricted to what some p leads to."""
    data = _data("randomised_response")
    keep = data["keep_probability"]
    male, admitted = np.array(data["answered_male"]), np.array(data["answered_admitted"])
    answers = np.bincount(2 * (1 - male) + (1 - admitted), minlength=4)
    one = np.array([[keep, 1 - keep], [1 - keep, keep]])
    told = np.random.default_rng(1).dirichlet(1 + answers, size=400_000)
    p = np.linalg.solve(np.kron(one, one).T, told.T).T
    p = p[(p > 0).all(axis=1)]
    return {
        name: [(y.mean(), y.std() / np.sqrt(len(y))) for y in (x, x**2)]
        for name, x in _table({"p": p}).items()
    }


# Example 2 ----------------------------------------------------------------------------------------


@cache
def exact_table(long):
    exact = TablePosterior(np.ones(4), gaussian_cell_loglik(RELEASED, SIGMA, N_APPLICANTS))
    laws = {f"p {k}": exact.cell(k) for k in range(4)} | {"log odds ratio": exact.log_odds_ratio()}
    return {name: [(law.mean, 0.0), (law.mean**2 + law.sd**2, 0.0)] for name, law in laws.items()}


# Example 3 ----------------------------------------------------------------------------------------


X_MEAN = np.array([0.9, -1.17])
NOISE_SD = np.sqrt(2.0)
PRIOR_SD = 2.0


def release_sums(x, y):
    data = _data("regression")
    mechanism = pmd.LaplaceMechanism.calibrate(pmd.PureDP(data["epsilon"]), sensitivity=15)
    sums = pmd.statistics.regression(x, y, clamp=tuple(data["clamp"]))
    mechanism.potential("privacy", sums, released=np.array(data["released"]))


def regression():
    n = _data("regression")["n"]
    with pm.Model() as model:
        b = pm.Normal("b", 0, PRIOR_SD, shape=3)
        x = pm.Normal("x", X_MEAN, 1, shape=(n, 2))
        y = pm.Normal("y", b[0] + x @ b[1:], NOISE_SD, shape=n)
        release_sums(x, y)
    return model


@cache
def nuts_on_all_records(long):
    n = _data("regression")["n"]
    with pm.Model():
        b = pm.Normal("b", 0, PRIOR_SD, shape=3)
        x = X_MEAN + pm.Normal("of_x", shape=(n, 2))
        y = b[0] + x @ b[1:] + NOISE_SD * pm.Normal("of_y", shape=n)
        release_sums(x, y)
        draws = pm.sample(
            4_000 if long else 500,
            tune=1_000 if long else 300,
            chains=2,
            cores=1,
            random_seed=5,
            var_names=["b"],
            progressbar=False,
            compute_convergence_checks=False,
            quiet=True,
        )
    b = draws.posterior["b"].values
    return {f"b {k}": _of_draws(b[..., k]) for k in range(3)}


REFERENCES = {
    "example 1": Reference(
        randomised_response,
        ("record",),
        _table,
        restricted_dirichlet,
        interacts=False,
        decides=False,
        iterations=(20_000, 100_000),
    ),
    "example 2": Reference(
        admissions_model,
        ("record",),
        _table,
        exact_table,
        interacts=True,
        decides=True,
        iterations=(3_000, 6_000),
    ),
    "example 3": Reference(
        regression,
        ("x", "y"),
        lambda natural: {f"b {k}": natural["b"][:, k] for k in range(3)},
        nuts_on_all_records,
        interacts=True,
        decides=True,
        iterations=(8_000, 20_000),
    ),
}
