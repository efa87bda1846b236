"""What is answered to mistakes that people make: each answer was read, and says what to write.

Mistakes in which Python, NumPy or PyTensor fail before we are asked are on the page "What can go
wrong"; the last test here says which words they fail with.
"""

import re
from pathlib import Path

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper import statistics
from pymc_dapper.releases import read_opendp

PAGE = (Path(__file__).parents[1] / "docs/what-can-go-wrong.md").read_text("utf-8")

TABLE = [110.0, 131.0, 47.0, 110.0]


@pytest.fixture(scope="module")
def model():
    with pm.Model() as m:
        p = pm.Dirichlet("p", np.ones(4))
        pm.Categorical("record", p, shape=400)
        pm.Normal("x", 0, 1, shape=40)
        pm.Normal("known", 0, 1, observed=np.zeros(40))
        pm.Uniform("rate", 0, 100, shape=4)
    return m


class Given:
    """What a user has at hand."""

    laplace = pmd.LaplaceMechanism(2.0)
    discrete = pmd.DiscreteLaplaceMechanism(2.0)
    budget = pmd.PureDP(0.5)

    def __init__(self, model):
        self.record, self.x, self.known = model["record"], model["x"], model["known"]
        self.rate = model["rate"]
        self.table = statistics.counts(self.record, 4)


MISTAKES = [
    # The release
    (lambda g: g.laplace.potential("s", TABLE, released=g.table), "Did you swap the arguments"),
    (lambda g: g.laplace.potential("s", TABLE, released=g.table.value), "be the published numbers"),
    (lambda g: g.laplace.potential(g.table, "s", released=TABLE), "name and statistic are swapped"),
    (
        lambda g: g.laplace.potential(g.table, released=TABLE),
        'LaplaceMechanism.potential: missing .* Write mechanism.potential("privacy", statistic, ',
    ),
    (
        lambda g: g.laplace.potential("s", released=TABLE),
        "missing .* argument: 'statistic'",
    ),
    (lambda g: g.laplace.potential("s", g.table, TABLE), "too many positional .* released=...)"),
    (
        lambda g: g.laplace.potential("s", g.table),
        "missing .* argument: 'released'. Write mechanism.potential(\"privacy\", statistic, rel",
    ),
    (
        lambda g: g.laplace.potential("s", g.table, released=[1.0, np.nan, 3.0, 4.0]),
        'nan was released: 1 of 4 .*published_if(">=", threshold). Otherwise drop them',
    ),
    (lambda g: g.laplace.potential("s", g.table, released=TABLE[1:]), "shape (3,), where .* (4,)"),
    (lambda g: g.laplace.potential("s", g.x, released=3.0), "Add up the records first, .* x.sum()"),
    (
        lambda g: pmd.NoisyMaxMechanism(2.0, 4).potential("s", g.table, released=3),
        "shape (1,) of this statistic. Write it as a list of one: released=[3]",
    ),
    (lambda g: g.laplace.potential("s", g.table, released=["a"] * 4), "array of real numbers"),
    (
        lambda g: g.discrete.potential("s", g.table, released=[1.5, 2, 3, 4]),
        "releases integers, but .* If the curator scaled the release, undo it first",
    ),
    (
        lambda g: g.laplace.potential("s", g.table, released=np.ma.masked_equal(TABLE, 47.0)),
        "masked entries, 1 of 4.*published_if",
    ),
    (lambda g: pmd.Query("s", "a", g.laplace), "'s': the release must be an array of real numbers"),
    # The statistic
    (lambda g: g.laplace.potential("s", g.record == 1, released=1.0), "False.* pt.eq(x, 1)"),
    (lambda g: statistics.count_where(g.x == 1), "condition is False: Python compares .* pt.eq"),
    (lambda g: statistics.counts(g.record == 1, 2), "record is False: .* Write pt.eq(x, 1)"),
    (
        lambda g: statistics.count_where(g.record),
        "truth value for each .* Write x > 2",
    ),
    (lambda g: statistics.counts(g.x, 4), "categories, .* To count real numbers, use histogram"),
    (lambda g: statistics.counts(g.record, 4.0), "k must be a whole number"),
    (lambda g: statistics.clamped_sum(g.x, 5, 1), "lower must be less than upper, got 5 and 1"),
    (lambda g: statistics.clamped_sum(g.x.sum(), 0, 1), "x must have one axis, over records"),
    (lambda g: statistics.histogram(g.x, [1, 0]), "edges must increase, each above the one before"),
    (
        lambda g: g.table + 1,
        "divided by a public number only.* Compute with its .value",
    ),
    (lambda g: g.table[0], "as in table.value[0]"),
    (lambda g: g.table.sum(), "table.value.sum()"),
    (lambda g: np.mean(g.table), "Compute with its .value"),
    (lambda g: np.asarray(g.table), "no numbers yet: its records are variables.* pt.mean"),
    (
        lambda g: g.laplace.potential("s", [g.x.sum(), g.x.sum()], released=[1.0, 2.0]),
        "NumPy can't compute. In a model, use pytensor.tensor (pt.stack,",
    ),
    (
        lambda g: g.discrete.potential("s", g.rate, released=[1, 2, 3, 4]),
        "A latent count has a discrete prior, such as pm.DiscreteUniform",
    ),
    (
        lambda g: statistics.counts(g.record, 4, neighbours="add_remove") / 400,
        "divided by their number, which isn't public",
    ),
    # Noise and budgets
    (lambda g: pmd.LaplaceMechanism(), "LaplaceMechanism.*missing .* 'scale'"),
    (
        lambda g: pmd.LaplaceMechanism(epsilon=1),
        "no argument 'epsilon'.* write .*calibrate(",
    ),
    (lambda g: pmd.LaplaceMechanism(g.budget), "must be a number, got the budget .* calibrate("),
    (lambda g: pmd.LaplaceMechanism(-1.0), "scale must be positive and finite, got -1"),
    (lambda g: pmd.GaussianMechanism(scale=2), "no argument 'scale', but sigma"),
    (lambda g: pmd.LaplaceMechanism.calibrate(0.5, sensitivity=1), "budget, such as pmd.PureDP"),
    (
        lambda g: pmd.LaplaceMechanism.calibrate(g.budget),
        "LaplaceMechanism.calibrate: missing .* 'sensitivity'. Write .*(budget, sens",
    ),
    (lambda g: pmd.LaplaceMechanism.calibrate(g.budget, 1), "LaplaceMechanism.calibrate: too many"),
    (
        lambda g: pmd.LaplaceMechanism.calibrate(epsilon=0.5, sensitivity=1),
        "such as pmd.PureDP(0.5)",
    ),
    (
        lambda g: pmd.LaplaceMechanism.calibrate(g.budget, sensitivity=g.table),
        "a Statistic: pass its .sensitivity",
    ),
    (
        lambda g: pmd.LaplaceMechanism.calibrate(g.budget, sensitivity=g.table.sensitivity),
        "2 if one person changes and 1 if .* Write PureDP(epsilon=0.5, neighbours='replace')",
    ),
    (
        lambda g: pmd.LaplaceMechanism.calibrate(g.budget, sensitivity=g.table.sensitivity.l2),
        "needs the L1 sensitivity, got the L2",
    ),
    (
        lambda g: pmd.GaussianMechanism.calibrate(g.budget, sensitivity=1),
        "no Gaussian noise keeps a pure budget. .* pass its .to_zcdp()",
    ),
    (
        lambda g: pmd.DiscreteLaplaceMechanism.calibrate(g.budget, sensitivity=1.5),
        "whole number for noise of whole numbers",
    ),
    (lambda g: pmd.PureDP(1, 1e-6), "got 2 numbers. .* with a delta ApproxDP(1, 1e-6)"),
    (lambda g: pmd.PureDP(1, delta=1e-6), "got delta=.* with a delta ApproxDP(1, 1e-6)"),
    (lambda g: pmd.PureDP(0), "epsilon must be a finite number above 0, got 0"),
    (lambda g: pmd.ZCDP(epsilon=1), "got epsilon=.* Epsilon alone is PureDP(1)"),
    (lambda g: pmd.ApproxDP(1, 2), "delta must be a finite number above 0 and below 1, got 2"),
    (lambda g: pmd.PureDP(1, neighbours="swap"), "'replace' .* or 'add_remove' .* got 'swap'"),
    (
        lambda g: pmd.Release(pmd.Query("q", 1.0, g.laplace), budget=0.5),
        "budget must be a PureDP, ZCDP or ApproxDP, got 0.5",
    ),
    # The model
    (lambda g: pmd.assign_steps("x"), "'x' is a name: pass the variable itself, as in model['x']"),
    (lambda g: pmd.assign_steps([g.known]), "'known' is observed: its values are known"),
    (lambda g: pmd.sample(step=[]), "pmd.sample chooses the steps itself"),
    (lambda g: pmd.sample(draw=100), "pmd.sample has no argument 'draw'"),
    (lambda g: pmd.sample(var_names=["mu"]), "there is no variable 'mu', but"),
    (
        lambda g: pmd.assign_steps(progressbar=False),
        "no release of a mechanism. Add it, as in.*pass the",
    ),
    (lambda g: read_opendp({"column": ["len"]}, {}), "there is no column 'aggregate', but column"),
]


@pytest.mark.parametrize(("mistake", "words"), MISTAKES, ids=[words for _, words in MISTAKES])
def test_a_mistake_is_answered_with_what_to_write(mistake, words, model):
    expected = re.escape(words).replace(r"\.\*", ".*")
    with model, pytest.raises((TypeError, ValueError), match=f"(?s){expected}"):
        mistake(Given(model))


def test_records_that_are_observed_are_named():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        y = pm.Normal("y", mu, 1, observed=np.zeros(4))
        pmd.LaplaceMechanism(2.0).potential("s", y.sum(), released=1.0)
    with pytest.raises(
        pmd.ReadingError, match=r"'s' depends on 'y', which is observed.* remove its observed"
    ):
        pmd.assign_steps(model=model, progressbar=False)


def test_a_vector_is_not_called_a_scalar():
    with pm.Model() as model:
        a = pm.MvNormal("a", np.zeros(4), np.eye(4))
        x = pm.Normal("x", 0, 1, shape=9)
        pm.Potential("s", -((a.sum() + x.sum()) ** 2))
    with pytest.raises(pmd.ReadingError, match=r"'a' \(a single vector\), 'x' \(9 along its first"):
        pmd.assign_steps(model=model, progressbar=False)


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (lambda g: (g.x == 1).sum(), "'bool' object has no attribute 'sum'"),
        (lambda g: g.x * (g.x == 1), "unsupported operand type(s) for *: 'TensorVariable' and"),
        (lambda g: np.bincount(g.record), "object of too small depth for desired array"),
        (lambda g: np.mean(g.x), "got an unexpected keyword argument 'out'"),
        (lambda g: np.clip(g.x, 0, 1), "TensorVariable cannot be converted to Python boolean"),
        (lambda g: np.histogram(g.x, [0, 1]), "TensorVariable cannot be converted to Python bool"),
        (lambda g: np.where(g.x > 0, 1, 0), "setting an array element with a sequence"),
        (lambda g: np.eye(4)[g.record], "only integers, slices"),
    ],
)
def test_what_fails_before_we_are_asked_is_on_the_page(mistake, words, model):
    with pytest.raises((AttributeError, TypeError, ValueError, IndexError)) as failure:
        mistake(Given(model))
    assert words in str(failure.value)
    assert words in PAGE
