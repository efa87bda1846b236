"""How a PyMC model is read, for who teaches the reader more: see docs/reading-a-model.md."""

from pymc_dapper.graphs.errors import (
    NotAdditiveError,
    NotConjugateError,
    ReadingError,
    UnknownOperationError,
)
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
    "AdditiveFactor",
    "Factor",
    "Fixed",
    "FullFactor",
    "FunctionOfSums",
    "ModelReading",
    "NotAdditiveError",
    "NotConjugateError",
    "ReadingError",
    "RecordSum",
    "Role",
    "Rows",
    "SeparableFactor",
    "SumOverRecords",
    "UnknownOperationError",
    "follow_records",
    "read_model",
]
