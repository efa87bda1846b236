"""Releases: read from files and from the objects of privacy libraries, saved, added to models.

A `Query` is the released values of one statistic, with their mechanism. A `Release` holds all
queries. Every reader makes these two, so checks are made once: that the mechanism can have released
the values (`Mechanism.as_released`), dims, and labels. `frames` reads tables of any library, and
`arrays` arranges their rows as arrays. Files of the 2020 Census have readers of their own:
`census_files` for rows, some at a time, `census` for queries, `census_codes` for their classes, and
`census_tables` for trees of tables.

Labels are compared with the model's before a query is added: a release in another order would fit
in shape. `margins` sums a table over the dims that a query doesn't have. `mechanism_json` writes
mechanisms and rules as the fields of their dataclasses; a new one needs its name there. This folder
knows no sampler.
"""

from pymc_dapper.releases.census import census_bounds, census_totals, read_census
from pymc_dapper.releases.census_tables import census_tables
from pymc_dapper.releases.diffprivlib import diffprivlib_mechanism
from pymc_dapper.releases.opendp import opendp_mechanism, read_opendp
from pymc_dapper.releases.pipeline_dp import noise_of_stddev, pipeline_dp_mechanisms
from pymc_dapper.releases.private_pgm import read_measurements
from pymc_dapper.releases.smartnoise import smartnoise_mechanism
from pymc_dapper.releases.tumult import tumult_mechanisms

__all__ = [
    "census_bounds",
    "census_tables",
    "census_totals",
    "diffprivlib_mechanism",
    "noise_of_stddev",
    "opendp_mechanism",
    "pipeline_dp_mechanisms",
    "read_census",
    "read_measurements",
    "read_opendp",
    "smartnoise_mechanism",
    "tumult_mechanisms",
]
