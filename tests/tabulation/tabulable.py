"""Small models of records that can be tabulated, in many forms, and all their data sets.

Each form says, beside the model, which row each record has (its covariates, group, answer), written
down by hand: so that tables can be counted without asking the code under test.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.tensor.random.basic import BernoulliRV
from scipy.special import logsumexp

import pymc_dapper as pmd
from tests.evaluated_in_python import REWRITTEN


@dataclass(frozen=True)
class Form:
    """A model, the values of its record variables, and the row of each record."""

    model: pm.Model
    values: dict[str, range]
    rows: list[int]
    table: bool = True
    """Whether the records are counted; else they are marginalised."""
    shape: tuple[int, ...] = ()
    """Of a matrix, whose entries are the records."""
    given: dict[str, tuple[str, ...]] | None = None
    """The earlier variables with which each is counted; all of them if this isn't said."""

    def data_sets(self):
        """All data sets, each a dict of arrays."""
        n = len(self.rows)
        joint = list(product(*self.values.values()))
        for records in product(joint, repeat=n):
            columns = np.array(records).T
            yield {
                name: column.reshape(self.shape or len(self.rows))
                for name, column in zip(self.values, columns, strict=True)
            }

    def counts(self, records):
        """The tables of counts of a data set, by the names of the new model's variables."""
        n_rows, names, tables = max(self.rows) + 1, list(self.values), {}
        given = self.given or {name: names[:k] for k, name in enumerate(names)}
        for name in names:
            together = [*given[name], name]
            at = [records[x].ravel() - self.values[x][0] for x in together]
            table = np.zeros((n_rows, *(len(self.values[x]) for x in together)), dtype=int)
            np.add.at(table, (np.array(self.rows), *at), 1)
            table = table[0] if n_rows == 1 else table
            alone = not any(name in [*x] for x in given.values()) and len(together) == 1
            if alone and isinstance(self.model[name].owner.op, BernoulliRV):
                tables[f"{name}_count"] = table[..., 1]
            else:
                tables["_".join(together) + "_counts"] = table
        return tables


def log_density(model):
    return model.compile_logp(mode="FAST_COMPILE")


def random_point(model, names, seed):
    """Values of the parameters."""
    rng = np.random.default_rng(seed)
    point = model.initial_point()
    return {
        name: rng.normal(0, 0.7, np.shape(value))
        for name, value in point.items()
        if name not in names
    }


def differences(form, tabulated):
    """Of each table, its log-density less that of all data sets behind it; and of all together."""
    point = random_point(form.model, form.values, seed=3)
    of_records, of_counts = form.model.compile_logp(mode=REWRITTEN), log_density(tabulated)
    behind = {}
    for records in form.data_sets():
        tables = form.counts(records) if form.table else {}
        key = tuple(x.tobytes() for x in tables.values())
        behind.setdefault(key, (tables, []))[1].append(float(of_records({**point, **records})))
    found = [float(of_counts({**point, **tables})) for tables, _ in behind.values()]
    expected = [logsumexp(logs) for _, logs in behind.values()]
    possible = np.isfinite(expected)
    assert possible.any()
    assert np.array_equal(possible, np.isfinite(found))
    each = np.array(found)[possible] - np.array(expected)[possible]
    return [*each, logsumexp(found) - logsumexp(expected)]


def _normal(name, released, statistic, sigma):
    pm.Potential(name, -0.5 * (((np.array(released) - statistic) / sigma) ** 2).sum())


def categories():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([1.0, 2.0, 3.0]))
        x = pm.Categorical("x", p=p, shape=4)
        pmd.DiscreteGaussianMechanism(1.5).potential(
            "privacy", pmd.statistics.counts(x, 3), released=[2, 1, 3]
        )
    return Form(model, {"x": range(3)}, [0] * 4)


def zeros_and_ones():
    with pm.Model() as model:
        p = pm.Beta("p", 2, 3)
        x = pm.Bernoulli("x", p, shape=6)
        pmd.LaplaceMechanism(1.0).potential("privacy", x.sum(), released=2.3)
    return Form(model, {"x": range(2)}, [0] * 6)


def covariate():
    z = np.array([0.5, -1.0, 0.5, 0.5, -1.0, 2.0])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        y = pm.Bernoulli("y", logit_p=b[0] + b[1] * z, shape=6)
        design = np.column_stack([np.ones(6), z])
        pmd.LaplaceMechanism(1.0).potential("privacy", design.T @ y, released=[2.0, 1.5])
    return Form(model, {"y": range(2)}, [1, 0, 1, 1, 0, 2])


def centred_covariate():
    z = pt.as_tensor(np.array([0.5, -1.0, 0.5, 0.5, -1.0]))
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1)
        y = pm.Bernoulli("y", logit_p=b * (z - z.mean()), shape=5)
        pmd.GaussianMechanism(1.0).potential("privacy", ((z - z.mean()) * y).sum(), released=0.5)
    return Form(model, {"y": range(2)}, [1, 0, 1, 1, 0])


def data_covariate():
    with pm.Model() as model:
        z = pm.Data("z", np.array([0.5, -1.0, 0.5, 0.5, -1.0]))
        b = pm.Normal("b", 0, 1)
        y = pm.Bernoulli("y", logit_p=b * z)
        pmd.GaussianMechanism(1.0).potential("privacy", (z * y).sum(), released=0.5)
    return Form(model, {"y": range(2)}, [1, 0, 1, 1, 0])


def groups():
    area = np.array([0, 2, 2, 1, 0, 2])
    with pm.Model(coords={"area": ["a", "b", "c"]}) as model:
        mu, tau = pm.Normal("mu", 0, 1), pm.HalfNormal("tau", 1)
        effect = pm.Normal("effect", 0, 1, dims="area")
        y = pm.Bernoulli("y", logit_p=mu + tau * effect[area], shape=6)
        by_area = pt.inc_subtensor(pt.zeros(3)[area], y)
        pmd.LaplaceMechanism(0.7).potential("privacy", by_area, released=[1.0, 0.2, 2.5])
        pm.Deterministic("share", y.mean())
    return Form(model, {"y": range(2)}, [0, 2, 2, 1, 0, 2])


def groups_and_categories():
    area = np.array([1, 0, -1, 1])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([1.0, 1.0, 2.0]), shape=(2, 3))
        x = pm.Categorical("x", p=p[area])
        _normal("privacy", [[1, 0, 1], [0, 2, 1]], pt.zeros((2, 3))[area, x].inc(1), 1.2)
    return Form(model, {"x": range(3)}, [2, 1, 0, 2])


def slopes():
    area, z = np.array([0, 1, 1, 0, 1]), np.array([0.5, -1.0, 0.5, 0.5, 0.5])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=(2, 2))
        y = pm.Bernoulli("y", logit_p=b[area, 0] + b[area, 1] * z)
        _normal("privacy", [1.1, 0.4], pt.zeros(2)[area].inc(y), 1.0)
    return Form(model, {"y": range(2)}, [0, 1, 2, 0, 2])


def group_probabilities():
    area = np.array([1, 0, 1, 1])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([1.0, 1.0, 2.0]), shape=(2, 3))
        x = pm.Categorical("x", p=p[area])
        pmd.DiscreteLaplaceMechanism(1.2).potential(
            "privacy",
            pmd.statistics.cross_counts(pt.as_tensor(area), x, 2, 3),
            released=[[1, 0, 1], [0, 2, 1]],
        )
    return Form(model, {"x": range(3)}, [1, 0, 1, 1])


def randomised_response():
    answers = np.array([0, 1, 1, 2])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Categorical("x", p=p, shape=4)
        pmd.RandomizedResponse(0.6, categories=3).observe("answer", x, released=answers)
        pm.Deterministic("ratio", p[0] / p[1])
    return Form(model, {"x": range(3)}, [0, 1, 1, 2], table=False)


def two_answers():
    first, second = np.array([0, 1, 1]), np.array([1, 1, 1])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(4))
        x = pm.Categorical("x", p=p, shape=3)
        each = pmd.RandomizedResponse(0.75, categories=2)
        each.observe("first", 1 - x // 2, released=first)
        each.potential("second", 1 - x % 2, released=second)
    return Form(model, {"x": range(4)}, [0, 1, 1], table=False)


def answers_of_groups():
    answers, group = np.array([0, 1, 1]), np.array([0, 1, 1])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        x = pm.Bernoulli("x", logit_p=b[group])
        y = pm.Categorical("y", p=pt.as_tensor([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])[x])
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=answers)
        pmd.RandomizedResponse(0.5, categories=3).potential("other", y, released=2 * answers)
    return Form(model, {"x": range(2), "y": range(3)}, [0, 1, 1], table=False)


def answers_by_covariates():
    """No two people are alike."""
    z = np.array([[-0.7, 0.2], [0.1, 1.3], [0.9, -1.1], [1.6, 0.4]])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        shift = pm.Data("shift", z[:, 1])
        x = pm.Bernoulli("x", logit_p=b[0] + b[1] * z[:, 0] + shift)
        y = pm.Bernoulli("y", 0.2 + 0.5 * x)
        mechanism = pmd.RandomizedResponse(0.7, categories=2)
        mechanism.observe("answer", y, released=[0, 1, 1, 0])
    return Form(model, {"x": range(2), "y": range(2)}, [0, 1, 2, 3], table=False)


def answers_and_counts():
    answers = np.array([1, 0, 1, 1, 0])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(2))
        x = pm.Categorical("x", p=p, shape=5)
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=answers)
        pmd.GaussianMechanism(1.0).observe("total", x.sum(), released=2.2)
    return Form(model, {"x": range(2)}, [1, 0, 1, 1, 0])


def outcomes():
    y = np.array([0.3, -1.0, 0.3, 0.3])
    with pm.Model() as model:
        p, mean = pm.Beta("p", 1, 1), pm.Normal("mean", 0, 1, shape=2)
        x = pm.Bernoulli("x", p, shape=4)
        pm.Normal("y", mean[x], 0.8, observed=y)
        _normal("privacy", 1.7, x.sum(), 1.0)
    return Form(model, {"x": range(2)}, [1, 0, 1, 1])


def outcomes_of_two():
    """What is observed depends on parameters, defined later, and on one variable or on both."""
    ill, visits = np.array([1, 0, 1]), np.array([2, 0, 2])
    with pm.Model() as model:
        p, q = pm.Beta("p", 1, 2), pm.Dirichlet("q", np.ones(3), shape=(2, 3))
        sex = pm.Bernoulli("sex", p, shape=3)
        age = pm.Categorical("age", q[sex])
        b, rate = pm.Normal("b", 0, 1, shape=3), pm.Exponential("rate", 1, shape=2)
        pm.Bernoulli("ill", logit_p=b[0] + b[1] * sex + b[2] * age, observed=ill)
        pm.Poisson("visits", rate[sex], observed=visits)
        _normal("privacy", [1.3, 0.4, 1.9], pmd.statistics.counts(age, 3).value, 1.0)
    return Form(model, {"sex": range(2), "age": range(3)}, [1, 0, 1])


def impossible_outcomes():
    """Some values of a variable make what is observed impossible, whatever the other is."""
    with pm.Model() as model:
        p, q = pm.Beta("p", 1, 2), pm.Beta("q", 1, 1)
        x = pm.Bernoulli("x", p, shape=4)
        y = pm.Categorical("y", pt.as_tensor([[0.4, 0.0, 0.6], [0.3, 0.7, 0.0]])[x])
        pm.Bernoulli("seen", q * pt.eq(y, 0), observed=np.array([0, 1, 0, 0]))
        pm.Potential("law", pt.switch(pt.eq(y, 2), -np.inf, q * x))
        _normal("privacy", 1.3, x.sum(), 1.0)
    return Form(model, {"x": range(2), "y": range(3)}, [0, 1, 0, 0])


def outcomes_of_a_chain():
    """Linked tables, with outcomes of one column and of two."""
    with pm.Model() as model:
        p, slope = pm.Beta("p", 1, 1, shape=5), pm.Normal("slope", 0, 1, shape=4)
        a = pm.Bernoulli("a", p[0], shape=3)
        b = pm.Bernoulli("b", p[1 + a])
        c = pm.Bernoulli("c", p[3 + b])
        pm.Bernoulli("of_b", logit_p=slope[0] * b, observed=[0, 1, 0])
        pm.Normal("of_bc", slope[1] * b + slope[2] * c * b, 1.0, observed=[-0.6, 0.3, -0.6])
        pm.Poisson("of_c", pt.exp(slope[3] * c), observed=[0, 2, 0])
        table = pmd.statistics.joint_counts((a, b), (2, 2)).value
        _normal("ab", [[1.2, 0.4], [0.1, 0.8]], table, 0.9)
    given = {"a": (), "b": ("a",), "c": ("b",)}
    return Form(model, dict.fromkeys("abc", range(2)), [0, 1, 0], given=given)


def two_variables():
    with pm.Model() as model:
        p, q = pm.Beta("p", 1, 2), pm.Dirichlet("q", np.ones(3), shape=(2, 3))
        sex = pm.Bernoulli("sex", p, shape=3)
        status = pm.Categorical("status", p=q[sex])
        table = pmd.statistics.cross_counts(sex, status, 2, 3)
        pmd.LaplaceMechanism(1.1).potential(
            "privacy", table, released=[[1.0, 0.5, 0.0], [1.2, 0.0, 2.0]]
        )
    return Form(model, {"sex": range(2), "status": range(3)}, [0] * 3)


def two_variables_and_covariate():
    z = np.array([0.0, 1.5, 0.0, 0.0])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=3)
        sick = pm.Bernoulli("sick", logit_p=b[0] + b[1] * z)
        tested = pm.Bernoulli("tested", logit_p=b[2] * (2 * sick - 1))
        _normal("positive", 1.3, (sick * tested).sum(), 0.9)
        _normal("tests", 2.6, tested.sum(), 0.5)
    return Form(model, {"sick": range(2), "tested": range(2)}, [0, 1, 0, 0])


def missing_category():
    with pm.Model() as model:
        a = pm.Beta("a", 1, 1)
        x = pm.Categorical("x", p=pt.stack([0.0, a, 1 - a]), shape=4)
        _normal("privacy", [0.4, 1.8], pmd.statistics.counts(x, 2).value, 1.0)
    return Form(model, {"x": range(3)}, [0] * 4)


def several_releases():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Categorical("x", p=p, shape=4)
        table = pmd.statistics.counts(x, 3).value
        pmd.DiscreteGaussianMechanism(1.0).observe("cells", table, released=[1, 3, 1])
        pmd.LaplaceMechanism(0.5).potential("first", table[0] + table[1], released=3.6)
        pmd.LaplaceMechanism(0.9).potential("scores", (x**2).sum(), released=7.0)
    return Form(model, {"x": range(3)}, [0] * 4)


def counts_of_an_office():
    """Rounded at random with a margin of its own; changed by a table, and then suppressed."""
    changes = [[0, 1, 0], [0.3, 0.5, 0.2]]
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Categorical("x", p=p, shape=4)
        table = pmd.statistics.counts(x, 3).value
        pmd.RandomRounding(3).observe("rounded", table, released=[0, 3, 3])
        pmd.RandomRounding(3).potential("margin", table[:2].sum(), released=3)
        changed = pmd.TransitionMechanism(changes, differences=[-1, 0, 1], repeats=1)
        hidden = np.ma.masked_equal([0, 0, 2], 0)
        changed.published_if(">=", 2).potential("changed", table, released=hidden)
    return Form(model, {"x": range(3)}, [0] * 4)


def functions_of_counts():
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Categorical("x", p=p, shape=4)
        table = pmd.statistics.counts(x, 3).value
        _normal("ratio", 0.7, table[0] / (1 + table[1]), 0.3)
        _normal("largest", 2.0, table.max(), 0.6)
        _normal("spread", 0.5, ((x - x.mean()) ** 2).mean(), 0.2)
    return Form(model, {"x": range(3)}, [0] * 4)


def unknown_scale():
    with pm.Model() as model:
        p, sigma = pm.Beta("p", 1, 1), pm.HalfNormal("sigma", 2)
        x = pm.Bernoulli("x", p, shape=6)
        pm.Normal("released", x.sum(), sigma, observed=2.5)
        pm.Potential("more", pm.logp(pm.Normal.dist(x.mean(), sigma), 0.4))
    return Form(model, {"x": range(2)}, [0] * 6)


def binomial_records():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Binomial("x", 2, p, shape=3)
        _normal("variance", 0.6, x.var(), 0.3)
        _normal("mean", 1.1, x.mean(), 0.3)
    return Form(model, {"x": range(3)}, [0] * 3)


def beta_binomial_records():
    with pm.Model() as model:
        spread = pm.Exponential("spread", 1)
        x = pm.BetaBinomial("x", 0.5 + spread, 1.5, 2, shape=3)
        _normal("privacy", [0.8, 1.4, 1.1], pmd.statistics.counts(x, 3).value, 1.0)
    return Form(model, {"x": range(3)}, [0] * 3)


def binomial_records_of_groups():
    group = np.array([0, 1, 0])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        x = pm.Binomial("x", 2, pm.math.sigmoid(b[0] + b[1] * group))
        _normal("sum", 1.6, x.sum(), 0.8)
    return Form(model, {"x": range(3)}, [0, 1, 0])


def uniform_records():
    weight = np.array([1.0, 1.0, 3.0, 1.0])
    with pm.Model() as model:
        scale = pm.Exponential("scale", 1)
        x = pm.DiscreteUniform("x", -1, 1, shape=4)
        _normal("privacy", 1.2, (weight * pt.exp(scale * x)).sum(), 1.0)
    return Form(model, {"x": range(-1, 2)}, [0, 0, 1, 0])


def logits():
    z = np.array([[0.0, 1.0], [1.0, 0.5], [0.0, 1.0], [0.0, 1.0]])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=(2, 3))
        x = pm.Categorical("x", logit_p=z @ b)
        _normal("privacy", [1.0, 2.0, 1.2], pt.eye(3)[x].sum(axis=0), 1.0)
    return Form(model, {"x": range(3)}, [0, 1, 0, 0])


def picked():
    """A sum over one group with public weights."""
    group, z = np.array([0, 1, 1, 0, 1]), np.array([0.5, 3.0, -2.0, 0.5, 7.0])
    with pm.Model() as model:
        k = pm.Binomial("k", 2, pm.Beta("p", 2, 3), shape=5)
        seen = pt.stack([k[group == 0].sum(), (pt.exp(z[group == 0]) * k[group == 0]).sum()])
        pmd.LaplaceMechanism(1.0).potential("privacy", seen, released=[2.3, 3.0])
    # Others may differ in what nothing sees of them.
    return Form(model, {"k": range(3)}, [1, 0, 0, 1, 0])


def picked_columns():
    """Tables of each group, the first records, and one that is picked twice."""
    group = np.array([1, 0, 1, 0])
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((2, 3)))
        x = pm.Categorical("x", p[group], shape=4)
        y = pm.Bernoulli("y", pm.math.sigmoid(x - 1.0), shape=4)
        for k in range(2):
            table = pmd.statistics.counts(x[group == k], 3)
            pmd.LaplaceMechanism(1.0).potential(f"privacy_{k}", table, released=[1.0, 0.0, 2.0])
        pmd.LaplaceMechanism(1.0).potential("both", (x * y)[group == 1].sum(), released=1.0)
        pmd.LaplaceMechanism(2.0).potential("twice", x[[3, 1, 3, 1]].sum(), released=1.0)
    return Form(model, {"x": range(3), "y": range(2)}, [1, 0, 1, 0])


def answers_in_columns():
    """Of a matrix, each entry is a record, with a row for its column and answer."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([[1.0, 2.0, 3.0], [2.0, 2.0, 1.0]]))
        x = pm.Categorical("x", p, shape=(3, 2))
        mechanism = pmd.RandomizedResponse(0.6, categories=3)
        mechanism.observe("answer", x, released=pm.Data("released", [[0, 2], [1, 0], [0, 2]]))
    return Form(model, {"x": range(3)}, [0, 3, 1, 2, 0, 3], table=False, shape=(3, 2))


def item_responses():
    """People differ in what isn't known: each entry has its own row."""
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1)
        ability = pm.Normal("ability", 0, scale, shape=3)
        difficulty = pm.Normal("difficulty", 0, 1, shape=2)
        x = pm.Bernoulli("x", logit_p=ability[:, None] - difficulty, shape=(3, 2))
        mechanism = pmd.RandomizedResponse(0.7, categories=2)
        mechanism.potential("answer", x, released=[[0, 1], [1, 1], [1, 0]])
        pm.Normal("outcome", 0.5 * x + pm.math.exp(difficulty), 1.0, observed=np.eye(3)[:, :2])
    return Form(model, {"x": range(2)}, list(range(6)), table=False, shape=(3, 2))


def one_of_each():
    """Records whose distributions depend on a free variable of each."""
    with pm.Model() as model:
        ability = pm.Normal("ability", 0, 1, shape=4)
        p = pm.Deterministic("p", pm.math.sigmoid(1 - 2 * ability))
        x = pm.Bernoulli("x", p, shape=4)
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=[0, 1, 1, 1])
    return Form(model, {"x": range(2)}, list(range(4)), table=False)


def sums_of_columns():
    """A matrix of which totals are known, of columns and of all, with an axis of length 1."""
    z = np.array([0.5, -1.0, 0.5, 0.5])
    with pm.Model() as model:
        b = pm.Normal("b", 0, 1, shape=2)
        x = pm.Bernoulli("x", logit_p=b * z[:, None, None], shape=(4, 1, 2))
        of_columns = pmd.GaussianMechanism(1.0)
        of_columns.observe("columns", x.sum(axis=0), released=[[2.0, 0.3]])
        pmd.LaplaceMechanism(1.0).potential("all", (z[:, None, None] * x).sum(), released=1.2)
        pm.Deterministic("share", x.mean())
    return Form(model, {"x": range(2)}, [1, 3, 0, 2, 1, 3, 1, 3], shape=(4, 1, 2))


def chain():
    """Columns of three values, of which each is seen with the next."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.array([1.0, 2.0, 3.0]))
        q = pm.Dirichlet("q", np.ones((2, 3, 3)))
        a = pm.Categorical("a", p, shape=2)
        b = pm.Categorical("b", q[0][a])
        c = pm.Categorical("c", q[1][b])
        for name, pair in {"ab": (a, b), "bc": (b, c)}.items():
            table = pmd.statistics.joint_counts(pair, (3, 3)).value
            _normal(name, np.arange(9).reshape(3, 3) / 4, table, 0.9)
    given = {"a": (), "b": ("a",), "c": ("b",)}
    return Form(model, dict.fromkeys("abc", range(3)), [0, 0], given=given)


def star():
    """With public groups, answers, and numbers; nothing sees ``b`` and ``c`` together."""
    group, answers = np.array([0, 1, 0]), np.array([1, 0, 1])
    with pm.Model() as model:
        slope, share = pm.Normal("slope", 0, 1, shape=2), pm.Beta("share", 1, 2, shape=(2, 2))
        a = pm.Bernoulli("a", logit_p=slope[group])
        b = pm.Bernoulli("b", share[group, a])
        c = pm.Binomial("c", 2, 0.2 + 0.4 * a)
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", (a + b) % 2, released=answers)
        _normal(
            "ab", [[1.2, 0.3], [0.8, 0.1]], pmd.statistics.joint_counts([a, b], (2, 2)).value, 0.8
        )
        _normal("ac", [0.5, 1.8], pt.stack([(a * c).sum(), (group * c).sum()]), 0.6)
        pm.Deterministic("mean", c.mean())
    given = {"a": (), "b": ("a",), "c": ("a",)}
    values = {"a": range(2), "b": range(2), "c": range(3)}
    return Form(model, values, [0, 1, 0], given=given)


def triangle():
    """Seen by pairs, all of which the one table has."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=5)
        a = pm.Bernoulli("a", p[0], shape=3)
        b = pm.Bernoulli("b", p[1 + a])
        c = pm.Bernoulli("c", p[3 + a])
        for name, pair in {"ab": (a, b), "bc": (b, c), "ac": (a, c)}.items():
            table = pmd.statistics.joint_counts(pair, (2, 2)).value
            _normal(name, [[1.2, 0.4], [0.1, 0.8]], table, 0.9)
    return Form(model, dict.fromkeys("abc", range(2)), [0] * 3)


def ring():
    """Four columns; the fourth is seen with the first, so that the third is counted with it."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=7)
        a = pm.Bernoulli("a", p[0], shape=2)
        b = pm.Bernoulli("b", p[1 + a])
        c = pm.Bernoulli("c", p[3 + b])
        d = pm.Bernoulli("d", p[5 + c])
        for name, pair in {"ab": (a, b), "bc": (b, c), "cd": (c, d), "ad": (a, d)}.items():
            table = pmd.statistics.joint_counts(pair, (2, 2)).value
            _normal(name, [[1.2, 0.4], [0.1, 0.8]], table, 0.9)
    given = {"a": (), "b": ("a",), "c": ("a", "b"), "d": ("a", "c")}
    return Form(model, dict.fromkeys("abcd", range(2)), [0] * 2, given=given)


def ratio_of_sums():
    """Nothing sees a person's two columns together."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 2)
        x = pm.Bernoulli("x", p, shape=4)
        y = pm.Categorical("y", pt.stack([p / 2, 1 - p, p / 2]), shape=4)
        _normal("ratio", 0.7, x.sum() / (1 + y.sum()), 0.3)
    return Form(model, {"x": range(2), "y": range(3)}, [0] * 4, given={"x": (), "y": ()})


LINKED = [ring, star, chain]  # the first, in every run, has fewest data sets
FORMS = [
    *LINKED,
    triangle,
    ratio_of_sums,
    answers_in_columns,
    item_responses,
    one_of_each,
    sums_of_columns,
    picked,
    picked_columns,
    categories,
    zeros_and_ones,
    covariate,
    centred_covariate,
    data_covariate,
    groups,
    groups_and_categories,
    slopes,
    group_probabilities,
    randomised_response,
    two_answers,
    answers_of_groups,
    answers_by_covariates,
    answers_and_counts,
    outcomes,
    outcomes_of_two,
    impossible_outcomes,
    outcomes_of_a_chain,
    two_variables,
    two_variables_and_covariate,
    missing_category,
    several_releases,
    counts_of_an_office,
    functions_of_counts,
    unknown_scale,
    binomial_records,
    beta_binomial_records,
    binomial_records_of_groups,
    uniform_records,
    logits,
]
