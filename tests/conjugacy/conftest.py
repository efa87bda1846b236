"""What tests of rules may ask for."""

import pytest

from pymc_dapper.conjugacy import families, rules


@pytest.fixture
def registry(monkeypatch):
    """Rules and priors registered by a test are forgotten after it."""
    monkeypatch.setattr(rules, "_pairs", {key: list(each) for key, each in rules._pairs.items()})
    monkeypatch.setattr(families, "_priors", dict(families._priors))
