"""How often the model is read."""

import sys
from collections import Counter

import numpy as np
import pymc as pm
import pytest
from pytensor.graph.basic import Variable

import pymc_dapper as pmd
from pymc_dapper.assignment.readings import Readings
from pymc_dapper.conjugacy.conditional import read_conditionals
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.interweaving.reading.model import read_non_centred
from pymc_dapper.records.reading.model import read_model


def test_what_can_be_counted_is_said(table_and_records):
    with pm.Model() as alone:
        pm.Poisson("count", 3.0)
    for model, counts in ((table_and_records, ["table", "total"]), (alone, [])):
        readings = Readings(model)
        assert [x.name for x in model.free_RVs if readings.can_be_counted(x)] == counts


@pytest.fixture
def readings_made(monkeypatch, uncompiled):
    """What is read of a model, in whichever module: the reader, and what it is asked about."""
    made = []

    def noted(read):
        def reading(model, *asked, **options):
            found = read(model, *asked, **options)
            about = [x for each in asked if isinstance(each, list | tuple) for x in each]
            names = (x.name if isinstance(x, Variable) else x.family.name for x in about)
            made.append((read.__name__, *names))
            return found

        return reading

    all_readers = (read_model, read_counts, read_conditionals, read_non_centred)
    readers = {read.__name__: read for read in all_readers}
    for module in [x for name, x in sys.modules.items() if name.startswith("pymc_dapper")]:
        for name, read in readers.items():
            if getattr(module, name, None) is read:
                monkeypatch.setattr(module, name, noted(read))
    return made


def of_records():
    with pm.Model() as model:
        mu, tau = pm.Normal("mu"), pm.HalfNormal("tau")
        x = pm.Normal("x", mu, tau, shape=5)
        pmd.GaussianMechanism(1.0).potential("release", x.sum(), released=0.5)
    return model


def of_answers():
    """Records with few values, which interweaving marginalises."""
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1)
        x = pm.Bernoulli("x", p, shape=5)
        pm.Bernoulli("answer", 0.2 + 0.6 * x, observed=[0, 1, 1, 0, 1])
        pmd.LaplaceMechanism(1.0).potential("sum", x.sum(), released=2.5)
    return model


def of_a_count_each():
    """Counts, which are read as a table first."""
    with pm.Model() as model:
        rate = pm.Gamma("rate", 2, 1)
        visits = pm.Poisson("visits", rate, shape=6)
        pmd.LaplaceMechanism(2.0).potential("s", visits.sum(), released=9.0)
    return model


def of_a_table():
    with pm.Model() as model:
        table = pm.Multinomial("table", 60, np.ones(3) / 3)
        pmd.LaplaceMechanism(2.0).potential("cells", table, released=[20.0, 25.0, 13.0])
    return model


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (of_records, {"read_model": 1, "read_non_centred": 1}),
        (of_answers, {"read_model": 1, "read_non_centred": 1}),
        (of_a_count_each, {"read_model": 1, "read_counts": 1, "read_non_centred": 1}),
        (of_a_table, {"read_counts": 1}),
    ],
)
@pytest.mark.parametrize("assign", [pmd.assign_steps, pmd.sample])
def test_the_model_is_read_once(build, expected, assign, readings_made, monkeypatch):
    monkeypatch.setattr("pymc_dapper.sampling.pm.sample", lambda *_, **__: None)
    assign(model=build())
    assert len(readings_made) == len(set(readings_made))
    of_latent = Counter(read for read, *_ in readings_made)
    assert of_latent.pop("read_conditionals", 0) <= 3
    assert of_latent == expected


def test_counts_with_parameters_marginalised_are_read_again(table_and_records, readings_made):
    """To find the tables, and then with their probabilities marginalised."""
    pmd.assign_steps(model=table_and_records)
    assert sorted(readings_made) == [
        ("read_conditionals", "p"),
        ("read_counts", "table"),
        ("read_counts", "table", "total"),
        ("read_counts", "table", "total", "Dirichlet"),
        ("read_counts", "total"),
        ("read_model", "x"),
    ]
