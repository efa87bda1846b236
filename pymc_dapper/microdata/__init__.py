"""Models of the people behind noisy tables of many columns, made from a release.

Each is a plain PyMC model: a categorical variable ``person_COLUMN`` with an entry for each person,
tables of probabilities ``p_COLUMN`` with the release's labels, and a Potential for each table that
was released. `columns` reads off the release which columns there are and how many people.
"""

from pymc_dapper.microdata.graphical import graphical
from pymc_dapper.microdata.latent_classes import latent_classes
from pymc_dapper.microdata.regressions import regressions
from pymc_dapper.microdata.shares import shares

__all__ = ["graphical", "latent_classes", "regressions", "shares"]
