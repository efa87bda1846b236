"""Sampler statistics that are read again after sampling, or told to the user."""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pymc_dapper.backend.internals import SamplerWarning, WarningType

ACCEPT_STAT = "dapper_accept"
"""Share of the records whose proposal was accepted in a sweep."""

RECORD_STAT = "dapper_accept_by_record"
"""Whether each record's proposal was accepted: what the names of such statistics begin with."""


def record_stat(place: int, name: str) -> str:
    """Name a step's statistic by its first record variable, and that one's place in the model.

    PyMC stacks statistics of the same name, which it can't where steps have records in different
    numbers; and it doesn't keep their order.
    """
    return f"{RECORD_STAT}_{place}_{name}"


def record_stats(names: Iterable[Any]) -> list[str]:
    """Find such statistics among others, in the order in which the model has their records."""
    places = {str(name): re.match(rf"{RECORD_STAT}_(\d+)_", str(name)) for name in names}
    found = {name: int(place[1]) for name, place in places.items() if place is not None}
    return sorted(found, key=found.__getitem__)


EXCHANGE_STAT = "dapper_exchange_accept"
"""Share of a sweep's exchanges between two records that were made, if there are exchanges."""

WARNING_STAT = "warning"
"""What PyMC logs when a draw has it, also from other processes, and leaves out of its result."""

WARNING_TYPE: tuple[type, None] = (SamplerWarning, None)
"""Dtype and shape of that statistic: None but at draws with something to tell."""


def warning_of(message: str) -> SamplerWarning:
    """Return what a chain tells of variables that never moved in it, or hardly.

    The message says what, with its name, why that matters, and what to do.
    """
    return SamplerWarning(WarningType.CONVERGENCE, message, "warn")


@contextmanager
def told_once() -> Iterator[None]:
    """Have a warning that several chains share logged once."""
    told: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        known, message = len(told), record.getMessage()
        told.add(message)
        return len(told) > known

    logger = logging.getLogger("pymc.stats.convergence")  # where PyMC logs that statistic
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)
