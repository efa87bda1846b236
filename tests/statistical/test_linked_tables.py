"""CountStep of linked tables, against sums over all people there may be."""

from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pymc as pm
import pytest
from scipy.special import gammaln

import pymc_dapper as pmd
from pymc_dapper.counts import step as steps
from pymc_dapper.counts.kernels.linked import NONE
from pymc_dapper.counts.step import CountStep
from tests import interweave_twins as twins
from tests.statistical.test_counts import normalised, z_scores

N, SIZES, SIGMA = 5, (2, 3, 2), 1.5
RELEASED = np.array([[2.1, -0.4, 1.7], [0.3, 2.6, -1.0]]), np.array([[0.2, 2], [3, 0.1], [0, 1]])


def chain():
    """Columns a, b and c, with noisy tables of a, b and of b, c; all probabilities are unknown."""
    with pm.Model() as model:
        p = [pm.Dirichlet(f"p_{k}", np.ones(SIZES[max(k - 1, 0) : k + 1])) for k in range(3)]
        a = pm.Multinomial("a", n=N, p=p[0])
        ab = pm.Multinomial("ab", n=a, p=p[1], shape=SIZES[:2])
        bc = pm.Multinomial("bc", n=ab.sum(axis=0), p=p[2], shape=SIZES[1:])
        for k, table in enumerate((ab, bc)):
            pmd.GaussianMechanism(SIGMA).potential(f"noisy_{k}", table, released=RELEASED[k])
    return model


def log_dirichlet_multinomial(counts):
    """Rows of counts, given their sums, with flat probabilities marginalised."""
    n, k = counts.sum(axis=-1), counts.shape[-1]
    return (gammaln(n + 1) + gammaln(k) - gammaln(n + k)).sum(axis=-1)


def by_enumeration():
    """All tables of a, b and of b, c, in one vector each, and their probabilities."""
    everybody = np.array(list(product(*map(range, SIZES))))
    cells = np.zeros((len(everybody), 12), dtype=int)
    cells[np.arange(len(cells)), everybody[:, 0] * 3 + everybody[:, 1]] = 1
    cells[np.arange(len(cells)), 6 + everybody[:, 1] * 2 + everybody[:, 2]] = 1
    chosen = combinations_with_replacement(range(len(cells)), N)
    tables = np.unique([cells[list(each)].sum(axis=0) for each in chosen], axis=0)
    ab, bc = tables[:, :6].reshape(-1, 2, 3), tables[:, 6:].reshape(-1, 3, 2)
    logp = log_dirichlet_multinomial(ab.sum(axis=2)[:, None])
    logp = logp + log_dirichlet_multinomial(ab) + log_dirichlet_multinomial(bc)
    for table, released in zip((ab, bc), RELEASED, strict=True):
        logp -= ((released - table) ** 2).sum(axis=(1, 2)) / (2 * SIGMA**2)
    return tables, normalised(logp)


def draws():
    with chain() as model:
        p, counts = model.free_RVs[:3], model.free_RVs[3:]
        step = CountStep(counts, integrate=p)
        found = pm.sample(
            draws=3_000,
            tune=200,
            chains=2,
            cores=1,
            step=[step],
            random_seed=4,
            var_names=["ab", "bc"],  # to record probabilities, PyMC would compile for ten seconds
            progressbar=False,
            compute_convergence_checks=False,
        ).posterior
    assert "columns of 2 linked tables" in step.describe()
    return np.concatenate(
        [found[name].values.reshape(2, 3_000, -1) for name in ("ab", "bc")], axis=-1
    ).astype(float)


def followed(step_type=pmd.InterweaveStep):
    """Probabilities move by themselves, and the tables follow."""
    with chain() as model:
        p, counts = model.free_RVs[:3], model.free_RVs[3:]
        steps = [CountStep(counts), step_type(p, records=counts, moves=4)]
        found = pm.sample(
            draws=1_500, tune=600, chains=2, cores=1, step=steps, random_seed=4, progressbar=False
        ).posterior
    return np.concatenate([found[x].values.reshape(2, 1_500, -1) for x in ("ab", "bc")], axis=-1)


def copied_column(slips):
    """Column b is a copy of column a, but for slips: hardly anybody changes one of them alone."""
    with pm.Model():
        a = pm.Multinomial("a", n=N, p=[0.4, 0.6])
        ab = pm.Multinomial("ab", n=a, p=slips + (1 - 2 * slips) * np.eye(2), shape=(2, 2))
        bc = pm.Multinomial("bc", n=ab.sum(axis=0), p=np.full((2, 2), 0.5), shape=(2, 2))
        pmd.GaussianMechanism(SIGMA).potential("noisy", bc, released=np.array([[2, 0.3], [0.1, 1]]))
        return sampled(CountStep([a, ab, bc]))


def sampled(step):
    """Draws of the table of b and c, with its cells last."""
    found = pm.sample(
        draws=3_000,
        tune=200,
        chains=1,
        step=step,
        random_seed=4,
        progressbar=False,
        compute_convergence_checks=False,
    ).posterior
    return found["bc"].values.reshape(1, 3_000, 4).astype(float)


def all_of_a_copied_column():
    tables = np.array([x for x in product(range(N + 1), repeat=4) if sum(x) == N])
    logp = gammaln(N + 1) - gammaln(tables + 1).sum(axis=1) + tables @ np.log([0.2, 0.2, 0.3, 0.3])
    logp -= ((tables - [2, 0.3, 0.1, 1]) ** 2).sum(axis=1) / (2 * SIGMA**2)
    return tables, normalised(logp)


def without(monkeypatch, left_out):
    """Leave out some moves of linked tables, and what would notice."""

    def misread(*arguments):
        moves = read(*arguments)
        linked = moves.linked[0]
        kept = linked.sets[~left_out(linked.sets)]
        return replace(moves, linked=(replace(linked, sets=kept),))

    read = steps.moves_of
    monkeypatch.setattr(steps, "moves_of", misread)
    monkeypatch.setattr(steps, "any_impossible", lambda *_: False)


@pytest.mark.long
@pytest.mark.parametrize("slips", [0.0, 1e-9])
def test_if_a_column_is_another_ones_copy_people_change_both_at_once(slips, monkeypatch):
    found = copied_column(slips)
    assert np.abs(z_scores(found, *all_of_a_copied_column())).max() < 4
    without(monkeypatch, lambda sets: sets[:, 0] < NONE)
    found = copied_column(slips)
    assert np.abs(np.nan_to_num(z_scores(found, *all_of_a_copied_column()))).max() > 8


@pytest.mark.long
def test_linked_tables_agree_with_all_tables_enumerated():
    assert np.abs(z_scores(draws(), *by_enumeration())).max() < 4


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:InterweaveStep alone has moved")
def test_linked_tables_follow_their_probabilities(monkeypatch):
    assert np.abs(z_scores(followed().astype(float), *by_enumeration())).max() < 4
    fault = twins.with_fault(twins.with_stale_records, monkeypatch)
    assert np.abs(z_scores(followed(fault).astype(float), *by_enumeration())).max() > 8


@pytest.mark.usefixtures("in_python")
def test_linked_tables_of_which_some_are_impossible_are_refused():
    """c follows from b: no one changes b alone, and none of the moves changes both."""
    with pm.Model():
        a = pm.Multinomial("a", n=N, p=[0.4, 0.6])
        ab = pm.Multinomial("ab", n=a, p=np.full((2, 3), 1 / 3), shape=(2, 3))
        bc = pm.Multinomial(
            "bc", n=ab.sum(axis=0), p=np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), shape=(3, 2)
        )
        pmd.GaussianMechanism(SIGMA).potential("noisy", bc, released=RELEASED[1])
        with pytest.raises(pmd.ReadingError, match=r"of 'a', 'ab', 'bc', some tables .*`moves=`"):
            CountStep([a, ab, bc])


@pytest.mark.long
def test_moves_of_several_columns_alone_show(monkeypatch):
    without(monkeypatch, lambda sets: sets[:, 1] < 0)
    assert np.abs(z_scores(draws(), *by_enumeration())).max() > 8


def rounded_pairs():
    """Counts within 3 of what was published: most tables are impossible."""
    with pm.Model():
        a = pm.Multinomial("a", n=N, p=[0.4, 0.6])
        ab = pm.Multinomial("ab", n=a, p=np.full((2, 2), 0.5), shape=(2, 2))
        bc = pm.Multinomial("bc", n=ab.sum(axis=0), p=np.full((2, 2), 0.5), shape=(2, 2))
        pmd.RandomRounding(3).potential("rounded", bc, released=np.array([[3, 0], [0, 3]]))
        return sampled(CountStep([a, ab, bc]))


@pytest.mark.long
def test_if_some_linked_tables_are_impossible_other_moves_are_taken():
    tables = np.array([x for x in product(range(N + 1), repeat=4) if sum(x) == N])
    unrounded = -gammaln(tables + 1).sum(axis=1)
    with np.errstate(divide="ignore"):
        chances = np.maximum(1 - np.abs(tables - [3, 0, 0, 3]) / 3, 0)
        logp = unrounded + np.log(chances).sum(axis=1)
    found = rounded_pairs()
    assert np.abs(z_scores(found, tables, normalised(logp))).max() < 4
    assert np.abs(z_scores(found, tables, normalised(unrounded))).max() > 8
