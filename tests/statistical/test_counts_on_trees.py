"""Counts on a tree: CountStep's draws by ranks of the truth."""

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import pymc_dapper as pmd

pytestmark = pytest.mark.long

# The whole, by simulation: trees of a forest are replicates -------------------------------

REPLICATES, DRAWS, THIN = 300, 30, 10
SHAPE, SCALE, PEOPLE_PER_RATE = 2.0, 2.0, np.array([0.5, 1.0, 2.0])


def forest(rng):
    """Rates with three counts each, released with noise at three levels, and the truth."""
    rate = rng.gamma(SHAPE, SCALE, REPLICATES)
    table = rng.poisson(rate[:, None] * PEOPLE_PER_RATE)
    cells = pmd.LaplaceMechanism(4.0)
    pair, all_ = pmd.DiscreteLaplaceMechanism(4.0), pmd.DiscreteGaussianMechanism(6.0)
    with pm.Model() as model:
        r = pm.Gamma("rate", SHAPE, 1 / SCALE, shape=REPLICATES)
        x = pm.Poisson("table", r[:, None] * PEOPLE_PER_RATE)
        for name, mechanism, of in (
            ("cells", cells, lambda x: x),
            ("pair", pair, lambda x: x[:, :2].sum(axis=1)),
            ("all", all_, lambda x: x.sum(axis=1)),
        ):
            mechanism.potential(name, of(x), released=mechanism.release(of(table), random_seed=rng))
    return model, rate, table


def quantities(rate, table):
    """What is ranked; the last is of both, and finds out whether they belong together."""
    total, expected = table.sum(axis=-1), rate * PEOPLE_PER_RATE.sum()
    return np.stack([rate, table[..., 0], total, (total - expected) ** 2 / expected])


def p_values(step, model, rate, table):
    """Of ranks of the truth among draws being uniform."""
    posterior = pm.sample(
        draws=DRAWS * THIN,
        tune=100,
        chains=1,
        cores=1,
        step=step,
        model=model,
        random_seed=6,
        progressbar=False,
        compute_convergence_checks=False,
    ).posterior
    drawn = quantities(*(posterior[name].values[0, ::THIN] for name in ("rate", "table")))
    truth, rng = quantities(rate, table)[:, None], np.random.default_rng(7)
    below, ties = (drawn < truth).sum(axis=1), (drawn == truth).sum(axis=1)
    places = (below + rng.random(below.shape) * (ties + 1)) / (DRAWS + 1)
    return [stats.kstest(of, "uniform").pvalue for of in places]


class Forgetful(pmd.CountStep):
    """Passes messages once, and not again when parameters have changed."""

    def _draw_anew(self, tree, counts, given):
        if self._messages is not None:
            self._messages = [np.copy(x) for x in given], self._messages[1]
        return super()._draw_anew(tree, counts, given)


class ParameterFirst(pmd.CountStep):
    """Draws the marginalised parameter before the counts."""

    def step(self, point):
        before, _ = self._marginalised.step(point)
        after, stats = super().step(point)
        [name] = [x.name for x in self._marginalised.vars]
        return {**after, name: before[name]}, stats


@pytest.mark.parametrize(
    ("marginalised", "twin"), [(False, Forgetful), (True, ParameterFirst)], ids=["given", "out"]
)
def test_ranks_of_the_truth_are_uniform(marginalised, twin):
    """With a rate above each tree that is drawn given the counts, or marginalised."""
    model, *truth = forest(np.random.default_rng(5))
    with model:
        of_counts = pmd.CountStep(
            [model["table"]], integrate=[model["rate"]] if marginalised else (), tree=True
        )
        step = [of_counts] if marginalised else [of_counts, pmd.ConjugateStep([model["rate"]])]
    assert min(p_values(step, model, *truth)) > 1e-3
    of_counts.__class__ = twin
    assert min(p_values(step, model, *truth)) < 1e-6
