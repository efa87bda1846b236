"""What is compiled of a model with counts marginalised, evaluated in Python."""

import numpy as np
import pytest

from pymc_dapper.marginalised.compiled.marginal_density import compile_sums
from pymc_dapper.marginalised.reading.model import NotMarginalisableError, read_marginalised
from tests.evaluated_in_python import evaluated_in_python
from tests.marginalised.count_models import Chosen, binomial


@pytest.fixture
def sums():
    model = binomial()
    values = [[model.rvs_to_values[model[name]]] for name in ("effect", "x")]
    with evaluated_in_python():
        yield compile_sums(read_marginalised(model, *values), {})


def given_of(sums):
    return [np.array([-0.4, 0.9]), *(x.get_value() for x in sums.reading.data)]


def test_tables_do_not_depend_on_where_they_begin(sums):
    tables = []
    for counts in ([0, 0], [6, 2], [3, 9]):
        sums.tabulate(np.array(counts), given_of(sums))
        tables.append([table.get_value() for table in sums.tables])
    for other in tables[1:]:
        for table, expected in zip(other, tables[0], strict=True):
            np.testing.assert_allclose(table, expected, rtol=1e-12)


def test_draws_are_by_a_uniform_number_each(sums):
    sums.tabulate(np.array([1, 1]), given_of(sums))
    given = given_of(sums)
    drawn = [
        sums.draw(Chosen(uniforms), given)[0].tolist()
        for uniforms in ([0.1, 0.1], [0.9, 0.1], [0.1, 0.9], [0.9, 0.9])
    ]
    low, high = drawn[0], drawn[3]
    assert low[0] < high[0]
    assert low[1] < high[1]
    assert drawn[1] == [high[0], low[1]]
    assert drawn[2] == [low[0], high[1]]


def test_tables_that_would_be_too_large_are_refused(sums, monkeypatch):
    monkeypatch.setattr("pymc_dapper.marginalised.compiled.marginal_density.LARGEST_TABLES", 20)
    with pytest.raises(
        NotMarginalisableError, match="'x' can't be marginalised: noise leaves too many"
    ):
        sums.tabulate(np.array([1, 1]), given_of(sums))
