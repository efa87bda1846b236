"""Tables to start from have the known totals, and can have been released."""

from functools import partial

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import sparse

from pymc_dapper import RandomRounding, TransitionMechanism
from pymc_dapper.counts.reading.known_totals import totals_of
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.counts.reading.self_check import WrittenFactors
from pymc_dapper.counts.reading.start import PossibleStart, find_start
from tests.counts.systems import SYSTEMS


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_start_has_the_known_totals(name):
    equations, known = SYSTEMS[name]
    matrix = sparse.csr_array(np.array(equations, dtype=float))
    names = [f"known{k}" for k in range(len(known))]
    ends = (np.array(known, dtype=float),) * 2
    start = find_start(matrix, ends, names, np.full(matrix.shape[1], 7))
    np.testing.assert_array_equal(matrix @ start, known)
    assert start.min() >= 0


# Where noise is bounded ---------------------------------------------------------------------------

RNG = np.random.default_rng(11)


def rounded(name, statistic, released):
    RandomRounding(3).potential(name, statistic, released=released)


def rates_far_from_the_prior():
    truth = 5000 + np.arange(6)
    rounded("cells", pm.Poisson("n", 2.0, shape=6), truth // 3 * 3)


def multinomial():
    truth = RNG.multinomial(1000, RNG.dirichlet(np.full(20, 0.3)))
    rounded("cells", pm.Multinomial("n", n=1000, p=np.full(20, 0.05)), truth // 3 * 3)


def exact():
    truth = RNG.multinomial(1_000_003, RNG.dirichlet(np.full(5, 1.0)))
    n = pm.Multinomial("n", n=1_000_003, p=np.full(5, 0.2))
    pm.Potential("cells", pt.switch(pt.eq(n[:2], truth[:2]), 0.0, -np.inf).sum())
    pm.Potential("near", pt.switch(pt.abs(n - truth) <= 1, 0.0, -np.inf).sum())


def margins():
    truth = RNG.poisson(3.0, size=(6, 5))
    n = pm.Poisson("n", 20.0, shape=(6, 5))
    release = partial(RandomRounding(3).release, random_seed=1)
    rounded("cells", n, release(truth))
    rounded("rows", n.sum(axis=1), release(truth.sum(axis=1)))
    rounded("columns", n.sum(axis=0), release(truth.sum(axis=0)))
    rounded("total", n.sum(), release(truth.sum()))


def suppressed_beside_margins():
    truth = np.array([[2, 40], [31, 9]])
    n = pm.Poisson("n", 1000.0, shape=(2, 2))
    published = np.ma.masked_less(truth // 3 * 3, 6)
    mechanism = RandomRounding(3).published_if(">=", 6)
    mechanism.potential("cells", n, released=published)
    rounded("rows", n.sum(axis=1), [42, 39])


def latent_total():
    total = pm.Poisson("total", 5.0)
    n = pm.Multinomial("n", n=total, p=np.full(3, 1 / 3))
    rounded("cells", n, [300, 0, 3])


def gaps():
    """A count may be released, or one below or two above it: not the one in between."""
    released = [601, 249, 4, 0, 147]
    changes = TransitionMechanism([[0.3, 0, 0.5, 0.2]], differences=[-2, -1, 0, 1], repeats=1)
    n = pm.Multinomial("n", n=1000, p=np.full(5, 0.2))
    changes.potential("cells", n, released=released)


def large():
    truth = RNG.poisson(30.0, size=2000)
    n = pm.Multinomial("n", n=int(truth.sum()), p=np.full(2000, 5e-4), initval=np.roll(truth, 1))
    rounded("cells", n, truth // 3 * 3)


@pytest.mark.parametrize(
    "model",
    [
        *(rates_far_from_the_prior, multinomial, exact, margins),
        *(suppressed_beside_margins, latent_total, gaps, large),
    ],
)
def test_a_start_can_have_been_released(model):
    with pm.Model() as m:
        model()
    reading, totals_at, given = read(m)
    counts = np.concatenate([m.initial_point()[x.name].ravel() for x in reading.counts])
    known, totals = reading.known, totals_at(given)
    counts = find_start(known.matrix, (totals, totals), known.factors, counts)
    written = WrittenFactors(reading, given)
    assert not np.isfinite(written(counts).sum())
    start = PossibleStart(reading)(counts, totals, given)
    assert np.isfinite(written(start).sum())


def read(model):
    reading = read_counts(model, model.value_vars)
    return reading, totals_of(reading), [x.get_value() for x in reading.data]


def test_what_no_table_can_have_led_to_has_no_start():
    with pm.Model() as m:
        n = pm.Poisson("n", 5.0, shape=2)
        rounded("cells", n, [3, 3])
        rounded("total", n.sum(), 18)
    reading, totals_at, given = read(m)
    start = PossibleStart(reading)
    assert start(np.array([5, 5]), totals_at(given), given) is None
