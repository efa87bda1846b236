import pytest

import pymc_dapper as pmd
from pymc_dapper.budget.written import budget_from_dict, budget_to_dict


@pytest.mark.parametrize("budget", [None, pmd.PureDP(0.3), pmd.ZCDP(0.1), pmd.ApproxDP(1, 1e-6)])
def test_a_budget_comes_back(budget):
    assert budget_from_dict(budget_to_dict(budget)) == budget


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ({"kind": "RenyiDP", "alpha": 2}, ValueError, "no budget of kind 'RenyiDP'"),
        ({"epsilon": 1.0}, ValueError, "no budget of kind None"),
        ({"kind": "PureDP"}, TypeError, "PureDP.*epsilon"),
        ({"kind": "PureDP", "epsilon": -1.0}, ValueError, "PureDP.*positive"),
        ({"kind": "ZCDP", "rho": 1.0, "delta": 0.1}, TypeError, "ZCDP.*delta"),
        (1.0, TypeError, "dict or as null"),
    ],
)
def test_what_is_no_budget_is_refused(content, error, message):
    with pytest.raises(error, match=message):
        budget_from_dict(content)
