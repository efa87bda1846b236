"""Records as functions of parameters and noise, for who adds one: see docs/small-budgets.md."""

from pymc_dapper.interweaving.reading import (
    NoRecordMapError,
    RecordMap,
    can_interweave,
    record_map,
)

__all__ = ["NoRecordMapError", "RecordMap", "can_interweave", "record_map"]
