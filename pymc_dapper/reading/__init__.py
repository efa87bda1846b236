"""For those who teach the reader an operation of their own: see docs/operations.md."""

from pymc_dapper.graphs.errors import (
    NotAdditiveError,
    NotConjugateError,
    ReadingError,
    UnknownOperationError,
)
from pymc_dapper.graphs.ops import (
    Accumulates,
    Action,
    AlongAxes,
    Increments,
    Keeps,
    Maps,
    Measures,
    Moves,
    Multiplies,
    Reduces,
    action_of,
)
from pymc_dapper.interweaving.compiled import counts  # noqa: F401  (registers its maps)
from pymc_dapper.records.compiled import truncated_counts  # noqa: F401  (registers its draws)
from pymc_dapper.records.reading.factors import (
    AdditiveFactor,
    Factor,
    FullFactor,
    RecordSum,
    SeparableFactor,
)
from pymc_dapper.records.reading.model import ModelReading, read_model
from pymc_dapper.records.reading.roles import Fixed, FunctionOfSums, Role, Rows, SumOverRecords
from pymc_dapper.records.reading.rules import follow_records

__all__ = [
    "Accumulates",
    "Action",
    "AdditiveFactor",
    "AlongAxes",
    "Factor",
    "Fixed",
    "FullFactor",
    "FunctionOfSums",
    "Increments",
    "Keeps",
    "Maps",
    "Measures",
    "ModelReading",
    "Moves",
    "Multiplies",
    "NotAdditiveError",
    "NotConjugateError",
    "ReadingError",
    "RecordSum",
    "Reduces",
    "Role",
    "Rows",
    "SeparableFactor",
    "SumOverRecords",
    "UnknownOperationError",
    "action_of",
    "follow_records",
    "read_model",
]
