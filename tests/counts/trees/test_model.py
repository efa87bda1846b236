"""Counts on the tree of a model, beside all tables: log-sums, draws, derivatives, refusals.

Tables, compiled: held against the same in Python.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pymc as pm
import pytest
from scipy import special, stats

import pymc_dapper as pmd
from pymc_dapper.counts.trees.model import ModelTree, NoTreeError, compile_tree
from tests.counts.trees.tree_models import (
    COUNTS,
    MODELS,
    START,
    given_of,
    log_densities,
    tables_of,
    tree_of,
)
from tests.evaluated_in_python import evaluated_in_python

FIELDS = ["starts", "lowest", "values", "tops", "beyond", "highest"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["families", "levels"])  # these have most laws and kinds of noise
def test_compiled_and_in_python_are_the_same(name):
    model = MODELS[name]()
    with evaluated_in_python():
        tree = tree_of(model, COUNTS[name])
    compiled = compile_tree(tree.reading, tree.tree, {})
    counts, given = np.array(START[name]), given_of(tree.reading, model.initial_point())
    for drop in (20.0, 50.0):
        tables = [each.tables(counts, given, drop) for each in (tree, compiled)]
        for field in FIELDS:
            a, b = (getattr(x, field) for x in tables)
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@pytest.fixture(autouse=True)
def _in_python():
    with evaluated_in_python():
        yield


def points(model, n=2):
    """Points at some distance of each other."""
    start, rng = model.initial_point(), np.random.default_rng(2)
    names = {x.name for x in model.continuous_value_vars}
    for k in range(n):
        yield {x: y + 0.8 * k * rng.normal(size=np.shape(y)) if x in names else y
               for x, y in start.items()}  # fmt: skip


@cache
def built(name):
    """A model, its tree with derivatives by all parameters, and its log-density."""
    model = MODELS[name]()
    return model, tree_of(model, COUNTS[name]), log_densities(name, model)


def log_sum(solved):
    """The logarithm of the sum, over all tables, of the counts' weights."""
    return solved.messages.log_totals.sum() + solved.tables.tops.sum()


def enumerated(name, point):
    """All tables, their log-densities, and that of the possible counts."""
    tables, (_, _, of) = tables_of(name), built(name)
    return tables, of(point, tables), of(point, np.array([START[name]]))[0]


FEW = [pytest.param(x, marks=pytest.mark.long) if x == "families" else x for x in MODELS]


@pytest.mark.parametrize("name", FEW)
def test_the_log_sum_is_that_over_all_tables(name):
    model, tree, _ = built(name)
    for point in points(model):
        tables, logs, here = enumerated(name, point)
        given, expected = given_of(tree.reading, point), special.logsumexp(logs) - here
        solved = tree.solve(np.array(START[name]), given)
        assert log_sum(solved) == pytest.approx(expected, rel=1e-12, abs=1e-12)
        # From other possible counts, far from likely ones, the sum is the same.
        far = int(np.argmin(np.where(logs > -np.inf, logs, np.inf)))
        from_far = log_sum(tree.solve(tables[far], given))
        assert from_far + logs[far] == pytest.approx(special.logsumexp(logs), rel=1e-12)
        for k in np.random.default_rng(1).choice(len(tables), 9):
            found = tree.log_weight(solved, tables[k])
            if found > -np.inf:
                assert found == pytest.approx(logs[k] - here, rel=1e-10, abs=1e-10)
            else:  # beyond the windows
                assert logs[k] - special.logsumexp(logs) < -28


def test_sums_whose_noise_has_the_tails_of_their_parts():
    """Parts that nothing else is known of; tilted by as much as the noise bends, they have no end.

    A rate of 1, whose logarithm is 0, too: the terms see all cells the same way.
    """
    with pm.Model() as model:
        x = pm.Poisson("x", [1.0, 3.0])
        y = pm.NegativeBinomial("y", n=3.0, p=0.6, shape=2)
        pmd.LaplaceMechanism(1.0).potential("light", x.sum(), released=3.3)
        pmd.LaplaceMechanism(1.0).potential("heavy", y.sum(), released=4.2)
    tree, k, start = tree_of(model, ["x", "y"]), np.arange(200), np.array([1, 2, 0, 3])
    found = log_sum(tree.solve(start, given_of(tree.reading, model.initial_point())))
    heavy = stats.nbinom(3.0, 0.6)
    for law, released, parts, here in (
        (stats.poisson(4.0), 3.3, (stats.poisson(1.0), stats.poisson(3.0)), start[:2]),
        (stats.nbinom(6.0, 0.6), 4.2, (heavy, heavy), start[2:]),
    ):
        found += sum(part.logpmf(n) for part, n in zip(parts, here, strict=True))
        found += stats.laplace.logpdf(released, here.sum())
        found -= special.logsumexp(law.logpmf(k) + stats.laplace.logpdf(released, k))
    assert abs(found) < 1e-11


def test_a_sum_that_is_likely_beyond_the_first_windows_of_its_parts():
    """A rate that is marginalised leaves a term of the total that grows as long as noise lets it.

    That is likelier at a hundred people than where the parts are, which wider windows hold.
    """
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2.0, 0.5)
        x = pm.Poisson("x", rate * np.array([1.5, 2.0]))
        pmd.GaussianMechanism(6.0).potential("all", x.sum(), released=-2.0)
        step = pmd.CountStep([x], integrate=[rate], tree=True)
    k, at = np.arange(400), np.array([2, 1])
    logs = stats.nbinom.logpmf(k, 2, 0.5 / 4) + stats.norm.logpdf(-2.0, k, 6.0)
    of_cells = stats.binom.logpmf(at[0], at.sum(), 1.5 / 3.5)
    found = log_sum(step._tree.solve(at, step._given(model.initial_point())))
    assert found == pytest.approx(special.logsumexp(logs) - logs[at.sum()] - of_cells, abs=1e-11)


def judged(tree, name, solve=ModelTree.solve, n=4_000):
    """Log of the p-value that draws have the tables' distribution, and the log-sum's error."""
    point = built(name)[0].initial_point()
    tables, logs, here = enumerated(name, point)
    solved = solve(tree, np.array(START[name]), given_of(tree.reading, point))
    rng, p = np.random.default_rng(3), np.exp(logs - special.logsumexp(logs))
    likely = np.argsort(-p)[:12]
    seen = dict.fromkeys(map(tuple, tables[likely]), 0)
    for _ in range(n):
        drawn = tuple(tree.draw(rng, solved))
        if drawn in seen:
            seen[drawn] += 1
    observed = np.array([*seen.values(), n - sum(seen.values())])
    expected = max(n, 1) * np.append(p[likely], 1 - p[likely].sum())
    statistic = ((observed - expected) ** 2 / expected).sum()
    return (
        stats.chi2.logsf(statistic, len(likely)),
        log_sum(solved) - special.logsumexp(logs) + here,
    )


@pytest.mark.parametrize("name", FEW)
def test_draws_have_the_distribution_of_all_tables(name):
    log_p, error = judged(built(name)[1], name)
    assert log_p > np.log(1e-3)
    assert abs(error) < 1e-10


def cut(tree, counts, given):
    """Solve with windows that end two standard deviations from the mean, as if that was all."""
    tables = ModelTree.tables

    def narrow(self, *arguments):
        found = tables(self, *arguments)
        values = found.values.copy()
        for start, stop in zip(found.starts[:-1], found.starts[1:], strict=True):
            p = special.softmax(values[start:stop])
            x = np.arange(stop - start)
            mean = p @ x
            beyond = np.abs(x - mean) > 2 * np.sqrt(p @ (x - mean) ** 2)
            values[start:stop][beyond] = -np.inf
        return found._replace(values=values, beyond=0 * found.beyond)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModelTree, "tables", narrow)
        return tree.solve(counts, given)


def test_a_window_of_two_standard_deviations_fails():
    _, error = judged(built("latent totals")[1], "latent totals", cut, n=0)
    assert abs(error) > 1e-3


def test_a_message_that_is_used_twice_fails():
    model, tree, _ = built("known total")
    twice = np.where(tree.right >= 0, tree.left, -1)
    twin = replace(tree, right=twice)
    given = given_of(tree.reading, model.initial_point())
    _, logs, here = enumerated("known total", model.initial_point())
    try:
        found = log_sum(twin.solve(np.array(START["known total"]), given))
    except NoTreeError:
        found = np.inf
    assert abs(found - special.logsumexp(logs) + here) > 1e-3


def test_an_invariant_that_is_ignored_fails():
    model, tree, _ = built("known total")
    twin = tree_of(model, ["x"], exact=np.zeros_like(tree.tree.exact))
    log_p, error = judged(twin, "known total")
    assert log_p < np.log(1e-6)
    assert abs(error) > 1e-3


def refused(model, counts, start):
    tree = tree_of(model, counts)
    with pytest.raises(NoTreeError) as error:
        tree.solve(np.array(start), given_of(tree.reading, model.initial_point()))
    return str(error.value)


def test_what_cannot_be_drawn_on_a_tree_is_refused_by_name():
    with pm.Model() as model:
        n = pm.NegativeBinomial("n", mu=5, alpha=2)
        x = pm.Multinomial("x", n=n, p=[0.5, 0.5])
        pmd.LaplaceMechanism(1.0).potential("cells", x, released=[2.0, 3.0])
    # What the total's law leaves once cells are independent: it has no largest value.
    assert "the log-density of their sum has no maximum" in refused(model, ["n", "x"], [5, 2, 3])
    with pm.Model() as model:
        x = pm.Poisson("x", 3.0, shape=2)
        pmd.invariant("whole", x.sum(), 4)
        pm.Uniform("near", x[0] - 1.0, x[0] + 1.0, observed=3.5)
    assert "'x' at [0]" in refused(model, ["x"], [1, 3])
    assert "is -inf or nan at the chain" in refused(model, ["x"], [1, 3])
    with pm.Model() as model:
        x = pm.Poisson("x", 1e15, shape=2)
        pm.Normal("sum", x.sum(), 1.0, observed=2e15)
    assert "leaves too many values of them possible" in refused(model, ["x"], [10**15, 10**15])
