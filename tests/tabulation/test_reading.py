"""How a model is read for tabulation: its records, rows and totals."""

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.reading import cell_values, read_table
from tests.tabulation import tabulable


def test_cells_are_a_product_of_values():
    assert cell_values([range(2), range(1, 3)]).tolist() == [[0, 1], [0, 2], [1, 1], [1, 2]]
    assert cell_values([]).shape == (1, 0)


@pytest.mark.parametrize("write", tabulable.FORMS, ids=lambda write: write.__name__)
def test_rows_are_those_written_down(write):
    form = write()
    reading = read_table(form.model, [form.model[name] for name in form.values])
    own = np.zeros(len(form.rows)) if reading.rows.own is None else reading.rows.own
    assert np.array_equal(own, form.rows)
    assert form.table or not reading.sums


def test_nothing_of_the_records_number_is_made():
    # As an array, these would take more memory than there is.
    n = 10**14
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        x = pm.Categorical("x", p=p, shape=n)
        y = pm.Bernoulli("y", p[x])
        table = pmd.statistics.cross_counts(x, y, 3, 2)
        pmd.GaussianMechanism(5.0).potential("privacy", table, released=np.full((3, 2), n / 6))
        pm.Potential("spread", -((x.mean() - 1) ** 2) - x.var())
    reading = read_table(model, [x, y])
    assert (reading.n, reading.n_cells, reading.names) == (n, 6, "'x', 'y'")


def test_priors_that_tie_records_together_are_refused():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=4)
        y = pm.Bernoulli("y", 0.2 + 0.6 * x.mean(), shape=4)
        pm.Potential("privacy", -1.0 * y.sum())
    with pytest.raises(TabulationError, match="'y'"):
        read_table(model, [x, y])
