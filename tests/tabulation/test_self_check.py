"""The check of a table against its records, made before anything is sampled."""

import logging
from itertools import product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.tabulation import reading, self_check, writer
from pymc_dapper.tabulation.choice import table_if_cheaper
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.model import tabulate
from pymc_dapper.tabulation.reading import read_table
from pymc_dapper.tabulation.self_check import are_all_possible, check_table
from pymc_dapper.tabulation.writer import write_table
from tests.long_cases import one_in_three
from tests.tabulation import tabulable
from tests.tabulation.tabulable import FORMS


def read_and_written(form):
    read = read_table(form.model, [form.model[name] for name in form.values])
    return read, write_table(read)


@pytest.mark.parametrize("write", one_in_three(FORMS), ids=lambda write: write.__name__)
def test_tables_stand_for_their_records(write):
    check_table(*read_and_written(write()))


def _without_multiplicity(tabulated):
    [counts] = [rv for rv in tabulated.free_RVs if "_count" in rv.name]
    pm.Potential("fault", pt.gammaln(counts + 1.0).sum())


def _other_values(tabulated):
    [share] = [x for x in tabulated.deterministics if x.name == "share"]
    tabulated.deterministics.remove(share)
    del tabulated.named_vars["share"]
    pm.Deterministic("share", share + 0.1)


@pytest.mark.parametrize(
    ("fault", "write", "message"),
    [
        (_without_multiplicity, tabulable.categories, "their prior would be"),
        (_without_multiplicity, tabulable.zeros_and_ones, "their prior would be"),
        (_other_values, tabulable.groups, "'share' would be"),
    ],
)
def test_faults_are_found(fault, write, message):
    read, written = read_and_written(write())
    with written:
        fault(written)
    with pytest.raises(TabulationError, match=message):
        check_table(read, written)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (tabulable.answers_of_groups, "'other_answer' would be"),
        (tabulable.answers_and_counts, "'answer' would be"),
        (tabulable.covariate, "their prior would be"),
        (tabulable.uniform_records, "'privacy' would be"),
    ],
)
def test_rows_of_others_are_found(write, message, monkeypatch):
    monkeypatch.setattr(reading, "at_first", lambda values, first: values[np.roll(first, 1)])
    with pytest.raises(TabulationError, match=message):
        check_table(*read_and_written(write()))


def _margins_of_other_variables(monkeypatch):
    """Add up the last variables of a table, whichever the next one is given."""

    def margin(self, given):
        if not given:
            return self._sizes()
        cells = self._cells[(*self._reading.given[given[-1]], given[-1])]
        return cells.sum(axis=tuple(range(len(self._lead) + len(given), cells.type.ndim)))

    monkeypatch.setattr(writer._Writer, "_margin", margin)


def _cells_of_another_table(monkeypatch):
    original = writer._Writer._flat_cells

    def of_the_one_before(self, table):
        tables = self._reading.tables
        return original(self, tables[tables.index(table) - 1])

    monkeypatch.setattr(writer._Writer, "_flat_cells", of_the_one_before)


@pytest.mark.parametrize(
    ("fault", "write", "message"),
    [
        (_margins_of_other_variables, tabulable.chain, "their prior would be -inf"),
        (_margins_of_other_variables, tabulable.ring, "their prior would be -inf"),
        (_cells_of_another_table, tabulable.chain, "'ab' would be"),
        (_cells_of_another_table, tabulable.ring, "'ab' would be"),
    ],
)
def test_tables_that_are_linked_otherwise_are_found(fault, write, message, monkeypatch):
    fault(monkeypatch)
    with pytest.raises(TabulationError, match=message):
        check_table(*read_and_written(write()))


def test_what_a_model_of_counts_lacks_is_found():
    read, written = read_and_written(tabulable.several_releases())
    written.potentials.remove(written["scores"])
    with pytest.raises(TabulationError, match="lacks 'scores'"):
        check_table(read, written)


def test_sample_goes_on_with_records_where_a_table_is_wrong(monkeypatch, caplog):
    def model(n):
        z = np.arange(n) % 2
        with pm.Model() as model:
            x = pm.Bernoulli("x", 0.2 + 0.5 * z, shape=n)
            pm.Potential("privacy", -1.0 * x.sum())
        return model

    assert table_if_cheaper(model(1_000), None, ()) is not None
    monkeypatch.setattr(reading, "at_first", lambda values, first: values[np.roll(first, 1)])
    with caplog.at_level(logging.WARNING, logger="pymc.dapper"):
        assert table_if_cheaper(model(1_000), None, ()) is None
    assert "Not sampled as a table" in caplog.text


def test_records_are_evaluated_unless_they_are_many(monkeypatch):
    form = tabulable.categories()
    read, written = read_and_written(form)

    def evaluated(*arguments):
        raise ArithmeticError

    monkeypatch.setattr(self_check, "at_point", evaluated)
    with pytest.raises(TabulationError, match="can't be compared"):
        check_table(read, written)
    assert self_check.is_evaluated_soon(read)
    monkeypatch.setattr(self_check, "MOST_ENTRIES", 4 * 3 - 1)
    assert not self_check.is_evaluated_soon(read)


def _chain(n, categories, see, of_last=None):
    """Three columns, each seen with the next; the last one also by ``see``."""
    size = (categories, categories)
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((2, *size)))
        a = pm.Categorical("a", np.full(categories, 1 / categories), shape=n)
        b = pm.Categorical("b", p[0][a])
        c = pm.Categorical("c", (p[1] if of_last is None else pt.as_tensor(of_last))[b])
        for name, pair in {"ab": (a, b), "bc": (b, c)}.items():
            table = pmd.statistics.joint_counts(pair, size)
            pmd.GaussianMechanism(2.0).potential(name, table, released=np.full(size, n / 9))
        see(b, c, n)
    return model


def _nothing(b, c, n):
    """Nothing else sees them."""


def _noisy(b, c, n):
    pmd.LaplaceMechanism(1.0).observe("noisy", c.sum(), released=3.0)
    rounded = pmd.GaussianMechanism(20.0).rounded(5).published_if(">=", 5)
    table = np.ma.masked_equal([0, 5 * (n // 15), 5 * (n // 15)], 0)
    rounded.potential("rounded", pmd.statistics.counts(c, 3), released=table)


def _known(b, c, n):
    pmd.invariant("known", pt.eq(c, 1).sum(), n // 3)


def _known_within_a_tolerance(b, c, n):
    pm.Potential("known", pt.switch(pt.abs(c.mean() - (n // 3) / n) < 1e-6, 0.0, -np.inf))


def _known_as_observed(b, c, n):
    pm.DiracDelta("known", c.sum(), observed=n)


def _noise_with_bounds(b, c, n):
    pmd.RandomRounding(3).observe("rounded", pmd.statistics.counts(c, 3), released=[3, 6, 6])


def _impossible_pairs(b, c, n):
    pm.Potential("possible", pt.switch(pt.eq(b, 2) & pt.eq(c, 0), -np.inf, 0.0))


@pytest.mark.parametrize(("see", "n"), one_in_three(product([_noisy, _nothing], [15, 3_000_000])))
def test_noisy_tables_are_linked(see, n):
    assert "b_c_counts" in tabulate(_chain(n, 3, see)).named_vars


IMPOSSIBLE = (
    _known,
    _known_within_a_tolerance,
    _known_as_observed,
    _noise_with_bounds,
    _impossible_pairs,
)


@pytest.mark.parametrize(("see", "n"), one_in_three(product(IMPOSSIBLE, [15, 3_000_000])))
def test_impossible_tables_are_not_linked(see, n):
    assert "a_b_c_counts" in tabulate(_chain(n, 3, see)).named_vars


@pytest.mark.parametrize("n", [15, 3_000_000])
def test_values_that_are_impossible_beside_others_are_in_one_table(n):
    for zeros, name in ((0.0, "a_b_c_counts"), (0.1, "b_c_counts")):
        of_last = np.array([[0.3, 0.7 - zeros, zeros], [0.2, 0.3, 0.5], [0.4, 0.4, 0.2]])
        assert name in tabulate(_chain(n, 3, _nothing, of_last)).named_vars


def test_one_table_around_impossible_ones_may_be_too_large():
    assert "b_c_counts" in tabulate(_chain(1_000, 20, _nothing)).named_vars
    with pytest.raises(TabulationError, match="'a', 'b', 'c' can have 8000 values, more than"):
        tabulate(_chain(1_000, 20, _known))


def test_tables_that_cannot_be_evaluated_are_not_linked(monkeypatch):
    def fails(*arguments):
        raise ArithmeticError

    reading, written = read_and_written(tabulable.chain())
    assert are_all_possible(reading, written)
    monkeypatch.setattr(self_check, "log_density_at", fails)
    assert not are_all_possible(reading, written)
