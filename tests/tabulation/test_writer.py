"""Faults in a written model change its density, and are found before sampling."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

from pymc_dapper.tabulation import reading, writer
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.long_form import LongForm
from pymc_dapper.tabulation.model import tabulate
from pymc_dapper.tabulation.writer import write_table
from tests.tabulation import tabulable
from tests.tabulation.tabulable import differences


def _without_multiplicity(tabulated):
    """Leave out how many data sets are behind a table."""
    with tabulated:
        for rv in tabulated.free_RVs:
            if rv.name.endswith("_counts"):
                n = rv.owner.op.dist_params(rv.owner)[0]
                coefficient = pt.gammaln(n + 1.0).sum() - pt.gammaln(rv + 1.0).sum()
                pm.Potential(f"{rv.name}_fault", -coefficient)


def _without_covariates(monkeypatch):
    def leaf_at_first(values, first):
        return values[np.zeros_like(first)]

    monkeypatch.setattr(reading, "at_first", leaf_at_first)


def _with_rows_mismatched(monkeypatch):
    monkeypatch.setattr(reading, "at_first", lambda values, first: values[np.roll(first, 1)])


def _with_entries_mismatched(monkeypatch):
    class Mismatched(LongForm):
        def __init__(self, *args):
            super().__init__(*args)
            self._places = np.roll(self._places, 1, axis=1)

    monkeypatch.setattr(reading, "LongForm", Mismatched)


def _without_the_likelihood_of_later_variables(monkeypatch):
    """Give each variable the answers that see no later one."""

    def weigh(prior, logs):
        return original(prior, logs[:1])

    original = writer._weigh
    monkeypatch.setattr(writer, "_weigh", weigh)


FAULTS = {
    _without_the_likelihood_of_later_variables: (tabulable.outcomes_of_two,),
    _without_covariates: (
        tabulable.covariate,
        tabulable.groups,
        tabulable.logits,
        tabulable.one_of_each,
    ),
    _with_rows_mismatched: (
        tabulable.answers_and_counts,
        tabulable.answers_in_columns,
        tabulable.outcomes,
        tabulable.randomised_response,
    ),
    _with_entries_mismatched: (
        tabulable.item_responses,
        tabulable.answers_in_columns,
        tabulable.sums_of_columns,
    ),
}


@pytest.mark.parametrize(
    ("fault", "write"),
    [
        pytest.param(fault, write, marks=[pytest.mark.long] if k else [])
        for fault, writes in FAULTS.items()
        for k, write in enumerate(writes)
    ],
    ids=lambda function: function.__name__.strip("_"),
)
def test_faults_are_found(fault, write, monkeypatch):
    form = write()
    fault(monkeypatch)
    rvs = [form.model[name] for name in form.values]
    tabulated = write_table(reading.read_table(form.model, rvs))
    assert np.max(np.abs(differences(form, tabulated))) > 0.01
    with pytest.raises(TabulationError, match="a table of counts can't stand for the records"):
        tabulate(form.model, rvs)


@pytest.mark.parametrize(
    "write",
    [
        tabulable.categories,
        tabulable.missing_category,
        pytest.param(tabulable.chain, marks=pytest.mark.long),
    ],
)
def test_multiplicity_matters(write):
    form = write()
    tabulated = tabulate(form.model, [form.model[name] for name in form.values])
    _without_multiplicity(tabulated)
    assert np.max(np.abs(differences(form, tabulated))) > 0.01
