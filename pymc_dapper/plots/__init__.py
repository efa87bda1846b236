"""Figures of private inference, on arviz-plots; of studies, on matplotlib."""

from pymc_dapper.plots.analyses import plot_analyses
from pymc_dapper.plots.record_acceptance import plot_record_acceptance
from pymc_dapper.plots.study import plot_study

__all__ = ["plot_analyses", "plot_record_acceptance", "plot_study"]
