"""Models in the forms that people write them are read, and what was read is compared with them."""

import cProfile
import pstats
from functools import partial

import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.counts.reading.model import read_counts
from pymc_dapper.reading import read_model
from tests.records.record_models import FORMS, checked


# One in three is read in every run by `test_op.py`, which tries its sweep, too.
@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[] if k % 3 else [pytest.mark.long]) for k, x in enumerate(FORMS)],
)
def test_every_form_is_read(name):
    checked(name)


@pytest.mark.parametrize("of_counts", [False, True])
def test_a_recursion_is_read_in_proportion_to_its_length(of_counts):
    def calls(n_steps):
        with pm.Model() as model:
            rate = pm.Beta("rate", 2, 2, shape=2)
            x = rate if of_counts else pm.Beta("x", 2, 2, shape=(5, 2))
            for _ in range(n_steps):
                x = 2 * x * (1 - x) + rate * x**2
            seen = pm.Poisson("seen", 10 * x) if of_counts else x.sum(axis=0)
            pmd.LaplaceMechanism(1.0).potential("released", seen, released=[3.0, 4.0])
        value, point = model.value_vars[1], model.initial_point()
        read = read_counts if of_counts else partial(read_model, point=point)
        with cProfile.Profile() as profile:
            read(model, [value])
        return pstats.Stats(profile).total_calls

    calls(5)  # the parts that are computed once
    few, more, many = map(calls, (5, 10, 20))
    assert many - more < 1.2 * 2 * (more - few)
