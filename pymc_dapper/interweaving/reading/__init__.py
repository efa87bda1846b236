"""Records as a function of parameters and of noise: x_i = F^-1(u_i; theta)."""

from pymc_dapper.interweaving.reading import families  # noqa: F401  (registers its maps)
from pymc_dapper.interweaving.reading.hierarchy import find_hierarchy, find_series
from pymc_dapper.interweaving.reading.maps import NoRecordMapError, RecordMap, record_map
from pymc_dapper.interweaving.reading.model import can_interweave, read_movable, read_non_centred
from pymc_dapper.interweaving.reading.non_centred import NonCentredModel

__all__ = [
    "NoRecordMapError",
    "NonCentredModel",
    "RecordMap",
    "can_interweave",
    "find_hierarchy",
    "find_series",
    "read_movable",
    "read_non_centred",
    "record_map",
]
