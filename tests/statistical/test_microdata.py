"""The ready-made models of microdata, sampled, against all that few people can be."""

from dataclasses import dataclass, field
from itertools import combinations_with_replacement

import arviz as az
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import pymc_dapper as pmd
from pymc_dapper.microdata import graphical, latent_classes, regressions, shares
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from tests.microdata.releases import ALL_PAIRS, CHAIN, SIGMA, prior_of, release
from tests.monte_carlo import z_scores

N = 4
PAIRS = ("ab", "ac", "bc")


class Exact:
    """A discrete law on some values."""

    def __init__(self, values, probabilities):
        self.mean = probabilities @ values
        self.sd = np.sqrt(probabilities @ values**2 - self.mean**2)

    def quantile(self, q):
        return np.nan


@dataclass
class People:
    """All that people can be: how many are in each cell of their columns, a, b and c last.

    ``given`` are the columns that each is given. Tables of probabilities are marginalised. Their
    priors are flat, but for those columns whose weights are ``weights``.
    """

    sizes: tuple
    given: dict
    numbers: range
    weights: dict = field(default_factory=dict)

    def __post_init__(self):
        n_cells = int(np.prod(self.sizes))
        states = [
            np.bincount(cells, minlength=n_cells)
            for n in self.numbers
            for cells in combinations_with_replacement(range(n_cells), n)
        ]
        self.cells = np.array(states).reshape(-1, *self.sizes)

    def margin(self, columns):
        """How many have each combination of some columns, by their numbers."""
        kept = [1 + k for k in columns]
        others = tuple(k for k in range(1, self.cells.ndim) if k not in kept)
        left = sorted(kept)
        return self.cells.sum(axis=others).transpose(0, *(1 + left.index(k) for k in kept))

    def log_prior(self):
        """Orders of people times probabilities of one, by Polya's urn for each row of a table."""
        by_cell = self.cells.reshape(len(self.cells), -1)
        total = gammaln(by_cell.sum(axis=1) + 1) - gammaln(by_cell + 1).sum(axis=1)
        for column, given in self.given.items():
            table = self.margin((*given, column))
            weights = np.asarray(self.weights.get(column, np.ones(self.sizes[column])))
            rows = (gammaln(table + weights) - gammaln(weights)).sum(axis=-1)
            rows += gammaln(weights.sum()) - gammaln(weights.sum() + table.sum(axis=-1))
            total = total + rows.reshape(len(rows), -1).sum(axis=1)
        return total

    def posterior(self, *log_likelihoods):
        """Probabilities of all states, given terms for each."""
        log = self.log_prior() + sum(log_likelihoods)
        weight = np.exp(log - log.max())
        return weight / weight.sum()

    def of(self, name):
        """The margin of some of the last three columns, by their letters."""
        return self.margin([len(self.sizes) - 3 + "abc".index(x) for x in name])


def gaussian(people, query):
    """The log-likelihood of a table with noise as it is."""
    error = people.of("".join(query.dims)) - query.values
    return -0.5 * (error**2).reshape(len(error), -1).sum(axis=1) / SIGMA**2


def worst(draws, people, probabilities, there=True):
    """How far draws of the people's tables are from the exact ones, in standard errors."""
    z = []
    for pair in PAIRS:
        a, b = (draws[x] for x in pair)
        drawn = np.sum((a == 1) & (b == 1) & there, axis=-1)
        scores = z_scores(drawn, Exact(people.of(pair)[:, 1, 1], probabilities))
        z += [abs(scores["mean"]), abs(scores["sd"])]
    return max(z)


def sampled(model, seed=1, draws=4_000):
    with model:
        idata = pmd.sample(
            draws,
            tune=500,
            chains=2,
            cores=1,
            random_seed=seed,
            keep_records=True,
            progressbar=False,
        )
    return idata, {x: idata.posterior[f"person_{x}"].values for x in "abc"}


def tables_of(model):
    """The columns that each column is given, by their numbers."""
    dims = {x: model.named_vars_to_dims[f"p_{x}"] for x in "abc"}
    return {"abc".index(x): tuple("abc".index(y) for y in own[:-1]) for x, own in dims.items()}


CLASSES = 3
OF_CLASSES = {0: (), 1: (0,), 2: (0,), 3: (0,)}


@pytest.mark.long
def test_people_of_a_graphical_model_are_those_of_enumeration():
    given = release(N, CHAIN)
    model = graphical(given, n=N)
    idata, draws = sampled(model)
    people = People((2, 2, 2), tables_of(model), range(N, N + 1))
    seen = [gaussian(people, query) for query in given]
    assert worst(draws, people, people.posterior(*seen)) < 4
    # A twin that takes all columns to be independent of each other.
    twin = People((2, 2, 2), dict.fromkeys(range(3), ()), range(N, N + 1))
    assert worst(draws, twin, twin.posterior(*seen)) > 8
    assert shares(idata, ["a", "c"]).sum(["a", "c"]).values == pytest.approx(1)


@pytest.mark.long
def test_people_of_latent_classes_are_those_of_enumeration():
    """Of three classes, people have 24 values, and are looked up by the cells they are in."""
    given = release(N, ALL_PAIRS)
    model = latent_classes(given, n=N, classes=CLASSES)
    records = [model.rvs_to_values[x] for x in model.free_RVs if x.name.startswith("person")]
    rows = read_model(model, records, model.initial_point()).plan.rows
    assert isinstance(rows, RowsByCell)
    _, draws = sampled(model)
    weights = dict(enumerate(prior_of(given).values(), 1))
    people = People((CLASSES, 2, 2, 2), OF_CLASSES, range(N, N + 1), weights)
    seen = [gaussian(people, query) for query in given]
    assert worst(draws, people, people.posterior(*seen)) < 4
    independent = dict.fromkeys(range(4), ())
    for twin in (
        People((CLASSES, 2, 2, 2), independent, range(N, N + 1), weights),
        People((CLASSES, 2, 2, 2), OF_CLASSES, range(N, N + 1)),  # with flat priors
    ):
        assert worst(draws, twin, twin.posterior(*seen)) > 8


@pytest.mark.long
def test_suppressed_and_rounded_tables_and_exact_margins_are_those_of_enumeration():
    n, limit, step = 6, 1.0, 3.0
    shown = np.array([[2.6, np.nan], [np.nan, 3.4]])
    rounded = np.array([[3.0, 0.0], [0.0, 3.0]])
    noise = pmd.GaussianMechanism(SIGMA)
    low = noise.published_if(">=", limit)
    given = pmd.Release(
        [
            pmd.Query("a * b", np.ma.masked_invalid(shown), low, ("a", "b")),
            pmd.Query("b * c", rounded, noise.rounded(step), ("b", "c")),
        ]
    )
    model = graphical(given, n=n)
    with model:
        pmd.invariant("all of c", pmd.statistics.counts(model["person_c"], 2), [2, 4])
    _, draws = sampled(model, draws=8_000)
    people = People((2, 2, 2), tables_of(model), range(n, n + 1))
    ab, bc = people.of("ab"), people.of("bc")
    hidden = np.isnan(shown)
    density = np.where(hidden, 0.0, stats.norm(ab, SIGMA).logpdf(np.where(hidden, 0, shown)))
    of_shown = density.sum(axis=(1, 2))
    of_hidden = np.where(hidden, stats.norm(ab, SIGMA).logcdf(limit), 0.0).sum(axis=(1, 2))
    ends = [stats.norm(bc, SIGMA).cdf(rounded + side * step / 2) for side in (-1, 1)]
    of_rounded = np.log(ends[1] - ends[0]).sum(axis=(1, 2))
    with np.errstate(divide="ignore"):
        of_margin = np.log((people.of("c") == [2, 4]).all(axis=1))
    exact = people.posterior(of_shown, of_hidden, of_rounded, of_margin)
    assert worst(draws, people, exact) < 4
    # Twins: suppressed cells say nothing, rounded ones are exact to the digit, no margin is known.
    as_it_is = stats.norm(bc, SIGMA).logpdf(rounded).sum(axis=(1, 2))
    for twin in (
        (of_shown, of_rounded, of_margin),
        (of_shown, of_hidden, as_it_is, of_margin),
        (of_shown, of_hidden, of_rounded),
    ):
        assert worst(draws, people, people.posterior(*twin)) > 8


@pytest.mark.long
def test_an_unknown_number_of_people_is_that_of_enumeration():
    sigma = 0.3
    total = pmd.Query("total", 3.4, pmd.GaussianMechanism(sigma))
    given = pmd.Release([*release(N, ALL_PAIRS), total])
    model = latent_classes(given, classes=2)
    idata, draws = sampled(model)
    low, high = (
        x.eval(mode="FAST_COMPILE") for x in model["n"].owner.op.dist_params(model["n"].owner)
    )
    weights = dict(enumerate(prior_of(given).values(), 1))
    people = People((2, 2, 2, 2), OF_CLASSES, range(int(low), int(high) + 1), weights)
    numbers = people.cells.reshape(len(people.cells), -1).sum(axis=1)
    seen = [gaussian(people, query) for query in given if query.dims]
    exact = people.posterior(*seen, stats.norm(numbers, sigma).logpdf(3.4))
    n = idata.posterior["n"].values
    there = np.arange(draws["a"].shape[-1]) < n[..., None]
    scores = z_scores(n, Exact(numbers, exact))
    assert max(abs(scores["mean"]), abs(scores["sd"])) < 4
    assert worst(draws, people, exact, there) < 4
    # Twins: those who aren't there are counted, too; the total is that of the tables alone.
    assert worst(draws, people, exact) > 8
    assert worst(draws, people, people.posterior(*seen), there) > 8


def simulated(given, numbers, size=400_000, seed=1):
    """Tables of people of a sequence of regressions, from the prior; and their likelihood."""
    rng = np.random.default_rng(seed)
    n, room = rng.choice(numbers, size), max(numbers)
    people = {}
    for k, column in enumerate("abc"):
        weights = rng.exponential(size=(size, 1, 2)) * np.ones((size, room, 2))
        for before in "abc"[:k]:
            of_row = rng.exponential(size=(size, 2, 2))
            weights *= np.take_along_axis(of_row, people[before][..., None], axis=1)
        share = weights[..., 1] / weights.sum(axis=-1)
        people[column] = (rng.random((size, room)) < share).astype(int)
    there = np.arange(room) < n[:, None]
    tables, log = {}, np.zeros(size)
    for query in given:
        if query.dims:
            first, second = (people[x] for x in query.dims)
            cells = [
                [((first == j) & (second == k) & there).sum(axis=1) for k in (0, 1)] for j in (0, 1)
            ]
            tables["".join(query.dims)] = table = np.moveaxis(np.array(cells), -1, 0)
            log += stats.norm(table, SIGMA).logpdf(query.values).sum(axis=(1, 2))
        else:
            log += stats.norm(n, query.mechanism.sigma).logpdf(query.values)
    return n, tables, np.exp(log - log.max())


def differences(found, expected, weight):
    """z-scores of means of draws, of importance sampling's error, too."""
    share = weight / weight.sum()
    z = []
    for drawn, values in zip(found, expected, strict=True):
        mean = share @ values
        error = np.sqrt(np.sum(share**2 * (values - mean) ** 2))
        own = drawn.std() / np.sqrt(az.ess(drawn, method="mean"))
        z.append(abs(drawn.mean() - mean) / np.hypot(error, own))
    return np.array(z)


@pytest.mark.long
@pytest.mark.parametrize("known", [True, False])
def test_people_of_a_sequence_of_regressions_are_those_of_simulation(known):
    total = [] if known else [pmd.Query("total", 4.6, pmd.GaussianMechanism(0.7))]
    given = pmd.Release([*release(5, ALL_PAIRS), *total])
    model = regressions(given, n=5 if known else None)
    idata, draws = sampled(model)
    numbers = range(5, 6)
    if not known:
        ends = model["n"].owner.op.dist_params(model["n"].owner)
        low, high = (int(x.eval(mode="FAST_COMPILE")) for x in ends)
        numbers = range(low, high + 1)
    n, tables, weight = simulated(given, numbers)
    of_draws = 5 if known else idata.posterior["n"].values
    there = np.arange(draws["a"].shape[-1]) < np.asarray(of_draws)[..., None]
    found = [
        np.sum((draws[x] == 1) & (draws[y] == 1) & there, axis=-1).astype(float) for x, y in PAIRS
    ]
    expected = [tables[pair][:, 1, 1] for pair in PAIRS]
    if not known:
        found, expected = [*found, of_draws.astype(float)], [*expected, n]
    assert differences(found, expected, weight).max() < 4
    # A twin in which the last table wasn't released.
    twin = simulated(pmd.Release([*list(given)[:2], *total]), numbers)[2]
    assert differences(found[:2], expected[:2], twin).max() > 8
