"""Conjugate relations, read from a model's graph; registries for more of them."""

from pymc_dapper.conjugacy.children import Link
from pymc_dapper.conjugacy.families import (
    BETA,
    DIRICHLET,
    GAMMA,
    INVERSE_GAMMA,
    Family,
    conjugate_prior,
)
from pymc_dapper.conjugacy.relations import follow_parameter
from pymc_dapper.conjugacy.rules import conjugate_rule

__all__ = [
    "BETA",
    "DIRICHLET",
    "GAMMA",
    "INVERSE_GAMMA",
    "Family",
    "Link",
    "conjugate_prior",
    "conjugate_rule",
    "follow_parameter",
]
