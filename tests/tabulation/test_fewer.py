"""Models of the same form with few records."""

import logging

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.tabulation import reading as readings
from pymc_dapper.tabulation import self_check
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.fewer import few_records, with_few_records
from pymc_dapper.tabulation.model import compare
from pymc_dapper.tabulation.rows import distinct_rows
from pymc_dapper.tabulation.writer import write_table
from tests.tabulation.tabulable import FORMS, picked

MANY = 330_000_000
QUICK = {"data_covariate", "logits", "randomised_response", "two_variables"}
OF_ANY_LENGTH = [
    pytest.param(write, marks=() if write.__name__ in QUICK else pytest.mark.long)
    for write in FORMS
    # Of as many records as there are categories, these would be cut, too.
    if write.__name__ not in ("answers_of_groups", "answers_in_columns")
]


def test_records_are_of_all_rows_and_several_of_each():
    rows = distinct_rows([np.array([2, 0, 2, 1])], 4)
    np.testing.assert_array_equal(few_records(rows), np.repeat([1, 3, 0], 3))
    of_many = few_records(distinct_rows([np.arange(1_000) // 2], 1_000))
    assert len(of_many) == 48
    assert {0, 998} <= set(of_many)
    assert set(few_records(distinct_rows([], MANY))) == {0}


@pytest.mark.parametrize("write", OF_ANY_LENGTH, ids=lambda write: write.__name__)
def test_a_model_of_the_same_form_has_the_density_of_the_chosen_records(write):
    form = write()
    shape, rng = form.shape or (len(form.rows),), np.random.default_rng(0)
    n = shape[0]
    some = rng.permutation(n)  # as many, so that the rest of the model is the same
    model, few = form.model, with_few_records(form.model, n, some)
    point = model.initial_point(1)
    point |= {name: rng.choice(values, shape) for name, values in form.values.items()}
    cut = {name: x[some] if name in form.values else x for name, x in point.items()}
    density, of_few = (x.compile_logp(mode="FAST_COMPILE") for x in (model, few))
    assert of_few(cut) == pytest.approx(density(point), abs=1e-9)


@pytest.mark.parametrize("write", OF_ANY_LENGTH, ids=lambda write: write.__name__)
def test_tables_of_many_are_compared_for_few(write, monkeypatch, caplog):
    form = write()
    caplog.clear()  # a release without a budget may be told of
    _compare_for_few(form, monkeypatch)
    if write is picked:
        # Weights that were picked beforehand are as many as before.
        assert "can't be compared either: Incompatible Elemwise input shapes" in caplog.text
    else:
        assert not caplog.records


def _compare_for_few(form, monkeypatch):
    read = readings.read_table(form.model, [form.model[name] for name in form.values])
    with monkeypatch.context() as patched:
        patched.setattr(self_check, "MOST_ENTRIES", 48 * 9)
        patched.setattr("pymc_dapper.tabulation.model.is_evaluated_soon", _once(False))
        compare(read, write_table(read))


def _once(first):
    """Answer with this at first, and then with the truth."""
    answers = iter([first])
    return lambda read: next(answers, None) is None


def nation(released):
    with pm.Model(coords={"person": range(4)}) as model:
        p = pm.Dirichlet("p", np.ones(4))
        x = pm.Categorical("x", p=p, shape=MANY)
        pm.Deterministic("share", pmd.statistics.counts(x, 4).value / MANY)
        pmd.GaussianMechanism(1e4).potential("mean", x.mean(), released=released)
    return model


def test_a_fault_is_found_whatever_the_number_of_records(monkeypatch):
    pmd.tabulate(nation(1.5))
    original = readings.TableReading.at_cells

    def off_by_one(self, graph, n_variables, rows=slice(None)):
        return original(self, graph, n_variables, rows) + 1

    monkeypatch.setattr(readings.TableReading, "at_cells", off_by_one)
    with pytest.raises(TabulationError, match="'share' would be"):
        pmd.tabulate(nation(1.5))


def test_what_cannot_be_evaluated_is_no_disagreement(monkeypatch, caplog):
    def fails(*arguments):
        raise ValueError("a length that nobody can see")

    monkeypatch.setattr(self_check, "at_point", fails)
    with caplog.at_level(logging.WARNING, logger="pymc.dapper"):
        pmd.tabulate(nation(1.5))
    assert "'x' wasn't compared with the records" in caplog.text


def test_models_that_cannot_be_compared_are_reported(monkeypatch, caplog):
    def fails(*arguments):
        raise ValueError("a length that nobody can see")

    monkeypatch.setattr("pymc_dapper.tabulation.model.with_few_records", fails)
    with caplog.at_level(logging.WARNING, logger="pymc.dapper"):
        pmd.tabulate(nation(1.5))
    assert "'x' wasn't compared with the records" in caplog.text
    assert "a length that nobody can see" in caplog.text
