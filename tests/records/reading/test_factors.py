"""Factors are told apart by how the records enter them."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.reading import AdditiveFactor, FullFactor, SeparableFactor, read_model
from pymc_dapper.records.reading.factors import read_factors
from tests.records.record_models import FORMS


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        (
            "several_releases_mixed",
            [AdditiveFactor, AdditiveFactor, AdditiveFactor, SeparableFactor],
        ),
        ("noisy_microdata_column", [SeparableFactor]),
        ("sum_of_what_each_record_may_be", [SeparableFactor]),
        ("latent_child", [AdditiveFactor, AdditiveFactor, SeparableFactor]),
        ("variance", [AdditiveFactor]),
        ("full_median", [FullFactor]),
    ],
)
def test_factors_are_told_apart(name, kinds):
    model = FORMS[name]()
    values = [model.rvs_to_values[rv] for rv in model.free_RVs if rv.name.startswith("record")]
    factors = read_model(model, values, model.initial_point()).factors
    assert sorted((type(factor) for factor in factors), key=str) == sorted(kinds, key=str)


def test_sums_of_the_same_contributions_are_kept_once():
    x, slope = pt.vector("x", shape=(4,)), pt.scalar("slope")
    [factor] = read_factors({"privacy": -(x.sum() ** 2) + slope * pt.sum(x) + (x**2).sum()}, [x])
    assert isinstance(factor, AdditiveFactor)
    assert not factor.expanded
    contributions = [each.contributions for each in factor.sums]
    found = pt.stack(contributions).eval({x: np.arange(4.0)}, mode="FAST_COMPILE")
    assert sorted(found.tolist()) == [[0, 1, 2, 3], [0, 1, 4, 9]]
    # The log-density is a function of the totals and of variables that aren't records.
    at = {each.total: np.array(total) for each, total in zip(factor.sums, (6.0, 14.0), strict=True)}
    value = factor.log_density.eval({**at, slope: 2.0}, mode="FAST_COMPILE")
    assert value == {6.0: -36 + 12 + 14, 14.0: -196 + 28 + 6}[6.0 if found[0][2] == 2 else 14.0]
