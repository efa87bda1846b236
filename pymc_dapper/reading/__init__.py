"""How a PyMC model is read: records, what proposes them, and the factors that see them."""

from pymc_dapper.reading.errors import (
    NotAdditiveError,
    NotConjugateError,
    ReadingError,
    UnknownOperationError,
)
from pymc_dapper.reading.factors import (
    AdditiveFactor,
    Factor,
    FullFactor,
    RecordSum,
    SeparableFactor,
)
from pymc_dapper.reading.model import ModelReading, read_model
from pymc_dapper.reading.operations import follow_records
from pymc_dapper.reading.roles import Fixed, FunctionOfSums, Role, Rows, SumOverRecords

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
