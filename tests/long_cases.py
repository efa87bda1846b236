"""Tests that compile something for each of many cases: a third of them in every run."""

import pytest


def one_in_three(cases):
    """Mark two of three cases as `long`, so that only `make test-all` runs them."""
    values = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [
        pytest.param(*each, marks=[pytest.mark.long] if k % 3 else [])
        for k, each in enumerate(values)
    ]
