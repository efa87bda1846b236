"""What tests of accelerations have in common."""

import pytest

from pymc_dapper.backend.accelerate.switch import SWITCH


@pytest.fixture(autouse=True)
def accelerated(monkeypatch):
    """They are on here, also if all tests are run without them, unless a test turns them off."""
    monkeypatch.delenv(SWITCH, raising=False)
