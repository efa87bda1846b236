"""Models that DapperStep refuses, before sampling, with the variable's name and a way out."""

import pymc as pm
import pytest

from pymc_dapper import DapperStep, ReadingError


def refuse(build, message, error=ReadingError, **kwargs):
    with pm.Model() as model:
        records = build()
    with pytest.raises(error, match=message):
        DapperStep(records, model=model, **kwargs)


def with_mechanism(record):
    pm.Potential("privacy", -(record.sum() ** 2))
    return record
