"""The records' prior as the graph that draws them."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.transforms import Interval, log

from pymc_dapper.graphs.prior import (
    all_entries,
    as_rows,
    read_prior_draws,
    read_proposals,
    to_values_of_records,
)
from pymc_dapper.graphs.view import view_of


def test_draws_that_no_value_stands_for_are_nan():
    draws = pt.constant([[0.5, 0.2], [0.5, 1.5], [0.5, 0.0]])
    found = to_values_of_records(Interval(0, 1), draws).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(found[0], np.log([1.0, 0.25]))
    # The second is outside, and the third is an end of the support: not one of its entries is left.
    assert np.isnan(found[1:]).all()
    positive = to_values_of_records(log, pt.constant([2.0, 3.0])).eval(mode="FAST_COMPILE")
    np.testing.assert_allclose(positive, np.log([2, 3]))


def test_entries_are_taken_together_by_record():
    rows = pt.constant(np.array([[[True], [False]], [[True], [True]]]))
    per_record = all_entries(rows)
    np.testing.assert_array_equal(per_record.eval(mode="FAST_COMPILE"), [False, True])
    assert as_rows(per_record, rows).eval(mode="FAST_COMPILE").shape == (2, 1, 1)
    vector = pt.constant(np.array([True, False]))
    assert all_entries(vector) is vector


def test_variables_are_drawn_together_given_all_others():
    with pm.Model() as model:
        mu = pm.Normal("mu")
        x = pm.LogNormal("x", mu, 1e-9, shape=3)
        y = pm.Normal("y", 2 * x, 1e-9, shape=3)
    view = view_of(model)
    given = {view.values[model.rvs_to_values[mu]]: np.array(0.7)}
    for read in (read_proposals, read_prior_draws):
        # In the space of the value variables: of x, that is the logarithm.
        y_drawn, x_drawn = read(view, [y, x])
        both = pt.stack([x_drawn, y_drawn]).eval(given, mode="FAST_COMPILE")
        np.testing.assert_allclose(both[0], 0.7, atol=1e-6)
        np.testing.assert_allclose(both[1], 2 * np.exp(0.7), atol=1e-6)
    # Alone, y is drawn given the present x.
    [y_drawn] = read_proposals(view, [y])
    present = {view.values[model.rvs_to_values[x]]: np.zeros(3)}
    np.testing.assert_allclose(y_drawn.eval(present, mode="FAST_COMPILE"), 2.0, atol=1e-6)
