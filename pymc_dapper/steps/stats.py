"""Sampler statistics that are read again after sampling, or told to the user."""

from pymc.stats.convergence import SamplerWarning, WarningType

ACCEPT_STAT = "dapper_accept"
"""Share of the records whose proposal was accepted in a sweep."""

RECORD_STAT = "dapper_accept_by_record"
"""Each record's acceptance rate: None but at a chain's last draw."""

EXCHANGE_STAT = "dapper_exchange_accept"
"""Share of the exchanges between two records that were made in a sweep, where there are any."""

WARNING_STAT = "warning"
"""What PyMC logs when a draw has it, also from other processes, and leaves out of its result."""

WARNING_TYPE: tuple[type, None] = (SamplerWarning, None)
"""Dtype and shape of that statistic: None but at draws with something to tell."""


def never_moved(message: str) -> SamplerWarning:
    """Return what a chain tells of variables that never moved in it.

    Parameters
    ----------
    message : str
        What never moved in this chain, with its name, why that matters, and what to do.
    """
    return SamplerWarning(WarningType.CONVERGENCE, message, "warn")
