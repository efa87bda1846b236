"""Tests that compile something for each of many cases: a third of them in every run."""

import pytest


def one_in_three(names):
    """Mark two of three cases as `long`, so that only `make test-all` runs them."""
    return [
        pytest.param(name, marks=[pytest.mark.long] if k % 3 else [])
        for k, name in enumerate(names)
    ]
