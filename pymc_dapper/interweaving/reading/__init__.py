"""Records as a function of parameters and of noise: x_i = F^-1(u_i; theta)."""

from pymc_dapper.interweaving.reading import families  # noqa: F401  (registers its maps)
from pymc_dapper.interweaving.reading.held_fixed import NoiseHeldFixed
from pymc_dapper.interweaving.reading.maps import NoRecordMapError, RecordMap, record_map
from pymc_dapper.interweaving.reading.noise_held_fixed import can_interweave, read_noise_held_fixed

__all__ = [
    "NoRecordMapError",
    "NoiseHeldFixed",
    "RecordMap",
    "can_interweave",
    "read_noise_held_fixed",
    "record_map",
]
