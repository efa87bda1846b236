"""The ready-made models of microdata, sampled, against all that few people can be."""

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.microdata import graphical, latent_classes, shares
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from tests.microdata.releases import ALL_PAIRS, CHAIN, assignments, log_likelihood, release
from tests.monte_carlo import z_scores

N = 4


class Exact:
    """A discrete law on some values."""

    def __init__(self, values, probabilities):
        self.order = np.argsort(values)
        self.values, self.p = values[self.order], probabilities[self.order]
        self.mean = self.p @ self.values
        self.sd = np.sqrt(self.p @ self.values**2 - self.mean**2)


def urn(cells, sizes, given, column):
    """Polya's urn: log-probability of a column given others, a flat table integrated out."""
    values = np.stack(np.unravel_index(cells, sizes), axis=-1)
    row = np.zeros(cells.shape, dtype=int)
    for x in given:
        row = row * sizes[x] + values[..., x]
    total = np.zeros(len(cells))
    for person in range(cells.shape[1]):
        same_row = row[:, :person] == row[:, [person]]
        same = same_row & (values[:, :person, column] == values[:, [person], column])
        total += np.log((1 + same.sum(axis=1)) / (sizes[column] + same_row.sum(axis=1)))
    return total


def posterior(given, sizes, tables, seen):
    """All assignments of people to cells and how probable each is; ``tables`` by column."""
    cells = assignments(N, int(np.prod(sizes)))
    log_prior = sum(urn(cells, sizes, parents, column) for column, parents in tables.items())
    log_weight = log_prior + log_likelihood(given, seen(cells))
    weight = np.exp(log_weight - log_weight.max())
    return cells, weight / weight.sum()


def worst(draws, cells, probabilities, sizes):
    """How far draws of the people's tables are from the exact ones, in standard errors."""
    z = []
    for j, k in ((0, 1), (0, 2), (1, 2)):
        values = np.unravel_index(cells, sizes)
        a, b, *_ = values[-3:][j], values[-3:][k]
        exact = Exact(np.sum((a == 1) & (b == 1), axis=1).astype(float), probabilities)
        drawn = np.sum((draws[j] == 1) & (draws[k] == 1), axis=-1)
        scores = mean_and_sd(drawn, exact)
        z += scores
    return max(map(abs, z))


def mean_and_sd(drawn, exact):
    exact.quantile = lambda q: np.nan
    scores = z_scores(drawn, exact)
    return [scores["mean"], scores["sd"]]


def sampled(model):
    with model:
        idata = pmd.sample(
            4_000, tune=500, chains=2, cores=1, random_seed=1, keep_records=True, progressbar=False
        )
    return idata, [idata.posterior[f"person_{x}"].values for x in "abc"]


@pytest.mark.long
def test_people_of_a_graphical_model_are_those_of_enumeration():
    given = release(N, CHAIN)
    model = graphical(given, n=N)
    idata, draws = sampled(model)
    sizes = (2, 2, 2)
    tables = {
        "abc".index(x): tuple("abc".index(y) for y in model.named_vars_to_dims[f"p_{x}"][:-1])
        for x in "abc"
    }
    cells, probabilities = posterior(given, sizes, tables, lambda cells: cells)
    assert worst(draws, cells, probabilities, sizes) < 4
    # A twin that takes all columns to be independent of each other.
    twin = posterior(given, sizes, dict.fromkeys(tables, ()), lambda cells: cells)
    assert worst(draws, *twin, sizes) > 8
    assert shares(idata, ["a", "c"]).sum(["a", "c"]).values == pytest.approx(1)


@pytest.mark.long
def test_people_of_latent_classes_are_those_of_enumeration():
    """Of three classes, people have 24 values, and are looked up by the cells they are in."""
    classes = 3
    given = release(N, ALL_PAIRS)
    model = latent_classes(given, n=N, classes=classes)
    people = [model.rvs_to_values[x] for x in model.free_RVs if x.name.startswith("person")]
    rows = read_model(model, people, model.initial_point()).plan.rows
    assert isinstance(rows, RowsByCell)
    _, draws = sampled(model)
    sizes = (classes, 2, 2, 2)
    tables = {0: (), 1: (0,), 2: (0,), 3: (0,)}
    cells, probabilities = posterior(given, sizes, tables, lambda cells: cells % 8)
    assert worst(draws, cells, probabilities, sizes) < 4
    twin = posterior(given, sizes, {0: (), 1: (), 2: (), 3: ()}, lambda cells: cells % 8)
    assert worst(draws, *twin, sizes) > 8
