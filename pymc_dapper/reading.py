"""Names for teaching the readers an operation, or a distribution's map: see docs/operations.md."""

from pymc_dapper.graphs.errors import NotAdditiveError, ReadingError
from pymc_dapper.graphs.ops import (
    Accumulates,
    AlongAxes,
    Increments,
    Keeps,
    Maps,
    Measures,
    Moves,
    Multiplies,
    Reduces,
)
from pymc_dapper.interweaving.compiled import counts  # noqa: F401  (registers its maps)
from pymc_dapper.interweaving.reading.maps import NoRecordMapError, RecordMap, record_map
from pymc_dapper.interweaving.reading.model import can_interweave
from pymc_dapper.records.compiled import truncated_counts  # noqa: F401  (registers its draws)
from pymc_dapper.records.reading.factors import AdditiveFactor, FullFactor, SeparableFactor
from pymc_dapper.records.reading.model import read_model
from pymc_dapper.records.reading.roles import Fixed, Rows, SumOverRecords
from pymc_dapper.records.reading.rules import follow_records

__all__ = [
    "Accumulates",
    "AdditiveFactor",
    "AlongAxes",
    "Fixed",
    "FullFactor",
    "Increments",
    "Keeps",
    "Maps",
    "Measures",
    "Moves",
    "Multiplies",
    "NoRecordMapError",
    "NotAdditiveError",
    "ReadingError",
    "RecordMap",
    "Reduces",
    "Rows",
    "SeparableFactor",
    "SumOverRecords",
    "can_interweave",
    "follow_records",
    "read_model",
    "record_map",
]
