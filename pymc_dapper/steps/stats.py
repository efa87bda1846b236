"""Sampler statistics that are read after sampling, or reported to the user."""

import logging
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pymc_dapper.backend.internals import SamplerWarning, WarningType

ACCEPT_STAT = "dapper_accept"
"""Share of the records whose proposal was accepted in a sweep."""

RECORD_STAT = "dapper_accept_by_record"
"""Prefix of the names of statistics that say whether each record's proposal was accepted."""


def record_stat(place: int, name: str) -> str:
    """Name a step's statistic by its first record variable, and that one's place in the model.

    PyMC stacks statistics of the same name, which fails if steps have different numbers of records,
    and it doesn't keep their order.
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
"""PyMC logs it at a draw that has it, also from other processes, and leaves it out of results."""

WARNING_TYPE: tuple[type, None] = (SamplerWarning, None)
"""Dtype and shape of that statistic: None except at draws with a warning."""


def warning_of(message: str) -> SamplerWarning:
    """Return a chain's warning about variables that never moved, or hardly moved.

    The message says what, with its name, why that matters, and what to do.
    """
    return SamplerWarning(WarningType.CONVERGENCE, message, "warn")


def notice_of(message: str) -> SamplerWarning:
    """Return what a chain has to say that needs nothing done about it."""
    return SamplerWarning(WarningType.CONVERGENCE, message, "info")


@contextmanager
def each_warning_once() -> Iterator[None]:
    """Have a warning that several chains share logged once."""
    seen: set[str] = set()

    def is_new(record: logging.LogRecord) -> bool:
        known, message = len(seen), record.getMessage()
        seen.add(message)
        return len(seen) > known

    logger = logging.getLogger("pymc.stats.convergence")  # the logger of that statistic in PyMC
    logger.addFilter(is_new)
    try:
        yield
    finally:
        logger.removeFilter(is_new)
