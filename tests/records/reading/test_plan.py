"""What a sweep is planned to be: from models of each kind, without compiling anything."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.contributions import (
    RECORDS_IN_BLOCK,
    RowsAtOnce,
    RowsByBlock,
)
from pymc_dapper.records.reading.description import describe_reading
from pymc_dapper.records.reading.orders import ByOrder
from pymc_dapper.records.reading.plan import (
    ByEntries,
    ByFullEvaluation,
    BySums,
    EachByItself,
    NothingToDecide,
)
from pymc_dapper.records.reading.rows_by_cell import RowsByCell
from tests.records.record_models import FORMS


def randomised_response():
    with pm.Model() as model:
        record = pm.Bernoulli("record", pm.Beta("p", 1, 1), shape=9)
        pm.Bernoulli("answer", 0.25 + 0.5 * record, observed=np.zeros(9))
    return model


def look_up_for(n):
    """Contributions of records that a covariate tells apart."""
    with pm.Model() as model:
        record = pm.Categorical("record", np.full(3, 1 / 3), shape=n)
        table = (np.arange(n)[:, None] * pt.eye(3)[record]).sum(axis=0)
        pmd.LaplaceMechanism(4.0).potential("privacy", table, released=np.zeros(3))
    return model


def read(build):
    model = build()
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    return read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())


ENTRIES = "Each proposal is decided on by the entries of the sums that it changes."
SUMS = "Each proposal is decided on by the functions of all sums."
ADDED = "What a record adds to the sums is"
LOOKED_UP = f"{ADDED} one in a cell of a table, looked up by its values."
AT_ONCE = f"{ADDED} computed for all records at once."


@pytest.mark.parametrize(
    ("build", "decided", "rows", "said"),
    [
        (FORMS["one_hot"], ByEntries, RowsByCell, f"{ENTRIES}\n{LOOKED_UP}"),
        (FORMS["histogram_by_search"], ByEntries, RowsAtOnce, f"{ENTRIES}\n{AT_ONCE}"),
        (FORMS["correlated_noise"], BySums, RowsAtOnce, f"{SUMS}\n{AT_ONCE}"),
        (FORMS["variance"], BySums, RowsAtOnce, f"{SUMS}\n{AT_ONCE}"),
    ],
)
def test_what_sums_decide(build, decided, rows, said):
    reading = read(build)
    assert isinstance(reading.plan, decided)
    assert isinstance(reading.plan.rows, rows)
    assert f"{said}\nA sweep costs at most" in describe_reading(reading)


@pytest.mark.parametrize(
    ("build", "decided", "said"),
    [
        (FORMS["full_neighbours"], ByFullEvaluation, "by an evaluation from all records."),
        (FORMS["full_median"], ByOrder, "decided on by 1 order statistic."),
        (FORMS["full_maximum_with_other_factors"], ByOrder, "by 1 order statistic and the fun"),
        (FORMS["noisy_microdata_column"], EachByItself, "by what its record adds to the log-dens"),
        (randomised_response, NothingToDecide, "No proposal is refused."),
    ],
)
def test_plans_other_than_by_entries(build, decided, said):
    reading = read(build)
    assert isinstance(reading.plan, decided)
    assert said in describe_reading(reading)


@pytest.mark.parametrize("more", [0, 1])
def test_arrays_make_rows_for_some_records_at_a_time_where_there_are_many(more):
    """With no more than a block has, nothing is gained."""
    reading = read(lambda: look_up_for(RECORDS_IN_BLOCK + more))
    assert isinstance(reading.plan.rows, RowsByBlock if more else RowsAtOnce)
    at_a_time = f"{RECORDS_IN_BLOCK} records at a time" in describe_reading(reading)
    assert at_a_time == bool(more)


def test_a_plan_cannot_be_changed():
    plan = read(FORMS["one_hot"]).plan
    with pytest.raises(AttributeError):
        plan.rows = RowsAtOnce()
