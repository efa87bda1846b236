"""Releases: read from files and from what privacy libraries tell, kept, put into models."""

from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release
from pymc_dapper.releases.tables import read_release

__all__ = ["Query", "Release", "read_release"]
